// The view Map: a quantity over two parameters that follows the drag.

import { html, useEffect, useId, useMemo, useRef, useState } from "./framework.js";
import { addressOf, go, query, splitMechanisms } from "./address.js";
import { cellAt, layOut, moveAxis, numberOf, readAxis, shareOf, spellAxis } from "./cells.js";
import { useBoundary, boundaryPaths } from "./map-boundary.js";
import { useColours } from "./map-canvas.js";
import { AxisFields, axesOf, optionOf, Question, Sliders, useLists, withMechanisms, withWord } from "./map-controls.js";
import { Panel } from "./map-panel.js";
import { Cuts, Reading, spelledPlace, valuesAt } from "./map-reading.js";
import { useMap } from "./map-request.js";
import { Pinned, readPins, spellPins } from "./map-verdict.js";
import { Progress, useLooks } from "./parts.js";

const START = { command: "map", names: ["spike", "softmax,linear"], words: [["a1", "0.5:1.5:200"], ["n", "1e3:1e18:200:log"]], options: [] };
const PAUSE = 250; // ms after which a wheel or a key is taken to be done

await new Promise((done) => {
  const sheet = Object.assign(document.createElement("link"), { rel: "stylesheet", href: "/static/map.css", onload: done, onerror: done });
  document.head.append(sheet);
});

// The place with names and axes, where the address leaves some out.
function completed(place) {
  const names = [place.names[0] || START.names[0], place.names[1] || START.names[1]];
  return { ...place, names, words: place.words.length ? place.words : START.words };
}

