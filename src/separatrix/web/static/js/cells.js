// The arithmetic of maps: axes as they are typed, positions of cells, ticks, lines between cells. Nothing here needs a
// page, so that it can be tested alone.

import { forPeople, powerOfTen } from "./format.js";

// A number as the server spells it: "1000", "0.85", "107/126".
export function numberOf(text) {
  const [top, bottom] = String(text).split("/");
  return bottom === undefined ? Number(top) : Number(top) / Number(bottom);
}

// An axis as it is typed: { low, high, count, log } with its ends as text, and `list` where its values are typed one by
// one; null where the text is no axis.
export function readAxis(text) {
  if (typeof text !== "string") return null;
  if (text.includes(",")) {
    const list = text.split(",").filter((value) => value.trim());
    return { low: list[0], high: list.at(-1), count: list.length, log: false, list };
  }
  const [low, high, count, spacing] = text.split(":");
  return high === undefined ? null : { low, high, count: Number(count) || 0, log: spacing === "log", list: null };
}

export function spellAxis({ low, high, count, log, list }) {
  if (list) return list.join(",");
  return `${low}:${high}:${count}${log ? ":log" : ""}`;
}

// The axis with at most so many cells.
export function coarsenAxis(text, most) {
  const axis = readAxis(text);
  if (!axis || axis.list || axis.count <= most) return text;
  return spellAxis({ ...axis, count: Math.max(2, most) });
}

// The positions of the cells of an axis. `edges` has one more number than there are cells, from 0 to 1; an edge is half-way
// between two values, in the logarithm where the axis is logarithmic.
export function layOutAxis(values, log) {
  const at = Float64Array.from(values, (value) => (log ? Math.log10(numberOf(value)) : numberOf(value)));
  const count = at.length;
  const first = count > 1 ? (at[1] - at[0]) / 2 : 0.5;
  const last = count > 1 ? (at[count - 1] - at[count - 2]) / 2 : 0.5;
  const low = at[0] - first;
  const high = at[count - 1] + last;
  const share = (place) => (place - low) / (high - low);
  const edges = new Float64Array(count + 1);
  for (let i = 1; i < count; i += 1) edges[i] = share((at[i - 1] + at[i]) / 2);
  edges[count] = 1;
  const centres = Float64Array.from(at, share);
  const back = (place) => (log ? 10 ** place : place);
  return { count, edges, centres, log, low: back(low), high: back(high) };
}

// The position of a number as a share of the axis; below 0 or above 1 it is outside.
export function shareOf(axis, value) {
  const scale = axis.log ? Math.log10 : Number;
  return (scale(value) - scale(axis.low)) / (scale(axis.high) - scale(axis.low));
}

export function valueAt(axis, share) {
  if (!axis.log) return axis.low + share * (axis.high - axis.low);
  const [low, high] = [Math.log10(axis.low), Math.log10(axis.high)];
  return 10 ** (low + share * (high - low));
}

// The part of an axis between two shares of the way, as an axis with the same cells; those outside have edges below 0
// or above 1.
export function cropAxis(axis, [from, to]) {
  const share = (place) => (place - from) / (to - from);
  return { ...axis, edges: axis.edges.map(share), centres: axis.centres.map(share), low: valueAt(axis, from), high: valueAt(axis, to) };
}

// The cell at a share of the axis; outside, the nearest.
export function cellAt(axis, share) {
  let [low, high] = [0, axis.count];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (axis.edges[middle] <= share) low = middle;
    else high = middle;
  }
  return low;
}

// The cell that each of so many pixels shows: the one that contains its centre.
export function cellsOfPixels(axis, pixels) {
  const cells = new Uint32Array(pixels);
  let cell = 0;
  for (let i = 0; i < pixels; i += 1) {
    const share = (i + 0.5) / pixels;
    while (cell < axis.count - 1 && axis.edges[cell + 1] <= share) cell += 1;
    cells[i] = cell;
  }
  return cells;
}

function spellPower(mantissa, exponent) {
  if (exponent >= -3 && exponent <= 3) return exponent < 0 ? (mantissa * 10 ** exponent).toFixed(-exponent) : String(mantissa * 10 ** exponent);
  return mantissa === 1 ? powerOfTen(exponent) : `${mantissa}×${powerOfTen(exponent)}`;
}

// Round numbers between two, about `most` of them: [{ value, text }], with exact texts.
export function ticks(low, high, log, most = 6) {
  if (!(high > low) || (log && !(low > 0))) return [];
  if (log && high / low >= 10) return logTicks(low, high, most);
  return evenTicks(low, high, most);
}

function evenTicks(low, high, most) {
  const rough = (high - low) / most;
  let exponent = Math.floor(Math.log10(rough));
  let mantissa = [1, 2, 5, 10].find((factor) => factor * 10 ** exponent >= rough * (1 - 1e-9));
  if (mantissa === 10) [mantissa, exponent] = [1, exponent + 1];
  const scale = 10 ** -exponent; // the inverse of a small step is an integer, and exact
  const step = exponent < 0 ? mantissa / scale : mantissa * 10 ** exponent;
  const ticks = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i += 1) {
    const value = exponent < 0 ? (i * mantissa) / scale : i * step;
    const isLong = Math.abs(exponent) > 6 || Math.abs(value) >= 1e7;
    ticks.push({ value, text: isLong ? forPeople(value, 8) : value.toFixed(Math.max(0, -exponent)).replace("-", "−") });
  }
  return ticks;
}

