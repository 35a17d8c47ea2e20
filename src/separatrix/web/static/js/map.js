// The view Map: a quantity over two parameters that follows the drag.

import { html, useEffect, useId, useMemo, useRef, useState } from "./framework.js";
import { addressOf, go, query, splitMechanisms } from "./address.js";
import { moveAxis, numberOf, readAxis, spellAxis } from "./cells.js";
import { useBoundary, boundaryPaths } from "./map-boundary.js";
import { AxisFields, axesOf, optionOf, Question, Sliders, useLists, withMechanisms, withWord } from "./map-controls.js";
import { cellOf, valuesAt } from "./map-data.js";
import { measureFrame, Panel } from "./map-panel.js";
import { Cuts, Reading } from "./map-reading.js";
import { useMap } from "./map-request.js";
import { Pinned, readPins, spellPins } from "./map-verdict.js";
import { Progress, useLooks } from "./parts.js";

const START = { command: "map", names: ["spike", "softmax,linear"], words: [["a1", "0.5:1.5:200"], ["n", "1e3:1e18:200:log"]], options: [] };
const PAUSE = 250; // ms after which a wheel or a key counts as finished

await Promise.all(["/static/figures.css", "/static/map.css"].map((href) => new Promise((resolve) => {
  document.head.append(Object.assign(document.createElement("link"), { rel: "stylesheet", href, onload: resolve, onerror: resolve }));
})));

// The place with names and axes where the address has none.
function completePlace(place) {
  const names = [place.names[0] || START.names[0], place.names[1] || START.names[1]];
  return { ...place, names, words: place.words.length ? place.words : START.words };
}

