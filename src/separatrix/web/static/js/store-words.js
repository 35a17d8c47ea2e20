// Between addresses, filters and stored cells: no page, so that it can be tested alone.

export const FIELDS = ["construction", "mechanism", "verdict", "status", "engine", "n"];
export const VERDICTS = ["distinguishes", "blind", "saturated", "partial", "undecided"];

export function valueOf(pairs, name) {
  return pairs.find(([each]) => each === name)?.[1] ?? "";
}

// The pairs with one of them changed, added, or (by an empty value) left out.
export function withValue(pairs, name, value) {
  const others = pairs.filter(([each]) => each !== name);
  if (value === "") return others;
  const place = pairs.findIndex(([each]) => each === name);
  return place < 0 ? [...pairs, [name, value]] : pairs.map((each) => (each[0] === name ? [name, value] : each));
}

// Conditions that have no field of their own, as one types them.
export function otherConditions(words) {
  return words.filter(([name]) => !FIELDS.includes(name)).map(([name, value]) => `${name}=${value}`).join(" ");
}

export function withOthers(words, typed) {
  const read = typed.trim().split(/\s+/).filter(Boolean).map((word) => {
    const [name, ...value] = word.split("=");
    return [name, value.join("=")];
  });
  return [...words.filter(([name]) => FIELDS.includes(name)), ...read];
}

// A parameter as one types it: 1000000000 is 1e9.
export function spelled(value) {
  const [, digits, zeros] = /^(\d+?)(0*)$/.exec(String(value)) ?? [];
  return zeros?.length >= 5 ? `${digits}e${zeros.length}` : String(value);
}

// P with what is known of it: 0.99975, or the ends of its interval.
export function chance(cell, forPeople) {
  if (cell.distinguish === null || cell.distinguish === undefined) return "";
  const [low, high] = cell.interval ?? [null, null];
  const p = forPeople(cell.distinguish, 4);
  return low === null || low === high ? p : `${p} in [${forPeople(low, 3)}, ${forPeople(high, 3)}]`;
}

// Parameters that differ among cells, the first so many, and those that all share.
export function spread(cells, most = 4) {
  const names = [...new Set(cells.flatMap((cell) => Object.keys(cell.parameters ?? {})))];
  const seen = (name) => new Set(cells.map((cell) => String(cell.parameters?.[name] ?? "")));
  const varying = names.filter((name) => seen(name).size > 1);
  const shared = names.filter((name) => seen(name).size === 1);
  return { varying: varying.slice(0, most), left: Math.max(0, varying.length - most), shared: shared.map((name) => [name, cells[0].parameters[name]]) };
}

const SAMPLED = ["draws", "seed", "confidence", "dtype"];

// The command that asks the same as a stored verdict, as a place of the page.
export function questionOf(cell) {
  const options = [["engine", cell.asked], ["delta", cell.delta]];
  const drawn = cell.interval && cell.interval[0] !== cell.interval[1];
  if (drawn) for (const name of SAMPLED) options.push([name, cell[name]]);
  const usual = { engine: "auto", delta: "0.01", confidence: "0.95", dtype: "float64" };
  return {
    command: "verdict",
    names: [cell.construction, cell.mechanism],
    words: Object.entries(cell.parameters).map(([name, value]) => [name, String(value)]),
    options: options.filter(([name, value]) => value !== null && value !== undefined && String(value) !== usual[name]).map(([name, value]) => [name, String(value)]),
  };
}

// The cells that ask a construction at a point, as a place of the page.
export function cellsAt({ construction, mechanism, parameters, sweep }) {
  const words = [["construction", construction], ...(mechanism ? [["mechanism", mechanism]] : []), ...Object.entries(parameters).map(([name, value]) => [name, String(value)])];
  return { command: "results", names: [], words, options: sweep ? [["sweep", String(sweep)]] : [] };
}

// Lines of cells over one axis as uPlot takes them: [xs, ys of the first line, …]. A line has nothing
// (undefined) where another has a point, and a gap (null) where a cell has no answer. Sampled cells, of which
// there may be several at one place, are left out: they are drawn as points.
export function aligned(lines) {
  const xs = [...new Set(lines.flatMap((line) => line.x))].sort((a, b) => a - b);
  const place = new Map(xs.map((x, i) => [x, i]));
  const columns = lines.map((line) => {
    const ys = new Array(xs.length).fill(undefined);
    line.x.forEach((x, i) => { if (line.kind[i] !== "sampled") ys[place.get(x)] = line.p[i]; });
    return ys;
  });
  return [xs, ...columns];
}

// What every line says at one place, as text.
export function saidAt(lines, x, forPeople) {
  return lines.flatMap((line) => {
    const here = line.x.map((each, i) => (each === x ? i : -1)).filter((i) => i >= 0);
    return here.map((i) => {
      if (line.p[i] === null) return `${line.mechanism}: no answer`;
      const interval = line.kind[i] === "sampled" ? ` in [${forPeople(line.low[i], 3)}, ${forPeople(line.high[i], 3)}]` : "";
      return `${line.mechanism}: P = ${forPeople(line.p[i])}${interval}, ${line.kind[i]}, ${line.word[i]}`;
    });
  });
}

export function textAt(lines, x) {
  for (const line of lines) {
    const i = line.x.indexOf(x);
    if (i >= 0) return line.exactly[i];
  }
  return String(x);
}

const USUAL = ["sqlite:///results.db", "results.db"];

// The option that names the store in a command; none where a command takes that store anyway.
export function storeOption(store) {
  return store && !USUAL.includes(store) ? [["store", store]] : [];
}

// How far a sweep is, in words.
export function progressText(sweep) {
  const whole = sweep.stored >= sweep.planned;
  const count = (x) => x.toLocaleString("en");
  const failed = ["failed", "refused"].filter((word) => sweep.not_done[word]).map((word) => `, ${count(sweep.not_done[word])} ${word}`).join("");
  return `${whole ? `all ${count(sweep.planned)}` : `${count(sweep.stored)} of ${count(sweep.planned)}`} cells${failed}`;
}
