// One panel of a map: its cells, the lines over them, and the actions of pointer and keyboard.

import { html, useEffect, useId, useLayoutEffect, useMemo, useRef } from "./framework.js";
import { cellAt, ticks } from "./cells.js";
import { forPeople } from "./format.js";
import { paint, rampColours } from "./map-canvas.js";
import { Axes, Crossings, frameOf, hasNamedLevels, Lines, linesOf, MARGIN, Pins, Pointer } from "./map-lines.js";
import { useSize } from "./screen.js";

const MAX_CLICK_DISTANCE = 4; // pixels that the pointer may move during a click
const MAX_MEASURES = 1000; // durations from request to pixels that the browser keeps

function ColourBar({ scale }) {
  const [low, high] = scale.log ? [10 ** scale.low, 10 ** scale.high] : [scale.low, scale.high];
  const marks = ticks(low, high, scale.log, 5);
  const share = (value) => ((scale.log ? Math.log10(value) : value) - scale.low) / (scale.high - scale.low);
  const ends = scale.low < 0 && scale.high > 0 ? ["red", "blue"] : ["dark", "light"];
  const steps = rampColours(scale.ramp).css.filter((_, i) => i % 15 === 0);
  return html`<div class="colour-bar">
    <div class="bar-colours" style=${{ background: `linear-gradient(to right, ${steps.join(", ")})` }}></div>
    <div class="bar-marks" aria-hidden="true">${marks.map(({ value, text }) => html`<span key=${text} style=${{ left: `${100 * share(value)}%` }}>${text}</span>`)}</div>
    <p>${scale.label}, from ${forPeople(low, 3)} (${ends[0]}) to ${forPeople(high, 3)} (${ends[1]})</p>
  </div>`;
}

function Canvas({ layer, plane: { x, y }, frame, onPainted }) {
  const ref = useRef(null);
  const ratio = window.devicePixelRatio || 1;
  useLayoutEffect(() => {
    const canvas = ref.current;
    const [width, height] = [Math.round(frame.width * ratio), Math.round(frame.height * ratio)];
    if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
    paint(canvas, layer.shown, x, y, layer.scale);
    onPainted?.();
  }, [layer, x, y, frame.width, frame.height, ratio]);
  return html`<canvas ref=${ref} style=${boxOf(frame)} aria-hidden="true"></canvas>`;
}

function boxOf(frame) {
  return { left: `${MARGIN.left}px`, top: `${MARGIN.top}px`, width: `${frame.width}px`, height: `${frame.height}px` };
}

// The duration from the request of a map to its pixels, which the benchmarks read.
export function measureFrame(map) {
  if (performance.getEntriesByName("map-frame").length >= MAX_MEASURES) performance.clearMeasures("map-frame");
  performance.measure("map-frame", { start: map.requestedAt, detail: { cells: map.heading.shape[0] * map.heading.shape[1] } });
}

const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowDown: [0, -1], ArrowUp: [0, 1] };

// Handlers for pointer and keyboard. `actions` has point(cell), pin(cell, name), drag(shift), drop(), cancelDrag(),
// push(shift) and zoom(factor, about); shifts and `about` are shares of the panel.
function useHandlers(frame, { x, y }, cell, actions) {
  const ref = useRef(null);
  const latest = useRef(null);
  latest.current = actions;
  const pressed = useRef(null);
  const shares = (event) => {
    const box = ref.current.getBoundingClientRect();
    return [(event.clientX - box.left) / box.width, 1 - (event.clientY - box.top) / box.height];
  };
  const cellUnder = (event) => {
    const [across, up] = shares(event);
    return { column: cellAt(x, across), row: cellAt(y, up) };
  };
  useEffect(() => {
    const onWheel = (event) => {
      if (!event.ctrlKey && document.activeElement !== ref.current) return; // else the page could not be scrolled
      event.preventDefault();
      latest.current.zoom(event.deltaY > 0 ? 1.25 : 0.8, shares(event));
    };
    ref.current.addEventListener("wheel", onWheel, { passive: false });
    return () => ref.current?.removeEventListener("wheel", onWheel);
  }, []);
  const onPointerDown = (event) => {
    if (event.button) return;
    pressed.current = { x: event.clientX, y: event.clientY, isDrag: false };
    ref.current.setPointerCapture(event.pointerId);
  };
  const onPointerMove = (event) => {
    const start = pressed.current;
    if (!start) return actions.point(cellUnder(event));
    const [dx, dy] = [event.clientX - start.x, event.clientY - start.y];
    if (Math.hypot(dx, dy) > MAX_CLICK_DISTANCE) start.isDrag = true;
    return start.isDrag && actions.drag([-dx / frame.width, dy / frame.height]);
  };
  const onPointerUp = (event) => {
    const start = pressed.current;
    pressed.current = null;
    if (start?.isDrag) return actions.drop();
    return start && actions.pin(cellUnder(event));
  };
  const onPointerCancel = () => {
    if (pressed.current?.isDrag) actions.cancelDrag();
    pressed.current = null;
  };
  const onKeyDown = (event) => {
    const step = STEPS[event.key];
    const from = cell ?? { column: cellAt(x, 0.5), row: cellAt(y, 0.5) };
    if (step && event.ctrlKey) actions.push(step.map((part) => part / 10));
    else if (step) {
      const size = cell ? (event.shiftKey ? 10 : 1) : 0;
      const move = (place, axis, direction) => Math.max(0, Math.min(axis.count - 1, place + size * direction));
      actions.point({ column: move(from.column, x, step[0]), row: move(from.row, y, step[1]) });
    } else if (event.key === "Enter") actions.pin(from);
    else if (/^[ab]$/i.test(event.key) && !event.ctrlKey && !event.metaKey) actions.pin(from, event.key.toUpperCase());
    else if (event.key === "+" || event.key === "=") actions.zoom(0.8, [x.centres[from.column], y.centres[from.row]]);
    else if (event.key === "-") actions.zoom(1.25, [x.centres[from.column], y.centres[from.row]]);
    else return;
    event.preventDefault();
  };
  return { ref, onPointerDown, onPointerMove, onPointerUp, onPointerCancel, onKeyDown };
}

