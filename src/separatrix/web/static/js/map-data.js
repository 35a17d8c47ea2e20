// A map as the server and pages encode it: a heading, and its numbers as arrays of floats in one buffer.
//
// heading.layers has one entry for each panel: { mechanism, title, colour, arrays, coloured, scale, … }. `arrays` gives
// the number of each array in the buffer by name: `values`; `low` and `high` where there is an interval; `margin` where
// it is coloured; `formula`, whose zeros are the boundary, where one is known.

import { cellAt, layOutAxis, shareOf } from "./cells.js";

// The map in a response: the length of the heading in 4 bytes, 4 unused bytes, the heading, the numbers.
export function unpack(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const heading = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));
  return openMap(heading, buffer, 8 + length);
}

export function bytesOf(base64) {
  return Uint8Array.from(globalThis.atob(base64), (character) => character.charCodeAt(0)).buffer;
}

// The map in a page: { heading, numbers }. The numbers are in base64, compressed, with the first bytes of all numbers
// before the second bytes.
export async function decode({ heading, numbers }) {
  const stream = new Blob([bytesOf(numbers)]).stream().pipeThrough(new DecompressionStream("deflate"));
  const transposed = new Uint8Array(await new Response(stream).arrayBuffer());
  const count = transposed.length / 8;
  return openMap(heading, Uint8Array.from(transposed, (_, i) => transposed[(i % 8) * count + Math.floor(i / 8)]).buffer);
}

export function openMap(heading, buffer, start = 0) {
  const cellCount = heading.shape[0] * heading.shape[1];
  const array = (index) => new Float64Array(buffer, start + 8 * cellCount * index, cellCount);
  const layers = heading.layers.map(({ arrays, ...layer }) => {
    const numbers = Object.fromEntries(Object.entries(arrays).map(([name, index]) => [name, array(index)]));
    return { ...layer, numbers, shown: numbers[layer.coloured] };
  });
  const [x, y] = heading.axes.map((axis) => layOutAxis(axis.values, axis.log));
  return { heading, layers, plane: { x, y } };
}

// The n of a cell, rounded to a length that the construction admits; null where the construction has no n.
export function lengthUsed(heading, cell) {
  const lengths = heading.n_used;
  if (!lengths) return null;
  const row = lengths[Math.min(cell.row, lengths.length - 1)];
  return row[Math.min(cell.column, row.length - 1)];
}

// The exact values of a cell on both axes by name; n as it is used.
export function valuesAt(heading, cell) {
  const [x, y] = heading.axes;
  const values = { [x.name]: String(x.values[cell.column]), [y.name]: String(y.values[cell.row]) };
  const n = lengthUsed(heading, cell);
  return n !== null && "n" in values ? { ...values, n: String(n) } : values;
}

// The same, and n where it is not the same in every cell because it was rounded.
export function parametersAt(heading, cell) {
  return heading.moved ? { ...valuesAt(heading, cell), n: String(lengthUsed(heading, cell)) } : valuesAt(heading, cell);
}

// The cell in which a point lies, given by name; null where the point does not have both parameters.
export function cellOf({ heading, plane }, point) {
  const [x, y] = heading.axes.map((axis) => axis.name);
  if (!point || !(x in point && y in point)) return null;
  return { column: cellAt(plane.x, shareOf(plane.x, point[x])), row: cellAt(plane.y, shareOf(plane.y, point[y])) };
}
