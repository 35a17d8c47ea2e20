// Sliders and dots: where a value is on a slider, which text a place is, and that no dot crosses the threshold.

import assert from "node:assert/strict";
import test from "node:test";

globalThis.window = { addEventListener() {}, removeEventListener() {} };
const page = "../../src/separatrix/web/static/js";
const { placeOf, scaleOf, textAt } = await import(`${page}/see-dials.js`);
const { placeDots } = await import(`${page}/see-mechanism.js`);
const { shortNumber } = await import(`${page}/see-tokens.js`);

test("n goes from 10 to 10^18 in whole numbers", () => {
  const scale = scaleOf("n", "1000", true);
  assert.equal(textAt(scale, scale.low), "10");
  assert.equal(textAt(scale, scale.high), "1e18");
  for (let place = scale.low; place <= scale.high; place += scale.step) {
    const value = Number(textAt(scale, place));
    assert.ok(Number.isInteger(value) || value > 1e15, `${place}: ${value}`);
    assert.ok(Math.abs(placeOf(scale, textAt(scale, place)) - place) < 0.03);
  }
});

test("decimals are short, and reach twice the usual value", () => {
  const scale = scaleOf("a1", "1.2", false);
  assert.deepEqual([scale.low, scale.high], [0, 2.4]);
  assert.equal(textAt(scale, 0.1 + 0.2), "0.3");
  assert.equal(placeOf(scale, "1/4"), 0.25);
});

test("a value beyond a slider is at its end, and what is no number at its beginning", () => {
  const scale = scaleOf("n", "1000", true);
  assert.equal(placeOf(scale, "1e30"), scale.high);
  assert.equal(placeOf(scale, "many"), scale.low);
});

test("dots that fire are right of the threshold, the others left of it, and all are within the strip", () => {
  const readings = Array.from({ length: 1000 }, (_, i) => Math.sin(i) * 0.3 + 0.2);
  readings[0] = 0.2;
  const fires = readings.map((value) => value > 0.2);
  const range = [Math.min(...readings), Math.max(...readings)];
  const line = 3 + (94 * (0.2 - range[0])) / (range[1] - range[0]);
  placeDots(readings, fires, 0.2, range).forEach((dot, i) => {
    assert.equal(dot.x > line, fires[i]);
    assert.ok(dot.y > 0 && dot.y < 40 && dot.x >= 0 && dot.x <= 100);
  });
});

test("readings that are all the same make dots, too", () => {
  for (const dot of placeDots([0.5, 0.5], [false, false], 0.5, [0.5, 0.5])) assert.ok(Number.isFinite(dot.x) && Number.isFinite(dot.y));
});

test("no weight is rounded to certainty", () => {
  assert.equal(shortNumber(0.99999), ">0.999");
  assert.equal(shortNumber(1), "1");
  assert.equal(shortNumber(1e-18), "10⁻¹⁸");
  assert.equal(shortNumber(null), "⋯");
});
