import assert from "node:assert/strict";
import { test } from "node:test";

import * as cells from "../../src/separatrix/web/static/js/cells.js";

test("an axis is read and spelled as it is typed", () => {
  for (const text of ["0.5:1.5:200", "1e3:1e18:64:log", "1,2,4"]) assert.equal(cells.spellAxis(cells.readAxis(text)), text);
  assert.equal(cells.readAxis("0.5"), null);
  assert.equal(cells.coarsenAxis("1e3:1e18:200:log", 64), "1e3:1e18:64:log");
  assert.equal(cells.coarsenAxis("0.5:1.5:30", 64), "0.5:1.5:30");
  assert.equal(cells.coarsenAxis("1,2,4", 2), "1,2,4");
});

test("numbers are read as the server spells them", () => {
  assert.equal(cells.numberOf("1/4"), 0.25);
  assert.equal(cells.numberOf("-0.5"), -0.5);
  assert.equal(cells.numberOf(1000), 1000);
});

test("edges lie half way between values, and every middle lies in its own cell", () => {
  for (const [values, log] of [[["0.5", "1", "1.5"], false], [[10, 100, 1000, 10000], true], [[1, 2, 10], false], [["7"], false]]) {
    const axis = cells.layOutAxis(values, log);
    assert.equal(axis.edges.length, values.length + 1);
    assert.equal(axis.edges[0], 0);
    assert.equal(axis.edges.at(-1), 1);
    values.forEach((value, i) => {
      assert.equal(cells.cellAt(axis, axis.centres[i]), i);
      assert.ok(Math.abs(cells.shareOf(axis, cells.numberOf(value)) - axis.centres[i]) < 1e-12);
      assert.ok(Math.abs(cells.valueAt(axis, axis.centres[i]) / cells.numberOf(value) - 1) < 1e-12);
    });
  }
  assert.equal(cells.layOutAxis([1, 2, 10], false).edges[1], 1 / 13.5); // cells need not be equally wide
});

test("outside, the nearest cell is meant", () => {
  const axis = cells.layOutAxis([1, 2, 3, 4], false);
  assert.equal(cells.cellAt(axis, -1), 0);
  assert.equal(cells.cellAt(axis, 2), 3);
});

test("every pixel shows the cell of its middle", () => {
  for (const count of [1, 3, 7, 64, 400]) {
    const axis = cells.layOutAxis(Array.from({ length: count }, (_, i) => i + 1), false);
    for (const pixels of [1, 5, 64, 333]) {
      const shown = cells.cellsOfPixels(axis, pixels);
      shown.forEach((cell, i) => assert.equal(cell, cells.cellAt(axis, (i + 0.5) / pixels)));
    }
  }
});

test("ticks are round, inside, in order, and their texts are the numbers", () => {
  const plain = (text) => Number(text.replace("−", "-").replace(/×?10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)/, (all, raised) =>
    `${all.startsWith("×") ? "" : "1"}e${raised.replace(/./g, (each) => (each === "⁻" ? "-" : "⁰¹²³⁴⁵⁶⁷⁸⁹".indexOf(each)))}`));
  const spans = [[0.5, 1.5], [0, 1], [-1, 1], [0.8, 0.8003], [3, 40], [0, 123456], [1e3, 1e18, true], [0.9, 120, true], [1e-12, 1e-3, true], [100, 300, true]];
  for (const [low, high, log] of spans) {
    const found = cells.ticks(low, high, Boolean(log), 6);
    assert.ok(found.length >= 2 && found.length <= 10, `${low} to ${high}: ${found.length}`);
    found.forEach(({ value, text }, i) => {
      assert.ok(value >= low - 1e-9 * (high - low) && value <= high * (1 + 1e-9));
      assert.ok(i === 0 || value > found[i - 1].value);
      assert.ok(Math.abs(plain(text) - value) <= 1e-12 * Math.abs(value), `${text} is not ${value}`);
    });
  }
  assert.deepEqual(cells.ticks(0, 1, false, 5).map((each) => each.text), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
  assert.deepEqual(cells.ticks(1e3, 1e6, true, 4).map((each) => each.text), ["1000", "10⁴", "10⁵", "10⁶"]);
  assert.deepEqual(cells.ticks(1, 1, false), []);
});

