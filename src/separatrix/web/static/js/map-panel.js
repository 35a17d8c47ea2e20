// One mechanism of a map: its cells, what is drawn over them, and what one does with pointer and keys.

import { html, useEffect, useLayoutEffect, useMemo, useRef } from "./framework.js";
import { cellAt, ticks } from "./cells.js";
import { paint } from "./map-canvas.js";
import { Axes, Crossings, frame, hasNames, Lines, linesOf, MARGIN, Pins, Pointer } from "./map-lines.js";
import { forPeople, useSize } from "./parts.js";

const CLICK = 4; // pixels that a click may move
const KEPT = 1000; // times from request to pixels that the browser keeps

function ColourBar({ panel, colours }) {
  const [low, high] = panel.log ? [10 ** panel.low, 10 ** panel.high] : [panel.low, panel.high];
  const marks = ticks(low, high, panel.log, 5);
  const share = (value) => ((panel.log ? Math.log10(value) : value) - panel.low) / (panel.high - panel.low);
  const ends = panel.low < 0 && panel.high > 0 ? ["red", "blue"] : ["dark", "light"];
  const steps = colours.filter((_, i) => i % 15 === 0);
  return html`<div class="colour-bar">
    <div class="bar-colours" style=${{ background: `linear-gradient(to right, ${steps.join(", ")})` }}></div>
    <div class="bar-marks" aria-hidden="true">${marks.map(({ value, text }) => html`<span key=${text} style=${{ left: `${100 * share(value)}%` }}>${text}</span>`)}</div>
    <p>${panel.label}, from ${forPeople(low, 3)} (${ends[0]}) to ${forPeople(high, 3)} (${ends[1]})</p>
  </div>`;
}

function Canvas({ map, place, panel, x, y, at, scales }) {
  const ref = useRef(null);
  const ratio = window.devicePixelRatio || 1;
  useLayoutEffect(() => {
    const canvas = ref.current;
    const [width, height] = [Math.round(at.width * ratio), Math.round(at.height * ratio)];
    if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
    paint(canvas, map.array(place, panel.coloured), x, y, panel, scales[panel.colours].packed);
    if (place === map.heading.layers.length - 1) {
      if (performance.getEntriesByName("map-frame").length >= KEPT) performance.clearMeasures("map-frame");
      performance.measure("map-frame", { start: map.asked, detail: { cells: x.count * y.count } });
    }
  }, [map, place, at.width, at.height, ratio]);
  return html`<canvas ref=${ref} style=${{ left: `${MARGIN.left}px`, top: `${MARGIN.top}px`, width: `${at.width}px`, height: `${at.height}px` }} aria-hidden="true"></canvas>`;
}

const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowDown: [0, -1], ArrowUp: [0, 1] };

// What pointer and keys do. `act` has point(cell), pin(cell, name), drag(shift), drop(), giveUp(), push(shift) and
// zoom(factor, about).
function useHands(at, x, y, cell, act) {
  const ref = useRef(null);
  const latest = useRef(null);
  latest.current = { at, x, y, cell, act };
  const held = useRef(null);
  const shares = (event) => {
    const box = ref.current.getBoundingClientRect();
    return [(event.clientX - box.left) / box.width, 1 - (event.clientY - box.top) / box.height];
  };
  const cellOf = (event) => {
    const [across, up] = shares(event);
    return { column: cellAt(x, across), row: cellAt(y, up) };
  };
  useEffect(() => {
    const wheel = (event) => {
      if (!event.ctrlKey && document.activeElement !== ref.current) return;
      event.preventDefault();
      latest.current.act.zoom(event.deltaY > 0 ? 1.25 : 0.8, shares(event));
    };
    ref.current.addEventListener("wheel", wheel, { passive: false });
    return () => ref.current?.removeEventListener("wheel", wheel);
  }, []);
  const down = (event) => {
    if (event.button) return;
    held.current = { x: event.clientX, y: event.clientY, dragging: false };
    ref.current.setPointerCapture(event.pointerId);
  };
  const move = (event) => {
    const start = held.current;
    if (!start) return act.point(cellOf(event));
    const [dx, dy] = [event.clientX - start.x, event.clientY - start.y];
    if (!start.dragging && Math.hypot(dx, dy) > CLICK) {
      start.dragging = true;
    }
    return start.dragging && act.drag([-dx / at.width, dy / at.height]);
  };
  const up = (event) => {
    const start = held.current;
    held.current = null;
    if (start?.dragging) return act.drop();
    return start && act.pin(cellOf(event));
  };
  const gone = () => {
    if (held.current?.dragging) act.giveUp();
    held.current = null;
  };
  const key = (event) => {
    const step = STEPS[event.key];
    const from = cell ?? { column: x.count >> 1, row: y.count >> 1 };
    if (step && event.ctrlKey) act.push(step.map((each) => each / 10));
    else if (step) {
      const size = event.shiftKey ? 10 : 1;
      const next = [[from.column, x], [from.row, y]].map(([place, axis], i) => Math.max(0, Math.min(axis.count - 1, cell ? place + size * step[i] : place)));
      act.point({ column: next[0], row: next[1] });
    } else if (event.key === "Enter") act.pin(from);
    else if (/^[ab]$/i.test(event.key) && !event.ctrlKey && !event.metaKey) act.pin(from, event.key.toUpperCase());
    else if (event.key === "+" || event.key === "=") act.zoom(0.8, [x.centres[from.column], y.centres[from.row]]);
    else if (event.key === "-") act.zoom(1.25, [x.centres[from.column], y.centres[from.row]]);
    else return;
    event.preventDefault();
  };
  return { ref, onPointerDown: down, onPointerMove: move, onPointerUp: up, onPointerCancel: gone, onKeyDown: key };
}

