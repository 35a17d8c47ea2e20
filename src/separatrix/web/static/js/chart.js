// Line charts, drawn by uPlot from a description that pages and the explorer share:
//
//   { label, height, x, y, series, rules, notes }
//   x, y    { label, log, range, ticks }: `range` and `ticks`, [value, text] pairs, may be missing
//   series  [{ name, colour, dash, width, symbol, filled, line, band, x, y, low, high, texts }]: `symbol` is an SVG path
//           around (17, 7); `low` and `high` are intervals; `band` draws them as an area; `texts` are read out
//   rules   [{ axis, at, colour, dash, text, side }]: lines across the chart
//   notes   [{ x, y, text, colour, align, valign, dx, dy, inside, wide }]: `inside` gives x and y as shares of the
//           chart; `wide` notes are left out of narrow charts
//
// Colours are CSS colours, or "ink" and "faint", which follow the colour scheme.

import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "./framework.js";
import { ticks } from "./cells.js";
import { forPeople } from "./format.js";
import { inks, useScheme, useSize } from "./screen.js";

const FONT = "12px system-ui, sans-serif";
const NARROW = 420; // pixels
const MAX_ROWS = 12; // of the box at the pointer
const MARKED_POINTS = 60; // up to this many points of a line are marked

let loading = null;

// In a page uPlot is inlined; the explorer loads it when a view first needs it.
function loadLibrary() {
  if (window.uPlot) return Promise.resolve(window.uPlot);
  loading ??= new Promise((resolve, reject) => {
    const sheet = Object.assign(document.createElement("link"), { rel: "stylesheet", href: "/static/vendor/uplot.css" });
    const script = Object.assign(document.createElement("script"), { src: "/static/vendor/uplot.js", onload: () => resolve(window.uPlot), onerror: reject });
    document.head.append(sheet, script);
  }).catch(() => { loading = null; return null; });
  return loading;
}

// A colour for the canvas, which knows no CSS variables, and one for elements.
const canvasColour = (colour, palette) => palette[colour.replace(/^var\(--(\w+)\)$/, "$1")] ?? colour;
const cssColour = (colour) => (colour === "ink" || colour === "faint" ? `var(--${colour})` : colour);

// The series over one sorted list of x. A series has nothing (undefined) where only others have a point, and a gap
// (null) where its value is unknown. Series without a line, which may have several points at one x, are drawn apart.
export function alignSeries(series) {
  const xs = [...new Set(series.flatMap((line) => line.x))].sort((a, b) => a - b);
  const place = new Map(xs.map((x, i) => [x, i]));
  const columns = series.map((line) => {
    const ys = new Array(xs.length).fill(undefined);
    if (line.line) line.x.forEach((x, i) => { ys[place.get(x)] = line.y[i]; });
    return ys;
  });
  return [xs, ...columns];
}

// The range of an axis: as described, or the extent of all points and intervals with some room.
export function rangeOf({ range, log }, numbers) {
  if (range) return range;
  const known = numbers.filter((value) => Number.isFinite(value) && (!log || value > 0)).map((value) => (log ? Math.log10(value) : value));
  if (!known.length) return log ? [1, 10] : [0, 1];
  const [low, high] = [Math.min(...known), Math.max(...known)];
  const room = 0.04 * (high - low) || (log ? 0.5 : Math.abs(high) / 10 || 1);
  return [low - room, high + room].map((end) => (log ? 10 ** end : end));
}

function axisOptions(axis, palette, isUp) {
  const room = (plot) => (isUp ? plot.bbox.height / 40 : plot.bbox.width / 75) / devicePixelRatio;
  const shown = (plot, low, high) => axis.ticks ?? ticks(low, high, axis.log, Math.max(2, Math.floor(room(plot)))).map(({ value, text }) => [value, text]);
  return {
    label: axis.label, labelFont: FONT, font: FONT, labelSize: 22, size: isUp ? 56 : 34, stroke: palette.faint,
    grid: { stroke: palette.line, width: 1 }, ticks: { stroke: palette.line, width: 1 },
    filter: (_, splits) => splits, // uPlot would drop labels of logarithmic axes
    splits: (plot, _, low, high) => shown(plot, low, high).map(([value]) => value).filter((value) => value >= low && value <= high),
    values: (plot, splits) => {
      const texts = new Map(shown(plot, plot.scales[isUp ? "y" : "x"].min, plot.scales[isUp ? "y" : "x"].max));
      return splits.map((value) => texts.get(value) ?? "");
    },
  };
}