test("lines between cells run along edges alone, and parts in line are one", () => {
  const two = Float64Array.from([0, 0, 1, 0, 0, 1, 0, 1, 1]); // rows from the bottom
  assert.deepEqual(cells.levelEdges(two, 3, 3, 0.5), [[1, 2, 1, 3], [2, 0, 2, 2], [1, 2, 2, 2]]);
  assert.deepEqual(cells.levelEdges(Float64Array.from([NaN, 1, 0, NaN]), 2, 2, 0.5), []);
  assert.deepEqual(cells.levelEdges(Float64Array.from([0.5, 0.49]), 1, 2, 0.5), [[1, 0, 1, 1]]); // at the level is above
});

test("a line between cells parts exactly those that differ", () => {
  const [rows, columns] = [9, 11];
  const values = Float64Array.from({ length: rows * columns }, (_, i) => ((i * 7919) % 101) / 100);
  const edges = cells.levelEdges(values, rows, columns, 0.5);
  const length = edges.reduce((sum, [x0, y0, x1, y1]) => sum + Math.abs(x1 - x0) + Math.abs(y1 - y0), 0);
  let differ = 0;
  for (let row = 0; row < rows; row += 1) {
    for (let column = 0; column < columns; column += 1) {
      const above = values[row * columns + column] >= 0.5;
      if (column + 1 < columns && above !== values[row * columns + column + 1] >= 0.5) differ += 1;
      if (row + 1 < rows && above !== values[(row + 1) * columns + column] >= 0.5) differ += 1;
    }
  }
  assert.equal(length, differ);
});

test("the zero line of a plane is straight", () => {
  const [rows, columns] = [5, 6];
  const values = Float64Array.from({ length: rows * columns }, (_, i) => (i % columns) + Math.floor(i / columns) - 3.5);
  const line = cells.zeroLine(values, rows, columns);
  assert.ok(line.length > 3);
  for (const [x0, y0, x1, y1] of line) for (const sum of [x0 + y0, x1 + y1]) assert.ok(Math.abs(sum - 3.5) < 1e-12);
  assert.deepEqual(cells.zeroLine(values.map(() => 1), rows, columns), []);
});

test("a place between the middles of cells", () => {
  const axis = cells.layOutAxis([1, 2, 3, 4], false);
  assert.equal(cells.shareBetween(axis, 1.5), (axis.centres[1] + axis.centres[2]) / 2);
  assert.equal(cells.shareBetween(axis, 3), axis.centres[3]);
});

test("moving an axis keeps its kind, and its ends are numbers that one can type", () => {
  const even = cells.readAxis("0.5:1.5:200");
  assert.equal(cells.spellAxis(cells.moveAxis(even, { shift: 0.1 })), "0.6:1.6:200");
  assert.equal(cells.spellAxis(cells.moveAxis(even, { factor: 0.5 })), "0.75:1.25:200");
  assert.equal(cells.spellAxis(cells.moveAxis(even, { factor: 0.5, about: 0 })), "0.5:1:200");
  assert.equal(cells.spellAxis(cells.moveAxis(even, { shift: -0.9, least: 0.01 })), "0.01:1.01:200");
  const log = cells.readAxis("1e3:1e18:200:log");
  assert.equal(cells.spellAxis(cells.moveAxis(log, { shift: 1 / 15, whole: true })), "1e4:1e19:200:log");
  assert.equal(cells.spellAxis(cells.moveAxis(log, { shift: -1, whole: true, least: 10 })), "10:1e16:200:log");
  const few = cells.readAxis("4:6:3");
  assert.equal(cells.spellAxis(cells.moveAxis(few, { factor: 0.01, whole: true })), "4:6:3"); // nothing lies between
  assert.equal(cells.spellAxis(cells.moveAxis(cells.readAxis("1,2,4"), { shift: 1 })), "1,2,4");
});

test("zooming in and out comes back", () => {
  for (const text of ["0.5:1.5:200", "1e3:1e18:200:log"]) {
    const axis = cells.readAxis(text);
    const back = cells.moveAxis(cells.moveAxis(axis, { factor: 0.5, about: 0.3 }), { factor: 2, about: 0.3 });
    for (const end of ["low", "high"]) assert.ok(Math.abs(Math.log(cells.numberOf(back[end]) / cells.numberOf(axis[end]))) < 0.01);
  }
});

test("mechanisms with parameters", () => {
  assert.equal(cells.mechanismParameter("power:beta=4,gamma=2", "gamma"), "2");
  assert.equal(cells.mechanismParameter("softmax", "beta"), undefined);
  assert.equal(cells.setMechanismParameter("power:beta=4,gamma=2", "beta", "3"), "power:gamma=2,beta=3");
  assert.equal(cells.setMechanismParameter("power:beta=4", "beta", null), "power");
  assert.equal(cells.setMechanismParameter("softmax", "temperature", "2"), "softmax:temperature=2");
});
