// Time, memory and what is kept against the length, on log axes, as a small picture.

import { html } from "./framework.js";
import { colourOf, forPeople } from "./parts.js";
import { lengthOf } from "./mechanisms-words.js";

const WIDTH = 300;
const HEIGHT = 190;
const LEFT = 58;
const BOTTOM = 30;
const TOP = 22;
const DASHES = ["", "6 3", "2 3", "8 3 2 3"];

// Where a value lies between the powers of ten around all values: 0 at the lowest, 1 at the highest.
export function logScale(values) {
  const low = Math.floor(Math.log10(Math.min(...values)));
  const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(...values))));
  const powers = Array.from({ length: high - low + 1 }, (_, i) => 10 ** (low + i));
  return { at: (value) => (Math.log10(value) - low) / (high - low), powers };
}

function path(curve, x, y) {
  return curve.map(([n, value], i) => `${i ? "L" : "M"}${x(n).toFixed(1)},${y(value).toFixed(1)}`).join("");
}

function Panel({ title, unit, curves, looks }) {
  const points = curves.flatMap((each) => each.points).filter(([, value]) => value > 0);
  if (!points.length) return null;
  const lengths = [...new Set(points.map(([n]) => n))].sort((a, b) => a - b);
  const across = (n) => (Math.log(n / lengths[0]) / Math.log(lengths.at(-1) / lengths[0] || 2)) || 0;
  const scale = logScale(points.map(([, value]) => value));
  const x = (n) => LEFT + across(n) * (WIDTH - LEFT - 12);
  const y = (value) => HEIGHT - BOTTOM - scale.at(value) * (HEIGHT - BOTTOM - TOP);
  const every = Math.ceil(scale.powers.length / 5);
  const last = curves.map((each) => `${each.name} ${forPeople(each.points.at(-1)[1], 3)} ${unit} at n = ${lengthOf(each.points.at(-1)[0])}`).join(", ");
  return html`<svg class="cost-plot" viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label=${`${title}: ${last}`}>
    <text x=${LEFT} y="13" class="title">${title}, ${unit}</text>
    ${scale.powers.filter((_, i) => i % every === 0).map((power) => html`<g key=${power}><line x1=${LEFT} x2=${WIDTH - 12} y1=${y(power)} y2=${y(power)} />
      <text x=${LEFT - 5} y=${y(power) + 4} text-anchor="end">${forPeople(power, 2)}</text></g>`)}
    ${[lengths[0], lengths.at(-1)].map((n, i) => html`<text key=${n} x=${x(n)} y=${HEIGHT - 10} text-anchor=${i ? "end" : "start"}>n = ${lengthOf(n)}</text>`)}
    ${curves.map((each, i) => html`<path key=${each.name} d=${path(each.points.filter(([, value]) => value > 0), x, y)} stroke=${colourOf(looks, each.name)} stroke-dasharray=${DASHES[i % DASHES.length]} />`)}
  </svg>`;
}

export function CostPlot({ costs, looks }) {
  const panel = (title, unit, name, size) => html`<${Panel} title=${title} unit=${unit} looks=${looks}
    curves=${costs.map(({ mechanism, cost }) => ({ name: mechanism, points: cost.lengths.map((n, i) => [n, cost[name][i] / size]) }))} />`;
  return html`<div class="cost-plots">
    ${panel("time", "ms", "seconds", 1e-3)}${panel("memory", "MiB", "peak_bytes", 2 ** 20)}${panel("kept from token to token", "KiB", "state_bytes", 2 ** 10)}
    ${costs.length > 1 && html`<ul class="keys">${costs.map(({ mechanism }, i) => html`<li key=${mechanism}><svg viewBox="0 0 30 8" aria-hidden="true"><path d="M0,4L30,4" stroke=${colourOf(looks, mechanism)} stroke-dasharray=${DASHES[i % DASHES.length]} /></svg> ${mechanism}</li>`)}</ul>`}
  </div>`;
}
