// The figures of a sweep: curves of P against a parameter and maps of P over two, with the numbers as text and a way to
// the cells behind a point.

import { html, useEffect, useMemo, useState } from "./framework.js";
import { go, query } from "./address.js";
import { get, latest } from "./api.js";
import { Chart, Legend, pointsAt } from "./chart.js";
import { MapFigure } from "./map-figure.js";
import { openMap, valuesAt } from "./map-data.js";
import { Progress, colourOf, useLooks } from "./parts.js";
import { cellsAt, curveChart, textAt } from "./store-words.js";

const MAX_CELLS_AT_ONCE = 20_000; // cells of a sweep that are drawn without being asked
const PAUSE = 5_000; // ms between two drawings of a sweep that grows

// `words` are the conditions that cells meet; `hasOtherConditions` if there are conditions on another kind of work.
export function Figures({ sweep, words, hasOtherConditions, growing, reachable }) {
  const [state, setState] = useState({});
  const [isWanted, setWanted] = useState(false);
  const ask = useMemo(latest, []);
  const path = `/results/figures${query(words, [["sweep", sweep]])}`;
  const isSmall = (growing?.stored ?? 0) <= MAX_CELLS_AT_ONCE;
  useEffect(() => {
    if (!isSmall && !isWanted) return undefined;
    const draw = () => ask((signal) => get(path, { signal, step: (step) => setState((now) => ({ ...now, step })) }))
      .then((figures) => setState({ figures, path }), (error) => error.name !== "AbortError" && setState({ problem: error.message }));
    const timer = setTimeout(draw, state.path === path ? PAUSE : 0);
    return () => clearTimeout(timer);
  }, [path, isSmall ? growing?.stored : 0, isWanted, reachable]);
  const cancel = () => { ask(async () => null); setWanted(false); setState({}); };
  const { figures, step, problem } = state;
  return html`<section class="figures" aria-labelledby="figures-head">
    <h2 id="figures-head">Curves and maps</h2>
    ${words.length > 0 && html`<p class="hint">Only cells with ${words.map(([name, value]) => `${name}=${value}`).join(" ")}.</p>`}
    ${hasOtherConditions && html`<p class="hint">All verdicts of the sweep are drawn: the conditions are about another kind of work.</p>`}
    ${problem && html`<p class="problem" role="alert">${problem}</p>`}
    ${!isSmall && !isWanted && html`<p><button type="button" onClick=${() => setWanted(true)}>Draw ${growing.stored.toLocaleString("en")} cells</button> This takes up to a minute.</p>`}
    ${step && html`<${Progress} step=${step} onCancel=${cancel} />`}
    ${figures && html`<${FigureList} figures=${figures} sweep=${sweep} />`}
  </section>`;
}

function FigureList({ figures, sweep }) {
  const looks = useLooks();
  const { curves, maps } = figures;
  return html`
    ${figures.finding && html`<p>${figures.finding[0].toUpperCase()}${figures.finding.slice(1)}.</p>`}
    <p class="hint">Evidence of P: ${figures.evidence || "no cell has an answer yet"}. Computing time ${figures.seconds}.${figures.unfinished > 0 ? ` ${figures.unfinished.toLocaleString("en")} cells of the sweep are not finished yet.` : ""}</p>
    ${curves.map((curve, i) => html`<${Curve} key=${`curve ${i}`} curve=${curve} looks=${looks} sweep=${sweep} />`)}
    ${figures.curves_left_out > 0 && html`<p class="hint">${figures.curves_left_out} curves are not drawn; <code>separatrix report --sweep ${sweep}</code> has more.</p>`}
    ${maps.map((map, i) => html`<${StoredMap} key=${`map ${i}`} map=${map} looks=${looks} sweep=${sweep} />`)}
    ${figures.maps_left_out > 0 && html`<p class="hint">${figures.maps_left_out} maps are not drawn; <code>separatrix report --sweep ${sweep}</code> has more.</p>`}
    ${!curves.length && !maps.length && html`<p>There is no curve and no map, because no parameter takes three values here while the others stay.</p>`}
    ${figures.plan && html`<details><summary>The plan</summary><pre tabindex="0">${figures.plan}</pre></details>`}`;
}

