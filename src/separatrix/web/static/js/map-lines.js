// What is drawn over the cells of a map: axes, lines between cells, the curve of a formula, the certified boundary,
// pinned points and the cell that is pointed at. Lines are white with a dark rim, which is visible on every colour.

import { html } from "./framework.js";
import { levelEdges, numberOf, shareBetween, shareOf, ticks, zeroLine } from "./cells.js";

export const MARGIN = { left: 58, right: 10, top: 8, bottom: 46 };

export function frameOf(size) {
  const width = Math.max(40, size.width - MARGIN.left - MARGIN.right);
  const height = Math.max(40, size.height - MARGIN.top - MARGIN.bottom);
  return { width, height, x: (share) => MARGIN.left + share * width, y: (share) => MARGIN.top + (1 - share) * height };
}

export function hasNamedLevels(heading, layer) {
  return layer.coloured === "values" && heading.levels.length > 0;
}

// The levels whose lines are drawn over a panel: those that have a name, or else the numbers beside the colour bar.
export function levelsOf(heading, layer) {
  if (hasNamedLevels(heading, layer)) return heading.levels;
  const { log } = layer.scale;
  if (heading.difference) return [layer.scale.low / 2, layer.scale.high / 2].map((level) => ({ name: String(level).replace("-", "−"), level }));
  const [low, high] = log ? [10 ** layer.scale.low, 10 ** layer.scale.high] : [layer.scale.low, layer.scale.high];
  return ticks(low, high, log, 5).filter(({ value }) => value > low).map(({ value, text }) => ({ name: text, level: value }));
}

function pathOf(segments, toX, toY) {
  return segments.map(([x0, y0, x1, y1]) => `M${toX(x0).toFixed(1)} ${toY(y0).toFixed(1)}L${toX(x1).toFixed(1)} ${toY(y1).toFixed(1)}`).join("");
}

const LABEL_ROOM = 28; // pixels between the name of a line and the edge of the map
const DASHES = ["2 3", "7 3", "11 3 2 3", ""];

// Every line over a panel that does not depend on the pointer: [{ kind, name, path, dash, label }].
export function linesOf(heading, layer, { x, y }, frame) {
  const [rows, columns] = heading.shape;
  const levels = levelsOf(heading, layer);
  const lines = levels.map(({ name, level }, i) => {
    const edges = levelEdges(layer.shown, rows, columns, level);
    const path = pathOf(edges, (edge) => frame.x(x.edges[edge]), (edge) => frame.y(y.edges[edge]));
    const sorted = edges.filter((edge) => [x.edges[edge[0]], y.edges[edge[1]]].every((share) => share >= 0 && share <= 1)).sort((a, b) => a[0] - b[0]);
    const labelled = sorted[Math.floor(((i + 1) * sorted.length) / (levels.length + 1))];
    const label = labelled && {
      x: Math.max(frame.x(0) + LABEL_ROOM, Math.min(frame.x(1) - LABEL_ROOM, frame.x(x.edges[labelled[0]]))),
      y: frame.y((y.edges[labelled[1]] + y.edges[labelled[3]]) / 2),
      text: name.split(",")[0],
    };
    return { kind: "level", name, path, dash: hasNamedLevels(heading, layer) ? DASHES[i % DASHES.length] : DASHES[0], label };
  });
  if (layer.formula) {
    const { formula, tag, limit } = layer.formula;
    const path = pathOf(zeroLine(layer.numbers.formula, rows, columns), (place) => frame.x(shareBetween(x, place)), (place) => frame.y(shareBetween(y, place)));
    lines.push({ kind: "formula", name: `${formula} ${tag}, ${limit}`, path, dash: "" });
  }
  for (const { name, points, colour, dash } of layer.lines ?? []) {
    const path = points.map(([inX, inY], i) => `${i ? "L" : "M"}${frame.x(shareOf(x, inX)).toFixed(1)} ${frame.y(shareOf(y, inY)).toFixed(1)}`).join("");
    lines.push({ kind: "formula", name, path, dash: dash.join(" "), colour });
  }
  return lines.filter((line) => line.path);
}

