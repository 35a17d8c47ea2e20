// The cells of a map on a canvas. Every pixel has the colour of the one cell that contains its centre; nothing is
// interpolated. Cells without a number stay transparent.

import { cellsOfPixels } from "./cells.js";
import { RAMPS } from "./ramps.js";

// The colours of each ramp as CSS colours and as a canvas stores them: red, green, blue, alpha.
const colours = new Map();

export function rampColours(name) {
  if (!colours.has(name)) {
    const css = RAMPS[name].match(/.{6}/g).map((digits) => `#${digits}`);
    const bytes = css.flatMap((colour) => [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16)).concat(255));
    colours.set(name, { css, pixels: new Uint32Array(Uint8Array.from(bytes).buffer) });
  }
  return colours.get(name);
}

// The index of a number's colour; -1 where it has none.
export function shade(value, { low, high, log }, count = 256) {
  const position = log ? Math.log10(value) : value;
  if (!Number.isFinite(position)) return -1;
  return Math.max(0, Math.min(count - 1, Math.floor(((position - low) / (high - low)) * count)));
}

export function paint(canvas, values, x, y, scale) {
  const { width, height } = canvas;
  const table = rampColours(scale.ramp).pixels;
  const context = canvas.getContext("2d");
  const image = context.createImageData(width, height);
  const pixels = new Uint32Array(image.data.buffer);
  const [columns, rows] = [cellsOfPixels(x, width), cellsOfPixels(y, height)];
  const colourOfColumn = new Uint32Array(x.count);
  let painted = -1;
  for (let line = 0; line < height; line += 1) {
    const row = rows[height - 1 - line];
    const start = line * width;
    if (row === painted) {
      pixels.copyWithin(start, start - width, start);
      continue;
    }
    painted = row;
    for (let column = 0; column < x.count; column += 1) {
      const index = shade(values[row * x.count + column], scale);
      colourOfColumn[column] = index < 0 ? 0 : table[index];
    }
    for (let i = 0; i < width; i += 1) pixels[start + i] = colourOfColumn[columns[i]];
  }
  context.putImageData(image, 0, 0);
}