// uPlot asks for the range of x when it begins and after a double click, with the extent of the data, and after a zoom,
// with what was selected.
function xScale(axis, extent, xs) {
  const range = (_, low, high) => (low === null || (low <= xs[0] && high >= xs.at(-1)) ? extent : [low, high]);
  return { time: false, distr: axis.log ? 3 : 1, range };
}

// Draws with the pixels of the canvas: `draw(context, x, y)` gets functions from values to pixels.
function onCanvas(plot, draw) {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  draw(ctx, (value) => plot.valToPos(value, "x", true), (value) => plot.valToPos(value, "y", true));
  ctx.restore();
}

function drawRules(plot, rules, palette) {
  const ratio = devicePixelRatio;
  onCanvas(plot, (context, toX, toY) => {
    const { left, top, width, height } = plot.bbox;
    for (const { axis, at, colour, dash, text, side } of rules) {
      context.strokeStyle = context.fillStyle = canvasColour(colour, palette);
      context.lineWidth = ratio;
      context.setLineDash(dash.map((part) => part * ratio));
      const place = axis === "x" ? toX(at) : toY(at);
      context.beginPath();
      context.moveTo(axis === "x" ? place : left, axis === "x" ? top : place);
      context.lineTo(axis === "x" ? place : left + width, axis === "x" ? top + height : place);
      context.stroke();
      if (!text) continue;
      context.font = FONT.replace("12", 12 * ratio);
      context.textAlign = side;
      context.textBaseline = "bottom";
      context.fillText(text, side === "left" ? left + 4 * ratio : left + width - 4 * ratio, place - 2 * ratio);
    }
  });
}

function drawBands(plot, series, palette) {
  onCanvas(plot, (context, toX, toY) => {
    for (const { x, low, high, colour } of series.filter(({ band }) => band)) {
      context.fillStyle = canvasColour(colour, palette);
      context.globalAlpha = 0.2;
      context.beginPath();
      x.forEach((value, i) => context.lineTo(toX(value), toY(low[i])));
      [...x.keys()].reverse().forEach((i) => context.lineTo(toX(x[i]), toY(high[i])));
      context.fill();
    }
  });
}

// Symbols with their intervals: of every point of a series without a line, and of the points of a short line.
function drawSymbols(plot, series, palette) {
  const ratio = devicePixelRatio;
  onCanvas(plot, (context, toX, toY) => {
    for (const line of series) {
      const colour = canvasColour(line.colour, palette);
      const shape = line.symbol && (!line.line || line.x.length <= MARKED_POINTS) ? new Path2D(line.symbol) : null;
      context.strokeStyle = colour;
      context.fillStyle = line.filled ? colour : palette.paper;
      context.lineWidth = 1.5;
      line.x.forEach((x, i) => {
        if (line.y[i] === null || line.y[i] === undefined) return;
        const [inX, inY] = [toX(x), toY(line.y[i])];
        context.setTransform(ratio, 0, 0, ratio, inX, inY);
        if (line.low && !line.band && line.low[i] < line.high[i]) {
          const [below, above] = [line.low[i], line.high[i]].map((end) => (toY(end) - inY) / ratio);
          context.beginPath();
          for (const end of [below, above]) { context.moveTo(-3, end); context.lineTo(3, end); }
          context.moveTo(0, below);
          context.lineTo(0, above);
          context.stroke();
        }
        if (!shape) return;
        const size = line.size ?? (line.line ? 0.6 : 1);
        context.scale(size, size);
        context.translate(-17, -7);
        context.fill(shape);
        context.stroke(shape);
      });
      context.setTransform(1, 0, 0, 1, 0, 0);
    }
  });
}

