// What is drawn over the cells of a map: axes, lines between cells, the curve of a formula, the certified
// boundary, pinned points and the cell that is pointed at. On cells, lines are white with a dark rim, so that they
// are seen on every colour, by day and by night.

import { html } from "./framework.js";
import { levelEdges, numberOf, shareBetween, shareOf, ticks, zeroLine } from "./cells.js";

export const MARGIN = { left: 58, right: 10, top: 8, bottom: 46 };

export function frame(size) {
  const width = Math.max(40, size.width - MARGIN.left - MARGIN.right);
  const height = Math.max(40, size.height - MARGIN.top - MARGIN.bottom);
  return { width, height, x: (share) => MARGIN.left + share * width, y: (share) => MARGIN.top + (1 - share) * height };
}

export function hasNames(heading, panel) {
  return panel.coloured === "values" && heading.levels.length > 0;
}

// The levels whose lines are drawn over a panel: those that have a name, or else the numbers beside its colours.
export function levelsOf(heading, panel) {
  if (hasNames(heading, panel)) return heading.levels;
  if (heading.difference) return [panel.low / 2, panel.high / 2].map((level) => ({ name: String(level).replace("-", "−"), level }));
  const [low, high] = panel.log ? [10 ** panel.low, 10 ** panel.high] : [panel.low, panel.high];
  return ticks(low, high, panel.log, 5).filter(({ value }) => value > low).map(({ value, text }) => ({ name: text, level: value }));
}

function edgePath(edges, x, y, at) {
  return edges.map(([x0, y0, x1, y1]) => `M${at.x(x.edges[x0]).toFixed(1)} ${at.y(y.edges[y0]).toFixed(1)}L${at.x(x.edges[x1]).toFixed(1)} ${at.y(y.edges[y1]).toFixed(1)}`).join("");
}

function curvePath(line, x, y, at) {
  return line.map(([x0, y0, x1, y1]) => `M${at.x(shareBetween(x, x0)).toFixed(1)} ${at.y(shareBetween(y, y0)).toFixed(1)}L${at.x(shareBetween(x, x1)).toFixed(1)} ${at.y(shareBetween(y, y1)).toFixed(1)}`).join("");
}

const ROOM = 28; // pixels between the name of a line and the end of the map
const DASHES = ["2 3", "7 3", "11 3 2 3", ""];

// Every line over a panel that stays while one points: [{ name, path, dash, label }]
export function linesOf(map, panel, place, x, y, at) {
  const { heading } = map;
  const values = map.array(place, panel.coloured);
  const levels = levelsOf(heading, panel);
  const drawn = levels.map(({ name, level }, i) => {
    const edges = levelEdges(values, heading.shape[0], heading.shape[1], level);
    const sorted = [...edges].sort((one, other) => one[0] - other[0]);
    const chosen = sorted[Math.floor(((i + 1) * sorted.length) / (levels.length + 1))];
    const label = chosen && { x: Math.max(at.x(0) + ROOM, Math.min(at.x(1) - ROOM, at.x(x.edges[chosen[0]]))), y: at.y((y.edges[chosen[1]] + y.edges[chosen[3]]) / 2), text: name.split(",")[0] };
    return { kind: "level", name, path: edgePath(edges, x, y, at), dash: hasNames(heading, panel) ? DASHES[i % 4] : "2 3", label };
  });
  const formula = map.said(place, "formula");
  if (formula) {
    const line = zeroLine(map.array(place, "formula"), heading.shape[0], heading.shape[1]);
    drawn.push({ kind: "formula", name: `${formula.formula} ${formula.tag}, ${formula.limit}`, path: curvePath(line, x, y, at), dash: "" });
  }
  return drawn.filter((each) => each.path);
}

