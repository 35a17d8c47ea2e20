// The cells of a map on a canvas: every pixel has the colour of the one cell that its middle lies in, nothing is
// blended. Cells without a number stay clear.

import { useEffect, useState } from "./framework.js";
import { get } from "./api.js";
import { cellsOfPixels } from "./cells.js";

let known = null;

// The scales of colours by name, each of 256; null until they are there.
export function useColours(reachable) {
  const [scales, setScales] = useState(known);
  useEffect(() => {
    if (known || !reachable) return;
    get("/colours").then((found) => {
      known = Object.fromEntries(Object.entries(found).map(([name, colours]) => [name, { colours, packed: packed(colours) }]));
      setScales(known);
    }, () => {});
  }, [reachable]);
  return scales;
}

// As a canvas has them in memory: red, green, blue, alpha.
function packed(colours) {
  const bytes = Uint8Array.from(colours.flatMap((each) => [1, 3, 5].map((at) => parseInt(each.slice(at, at + 2), 16)).concat(255)));
  return new Uint32Array(bytes.buffer);
}

// Which of so many colours a number has; -1 where it has none.
export function shade(value, { low, high, log }, count = 256) {
  const shown = log ? Math.log10(value) : value;
  if (!Number.isFinite(shown)) return -1;
  return Math.max(0, Math.min(count - 1, Math.floor(((shown - low) / (high - low)) * count)));
}

export function paint(canvas, values, x, y, scale, table) {
  const { width, height } = canvas;
  const context = canvas.getContext("2d");
  const image = context.createImageData(width, height);
  const pixels = new Uint32Array(image.data.buffer);
  const [across, up] = [cellsOfPixels(x, width), cellsOfPixels(y, height)];
  const row = new Uint32Array(x.count);
  let shown = -1;
  for (let line = 0; line < height; line += 1) {
    const cell = up[height - 1 - line];
    const start = line * width;
    if (cell === shown) {
      pixels.copyWithin(start, start - width, start);
      continue;
    }
    shown = cell;
    for (let i = 0; i < x.count; i += 1) {
      const colour = shade(values[cell * x.count + i], scale);
      row[i] = colour < 0 ? 0 : table[colour];
    }
    for (let i = 0; i < width; i += 1) pixels[start + i] = row[across[i]];
  }
  context.putImageData(image, 0, 0);
}
