// Texts of the cells of the atlas and the standings of a card; nothing here needs a page, so that it can be tested alone.

import { forPeople } from "./format.js";

export const NOT_COMPUTED = "not computed";
export const UNKNOWN = "·";

// P in at most four characters, never rounded to certainty.
export function shortProbability(p) {
  if (p === 0 || p === 1) return String(p);
  if (p < 0.01) return "<.01";
  if (p > 0.99) return ">.99";
  const below = Math.floor(100 * p);
  const rounded = 100 * p - below === 0.5 ? (below + (below % 2)) / 100 : p; // halves to even, as Python does
  return rounded.toFixed(2).replace(/^0/, "");
}

// The name of a column as --sort takes it: the construction for its first column, spike,identity for others.
export function sortName(column, columns) {
  const first = columns.find(({ construction }) => construction === column.construction);
  return first === column ? column.construction : column.name.replaceAll(" ", "");
}

export function columnOf(sort, columns) {
  return columns.find((column) => sortName(column, columns) === sort || column.name.replaceAll(" ", "") === sort.replaceAll(" ", ""));
}

// The rows that contain a text, sorted; `cellOf(row, column)` may be undefined.
export function arrange(rows, columns, { find = "", sort = "family" }, cellOf) {
  const text = find.trim().toLowerCase();
  const shown = rows.filter((row) => `${row.asked_as} ${row.family} ${row.formula}`.toLowerCase().includes(text));
  const countDistinguished = (row) => columns.filter((column) => cellOf(row, column)?.verdict === "distinguishes").length;
  const column = columnOf(sort, columns);
  const probability = (row) => cellOf(row, column)?.distinguish ?? -1;
  if (sort === "name") shown.sort((a, b) => (a.mechanism < b.mechanism ? -1 : 1));
  else if (sort === "seen") shown.sort((a, b) => countDistinguished(b) - countDistinguished(a));
  else if (column) shown.sort((a, b) => probability(b) - probability(a));
  return shown.sort((a, b) => b.own - a.own);
}

export function letterOf(cell, table) {
  if (!cell) return UNKNOWN;
  const rescue = ["blind", "saturated"].includes(cell.verdict) && table.rescues.find(({ by }) => by === cell.rescued_by);
  return rescue ? rescue.letter : table.words.find(({ word }) => word === cell.verdict).letter;
}

export function wordOf(verdict) {
  return verdict === "none" ? "no answer" : verdict;
}

// A length as people write it: 4,400 and 10¹².
export function lengthOf(n) {
  return n < 1e6 ? n.toLocaleString("en") : forPeople(n, 3);
}

export function probabilityOf({ distinguish, low, high }) {
  const interval = low === high ? "" : ` in [${forPeople(low, 4)}, ${forPeople(high, 4)}]`;
  return `${forPeople(distinguish)}${interval}`;
}

// The sentences on a cell, as far as it is computed.
export function sentences(cell, table) {
  if (!cell) return [NOT_COMPUTED];
  if (cell.verdict === "none") return ["no answer", cell.evidence];
  const { meaning } = table.words.find(({ word }) => word === cell.verdict);
  const lines = [
    cell.verdict === "undecided" || cell.verdict === "partial" ? `${cell.verdict}: ${meaning}` : `${cell.verdict} (${meaning})`,
    `P(tells apart) = ${probabilityOf(cell)}, ${cell.kind}: ${cell.evidence}`,
  ];
  if (cell.margin !== null) lines.push(`margin ${forPeople(cell.margin, 4)}, ${cell.bits === null ? "no number of bits tells the labels apart" : `${forPeople(cell.bits, 3)} bits tell the labels apart`}`);
  if (cell.rescued_by === undefined) return [...lines, "blindness at other lengths and other readers: not computed yet"];
  const rescue = table.rescues.find(({ by }) => by === cell.rescued_by);
  if (rescue) lines.push(rescue.meaning);
  if (cell.margin_exponent !== null) lines.push(`the margin's fitted power of n is ${signed(cell.margin_exponent)}`);
  lines.push(cell.blind_from_n === null
    ? `not blind at n = ${lengthOf(cell.blind_searched_to)}, the longest length searched`
    : `blind from n = ${lengthOf(cell.blind_from_n)} on, searched up to ${lengthOf(cell.blind_searched_to)}`);
  return lines;
}

// The label of a cell for screen readers.
export function labelOf(row, column, cell, table) {
  const name = `${row.asked_as} on ${column.name}`;
  if (!cell) return `${name}: ${NOT_COMPUTED}`;
  if (cell.verdict === "none") return `${name}: no answer`;
  const rescue = table.rescues.find(({ by }) => by === cell.rescued_by);
  const bits = cell.bits === null ? "" : `, ${forPeople(cell.bits, 3)} bits`;
  return `${name}: ${cell.verdict}, P(tells apart) ${forPeople(cell.distinguish, 4)}, ${cell.kind}${bits}${rescue ? `; ${rescue.by} tells them apart` : ""}`;
}

export function signed(value) {
  const text = value.toFixed(2);
  return `${text.startsWith("-") ? "" : "+"}${text}`.replace("-", "−");
}

// The growth of the margin on a card: its power of n, or the name of its law.
export function growthOf(standing) {
  if (standing.margin_exponent === null) return "–";
  return standing.margin_law === "power law" ? `n^${signed(standing.margin_exponent)}` : standing.margin_law;
}

export function blindFrom(standing) {
  if (standing.blind_from_n === null) return "–";
  return `${standing.blind_from_n_is === "exact" ? "" : "≈ "}${lengthOf(standing.blind_from_n)}`;
}