export function Panel({ map, place, plane, scales, cell, pins, curve, act, onRemove, onSize, described }) {
  const [wrapper, size] = useSize();
  const { x, y } = plane;
  const panel = map.heading.panels[place];
  const names = map.heading.axes.map((each) => each.name);
  const height = Math.round(Math.max(230, Math.min(440, size.width * 0.72)));
  const at = useMemo(() => frame({ width: size.width, height }), [size.width, height]);
  const lines = useMemo(() => (size.width ? linesOf(map, panel, place, x, y, at) : []), [map, at]);
  const hands = useHands(at, x, y, cell, act);
  useEffect(() => { if (size.width) onSize({ width: Math.floor(at.width * (window.devicePixelRatio || 1)), height: Math.floor(at.height * (window.devicePixelRatio || 1)) }); }, [at]);
  const unknown = useMemo(() => map.array(place, panel.coloured).some((value) => Number.isNaN(value)), [map]);
  return html`<section class="panel">
    <h2>${panel.title} ${onRemove && html`<button type="button" class="quiet remove" onClick=${onRemove} aria-label=${`Remove ${map.heading.layers[place].mechanism}`}>×</button>`}</h2>
    <div class="plot" ref=${wrapper} style=${{ height: `${height}px` }}>
      ${size.width > 0 && html`
        <${Canvas} map=${map} place=${place} panel=${panel} x=${x} y=${y} at=${at} scales=${scales} />
        <svg width=${size.width} height=${height} aria-hidden="true">
          <${Axes} x=${x} y=${y} at=${at} labels=${map.heading.labels} />
          <${Lines} lines=${lines} />
          <${Crossings} curve=${curve} names=${names} x=${x} y=${y} at=${at} />
          <${Pointer} cell=${cell} x=${x} y=${y} at=${at} />
          <${Pins} pins=${pins} names=${names} x=${x} y=${y} at=${at} />
        </svg>`}
      <div class="hands" tabindex="0" role="application" aria-roledescription="map" aria-label=${`Map: ${panel.title}. ${map.heading.title}`} aria-describedby=${described}
        style=${{ left: `${MARGIN.left}px`, top: `${MARGIN.top}px`, width: `${at.width}px`, height: `${at.height}px` }}
        ...${hands}></div>
    </div>
    <${ColourBar} panel=${panel} colours=${scales[panel.colours].colours} />
    <ul class="line-names">
      ${lines.filter((each) => each.kind === "formula" || hasNames(map.heading, panel)).map((each) => html`<li key=${each.name}><${Sample} kind=${each.kind} dash=${each.dash} />${each.name}${each.kind === "level" ? ", along the edges of cells" : ""}</li>`)}
      ${!hasNames(map.heading, panel) && lines.some((each) => each.kind === "level") && html`<li><${Sample} kind="level" dash="2 3" />values written on the lines, along the edges of cells</li>`}
      ${curve && html`<li><${Sample} kind="crossing" />${boundaryWords(curve)}</li>`}
      ${unknown && html`<li><span class="none-sample"></span>no answer; ${map.heading.layers[place].remark}</li>`}
    </ul>
  </section>`;
}

function boundaryWords(curve) {
  const all = curve.curve.flatMap((each) => each.crossings);
  const plateaus = curve.curve.flatMap((each) => each.plateaus ?? []).length;
  const equal = plateaus ? `; it equals 1/2 exactly on ${plateaus === 1 ? "one stretch" : `${plateaus} stretches`}` : "";
  if (!all.length) return `P(tells apart) passes 1/2 nowhere that was searched${equal}`;
  const certified = all.filter((each) => each.certified).length;
  const said = certified === all.length ? "certified" : certified ? `${certified} of ${all.length} certified (filled)` : "found, not certified";
  return `where P(tells apart) passes 1/2, ${said}, ${all.length === 1 ? "at one place" : `at ${all.length} places`}${equal}`;
}

function Sample({ kind, dash }) {
  return html`<svg class="sample" width="34" height="14" aria-hidden="true"><rect width="34" height="14" />
    ${kind === "crossing" ? html`<g class="crossing certified"><circle cx="17" cy="7" r="3.5" /></g>`
      : html`<g class=${`over ${kind}`}><path class="rim" d="M3 7H31" /><path class="line" d="M3 7H31" stroke-dasharray=${dash || undefined} /></g>`}
  </svg>`;
}
