// A row for each mechanism between floor and ceiling: the median as a bar, every seed as a dot, and marks for the proved
// ceiling and for constructed weights.

import { html } from "./framework.js";
import { useSize } from "./screen.js";
import { scoreScale } from "./trained-words.js";

const ROW = 46; // pixels
const HEAD = 22;

export function Bars({ learned, moreIsBetter, colourOf }) {
  const [ref, size] = useSize();
  const width = Math.max(240, size.width);
  const share = scoreScale(learned, moreIsBetter);
  const x = (score) => 6 + share(score) * (width - 12);
  const height = HEAD + ROW * learned.mechanisms.length + 4;
  return html`<div class="bars" ref=${ref}>
    <svg width=${width} height=${height} role="img" aria-label="Scores of each mechanism between floor and ceiling; the table below has the numbers">
      ${[["floor", learned.floor], ["ceiling", learned.ceiling]].map(([name, score]) => html`<g key=${name}>
        <line class="bound" x1=${x(score)} x2=${x(score)} y1=${HEAD - 4} y2=${height} />
        <text class="bound-name" x=${x(score)} y="13" text-anchor=${share(score) < 0.5 ? "start" : "end"}>${name} ${score.toFixed(4)}</text></g>`)}
      ${learned.mechanisms.map((evidence, i) => html`<${Row} key=${evidence.mechanism} evidence=${evidence} top=${HEAD + i * ROW} x=${x} floor=${learned.floor} colour=${colourOf(evidence.mechanism)} />`)}
    </svg>
    <ul class="keys">
      <li><svg width="14" height="14" aria-hidden="true"><circle class="seed" cx="7" cy="7" r="4" /></svg> a seed</li>
      <li><svg width="14" height="14" aria-hidden="true"><line class="proved" x1="7" x2="7" y1="0" y2="14" /></svg> proved ceiling of the mechanism</li>
      <li><svg width="14" height="14" aria-hidden="true"><path class="witness" d=${diamond(7, 7)} /></svg> constructed weights (witness)</li>
      <li><svg width="14" height="14" aria-hidden="true"><path class="tuned" d=${triangle(7, 7)} /></svg> trained from the witness</li>
    </ul>
  </div>`;
}

function Row({ evidence, top, x, floor, colour }) {
  const { median, interval, seeds } = evidence.trained;
  const middle = top + 32;
  return html`<g>
    <text class="name" x="6" y=${top + 14}>${evidence.mechanism}: ${evidence.word}</text>
    <line class="track" x1=${x(floor)} x2=${x(median ?? floor)} y1=${middle} y2=${middle} />
    ${median !== null && html`<rect x=${Math.min(x(floor), x(median))} width=${Math.abs(x(median) - x(floor))} y=${middle - 6} height="12" style=${{ fill: colour, opacity: 0.35 }} />
      <line x1=${x(median)} x2=${x(median)} y1=${middle - 8} y2=${middle + 8} style=${{ stroke: colour, strokeWidth: 3 }} />`}
    ${interval && html`<line class="interval" x1=${x(interval[0])} x2=${x(interval[1])} y1=${middle} y2=${middle} />`}
    ${evidence.proved_ceiling !== null && html`<line class="proved" x1=${x(evidence.proved_ceiling)} x2=${x(evidence.proved_ceiling)} y1=${middle - 12} y2=${middle + 12}><title>proved: at most ${evidence.proved_ceiling.toFixed(4)}</title></line>`}
    ${evidence.witness !== null && html`<path class="witness" d=${diamond(x(evidence.witness), middle - 9)}><title>constructed weights: ${evidence.witness.toFixed(4)}</title></path>`}
    ${evidence.tuned_witness !== null && html`<path class="tuned" d=${triangle(x(evidence.tuned_witness), middle + 9)}><title>trained from the witness: ${evidence.tuned_witness.toFixed(4)}</title></path>`}
    ${seeds.map((score, i) => score !== null && html`<circle key=${i} class="seed" cx=${x(score)} cy=${middle + ((i % 3) - 1) * 3} r="3.5" style=${{ fill: colour }}><title>${score.toFixed(4)}</title></circle>`)}
  </g>`;
}

function diamond(x, y) {
  return `M${x} ${y - 5}L${x + 5} ${y}L${x} ${y + 5}L${x - 5} ${y}Z`;
}

function triangle(x, y) {
  return `M${x} ${y - 5}L${x + 5} ${y + 4}L${x - 5} ${y + 4}Z`;
}