export function Axes({ x, y, at, labels, numbers }) {
  const across = ticks(x.low, x.high, x.log, Math.max(2, Math.floor(at.width / 70)));
  const up = ticks(y.low, y.high, y.log, Math.max(2, Math.floor(at.height / 40)));
  const [bottom, left] = [at.y(0), at.x(0)];
  return html`<g class="axes">
    <rect x=${left} y=${at.y(1)} width=${at.width} height=${at.height} />
    ${across.map(({ value, text }) => html`<g key=${text} transform=${`translate(${at.x(shareOf(x, value))},${bottom})`}>
      <line y2="5" /><text y="18" text-anchor="middle">${text}</text></g>`)}
    ${up.map(({ value, text }) => html`<g key=${text} transform=${`translate(${left},${at.y(shareOf(y, value))})`}>
      <line x2="-5" /><text x="-8" dy="0.32em" text-anchor="end">${text}</text></g>`)}
    <text x=${left + at.width / 2} y=${bottom + 38} text-anchor="middle" class="name">${labels[0]}</text>
    <text transform=${`translate(13,${at.y(0.5)}) rotate(-90)`} text-anchor="middle" class="name">${labels[1]}</text>
    ${numbers}
  </g>`;
}

export function Lines({ lines }) {
  return lines.map((each, i) => html`<g key=${i} class=${`over ${each.kind}`}>
    <path class="rim" d=${each.path} />
    <path class="line" d=${each.path} stroke-dasharray=${each.dash || undefined} />
    ${each.label && html`<text x=${each.label.x} y=${each.label.y}>${each.label.text}</text>`}
  </g>`);
}

// Where P passes one half, searched along one axis at values of the other: an interval each, or a point where it is
// narrower than the dot.
export function Crossings({ curve, names, x, y, at }) {
  if (!curve) return null;
  const along = curve.parameter === names[0];
  return curve.curve.flatMap((each, i) => each.crossings.map((crossing, j) => {
    const ends = [crossing.lo, crossing.hi].map((end) => {
      const [inX, inY] = along ? [numberOf(end), numberOf(each.asked)] : [numberOf(each.asked), numberOf(end)];
      return [at.x(shareOf(x, inX)), at.y(shareOf(y, inY))];
    });
    const middle = [0, 1].map((k) => (ends[0][k] + ends[1][k]) / 2);
    return html`<g key=${`${i} ${j}`} class=${crossing.certified ? "crossing certified" : "crossing"}>
      <line x1=${ends[0][0]} y1=${ends[0][1]} x2=${ends[1][0]} y2=${ends[1][1]} />
      <circle cx=${middle[0]} cy=${middle[1]} r="3.5" />
    </g>`;
  }));
}

export function Pins({ pins, names, x, y, at }) {
  return Object.entries(pins).map(([name, pin]) => {
    const [across, up] = [shareOf(x, numberOf(pin[names[0]])), shareOf(y, numberOf(pin[names[1]]))];
    if (!(across >= 0 && across <= 1 && up >= 0 && up <= 1)) return null;
    return html`<g key=${name} class="pin" transform=${`translate(${at.x(across)},${at.y(up)})`}>
      <circle r="9" /><text text-anchor="middle" dy="0.35em">${name}</text></g>`;
  });
}

export function Pointer({ cell, x, y, at }) {
  if (!cell || cell.row >= y.count || cell.column >= x.count) return null;
  const [left, right] = [at.x(x.edges[cell.column]), at.x(x.edges[cell.column + 1])];
  const [bottom, top] = [at.y(y.edges[cell.row]), at.y(y.edges[cell.row + 1])];
  const grown = (low, high) => (high - low < 6 ? [(low + high) / 2 - 3, 6] : [low, high - low]);
  const [[inX, width], [inY, height]] = [grown(left, right), grown(top, bottom)];
  return html`<g class="pointer">
    <line x1=${(left + right) / 2} x2=${(left + right) / 2} y1=${at.y(0)} y2=${at.y(1)} />
    <line y1=${(top + bottom) / 2} y2=${(top + bottom) / 2} x1=${at.x(0)} x2=${at.x(1)} />
    <rect class="rim" x=${inX - 1} y=${inY - 1} width=${width + 2} height=${height + 2} />
    <rect x=${inX} y=${inY} width=${width} height=${height} />
  </g>`;
}