// `plane` has both axes as they are shown, which may be a part of the map's; `describedBy` is the id of the help text.
export function Panel({ map, layer, plane, cell, pins = {}, curve, actions, onRemove, onSize, onPainted, describedBy, headingTag = "h2" }) {
  const [wrapper, size] = useSize();
  const clip = useId();
  const { x, y } = plane;
  const { heading } = map;
  const names = heading.axes.map((axis) => axis.name);
  const height = Math.round(Math.max(230, Math.min(440, size.width * 0.72)));
  const frame = useMemo(() => frameOf({ width: size.width, height }), [size.width, height]);
  const lines = useMemo(() => (size.width ? linesOf(heading, layer, plane, frame) : []), [layer, plane, frame]);
  const handlers = useHandlers(frame, plane, cell, actions);
  useEffect(() => {
    const ratio = window.devicePixelRatio || 1;
    if (size.width) onSize?.({ width: Math.floor(frame.width * ratio), height: Math.floor(frame.height * ratio) });
  }, [frame]);
  const isIncomplete = useMemo(() => layer.shown.some((value) => Number.isNaN(value)), [layer]);
  return html`<section class="panel">
    <${headingTag} class="panel-title">${layer.title} ${onRemove && html`<button type="button" class="quiet remove" onClick=${onRemove} aria-label=${`Remove ${layer.mechanism}`}>×</button>`}<//>
    <div class="plot" ref=${wrapper} style=${{ height: `${height}px` }}>
      ${size.width > 0 && html`
        <${Canvas} layer=${layer} plane=${plane} frame=${frame} onPainted=${onPainted} />
        <svg width=${size.width} height=${height} aria-hidden="true">
          <clipPath id=${clip}><rect x=${frame.x(0)} y=${frame.y(1)} width=${frame.width} height=${frame.height} /></clipPath>
          <${Axes} x=${x} y=${y} frame=${frame} labels=${heading.labels} />
          <g clip-path=${`url(#${clip})`}>
            <${Lines} lines=${lines} />
            <${Crossings} curve=${curve} names=${names} x=${x} y=${y} frame=${frame} />
            <${Pointer} cell=${cell} x=${x} y=${y} frame=${frame} />
          </g>
          <${Pins} pins=${pins} names=${names} x=${x} y=${y} frame=${frame} />
        </svg>`}
      <div class="hands" tabindex="0" role="application" aria-roledescription="map" aria-label=${`Map: ${layer.title}. ${heading.title}`} aria-describedby=${describedBy}
        style=${boxOf(frame)} ...${handlers}></div>
    </div>
    <${ColourBar} scale=${layer.scale} />
    <ul class="line-names">
      ${lines.filter((line, i) => (line.kind === "formula" || hasNamedLevels(heading, layer)) && lines.findIndex(({ name }) => name === line.name) === i).map((line) => html`<li key=${line.name}><${Sample} line=${line} />${line.name}${line.kind === "level" ? ", along the edges of cells" : ""}</li>`)}
      ${!hasNamedLevels(heading, layer) && lines.some((line) => line.kind === "level") && html`<li><${Sample} line=${{ kind: "level", dash: "2 3" }} />values written on the lines, along the edges of cells</li>`}
      ${curve && html`<li><${Sample} line=${{ kind: "crossing" }} />${describeBoundary(curve)}</li>`}
      ${isIncomplete && html`<li><span class="none-sample"></span>no answer${layer.remark && `: ${layer.remark}`}</li>`}
    </ul>
  </section>`;
}

function describeBoundary(curve) {
  const crossings = curve.curve.flatMap((searched) => searched.crossings);
  const plateauCount = curve.curve.flatMap((searched) => searched.plateaus ?? []).length;
  const plateaus = plateauCount ? `; it equals 1/2 exactly on ${plateauCount === 1 ? "one stretch" : `${plateauCount} stretches`}` : "";
  if (!crossings.length) return `P(tells apart) passes 1/2 nowhere that was searched${plateaus}`;
  const certified = crossings.filter((crossing) => crossing.certified).length;
  const evidence = certified === crossings.length ? "certified" : certified ? `${certified} of ${crossings.length} certified (filled)` : "found, not certified";
  return `where P(tells apart) passes 1/2, ${evidence}, at ${crossings.length === 1 ? "one point" : `${crossings.length} points`}${plateaus}`;
}

function Sample({ line: { kind, dash, colour } }) {
  return html`<svg class="sample" width="34" height="14" aria-hidden="true"><rect width="34" height="14" />
    ${kind === "crossing" ? html`<g class="crossing certified"><circle cx="17" cy="7" r="3.5" /></g>`
      : html`<g class=${`over ${kind}`}><path class="rim" d="M3 7H31" /><path class="line" d="M3 7H31" stroke-dasharray=${dash || undefined} style=${colour && { stroke: colour }} /></g>`}
  </svg>`;
}
