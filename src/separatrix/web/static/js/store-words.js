// Addresses, filters and texts of stored cells; nothing here needs a page, so that it can be tested alone.

import { forPeople } from "./format.js";

export const FIELDS = ["construction", "mechanism", "verdict", "status", "engine", "n"];
export const VERDICTS = ["distinguishes", "blind", "saturated", "partial", "undecided"];

export function valueOf(pairs, name) {
  return pairs.find(([other]) => other === name)?.[1] ?? "";
}

// The pairs with one of them changed, added, or removed by an empty value.
export function withValue(pairs, name, value) {
  if (value === "") return pairs.filter(([other]) => other !== name);
  const isPresent = pairs.some(([other]) => other === name);
  return isPresent ? pairs.map((pair) => (pair[0] === name ? [name, value] : pair)) : [...pairs, [name, value]];
}

// Conditions without a field of their own, as they are typed.
export function otherConditions(words) {
  return words.filter(([name]) => !FIELDS.includes(name)).map(([name, value]) => `${name}=${value}`).join(" ");
}

export function withOtherConditions(words, text) {
  const conditions = text.trim().split(/\s+/).filter(Boolean).map((word) => {
    const [name, ...value] = word.split("=");
    return [name, value.join("=")];
  });
  return [...words.filter(([name]) => FIELDS.includes(name)), ...conditions];
}

// A parameter as it is typed: 1000000000 is 1e9.
export function spellValue(value) {
  const [, digits, zeros] = /^(\d+?)(0*)$/.exec(String(value)) ?? [];
  return zeros?.length >= 5 ? `${digits}e${zeros.length}` : String(value);
}

// P with its interval, where it has one: 0.99975, 0.4 in [0.3, 0.6].
export function describeProbability(cell) {
  if (cell.distinguish === null || cell.distinguish === undefined) return "";
  const [low, high] = cell.interval ?? [null, null];
  const p = forPeople(cell.distinguish, 4);
  return low === null || low === high ? p : `${p} in [${forPeople(low, 3)}, ${forPeople(high, 3)}]`;
}

// The parameters that differ among cells, at most `most` of them, and those that all share.
export function splitParameters(cells, most = 4) {
  const names = [...new Set(cells.flatMap((cell) => Object.keys(cell.parameters ?? {})))];
  const valuesOf = (name) => new Set(cells.map((cell) => String(cell.parameters?.[name] ?? "")));
  const varying = names.filter((name) => valuesOf(name).size > 1);
  const shared = names.filter((name) => valuesOf(name).size === 1);
  return { varying: varying.slice(0, most), left: Math.max(0, varying.length - most), shared: shared.map((name) => [name, cells[0].parameters[name]]) };
}

const SAMPLING_OPTIONS = ["draws", "seed", "confidence", "dtype"];

// The place whose command computes a stored verdict again.
export function questionOf(cell) {
  const options = [["engine", cell.asked], ["delta", cell.delta]];
  const isSampled = cell.interval && cell.interval[0] !== cell.interval[1];
  if (isSampled) for (const name of SAMPLING_OPTIONS) options.push([name, cell[name]]);
  const defaults = { engine: "auto", delta: "0.01", confidence: "0.95", dtype: "float64" };
  return {
    command: "verdict",
    names: [cell.construction, cell.mechanism],
    words: Object.entries(cell.parameters).map(([name, value]) => [name, String(value)]),
    options: options.filter(([name, value]) => value !== null && value !== undefined && String(value) !== defaults[name]).map(([name, value]) => [name, String(value)]),
  };
}

// The place that lists the cells of a construction at a point.
export function cellsAt({ construction, mechanism, parameters, sweep }) {
  const words = [["construction", construction], ...(mechanism ? [["mechanism", mechanism]] : []), ...Object.entries(parameters).map(([name, value]) => [name, String(value)])];
  return { command: "results", names: [], words, options: sweep ? [["sweep", String(sweep)]] : [] };
}

const CIRCLE = "M13 7a4 4 0 1 0 8 0a4 4 0 1 0-8 0"; // around (17, 7), as chart.js draws symbols
const DASHES = [[], [8, 4], [2, 3], [10, 3, 2, 3]];

// The chart of a curve: a line through the exact cells of each mechanism, broken where one has no answer, and a ring with
// its interval for each sampled cell.
export function curveChart({ x, log, lines }, colourOf) {
  const series = lines.flatMap(({ mechanism, x: xs, p, low, high, word, kind }, i) => {
    const look = { name: mechanism, colour: colourOf(mechanism), dash: DASHES[i % DASHES.length], width: 2, symbol: CIRCLE, size: 0.6 };
    const pick = (isSampled) => {
      const at = [...xs.keys()].filter((k) => (kind[k] === "sampled") === isSampled);
      const texts = at.map((k) => `${kind[k]}, ${word[k]}`);
      return { x: at.map((k) => xs[k]), y: at.map((k) => p[k]), low: at.map((k) => low[k]), high: at.map((k) => high[k]), texts };
    };
    return [{ ...look, ...pick(false), line: true, filled: true }, { ...look, ...pick(true), line: false, size: 1 }].filter((part) => part.x.length);
  });
  return { label: `P(tells apart) against ${x}; the numbers are below`, height: 260, x: { label: x, log }, y: { label: "P(tells apart)", log: false, range: [-0.04, 1.04] }, series };
}

// The exact text of a value on the axis.
export function textAt(lines, x) {
  for (const line of lines) {
    const i = line.x.indexOf(x);
    if (i >= 0) return line.exactly[i];
  }
  return String(x);
}

const DEFAULT_STORES = ["sqlite:///results.db", "results.db"];

// The option that names the store in a command; none for the default store.
export function storeOption(store) {
  return store && !DEFAULT_STORES.includes(store) ? [["store", store]] : [];
}

// The progress of a sweep, in words.
export function progressText(sweep) {
  const isComplete = sweep.stored >= sweep.planned;
  const count = (x) => x.toLocaleString("en");
  const failed = ["failed", "refused"].filter((word) => sweep.not_done[word]).map((word) => `, ${count(sweep.not_done[word])} ${word}`).join("");
  return `${isComplete ? `all ${count(sweep.planned)}` : `${count(sweep.stored)} of ${count(sweep.planned)}`} cells${failed}`;
}
