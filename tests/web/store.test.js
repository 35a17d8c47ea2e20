// Between addresses, filters, stored cells and pictures.

import assert from "node:assert/strict";
import test from "node:test";
import { alignSeries, pointsAt, rangeOf } from "../../src/separatrix/web/static/js/chart.js";
import * as words from "../../src/separatrix/web/static/js/store-words.js";
import * as trained from "../../src/separatrix/web/static/js/trained-words.js";

test("conditions are changed, added and left out in their places", () => {
  const pairs = [["mechanism", "softmax"], ["n", "1e3"]];
  assert.deepEqual(words.withValue(pairs, "mechanism", "linear"), [["mechanism", "linear"], ["n", "1e3"]]);
  assert.deepEqual(words.withValue(pairs, "verdict", "blind"), [...pairs, ["verdict", "blind"]]);
  assert.deepEqual(words.withValue(pairs, "n", ""), [["mechanism", "softmax"]]);
});

test("conditions without a field of their own are typed as in a terminal", () => {
  const pairs = [["mechanism", "softmax"], ["a1", "0.7"], ["seed", "0:3"]];
  assert.equal(words.otherConditions(pairs), "a1=0.7 seed=0:3");
  assert.deepEqual(words.withOtherConditions(pairs, " a1=0.8 "), [["mechanism", "softmax"], ["a1", "0.8"]]);
  assert.deepEqual(words.withOtherConditions(pairs, words.otherConditions(pairs)), pairs);
});

test("numbers of tokens are short", () => {
  assert.deepEqual([1000, "1000000000", 316200, "0.5", "0"].map(words.spellValue), ["1000", "1e9", "316200", "0.5", "0"]);
});

test("lines over one axis have nothing where another has a point, and a gap where there is no answer", () => {
  const line = (x, p, kind = "closed") => ({ mechanism: "m", x, p, kind: x.map(() => kind), low: p, high: p, word: x.map(() => "blind"), exactly: x.map(String) });
  const chart = words.curveChart({ x: "n", log: false, lines: [line([1, 3], [0.1, null]), line([2, 3], [0.5, 0.6]), line([2], [0.4], "sampled")] }, () => "red");
  assert.deepEqual(alignSeries(chart.series), [[1, 2, 3], [0.1, undefined, null], [undefined, 0.5, 0.6], [undefined, undefined, undefined]]);
  assert.deepEqual(pointsAt(chart, 3).map(({ text }) => text), ["no answer", "0.6, closed, blind"]);
  assert.deepEqual(pointsAt(chart, 2).map(({ text }) => text), ["0.5, closed, blind", "0.4, sampled, blind"]);
});

test("the same question as a stored cell is a command", () => {
  const cell = { construction: "spike", mechanism: "softmax", parameters: { n: 1000, a1: "1.2" }, asked: "auto", delta: "0.01", interval: [1, 1], draws: 400, seed: 0, confidence: 0.95, dtype: "float64" };
  assert.deepEqual(words.questionOf(cell).options, []);
  const drawn = words.questionOf({ ...cell, asked: "dense", interval: [0.1, 0.2], seed: 2 });
  assert.deepEqual(drawn.options, [["engine", "dense"], ["draws", "400"], ["seed", "2"]]);
});

test("how far a sweep is", () => {
  assert.equal(words.progressText({ stored: 10, planned: 1200, not_done: {} }), "10 of 1,200 cells");
  assert.equal(words.progressText({ stored: 12, planned: 12, not_done: { failed: 2 } }), "all 12 cells, 2 failed");
});

const learned = { floor: 0.5, ceiling: 1, parameters: { n: 16 }, setting: { steps: 300, rates: "0.01" }, mechanisms: [{ witness: 0.9, tuned_witness: null, proved_ceiling: 0.8, trained: { seeds: [0.6, 0.7], interval: null } }] };

test("better is to the right, whichever way scores go", () => {
  const up = trained.scoreScale(learned, true);
  assert.ok(up(0.5) > 0 && up(0.5) < up(0.7) && up(0.7) < up(1) && up(1) < 1);
  const down = trained.scoreScale({ ...learned, floor: 1, ceiling: 0.5 }, false);
  assert.ok(down(1) > 0 && down(1) < down(0.7) && down(0.7) < down(0.5) && down(0.5) < 1);
});

test("an address means the experiment that has its words", () => {
  const one = { learned };
  const other = { learned: { ...learned, parameters: { n: 64 } } };
  assert.deepEqual(trained.matchExperiments([one, other], [["n", "64"]]), [other]);
  assert.deepEqual(trained.matchExperiments([one, other], [["n", "16"], ["steps", "300"]]), [one]);
  assert.deepEqual(trained.matchExperiments([one], [["width", "8"]]), []);
  assert.deepEqual(trained.wordsOf("needle n=16 steps=300"), [["n", "16"], ["steps", "300"]]);
});

test("curves of runs that were evaluated at other steps share one axis", () => {
  const curves = [{ mechanism: "softmax", seed: 0, points: [[0, 0.5], [10, 0.6]] }, { mechanism: "linear", seed: 0, points: [[0, 0.4], [5, 0.5]] }];
  const chart = trained.curvesChart(curves, { ceiling: 1, floor: 0.5 }, () => "red");
  assert.deepEqual(alignSeries(chart.series), [[0, 5, 10], [0.5, undefined, 0.6], [0.4, 0.5, undefined]]);
  assert.deepEqual(chart.legend.map(({ name }) => name), ["softmax", "linear"]);
});

test("an axis spans its numbers with some room, those of a logarithmic axis that are positive", () => {
  assert.deepEqual(rangeOf({ range: [0, 2] }, [5]), [0, 2]);
  assert.deepEqual(rangeOf({}, [0, null, 1, NaN]), [-0.04, 1.04]);
  const [low, high] = rangeOf({ log: true }, [0, 1, 100]);
  assert.ok(low > 0.7 && low < 1 && high > 100 && high < 140);
  assert.deepEqual(rangeOf({ log: true }, []), [1, 10]);
});

test("steps until solved in words", () => {
  assert.equal(trained.describeSteps({ steps_to_solve: [200, null, 150], solved: { count: 2, of: 3 } }), "2 of 3 seeds, after 150 to 200 steps");
  assert.equal(trained.describeSteps({ steps_to_solve: [null], solved: { count: 0, of: 1 } }), "none of 1 seeds solved it");
});

test("a command names the store that is shown, unless it takes that one anyway", () => {
  assert.deepEqual(words.storeOption("sqlite:///other.db"), [["store", "sqlite:///other.db"]]);
  assert.deepEqual(words.storeOption("postgresql+psycopg://me:***@db/x"), [["store", "postgresql+psycopg://me:***@db/x"]]);
  for (const usual of ["sqlite:///results.db", "results.db", null, undefined]) assert.deepEqual(words.storeOption(usual), []);
});