// A place that is dragged is this view's own until one lets go; then it is the address.
function useDragged(place) {
  const [dragged, setDragged] = useState(null);
  const timer = useRef(0);
  useEffect(() => setDragged(null), [place]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const settle = (next, hash = window.location.hash) => {
    clearTimeout(timer.current);
    const there = window.location.pathname + window.location.search + window.location.hash;
    go(addressOf(next) + hash, { replace: there === addressOf(next) + hash });
  };
  const move = (next) => {
    clearTimeout(timer.current);
    setDragged(next);
  };
  const moveBriefly = (next) => {
    move(next);
    timer.current = setTimeout(() => settle(next), PAUSE);
  };
  const forget = () => setDragged(null);
  return { shown: dragged ?? place, moving: dragged !== null, move, moveBriefly, settle, forget };
}

// A map with its numbers by layer and name.
function named({ heading, arrays, asked }) {
  const find = (layer, name) => heading.arrays.findIndex((each) => each.layer === layer && each.name === name);
  return { heading, asked, array: (layer, name) => arrays[find(layer, name)], said: (layer, name) => heading.arrays[find(layer, name)] };
}

export function View({ place: address, reachable }) {
  const place = useMemo(() => completed(address), [address]);
  const { shown, moving, move, moveBriefly, settle, forget } = useDragged(place);
  const looks = useLooks();
  const scales = useColours(reachable);
  const lists = useLists(shown, reachable);
  const [pixels, setPixels] = useState({ width: 0, height: 0 });
  const asked = useMap(shown, moving, pixels, reachable);
  const same = asked.map?.of.split("/")[0] === shown.names[0]; // a map of another construction says nothing of this one
  const map = useMemo(() => (asked.map && same ? named(asked.map) : null), [asked.map, same]);
  const plane = useMemo(() => map && { x: layOut(map.heading.axes[0].values, map.heading.axes[0].log), y: layOut(map.heading.axes[1].values, map.heading.axes[1].log) }, [map]);
  const [pointed, setPointed] = useState(null);
  const [pinning, setPinning] = useState("A");
  const [searched, setSearched] = useState(true);
  const hint = useId();
  const axes = axesOf(shown);
  const control = (name) => lists.controls?.find((each) => each.name === name);
  const own = (lists.controls ?? []).filter((each) => each.of === "mechanism").map((each) => each.name);
  const cell = pointed && plane && map.heading.axes.every((each) => each.name in pointed)
    ? { column: cellAt(plane.x, shareOf(plane.x, pointed[map.heading.axes[0].name])), row: cellAt(plane.y, shareOf(plane.y, pointed[map.heading.axes[1].name])) } : null;

  const pins = Object.fromEntries(Object.entries(readPins(window.location.hash)).filter(([, pin]) => axes.every((name) => name in pin)));
  const setPins = (next) => settle(place, spellPins(next));
  const isOf = optionOf(shown, "of", "distinguish") === "distinguish" && optionOf(shown, "difference", "no") !== "yes";
  const whole = (lists.controls ?? []).filter((each) => each.kind === "whole").map((each) => each.name);
  const paths = useMemo(() => (isOf && lists.controls ? boundaryPaths(shown, axes, whole) : []), [shown, isOf, lists.controls]);
  const boundary = useBoundary(paths, searched && !moving && !asked.slow && !asked.problem, reachable);

  const drag = useRef(null);
  const moved = (from, how) => axes.reduce((now, name, i) => {
    const axis = readAxis(Object.fromEntries(from.words)[name]);
    const least = Math.min(control(name)?.span?.low ?? -Infinity, numberOf(axis.low));
    return withWord(now, name, spellAxis(moveAxis(axis, { ...how(i), whole: control(name)?.kind === "whole", least })));
  }, from);
  const act = {
    point: (at) => setPointed(Object.fromEntries(Object.entries({ column: 0, row: 1 }).map(([part, i]) => [map.heading.axes[i].name, numberOf(map.heading.axes[i].values[at[part]])]))),
    pin: (at, name = pinning) => {
      act.point(at);
      setPins({ ...pins, [name]: valuesAt(map.heading, at) });
    },
    drag: (shift) => {
      const from = drag.current?.from ?? shown;
      drag.current = { from, to: moved(from, (i) => ({ shift: shift[i] })) };
      move(drag.current.to);
    },
    drop: () => {
      settle(drag.current.to);
      drag.current = null;
    },
    giveUp: () => {
      forget();
      drag.current = null;
    },
    push: (shift) => moveBriefly(moved(shown, (i) => ({ shift: shift[i] }))),
    zoom: (factor, about) => moveBriefly(moved(shown, (i) => ({ factor, about: about[i] }))),
  };
  const problemOf = (name) => (asked.problem?.field === name ? asked.problem.message : undefined);
  const placed = [...axes, ...(lists.controls ?? []).map((each) => each.name)].includes(asked.problem?.field);
  const mechanisms = splitMechanisms(shown.names[1]);
  const ofMechanisms = asked.problem && !placed && mechanisms.some((each) => asked.problem.message.includes(each.split(":")[0]));
  const file = (ending) => `/api/v1/files/map/${place.names.map(encodeURIComponent).join("/")}${query(place.words, [...place.options, ["out", ending]])}`;
  const again = axes.length === 2;

  return html`<div class="map-view">
    <h1>Where the line runs</h1>
    <p class="lead">Each cell is computed for its own values and never blended with its neighbours. Drag a slider, or drag the map.</p>
    <${Question} place=${shown} lists=${lists} looks=${looks} onChange=${settle} onStart=${(next) => settle(next, "")} problem=${ofMechanisms ? asked.problem.message : undefined} />
    ${asked.problem && !placed && !ofMechanisms && html`<p class="problem" role="alert">${asked.problem.message}</p>`}
    <div class="map-and-controls">
      <div class="map-part">
        ${!map && !asked.problem && html`<p class="waiting" role="status">Computing the map …</p>`}
        ${asked.slow && html`<p class="hint">There is no closed form for whole maps of this: each cell is computed by itself, ${asked.slow.side} by ${asked.slow.side} of them, once you let go.
          ${asked.slow.next && !asked.step && html` <button type="button" class="quiet" onClick=${asked.slow.finer}>Compute ${asked.slow.next} by ${asked.slow.next}, in about ${Math.ceil(asked.slow.wait / 1000)} s</button>`}</p>`}
        ${asked.step?.mechanism && html`<p class="hint">${asked.step.mechanism}, a cell at a time:</p>`}
        ${asked.step && html`<${Progress} step=${asked.step} onCancel=${asked.stop} />`}
        ${asked.stopped && html`<p>Not computed: you cancelled it. <button type="button" class="quiet" onClick=${asked.again}>Compute it</button></p>`}
        ${map && plane && scales && html`
          <div class=${`panels of-${map.heading.layers.length} ${asked.problem || asked.other ? "stale" : ""}`}>
            ${map.heading.layers.map((layer, i) => html`<${Panel} key=${i} map=${map} place=${i} plane=${plane} scales=${scales} cell=${cell} pins=${pins} act=${act} described=${hint}
              curve=${boundary.curves[layer.mechanism]} onSize=${i === 0 ? setPixels : () => {}}
              onRemove=${mechanisms.length > 1 && !map.heading.difference ? () => settle(withMechanisms(shown, mechanisms.filter((_, j) => j !== i))) : null} />`)}
          </div>
          <p id=${hint} class="hint">Arrow keys walk the cells (Shift: ten at once), Enter or a click pins ${pinning}, a and b pin A and B, + and − zoom, Ctrl with arrows moves the map; the wheel zooms once the map has the focus.</p>
          <div class="map-tools">
            <fieldset class="pick"><legend>A click pins</legend>${["A", "B"].map((name) => html`<label key=${name}><input type="radio" name="pinning" checked=${pinning === name} onChange=${() => setPinning(name)} /> ${name}</label>`)}</fieldset>
            <button type="button" class="quiet" onClick=${() => act.zoom(0.8, [0.5, 0.5])}>Zoom in</button>
            <button type="button" class="quiet" onClick=${() => act.zoom(1.25, [0.5, 0.5])}>Zoom out</button>
            ${isOf && !asked.slow && html`<label class="tick"><input type="checkbox" checked=${searched} onChange=${(event) => setSearched(event.target.checked)} /> certified boundary</label>`}
            ${Object.keys(pins).length > 0 && html`<button type="button" class="quiet" onClick=${() => document.querySelector(".pins").scrollIntoView()}>Verdict at ${Object.keys(pins).sort().join(" and ")} below</button>`}
            <a href=${file(".png")} download>PNG</a><a href=${file(".csv")} download>CSV</a>
          </div>
          ${boundary.step && html`<${Progress} step=${boundary.step} onCancel=${boundary.stop} />`}
          ${boundary.problem && html`<p class="hint">${boundary.problem}</p>`}
          <${Reading} map=${map} cell=${cell} looks=${looks} />
          <${Cuts} map=${map} plane=${plane} cell=${cell} looks=${looks} />`}
      </div>
      <div class="movers">
        ${again && html`<${Sliders} place=${shown} controls=${lists.controls} problemOf=${problemOf} onMove=${move} onSettle=${settle} />`}
        ${again && [0, 1].map((i) => html`<${AxisFields} key=${i} place=${shown} which=${i} controls=${lists.controls} problemOf=${problemOf} onChange=${settle} />`)}
      </div>
    </div>
    <div class="pins">${Object.entries(pins).sort().map(([name, pin]) => html`<${Pinned} key=${name} name=${name} pin=${pin} place=${shown} own=${own} reachable=${reachable} settled=${!moving && Boolean(lists.controls)}
      onRemove=${() => setPins(Object.fromEntries(Object.entries(pins).filter(([each]) => each !== name)))} />`)}</div>
    ${map && html`<details class="about"><summary>About this map: ${map.heading.title}</summary>${map.heading.sentences.map((each, i) => html`<p key=${i}>${each}</p>`)}</details>`}
  </div>`;
}