export function Axes({ x, y, frame, labels }) {
  const across = ticks(x.low, x.high, x.log, Math.max(2, Math.floor(frame.width / 70)));
  const up = ticks(y.low, y.high, y.log, Math.max(2, Math.floor(frame.height / 40)));
  const [bottom, left] = [frame.y(0), frame.x(0)];
  return html`<g class="axes">
    <rect x=${left} y=${frame.y(1)} width=${frame.width} height=${frame.height} />
    ${across.map(({ value, text }) => html`<g key=${text} transform=${`translate(${frame.x(shareOf(x, value))},${bottom})`}>
      <line y2="5" /><text y="18" text-anchor="middle">${text}</text></g>`)}
    ${up.map(({ value, text }) => html`<g key=${text} transform=${`translate(${left},${frame.y(shareOf(y, value))})`}>
      <line x2="-5" /><text x="-8" dy="0.32em" text-anchor="end">${text}</text></g>`)}
    <text x=${left + frame.width / 2} y=${bottom + 38} text-anchor="middle" class="name">${labels[0]}</text>
    <text transform=${`translate(13,${frame.y(0.5)}) rotate(-90)`} text-anchor="middle" class="name">${labels[1]}</text>
  </g>`;
}

export function Lines({ lines }) {
  return lines.map((line, i) => html`<g key=${i} class=${`over ${line.kind}`}>
    <path class="rim" d=${line.path} />
    <path class="line" d=${line.path} stroke-dasharray=${line.dash || undefined} style=${line.colour && { stroke: line.colour }} />
    ${line.label && html`<text x=${line.label.x} y=${line.label.y}>${line.label.text}</text>`}
  </g>`);
}

// Where P passes one half, searched along one axis at values of the other: an interval for each crossing, or a point
// where the interval is narrower than the dot.
export function Crossings({ curve, names, x, y, frame }) {
  if (!curve) return null;
  const isAlongX = curve.parameter === names[0];
  return curve.curve.flatMap((searched, i) => searched.crossings.map((crossing, j) => {
    const ends = [crossing.lo, crossing.hi].map((end) => {
      const [inX, inY] = isAlongX ? [numberOf(end), numberOf(searched.asked)] : [numberOf(searched.asked), numberOf(end)];
      return [frame.x(shareOf(x, inX)), frame.y(shareOf(y, inY))];
    });
    const middle = [0, 1].map((k) => (ends[0][k] + ends[1][k]) / 2);
    return html`<g key=${`${i} ${j}`} class=${crossing.certified ? "crossing certified" : "crossing"}>
      <line x1=${ends[0][0]} y1=${ends[0][1]} x2=${ends[1][0]} y2=${ends[1][1]} />
      <circle cx=${middle[0]} cy=${middle[1]} r="3.5" />
    </g>`;
  }));
}

export function Pins({ pins, names, x, y, frame }) {
  return Object.entries(pins).map(([name, pin]) => {
    const [across, up] = [shareOf(x, numberOf(pin[names[0]])), shareOf(y, numberOf(pin[names[1]]))];
    if (!(across >= 0 && across <= 1 && up >= 0 && up <= 1)) return null;
    return html`<g key=${name} class="pin" transform=${`translate(${frame.x(across)},${frame.y(up)})`}>
      <circle r="9" /><text text-anchor="middle" dy="0.35em">${name}</text></g>`;
  });
}

export function Pointer({ cell, x, y, frame }) {
  if (!cell || cell.row >= y.count || cell.column >= x.count) return null;
  const [left, right] = [frame.x(x.edges[cell.column]), frame.x(x.edges[cell.column + 1])];
  const [bottom, top] = [frame.y(y.edges[cell.row]), frame.y(y.edges[cell.row + 1])];
  const atLeastSix = (low, high) => (high - low < 6 ? [(low + high) / 2 - 3, 6] : [low, high - low]); // pixels
  const [[inX, width], [inY, height]] = [atLeastSix(left, right), atLeastSix(top, bottom)];
  return html`<g class="pointer">
    <line x1=${(left + right) / 2} x2=${(left + right) / 2} y1=${frame.y(0)} y2=${frame.y(1)} />
    <line y1=${(top + bottom) / 2} y2=${(top + bottom) / 2} x1=${frame.x(0)} x2=${frame.x(1)} />
    <rect class="rim" x=${inX - 1} y=${inY - 1} width=${width + 2} height=${height + 2} />
    <rect x=${inX} y=${inY} width=${width} height=${height} />
  </g>`;
}