// During a drag the place is this view's own; when the pointer is released it becomes the address.
function useDraggedPlace(place) {
  const [dragged, setDragged] = useState(null);
  const timer = useRef(0);
  useEffect(() => setDragged(null), [place]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const settle = (next, hash = window.location.hash) => {
    clearTimeout(timer.current);
    const current = window.location.pathname + window.location.search + window.location.hash;
    go(addressOf(next) + hash, { replace: current === addressOf(next) + hash });
  };
  const move = (next) => {
    clearTimeout(timer.current);
    setDragged(next);
  };
  const moveBriefly = (next) => {
    move(next);
    timer.current = setTimeout(() => settle(next), PAUSE);
  };
  const cancel = () => setDragged(null);
  return { shown: dragged ?? place, moving: dragged !== null, move, moveBriefly, settle, cancel };
}

export function View({ place: address, reachable }) {
  const place = useMemo(() => completePlace(address), [address]);
  const { shown, moving, move, moveBriefly, settle, cancel } = useDraggedPlace(place);
  const looks = useLooks();
  const lists = useLists(shown, reachable);
  const [pixels, setPixels] = useState({ width: 0, height: 0 });
  const state = useMap(shown, moving, pixels, reachable);
  const { problem, slow, step } = state;
  const map = state.map?.subject.split("/")[0] === shown.names[0] ? state.map : null; // not one of another construction
  const [pointed, setPointed] = useState(null);
  const [pinning, setPinning] = useState("A");
  const [hasBoundary, setBoundary] = useState(true);
  const help = useId();
  const axes = axesOf(shown);
  const control = (name) => lists.controls?.find((entry) => entry.name === name);
  const own = (lists.controls ?? []).filter((entry) => entry.of === "mechanism").map((entry) => entry.name);
  const cell = map && cellOf(map, pointed);

  const pins = Object.fromEntries(Object.entries(readPins(window.location.hash)).filter(([, pin]) => axes.every((name) => name in pin)));
  const setPins = (next) => settle(place, spellPins(next));
  const isProbability = optionOf(shown, "of", "distinguish") === "distinguish" && optionOf(shown, "difference", "no") !== "yes";
  const whole = (lists.controls ?? []).filter((entry) => entry.kind === "whole").map((entry) => entry.name);
  const paths = useMemo(() => (isProbability && lists.controls ? boundaryPaths(shown, axes, whole) : []), [shown, isProbability, lists.controls]);
  const boundary = useBoundary(paths, hasBoundary && !moving && !slow && !problem, reachable);

  const drag = useRef(null);
  const movePlace = (from, changeOf) => axes.reduce((now, name, i) => {
    const axis = readAxis(Object.fromEntries(from.words)[name]);
    const least = Math.min(control(name)?.span?.low ?? -Infinity, numberOf(axis.low));
    return withWord(now, name, spellAxis(moveAxis(axis, { ...changeOf(i), whole: control(name)?.kind === "whole", least })));
  }, from);
  const actions = {
    point: ({ column, row }) => {
      const [x, y] = map.heading.axes;
      setPointed({ [x.name]: numberOf(x.values[column]), [y.name]: numberOf(y.values[row]) });
    },
    pin: (target, name = pinning) => {
      actions.point(target);
      setPins({ ...pins, [name]: valuesAt(map.heading, target) });
    },
    drag: (shift) => {
      const from = drag.current?.from ?? shown;
      drag.current = { from, to: movePlace(from, (i) => ({ shift: shift[i] })) };
      move(drag.current.to);
    },
    drop: () => {
      settle(drag.current.to);
      drag.current = null;
    },
    cancelDrag: () => {
      cancel();
      drag.current = null;
    },
    push: (shift) => moveBriefly(movePlace(shown, (i) => ({ shift: shift[i] }))),
    zoom: (factor, about) => moveBriefly(movePlace(shown, (i) => ({ factor, about: about[i] }))),
  };
  const problemOf = (name) => (problem?.field === name ? problem.message : undefined);
  const hasField = [...axes, ...(lists.controls ?? []).map((entry) => entry.name)].includes(problem?.field);
  const mechanisms = splitMechanisms(shown.names[1]);
  const isAboutMechanisms = problem && !hasField && mechanisms.some((mechanism) => problem.message.includes(mechanism.split(":")[0]));
  const file = (suffix) => `/api/v1/files/map/${place.names.map(encodeURIComponent).join("/")}${query(place.words, [...place.options, ["out", suffix]])}`;
  const hasAxes = axes.length === 2;
  const lastLayer = map ? map.layers.length - 1 : 0;

  return html`<div class="map-view map-base">
    <h1>Where the line runs</h1>
    <p class="lead">Each cell is computed for its own values; nothing is interpolated. Drag a slider, or drag the map.</p>
    <${Question} place=${shown} lists=${lists} looks=${looks} onChange=${settle} onStart=${(next) => settle(next, "")} problem=${isAboutMechanisms ? problem.message : undefined} />
    ${problem && !hasField && !isAboutMechanisms && html`<p class="problem" role="alert">${problem.message}</p>`}
    <div class="map-and-controls">
      <div class="map-part">
        ${!map && !problem && html`<p class="waiting" role="status">Computing the map …</p>`}
        ${slow && html`<p class="hint">There is no closed form for whole maps of this mechanism: ${slow.side} by ${slow.side} cells are computed one by one when you release the pointer.
          ${slow.next && !step && html` <button type="button" class="quiet" onClick=${slow.finer}>Compute ${slow.next} by ${slow.next}, in about ${Math.ceil(slow.wait / 1000)} s</button>`}</p>`}
        ${step?.mechanism && html`<p class="hint">${step.mechanism}, cell by cell:</p>`}
        ${step && html`<${Progress} step=${step} onCancel=${state.stop} />`}
        ${state.isStopped && html`<p>Not computed, because you cancelled it. <button type="button" class="quiet" onClick=${state.again}>Compute it</button></p>`}
        ${map && html`
          <div class=${`panels of-${map.layers.length} ${problem || state.isOutdated ? "stale" : ""}`}>
            ${map.layers.map((layer, i) => html`<${Panel} key=${i} map=${map} layer=${layer} plane=${map.plane} cell=${cell} pins=${pins} actions=${actions} describedBy=${help}
              curve=${boundary.curves[layer.mechanism]} onSize=${i === 0 ? setPixels : undefined} onPainted=${i === lastLayer ? () => measureFrame(map) : undefined}
              onRemove=${mechanisms.length > 1 && !map.heading.difference ? () => settle(withMechanisms(shown, mechanisms.filter((_, j) => j !== i))) : null} />`)}
          </div>
          <p id=${help} class="hint">Arrow keys walk the cells (Shift: ten at once), Enter or a click pins ${pinning}, a and b pin A and B, + and − zoom, Ctrl with arrows moves the map; the wheel zooms while the map has the focus.</p>
          <div class="map-tools">
            <fieldset class="pick"><legend>A click pins</legend>${["A", "B"].map((name) => html`<label key=${name}><input type="radio" name="pinning" checked=${pinning === name} onChange=${() => setPinning(name)} /> ${name}</label>`)}</fieldset>
            <button type="button" class="quiet" onClick=${() => actions.zoom(0.8, [0.5, 0.5])}>Zoom in</button>
            <button type="button" class="quiet" onClick=${() => actions.zoom(1.25, [0.5, 0.5])}>Zoom out</button>
            ${isProbability && !slow && html`<label class="tick"><input type="checkbox" checked=${hasBoundary} onChange=${(event) => setBoundary(event.target.checked)} /> certified boundary</label>`}
            ${Object.keys(pins).length > 0 && html`<button type="button" class="quiet" onClick=${() => document.querySelector(".pins").scrollIntoView()}>Verdict at ${Object.keys(pins).sort().join(" and ")} below</button>`}
            <a href=${file(".png")} download>PNG</a><a href=${file(".csv")} download>CSV</a>
          </div>
          ${boundary.step && html`<${Progress} step=${boundary.step} onCancel=${boundary.stop} />`}
          ${boundary.problem && html`<p class="hint">${boundary.problem}</p>`}
          <${Reading} map=${map} cell=${cell} />
          <${Cuts} map=${map} cell=${cell} />`}
      </div>
      <div class="movers">
        ${hasAxes && html`<${Sliders} place=${shown} controls=${lists.controls} problemOf=${problemOf} onMove=${move} onSettle=${settle} />`}
        ${hasAxes && [0, 1].map((i) => html`<${AxisFields} key=${i} place=${shown} which=${i} controls=${lists.controls} problemOf=${problemOf} onChange=${settle} />`)}
      </div>
    </div>
    <div class="pins">${Object.entries(pins).sort().map(([name, pin]) => html`<${Pinned} key=${name} name=${name} pin=${pin} place=${shown} own=${own} map=${map} reachable=${reachable} settled=${!moving && Boolean(lists.controls)}
      onRemove=${() => setPins(Object.fromEntries(Object.entries(pins).filter(([other]) => other !== name)))} />`)}</div>
    ${map && html`<details class="about"><summary>About this map: ${map.heading.title}</summary>${map.heading.sentences.map((sentence, i) => html`<p key=${i}>${sentence}</p>`)}</details>`}
  </div>`;
}