function drawNotes(plot, notes, palette) {
  const ratio = devicePixelRatio;
  const { left, top, width, height } = plot.bbox;
  const { ctx: context } = plot;
  context.save();
  context.font = FONT.replace("12", 12 * ratio);
  context.lineJoin = "round";
  for (const note of notes.filter(({ wide }) => !wide || width / ratio >= NARROW)) {
    const lines = note.text.split("\n");
    const inX = (note.inside ? left + note.x * width : plot.valToPos(note.x, "x", true)) + note.dx * ratio;
    const inY = (note.inside ? top + (1 - note.y) * height : plot.valToPos(note.y, "y", true)) + note.dy * ratio;
    const above = { top: 0, middle: lines.length / 2, bottom: lines.length }[note.valign];
    Object.assign(context, { fillStyle: canvasColour(note.colour, palette), strokeStyle: palette.paper, lineWidth: 3 * ratio, textAlign: note.align, textBaseline: "middle" });
    lines.forEach((line, i) => {
      const place = inY + (i + 0.5 - above) * 15 * ratio;
      context.strokeText(line, inX, place); // a rim in the colour of the paper, so that lines below do not disturb
      context.fillText(line, inX, place);
    });
  }
  context.restore();
}

// The points at one x: [{ name, colour, text }].
export function pointsAt({ series }, x) {
  return series.flatMap((line) => line.x.flatMap((value, i) => {
    if (value !== x || line.y[i] === undefined || line.silent) return [];
    const interval = line.low && line.low[i] < line.high[i] ? ` in [${forPeople(line.low[i], 4)}, ${forPeople(line.high[i], 4)}]` : "";
    if (line.y[i] === null) return [{ name: line.name, colour: line.colour, text: "no answer" }];
    const number = `${forPeople(line.y[i])}${interval}`;
    const text = line.texts?.[i];
    return [{ name: line.name, colour: line.colour, text: text ? `${number}, ${text}` : number }];
  }));
}

export function describeX({ x: axis }, x) {
  if (axis.is_category) return axis.ticks.reduce((a, b) => (Math.abs(b[0] - x) < Math.abs(a[0] - x) ? b : a))[1];
  return `${axis.label.split(",")[0]} = ${forPeople(x)}`;
}

function PointerBox({ chart, x, left, isRight, hasText }) {
  const points = hasText ? pointsAt(chart, x) : [];
  return html`<div class="chart-line" style=${{ left: `${left}px` }}></div>${hasText && html`<div class="chart-box" style=${isRight ? { right: `calc(100% - ${left - 8}px)` } : { left: `${left + 8}px` }}>
    <strong>${describeX(chart, x)}</strong>
    ${points.slice(0, MAX_ROWS).map(({ name, colour, text }, i) => html`<span key=${i}><i style=${{ background: cssColour(colour) }}></i>${name}: ${text}</span>`)}
    ${points.length > MAX_ROWS && html`<span>and ${points.length - MAX_ROWS} more</span>`}
  </div>`}`;
}

const STEPS = { ArrowLeft: -1, ArrowRight: 1, PageDown: -10, PageUp: 10 };

// `x` is the point that is read, where another control chooses it; `onPoint(x)` is called with the one pointed at.
export function Chart({ chart, x: chosen = null, onPoint }) {
  const [ref, size] = useSize();
  const scheme = useScheme();
  const plot = useRef(null);
  const [isMissing, setMissing] = useState(false);
  const [pointed, setPointed] = useState(null);
  const data = useMemo(() => alignSeries(chart.series), [chart]);
  const height = chart.height ?? 260;
  const point = (x) => { setPointed(x); if (x !== null) onPoint?.(x); };
  const latestPoint = useRef(point);
  latestPoint.current = point;
  useLayoutEffect(() => {
    let isCurrent = true;
    if (!size.width) return undefined;
    const build = (UPlot) => {
      if (!isCurrent) return;
      setMissing(!UPlot);
      if (UPlot) plot.current = new UPlot(options(chart, data, { width: Math.floor(size.width), height }, (x) => latestPoint.current(x)), data, ref.current);
    };
    // Not after a promise where the library is here: the page may be about to be printed.
    if (window.uPlot) build(window.uPlot);
    else loadLibrary().then(build);
    return () => { isCurrent = false; plot.current?.destroy(); plot.current = null; };
  }, [size.width, scheme, data, height]);
  const shown = pointed ?? chosen;
  const onKeyDown = (event) => {
    const xs = data[0];
    const from = shown === null ? -1 : xs.indexOf(shown);
    if (event.key in STEPS) point(xs[Math.max(0, Math.min(xs.length - 1, from + STEPS[event.key]))]);
    else if (event.key === "+" || event.key === "=") zoom(plot.current, shown, 0.7);
    else if (event.key === "-") zoom(plot.current, shown, 1 / 0.7);
    else if (event.key === "0") reset(plot.current);
    else if (event.key === "Escape") setPointed(null);
    else return;
    event.preventDefault();
  };
  const left = shown !== null && plot.current ? plot.current.over.offsetLeft + plot.current.valToPos(shown, "x") : null;
  return html`<div class="chart" ref=${ref} style=${{ minHeight: `${height}px` }} tabindex="0" role="application" aria-roledescription="chart" aria-label=${chart.label}
    onKeyDown=${onKeyDown} onPointerLeave=${() => setPointed(null)}>
    ${isMissing && html`<p class="hint">The chart could not be loaded; the numbers are below.</p>`}
    ${left !== null && html`<${PointerBox} chart=${chart} x=${shown} left=${left} isRight=${left > size.width / 2} hasText=${pointed !== null} />`}
    <p class="visually-hidden" aria-live="polite">${pointed === null ? "" : `${describeX(chart, pointed)}: ${pointsAt(chart, pointed).map(({ name, text }) => `${name} ${text}`).join("; ")}`}</p>
  </div>`;
}

