// What one reads off a map: the numbers of the cell that is pointed at, as text, and a cut along each axis through it.

import { html, useEffect, useState } from "./framework.js";
import { numberOf, ticks } from "./cells.js";
import { colourOf, forPeople, useSize } from "./parts.js";

// The n that a cell stands for, where the map has moved it; null where it has not.
export function lengthUsed(heading, cell) {
  const used = heading.n_used;
  if (!used) return null;
  const row = used[Math.min(cell.row, used.length - 1)];
  return row[Math.min(cell.column, row.length - 1)];
}

// The exact values of a cell by name; n as it is used.
export function valuesAt(heading, cell) {
  const [x, y] = heading.axes;
  const values = { [x.name]: String(x.values[cell.column]), [y.name]: String(y.values[cell.row]) };
  const n = lengthUsed(heading, cell);
  if (n !== null && "n" in values) values.n = String(n);
  return values;
}

export function spelledPlace(values) {
  return Object.entries(values).map(([name, value]) => `${name} = ${forPeople(numberOf(value))}`).join(", ");
}

function numbersAt(map, cell) {
  const at = cell.row * map.heading.shape[1] + cell.column;
  return map.heading.layers.map((layer, place) => {
    const array = (name) => map.array(place, name)?.[at];
    const interval = map.said(place, "low") ? ` (between ${forPeople(array("low"))} and ${forPeople(array("high"))})` : "";
    const margin = map.said(place, "margin") ? `, margin ${forPeople(array("margin"))}` : "";
    return { mechanism: layer.mechanism, text: `${forPeople(array("values"))}${interval}${margin}` };
  });
}

const NAMES = { distinguish: "P(tells apart)", fire_d0: "P(fires on D0)", fire_d1: "P(fires on D1)", margin: "margin", bits: "bits" };

// The numbers at once for the eye; for the ear when one stays.
export function Reading({ map, cell, looks }) {
  const numbers = cell ? numbersAt(map, cell) : [];
  const where = cell ? spelledPlace(valuesAt(map.heading, cell)) : "";
  const text = cell ? `${where}: ${numbers.map((each) => `${each.mechanism} ${each.text}`).join("; ")}` : "";
  const [said, setSaid] = useState("");
  useEffect(() => {
    const later = setTimeout(() => setSaid(text), 400);
    return () => clearTimeout(later);
  }, [text]);
  return html`<div class="pointed-at">
    ${cell ? html`<p><strong>${where}</strong></p>
      <p>${NAMES[map.heading.quantity]}${map.heading.difference ? ", difference" : ""}: ${numbers.map((each, i) => html`<span key=${i} class="number-of"><i style=${{ background: colourOf(looks, each.mechanism) }}></i>${each.mechanism} <b>${each.text}</b></span>`)}</p>`
      : html`<p>Point at a cell, or walk with the arrow keys: its numbers stand here.</p>`}
    <p class="visually-hidden" aria-live="polite">${said}</p>
  </div>`;
}

const [LEFT, RIGHT, TOP, BOTTOM, HEIGHT] = [46, 8, 8, 34, 150];

// One row or one column of the map as steps: a cell is as wide as it is, and level.
function Cut({ map, axis, layout, at, title, scale, looks }) {
  const [ref, size] = useSize();
  const [width, height] = [Math.max(20, size.width - LEFT - RIGHT), HEIGHT - TOP - BOTTOM];
  const shown = (value) => ((scale.log ? Math.log10(value) : value) - scale.low) / (scale.high - scale.low);
  const inY = (value) => TOP + height * (1 - Math.max(-0.02, Math.min(1.02, shown(value))));
  const step = (place) => {
    const values = map.array(place, scale.name);
    let path = "";
    let pen = false;
    for (let i = 0; i < layout.count; i += 1) {
      const value = values[at(i)];
      if (!Number.isFinite(shown(value))) pen = false;
      else {
        path += `${pen ? "L" : "M"}${(LEFT + layout.edges[i] * width).toFixed(1)} ${inY(value).toFixed(1)}H${(LEFT + layout.edges[i + 1] * width).toFixed(1)}`;
        pen = true;
      }
    }
    return path;
  };
  const [low, high] = scale.log ? [10 ** scale.low, 10 ** scale.high] : [scale.low, scale.high];
  const here = layout.centres[axis.cell];
  return html`<figure class="cut"><figcaption>${title}</figcaption><div ref=${ref}>${size.width > 0 && html`
    <svg width=${size.width} height=${HEIGHT} role="img" aria-label=${title}>
      <g class="axes"><rect x=${LEFT} y=${TOP} width=${width} height=${height} />
        ${ticks(low, high, scale.log, 3).map(({ value, text }) => html`<g key=${text} transform=${`translate(${LEFT},${inY(value)})`}><line x2="-4" /><text x="-7" dy="0.32em" text-anchor="end">${text}</text></g>`)}
        ${ticks(layout.low, layout.high, layout.log, Math.max(2, Math.floor(width / 80))).map(({ value, text }) => html`<g key=${text} transform=${`translate(${LEFT + width * ((layout.log ? Math.log10(value / layout.low) / Math.log10(layout.high / layout.low) : (value - layout.low) / (layout.high - layout.low)))},${TOP + height})`}><line y2="4" /><text y="17" text-anchor="middle">${text}</text></g>`)}
        <text x=${LEFT + width / 2} y=${HEIGHT - 3} text-anchor="middle" class="name">${axis.name}</text></g>
      <line class="here" x1=${LEFT + here * width} x2=${LEFT + here * width} y1=${TOP} y2=${TOP + height} />
      ${map.heading.layers.map((layer, place) => map.array(place, scale.name) && html`<path key=${place} class="steps" d=${step(place)} style=${{ stroke: colourOf(looks, layer.mechanism) }} stroke-dasharray=${place % 2 ? "6 3" : undefined} />`)}
    </svg>`}</div></figure>`;
}

export function Cuts({ map, plane, cell, looks }) {
  if (!cell) return null;
  const { heading } = map;
  const columns = heading.shape[1];
  const values = valuesAt(heading, cell);
  const [x, y] = heading.axes.map((each) => each.name);
  const scale = cutScale(map);
  return html`<div class="cuts">
    <${Cut} map=${map} axis=${{ name: x, cell: cell.column }} layout=${plane.x} at=${(i) => cell.row * columns + i} title=${`Cut along ${x} at ${spelledPlace({ [y]: values[y] })}`} scale=${scale} looks=${looks} />
    <${Cut} map=${map} axis=${{ name: y, cell: cell.row }} layout=${plane.y} at=${(i) => i * columns + cell.column} title=${`Cut along ${y} at ${spelledPlace({ [x]: values[x] })}`} scale=${scale} looks=${looks} />
  </div>`;
}

// Cuts show the quantity of the map, all mechanisms on one scale.
function cutScale(map) {
  const panels = map.heading.panels.filter((each) => each.coloured === "values");
  if (panels.length) return { ...panels[0], name: "values" };
  return { low: 0, high: 1, log: false, name: "values" };
}
