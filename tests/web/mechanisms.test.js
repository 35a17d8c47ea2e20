// The atlas and cards in words.

import assert from "node:assert/strict";
import test from "node:test";

globalThis.window = { addEventListener() {}, removeEventListener() {}, matchMedia: () => ({ matches: false }) };
const home = "../../src/separatrix/web/static/js";
const { arrange, blindFrom, columnOf, growthOf, labelOf, letterOf, lengthOf, sentences, shortProbability, sortName } = await import(`${home}/mechanisms-words.js`);
const { costCharts } = await import(`${home}/mechanisms-cost-plot.js`);
const { addressOf, commandOf, readPlace } = await import(`${home}/address.js`);

const COLUMNS = [
  { name: "spike, ones", construction: "spike", parameters: { n: 1000, form: "ones" } },
  { name: "spike, identity", construction: "spike", parameters: { n: 1000, form: "identity" } },
  { name: "recall", construction: "recall", parameters: { n: 1000 } },
];
const ROWS = ["softmax", "linear", "gla"].map((mechanism) => ({ mechanism, asked_as: mechanism, family: mechanism === "gla" ? "recurrent" : "score kernel", formula: "f", own: false }));
const TABLE = {
  words: [
    { word: "distinguishes", letter: "D", meaning: "tells D0 from D1: P ≥ 0.99" },
    { word: "blind", letter: "B", meaning: "to this reader, P ≤ 0.01" },
    { word: "none", letter: "–", meaning: "no answer" },
  ],
  rescues: [{ by: "a linear reader", letter: "R", meaning: "not with this reader: a linear one tells them apart, without noise" }],
  marks: { certified: "≡" },
};
const BLIND = {
  verdict: "blind", distinguish: 1.6555987e-6, low: 1.6555987e-6, high: 1.6555987e-6, kind: "certified", evidence: "exact fractions", margin: 0.00597, bits: 5.68,
  margin_exponent: -0.99999, blind_from_n: 200, blind_searched_to: 1e12, rescued_by: "a linear reader",
};

function cellOf(row, column) {
  const known = { softmax: 0.9998, linear: 0.957 }[row.mechanism];
  return known === undefined || column.name !== "spike, identity" ? undefined : { verdict: known > 0.99 ? "distinguishes" : "partial", distinguish: known };
}

test("P is never rounded to certainty, and halves go to even as in Python", () => {
  assert.deepEqual([0.99976, 0.5, 1e-6, 0, 1, 0.125, 0.375, 0.99, 0.01].map(shortProbability), [">.99", ".50", "<.01", "0", "1", ".12", ".38", ".99", ".01"]);
});

test("a column is sorted by as the command names it", () => {
  assert.deepEqual(COLUMNS.map((column) => sortName(column, COLUMNS)), ["spike", "spike,identity", "recall"]);
  for (const column of COLUMNS) assert.equal(columnOf(sortName(column, COLUMNS), COLUMNS), column);
  assert.equal(columnOf("family", COLUMNS), undefined);
});

test("rows are found and put in order; what is not computed comes last, one's own first", () => {
  const names = (how, rows = ROWS) => arrange(rows, COLUMNS, how, cellOf).map((row) => row.mechanism);
  assert.deepEqual(names({}), ["softmax", "linear", "gla"]);
  assert.deepEqual(names({ find: "RECURR" }), ["gla"]);
  assert.deepEqual(names({ sort: "name" }), ["gla", "linear", "softmax"]);
  assert.deepEqual(names({ sort: "spike,identity" }, [...ROWS].reverse()), ["softmax", "linear", "gla"]);
  assert.deepEqual(names({ sort: "seen" }, [...ROWS].reverse()), ["softmax", "gla", "linear"]);
  assert.deepEqual(names({ sort: "name" }, [...ROWS, { ...ROWS[0], mechanism: "zzz", own: true }])[0], "zzz");
});

test("a blind cell has the letter of who sees; one that is not computed says so", () => {
  assert.equal(letterOf(BLIND, TABLE), "R");
  assert.equal(letterOf({ ...BLIND, rescued_by: null }, TABLE), "B");
  assert.equal(letterOf(undefined, TABLE), "·");
  assert.deepEqual(sentences(undefined, TABLE), ["not computed"]);
  assert.equal(labelOf(ROWS[1], COLUMNS[0], undefined, TABLE), "linear on spike, ones: not computed");
});

test("a cell is told in words, as far as it is computed", () => {
  const said = sentences(BLIND, TABLE).join("; ");
  for (const part of ["blind (to this reader, P ≤ 0.01)", "P(tells apart) = 1.6556×10⁻⁶, certified: exact fractions", "5.68 bits", "a linear one tells them apart", "−1.00", "blind from n = 200 on, searched up to 10¹²"]) {
    assert.ok(said.includes(part), `${part} in ${said}`);
  }
  const { rescued_by: _, ...quick } = BLIND;
  assert.ok(sentences(quick, TABLE).at(-1).includes("not computed yet"));
  assert.equal(labelOf(ROWS[1], COLUMNS[0], BLIND, TABLE), "linear on spike, ones: blind, P(tells apart) 1.656×10⁻⁶, certified, 5.68 bits; a linear reader tells them apart");
});

test("laws and lengths of a card", () => {
  assert.equal(growthOf({ margin_exponent: -0.99999, margin_law: "power law" }), "n^−1.00");
  assert.equal(growthOf({ margin_exponent: 0, margin_law: "constant" }), "constant");
  assert.equal(growthOf({ margin_exponent: null, margin_law: "the margin is 0" }), "–");
  assert.equal(blindFrom({ blind_from_n: 4400, blind_from_n_is: "sampled" }), "≈ 4,400");
  assert.equal(blindFrom({ blind_from_n: null }), "–");
  assert.equal(lengthOf(1e12), "10¹²");
});

test("costs are charts on logarithmic axes, without lengths where a quantity is zero and without empty quantities", () => {
  const cost = { lengths: [256, 1024], seconds: [0.002, 0.004], peak_bytes: [0, 2 ** 20], state_bytes: [0, 0] };
  const charts = costCharts([{ mechanism: "softmax", cost }], () => "red");
  assert.deepEqual(charts.map((chart) => chart.y.label), ["time, ms", "memory, MiB"]);
  assert.deepEqual(charts.map(({ series }) => [series[0].x, series[0].y]), [[[256, 1024], [2, 4]], [[1024], [1]]]);
  assert.ok(charts.every((chart) => chart.x.log && chart.y.log));
});

test("what the page alone keeps is in the address and in no command", () => {
  const place = { command: "atlas", names: [], words: [], options: [["sort", "spike"]], page: [["find", "top"]] };
  assert.equal(addressOf(place), "/atlas?--sort=spike&~find=top");
  assert.deepEqual(readPlace(new URL(addressOf(place), "http://127.0.0.1:1")), place);
  assert.equal(commandOf(place), "separatrix atlas --sort spike");
});
