// Reading a map: the numbers of the cell that is pointed at, as text, and a cut along each axis through it.

import { html, useEffect, useState } from "./framework.js";
import { splitMechanisms } from "./address.js";
import { numberOf, shareOf, ticks, setMechanismParameter } from "./cells.js";
import { forPeople } from "./format.js";
import { parametersAt, valuesAt } from "./map-data.js";
import { useSize } from "./screen.js";

export function describePoint(values) {
  return Object.entries(values).map(([name, value]) => `${name} = ${forPeople(numberOf(value))}`).join(", ");
}

const SAMPLING_OPTIONS = ["engine", "draws", "seed", "confidence", "dtype"];

// The verdict at one point of a map, as a place: the map's words with the point's values instead of the axes. `own` has
// the names of axes that are parameters of the mechanisms.
export function verdictPlace(place, point, own) {
  const words = place.words.filter(([name, value]) => !(name in point) && !/[:,]/.test(value));
  const mechanisms = splitMechanisms(place.names[1]).map((mechanism) =>
    own.filter((name) => name in point).reduce((spelling, name) => setMechanismParameter(spelling, name, point[name]), mechanism));
  const pointWords = Object.entries(point).filter(([name]) => !own.includes(name));
  const options = place.options.filter(([name]) => SAMPLING_OPTIONS.includes(name));
  return { command: "verdict", names: [place.names[0], mechanisms.join(",")], words: [...pointWords, ...words], options };
}

// The numbers of every layer at a cell, as text.
export function numbersAt(map, cell) {
  const index = cell.row * map.heading.shape[1] + cell.column;
  return map.layers.map(({ mechanism, colour, numbers }) => {
    const number = (name) => forPeople(numbers[name][index]);
    const interval = numbers.low ? ` (between ${number("low")} and ${number("high")})` : "";
    const margin = numbers.margin ? `, margin ${number("margin")}` : "";
    return { mechanism, colour, text: `${number("values")}${interval}${margin}` };
  });
}

const QUANTITY_NAMES = { distinguish: "P(tells apart)", fire_d0: "P(fires on D0)", fire_d1: "P(fires on D1)", margin: "margin", bits: "bits" };

// The accuracy of the best possible reader has the noise and the rows in its name: accuracy:noise=0.5,rows=all.
const accuracyName = (quantity) => `accuracy of the best reader of ${quantity.includes("rows=all") ? "all rows" : "one row"}`;

export function quantityName({ quantity, difference }) {
  return `${QUANTITY_NAMES[quantity] ?? (quantity.startsWith("accuracy") ? accuracyName(quantity) : quantity)}${difference ? ", difference" : ""}`;
}

// A text for screen readers, read out when it has not changed for a while.
export function Announced({ text }) {
  const [announced, setAnnounced] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => setAnnounced(text), 400);
    return () => clearTimeout(timer);
  }, [text]);
  return html`<p class="visually-hidden" aria-live="polite">${announced}</p>`;
}

export function Reading({ map, cell }) {
  const numbers = cell ? numbersAt(map, cell) : [];
  const point = cell ? describePoint(parametersAt(map.heading, cell)) : "";
  return html`<div class="pointed-at">
    ${cell ? html`<p><strong>${point}</strong></p>
      <p>${quantityName(map.heading)}: ${numbers.map(({ mechanism, colour, text }) => html`<span key=${mechanism} class="number-of"><i style=${{ background: colour }}></i>${mechanism} <b>${text}</b></span>`)}</p>`
      : html`<p>Point at a cell, or walk with the arrow keys, to read its numbers here.</p>`}
    <${Announced} text=${cell ? `${point}: ${numbers.map(({ mechanism, text }) => `${mechanism} ${text}`).join("; ")}` : ""} />
  </div>`;
}

const [LEFT, RIGHT, TOP, BOTTOM, HEIGHT] = [46, 8, 8, 34, 150];

// One row or one column of the map as a step function: constant over the width of each cell.
function Cut({ map, name, axis, index, at, title, scale }) {
  const [ref, size] = useSize();
  const [width, height] = [Math.max(20, size.width - LEFT - RIGHT), HEIGHT - TOP - BOTTOM];
  const share = (value) => ((scale.log ? Math.log10(value) : value) - scale.low) / (scale.high - scale.low);
  const inX = (part) => LEFT + part * width;
  const inY = (value) => TOP + height * (1 - Math.max(-0.02, Math.min(1.02, share(value))));
  const steps = ({ values }) => {
    let path = "";
    let isOpen = false;
    for (let i = 0; i < axis.count; i += 1) {
      const value = values[at(i)];
      const isKnown = Number.isFinite(share(value));
      if (isKnown) path += `${isOpen ? "L" : "M"}${inX(axis.edges[i]).toFixed(1)} ${inY(value).toFixed(1)}H${inX(axis.edges[i + 1]).toFixed(1)}`;
      isOpen = isKnown;
    }
    return path;
  };
  const [low, high] = scale.log ? [10 ** scale.low, 10 ** scale.high] : [scale.low, scale.high];
  const pointed = inX(axis.centres[index]);
  return html`<figure class="cut"><figcaption>${title}</figcaption><div ref=${ref}>${size.width > 0 && html`
    <svg width=${size.width} height=${HEIGHT} role="img" aria-label=${title}>
      <g class="axes"><rect x=${LEFT} y=${TOP} width=${width} height=${height} />
        ${ticks(low, high, scale.log, 3).map(({ value, text }) => html`<g key=${text} transform=${`translate(${LEFT},${inY(value)})`}><line x2="-4" /><text x="-7" dy="0.32em" text-anchor="end">${text}</text></g>`)}
        ${ticks(axis.low, axis.high, axis.log, Math.max(2, Math.floor(width / 80))).map(({ value, text }) => html`<g key=${text} transform=${`translate(${inX(shareOf(axis, value))},${TOP + height})`}><line y2="4" /><text y="17" text-anchor="middle">${text}</text></g>`)}
        <text x=${LEFT + width / 2} y=${HEIGHT - 3} text-anchor="middle" class="name">${name}</text></g>
      <line class="here" x1=${pointed} x2=${pointed} y1=${TOP} y2=${TOP + height} />
      ${map.layers.map(({ numbers, colour }, i) => html`<path key=${i} class="steps" d=${steps(numbers)} style=${{ stroke: colour }} stroke-dasharray=${i % 2 ? "6 3" : undefined} />`)}
    </svg>`}</div></figure>`;
}

export function Cuts({ map, cell }) {
  if (!cell) return null;
  const { heading, plane } = map;
  const columns = heading.shape[1];
  const values = valuesAt(heading, cell);
  const [x, y] = heading.axes.map((axis) => axis.name);
  // Cuts show the quantity of the map with all mechanisms on one scale.
  const scale = map.layers.find((layer) => layer.coloured === "values")?.scale ?? { low: 0, high: 1, log: false };
  return html`<div class="cuts">
    <${Cut} map=${map} name=${x} axis=${plane.x} index=${cell.column} at=${(i) => cell.row * columns + i} title=${`Cut along ${x} at ${describePoint({ [y]: values[y] })}`} scale=${scale} />
    <${Cut} map=${map} name=${y} axis=${plane.y} index=${cell.row} at=${(i) => i * columns + cell.column} title=${`Cut along ${y} at ${describePoint({ [x]: values[x] })}`} scale=${scale} />
  </div>`;
}