function joinWords(parameters) {
  return Object.entries(parameters).map(([name, value]) => `${name}=${value}`).join(" ");
}

function Curve({ curve, looks, sweep }) {
  const { lines } = curve;
  const chart = useMemo(() => curveChart(curve, (mechanism) => colourOf(looks, mechanism)), [curve, looks]);
  const xs = useMemo(() => [...new Set(lines.flatMap((line) => line.x))].sort((a, b) => a - b), [lines]);
  const [index, setIndex] = useState(0);
  const x = xs[Math.min(index, xs.length - 1)];
  const open = () => go(cellsAt({ construction: curve.construction, parameters: { ...curve.fixed, [curve.x]: textAt(lines, x) }, sweep }));
  return html`<figure class="curve">
    <figcaption><h3>${curve.part ? `${curve.part}: ` : ""}P(tells apart) against ${curve.x}, ${curve.construction}</h3>
      ${curve.finding && html`<p>${curve.finding}.</p>`}
      <p class="hint">Fixed: ${joinWords(curve.fixed) || "nothing"}.${curve.follows.length ? ` ${curve.follows.join(", ")} changes with ${curve.x}.` : ""}${curve.left_out ? ` ${curve.left_out} mechanisms are not shown.` : ""}</p></figcaption>
    <${Legend} entries=${chart.series.filter(({ line }) => line)} />
    <${Chart} chart=${chart} x=${x} onPoint=${(pointed) => setIndex(xs.indexOf(pointed))} />
    <div class="walk">
      <label>${curve.x} = ${textAt(lines, x)}
        <input type="range" min="0" max=${xs.length - 1} value=${index} aria-valuetext=${`${curve.x} = ${textAt(lines, x)}`} onInput=${(event) => setIndex(Number(event.target.value))} /></label>
      <button type="button" class="quiet" onClick=${open}>Cells at this point</button>
    </div>
    <ul class="said" aria-live="polite">${pointsAt(chart, x).map(({ name, text }, i) => html`<li key=${i}>${name}: P = ${text}</li>`)}</ul>
  </figure>`;
}

function StoredMap({ map, looks, sweep }) {
  const opened = useMemo(() => openMap(mapHeading(map, colourOf(looks, map.mechanism)), Float64Array.from(map.values.flat(), (p) => p ?? NaN).buffer), [map, looks]);
  const open = (cell) => go(cellsAt({ construction: map.construction, mechanism: map.mechanism, parameters: { ...map.fixed, ...valuesAt(opened.heading, cell) }, sweep }));
  return html`<figure class="stored-map">
    <figcaption><p class="hint">${map.construction}${map.part ? `, ${map.part}` : ""}; fixed: ${joinWords(map.fixed) || "nothing"}</p></figcaption>
    <${MapFigure} map=${opened} onOpen=${open} openLabel="shows the stored cell" />
  </figure>`;
}

const P_SCALE = { label: "P(tells apart)", low: 0, high: 1, ramp: "cividis", log: false };

function mapHeading({ construction, mechanism, axes, values }, colour) {
  return {
    title: `P(tells apart) on ${construction}`,
    quantity: "distinguish",
    difference: false,
    n_used: null,
    moved: "",
    place: null,
    axes,
    labels: axes.map((axis) => axis.name),
    levels: [{ name: "P = 1/2", level: 0.5 }],
    shape: [values.length, values[0].length],
    layers: [{ mechanism, title: mechanism, colour, remark: "", arrays: { values: 0 }, coloured: "values", scale: P_SCALE, formula: null, lines: [] }],
  };
}
