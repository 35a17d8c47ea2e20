// A stored map: exact cells, never interpolated; arrow keys walk them, Enter shows the cell behind one.

import { html, useEffect, useRef, useState } from "./framework.js";
import { go } from "./address.js";
import { forPeople, useDark } from "./parts.js";
import { cellsAt } from "./store-words.js";
import { inks } from "./chart.js";

const CIVIDIS = [[0, 34, 78], [18, 53, 112], [59, 73, 108], [87, 93, 109], [112, 113, 115], [138, 134, 120], [165, 156, 116], [195, 179, 105], [225, 204, 85], [254, 232, 56]];

// The colour of a P from 0 to 1.
export function shade(p) {
  const at = Math.min(Math.max(p, 0), 1) * (CIVIDIS.length - 1);
  const low = Math.min(Math.floor(at), CIVIDIS.length - 2);
  return `rgb(${CIVIDIS[low].map((each, i) => Math.round(each + (at - low) * (CIVIDIS[low + 1][i] - each))).join(" ")})`;
}

// The cell under a point of a canvas: columns from the left, rows from below.
export function cellAt(x, y, width, height, columns, rows) {
  const column = Math.min(columns - 1, Math.max(0, Math.floor((x / width) * columns)));
  const row = Math.min(rows - 1, Math.max(0, Math.floor((1 - y / height) * rows)));
  return [column, row];
}

const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
const SIZE = 320;

export function MapFigure({ map, sweep }) {
  const [x, y] = map.axes;
  const canvas = useRef(null);
  const dark = useDark();
  const [[column, row], setAt] = useState([0, 0]);
  const [columns, rows] = [x.values.length, y.values.length];
  useEffect(() => {
    const ctx = canvas.current.getContext("2d");
    const { paper, ink } = inks();
    ctx.fillStyle = paper;
    ctx.fillRect(0, 0, SIZE, SIZE);
    map.values.forEach((values, j) => values.forEach((p, i) => {
      if (p === null) return;
      const [left, right] = [i, i + 1].map((each) => Math.round((each / columns) * SIZE));
      const [bottom, top] = [j, j + 1].map((each) => Math.round(SIZE - (each / rows) * SIZE));
      ctx.fillStyle = shade(p);
      ctx.fillRect(left, top, right - left, bottom - top);
    }));
    const [w, h] = [SIZE / columns, SIZE / rows];
    for (const [width, colour] of [[4, paper], [2, ink]]) {
      ctx.lineWidth = width;
      ctx.strokeStyle = colour;
      ctx.strokeRect(column * w, SIZE - (row + 1) * h, w, h);
    }
  }, [map, column, row, dark]);
  const under = (event) => {
    const box = canvas.current.getBoundingClientRect();
    return cellAt(event.clientX - box.left, event.clientY - box.top, box.width, box.height, columns, rows);
  };
  const open = ([i, j]) => go(cellsAt({ construction: map.construction, mechanism: map.mechanism, parameters: { ...map.fixed, [x.name]: x.values[i], [y.name]: y.values[j] }, sweep }));
  const key = (event) => {
    const step = STEPS[event.key];
    if (event.key === "Enter") open([column, row]);
    if (!step) return;
    event.preventDefault();
    setAt([Math.min(columns - 1, Math.max(0, column + step[0])), Math.min(rows - 1, Math.max(0, row + step[1]))]);
  };
  const p = map.values[row]?.[column] ?? null;
  const said = `${x.name} = ${x.values[column]}, ${y.name} = ${y.values[row]}: ${p === null ? "no answer" : `P = ${forPeople(p)}`}`;
  return html`<figure class="stored-map">
    <figcaption><h3>${map.mechanism} on ${map.construction}${map.part ? `, ${map.part}` : ""}</h3>
      <p class="hint">${Object.entries(map.fixed).map(([name, value]) => `${name}=${value}`).join(" ")}</p></figcaption>
    <p class="axis-name">↑ ${y.name}, ${y.values[0]} to ${y.values.at(-1)}${y.log ? ", logarithmic" : ""}</p>
    <canvas ref=${canvas} width=${SIZE} height=${SIZE} tabindex="0" role="application" aria-label=${`Map of P for ${map.mechanism}: arrow keys walk the cells, Enter shows the cell. ${said}`}
      onKeyDown=${key} onPointerMove=${(event) => setAt(under(event))} onClick=${(event) => open(under(event))}></canvas>
    <p class="axis-name">→ ${x.name}, ${x.values[0]} to ${x.values.at(-1)}${x.log ? ", logarithmic" : ""}</p>
    <p class="said" aria-live="polite">${said}. Click for the cell.</p>
    <div class="scale" aria-hidden="true">P 0 <canvas class="ramp" width="100" height="10" ref=${ramp}></canvas> 1</div>
  </figure>`;
}

function ramp(canvas) {
  const ctx = canvas?.getContext("2d");
  for (let i = 0; ctx && i < 100; i++) {
    ctx.fillStyle = shade(i / 99);
    ctx.fillRect(i, 0, 1, 10);
  }
}
