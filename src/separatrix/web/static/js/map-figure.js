// A map of fixed numbers, in a page or of stored cells: pointing, zooming, and the command of the cell that is pointed
// at. The view Map, whose numbers follow the pointer, has the same panels (map.js).

import { html, useId, useMemo, useRef, useState } from "./framework.js";
import { commandOf, splitMechanisms } from "./address.js";
import { cropAxis } from "./cells.js";
import { parametersAt } from "./map-data.js";
import { Panel } from "./map-panel.js";
import { Reading, verdictPlace } from "./map-reading.js";

const WHOLE = [[0, 1], [0, 1]];
const MIN_SHARE = 0.02; // of an axis that is still shown

// The shares [from, to] of each axis after a move by shares of what is visible; they stay within the map.
export function moveView(view, { shift = [0, 0], factor = 1, about = [0.5, 0.5] }) {
  return view.map(([from, to], i) => {
    const length = Math.max(MIN_SHARE, Math.min(1, (to - from) * factor));
    const start = from + about[i] * (to - from - length) + shift[i] * (to - from);
    const begin = Math.max(0, Math.min(1 - length, start));
    return [begin, begin + length];
  });
}

// The commands of a cell, one for each mechanism of the map.
export function cellCommands(heading, cell) {
  if (!heading.place) return [];
  const { place, own } = heading;
  const point = parametersAt(heading, cell);
  return splitMechanisms(place.names[1]).map((mechanism) => commandOf(verdictPlace({ ...place, names: [place.names[0], mechanism] }, point, own)));
}

// `onOpen(cell)` replaces pinning where a cell leads to another view.
export function MapFigure({ map, headingTag = "h3", onOpen, openLabel }) {
  const [view, setView] = useState(WHOLE);
  const plane = useMemo(() => ({ x: cropAxis(map.plane.x, view[0]), y: cropAxis(map.plane.y, view[1]) }), [map, view]);
  const middle = { column: map.plane.x.count >> 1, row: map.plane.y.count >> 1 };
  const [pointed, setPointed] = useState(null);
  const [isPinned, setPinned] = useState(false);
  const dragStart = useRef(null);
  const help = useId();
  const actions = {
    point: (cell) => { if (!isPinned) setPointed(cell); },
    pin: (cell) => {
      setPointed(cell);
      if (onOpen) onOpen(cell);
      else setPinned(!isPinned);
    },
    drag: (shift) => {
      dragStart.current ??= view;
      setView(moveView(dragStart.current, { shift }));
    },
    drop: () => { dragStart.current = null; },
    cancelDrag: () => { dragStart.current = null; },
    push: (shift) => setView(moveView(view, { shift })),
    zoom: (factor, about) => setView(moveView(view, { factor, about })),
  };
  const commands = cellCommands(map.heading, pointed ?? middle);
  return html`<div class="map-figure map-base">
    <div class=${`panels of-${map.layers.length}`}>
      ${map.layers.map((layer, i) => html`<${Panel} key=${i} map=${map} layer=${layer} plane=${plane} cell=${pointed} actions=${actions} describedBy=${help} headingTag=${headingTag} />`)}
    </div>
    <p id=${help} class="hint map-help">Point at a cell, or walk with the arrow keys; a click or Enter ${onOpen ? openLabel : "pins the cell"}. + and − zoom, Ctrl with arrows moves the map.
      <span class="map-tools">
        <button type="button" class="quiet" onClick=${() => actions.zoom(0.7, [0.5, 0.5])}>Zoom in</button>
        <button type="button" class="quiet" onClick=${() => actions.zoom(1 / 0.7, [0.5, 0.5])}>Zoom out</button>
        ${view !== WHOLE && html`<button type="button" class="quiet" onClick=${() => setView(WHOLE)}>Whole map</button>`}
      </span></p>
    <div class=${isPinned ? "held" : ""}>
      ${pointed || commands.length ? html`<${Reading} map=${map} cell=${pointed ?? middle} />` : html`<div class="pointed-at"></div>`}
      ${commands.map((command) => html`<p key=${command} class="command cell"><code>${command}</code></p>`)}
    </div>
  </div>`;
}