function logTicks(low, high, most) {
  const [first, last] = [Math.floor(Math.log10(low) + 1e-9), Math.ceil(Math.log10(high) - 1e-9)];
  const stride = Math.max(1, Math.ceil((last - first) / most));
  const mantissas = stride > 1 || (last - first) * 3 > most + 2 ? [1] : [1, 2, 5];
  const ticks = [];
  for (let exponent = Math.ceil(first / stride) * stride; exponent <= last; exponent += stride) {
    for (const mantissa of mantissas) {
      const value = Number(`${mantissa}e${exponent}`);
      if (value >= low * (1 - 1e-12) && value <= high * (1 + 1e-12)) ticks.push({ value, text: spellPower(mantissa, exponent) });
    }
  }
  return ticks;
}

// The edges between cells below a level and cells at or above it, as [x0, y0, x1, y1] in numbers of edges; adjacent edges
// in line are one. Cells without a number are on neither side.
export function levelEdges(values, rows, columns, level) {
  const edges = [];
  const side = (row, column) => {
    const value = values[row * columns + column];
    return value >= level ? 1 : value < level ? -1 : 0;
  };
  const differ = (a, b) => a * b < 0;
  for (let column = 1; column < columns; column += 1) {
    let start = -1;
    for (let row = 0; row <= rows; row += 1) {
      const edge = row < rows && differ(side(row, column - 1), side(row, column));
      if (edge && start < 0) start = row;
      if (!edge && start >= 0) {
        edges.push([column, start, column, row]);
        start = -1;
      }
    }
  }
  for (let row = 1; row < rows; row += 1) {
    let start = -1;
    for (let column = 0; column <= columns; column += 1) {
      const edge = column < columns && differ(side(row - 1, column), side(row, column));
      if (edge && start < 0) start = column;
      if (!edge && start >= 0) {
        edges.push([start, row, column, row]);
        start = -1;
      }
    }
  }
  return edges;
}

// The zero line of a formula that is known at the centre of each cell, as [x0, y0, x1, y1] in numbers of cells: straight
// from the place where it crosses between two neighbours to the place where it crosses between two others.
export function zeroLine(values, rows, columns) {
  const segments = [];
  const at = (row, column) => values[row * columns + column];
  const passes = (p, q) => (p < 0) !== (q < 0);
  for (let row = 0; row + 1 < rows; row += 1) {
    for (let column = 0; column + 1 < columns; column += 1) {
      const a = at(row, column);
      const b = at(row, column + 1);
      const c = at(row + 1, column + 1);
      const d = at(row + 1, column);
      if (a < 0 === b < 0 && b < 0 === c < 0 && c < 0 === d < 0) continue;
      if (!Number.isFinite(a + b + c + d)) continue;
      const points = [];
      if (passes(a, b)) points.push([column + a / (a - b), row]);
      if (passes(b, c)) points.push([column + 1, row + b / (b - c)]);
      if (passes(d, c)) points.push([column + d / (d - c), row + 1]);
      if (passes(a, d)) points.push([column, row + a / (a - d)]);
      for (let i = 0; i + 1 < points.length; i += 2) segments.push([...points[i], ...points[i + 1]]);
    }
  }
  return segments;
}

// The share of the axis at a place between the centres of cells.
export function shareBetween(axis, place) {
  const cell = Math.min(Math.max(Math.floor(place), 0), axis.count - 1);
  const next = Math.min(cell + 1, axis.count - 1);
  return axis.centres[cell] + (place - cell) * (axis.centres[next] - axis.centres[cell]);
}

// A number as it is typed, rounded to a thousandth of `range`, or to an integer.
export function spellNumber(value, range, whole, log) {
  const places = Math.max(0, Math.ceil(3 - Math.log10(range)));
  const near = Number(log ? value.toPrecision(4) : value.toFixed(Math.min(places, 15)));
  const rounded = whole ? Math.round(near) : near;
  const [plain, short] = [String(rounded), rounded.toExponential()].map((text) => text.replace("+", ""));
  return short.length < plain.length ? short : plain;
}

// The axis with its ends moved by `shift` of its length, and made `factor` times as long around `about`, a share of the
// axis. It does not go below `least`.
export function moveAxis(axis, { shift = 0, factor = 1, about = 0.5, whole = false, least = -Infinity }) {
  if (axis.list) return axis;
  const [scale, unscale] = axis.log ? [Math.log10, (value) => 10 ** value] : [Number, Number];
  const [low, high] = [scale(numberOf(axis.low)), scale(numberOf(axis.high))];
  const centre = low + about * (high - low);
  let ends = [low, high].map((end) => centre + (end - centre) * factor + shift * (high - low));
  const floor = axis.log ? (least > 0 ? scale(least) : -Infinity) : least;
  if (ends[0] < floor) ends = [floor, factor === 1 ? floor + ends[1] - ends[0] : ends[1]];
  if (axis.log && ends[1] > 300) return axis;
  const [from, to] = ends.map(unscale);
  const texts = [from, to].map((end) => spellNumber(end, to - from, whole, axis.log));
  return numberOf(texts[0]) < numberOf(texts[1]) ? { ...axis, low: texts[0], high: texts[1] } : axis;
}

function parametersOf(mechanism) {
  return mechanism.includes(":") ? mechanism.slice(mechanism.indexOf(":") + 1).split(",") : [];
}

// A parameter in the spelling of a mechanism, as `beta` in power:beta=4.
export function mechanismParameter(mechanism, name) {
  return parametersOf(mechanism).find((pair) => pair.startsWith(`${name}=`))?.slice(name.length + 1);
}

// The spelling with a parameter set, or without it where the value is null.
export function setMechanismParameter(mechanism, name, value) {
  const [kind] = mechanism.split(":");
  const others = parametersOf(mechanism).filter((pair) => !pair.startsWith(`${name}=`));
  const pairs = value === null ? others : [...others, `${name}=${value}`];
  return pairs.length ? `${kind}:${pairs.join(",")}` : kind;
}