function options(chart, data, size, onPoint) {
  const palette = inks();
  const numbers = (names) => chart.series.flatMap((line) => names.flatMap((name) => line[name] ?? []));
  const extents = { x: rangeOf(chart.x, numbers(["x"])), y: rangeOf(chart.y, numbers(["y", "low", "high"])) };
  const nearest = (plot) => {
    if (!plot.cursor.event || plot.cursor.left < 0) return;
    const xs = data[0].map((x) => Math.abs(plot.valToPos(x, "x") - plot.cursor.left));
    onPoint(data[0][xs.indexOf(Math.min(...xs))]);
  };
  return {
    ...size,
    legend: { show: false },
    cursor: { x: false, y: false, points: { show: false }, drag: { x: true, y: false } },
    scales: { x: xScale(chart.x, extents.x, data[0]), y: { distr: chart.y.log ? 3 : 1, range: () => extents.y } },
    axes: [axisOptions(chart.x, palette, false), axisOptions(chart.y, palette, true)],
    series: [{}, ...chart.series.map((line) => ({
      stroke: canvasColour(line.colour, palette), width: line.width, dash: line.dash, points: { show: false }, ...(line.line ? {} : { paths: () => null }),
    }))],
    hooks: {
      setCursor: [nearest],
      drawClear: [(plot) => { drawBands(plot, chart.series, palette); drawRules(plot, chart.rules ?? [], palette); }],
      draw: [(plot) => { drawSymbols(plot, chart.series, palette); drawNotes(plot, chart.notes ?? [], palette); }],
    },
  };
}

function zoom(plot, about, factor) {
  if (!plot) return;
  const { min, max, distr } = plot.scales.x;
  const [to, back] = distr === 3 ? [Math.log10, (value) => 10 ** value] : [Number, Number];
  const [low, high] = [to(min), to(max)];
  const middle = about === null ? (low + high) / 2 : to(about);
  const ends = [low, high].map((end) => back(middle + (end - middle) * factor));
  plot.setScale("x", { min: ends[0], max: ends[1] });
}

function reset(plot) {
  plot?.setScale("x", { min: plot.data[0][0], max: plot.data[0].at(-1) });
}

// Samples of lines and symbols with their names.
export function Legend({ entries }) {
  return html`<ul class="keys">${entries.map(({ name, colour, dash = [], symbol, filled, line = true }) => html`<li key=${name}><svg width="34" height="14" aria-hidden="true">
    ${line && html`<path d="M0 7h34" style=${{ stroke: cssColour(colour), strokeWidth: 2.4, strokeDasharray: dash.join(" ") }} />`}
    ${symbol && html`<path d=${symbol} style=${{ stroke: cssColour(colour), strokeWidth: 1.6, fill: filled ? cssColour(colour) : "var(--paper)" }} />`}
  </svg> ${name}</li>`)}</ul>`;
}
