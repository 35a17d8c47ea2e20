// The figures of a sweep: curves of P against a parameter, maps of P over two, each with the numbers as text
// and the cells behind a point.

import { html, useCallback, useEffect, useMemo, useState } from "./framework.js";
import { go, query } from "./address.js";
import { get, latest } from "./api.js";
import { Chart, axis, inks, powerTicks } from "./chart.js";
import { Progress, colourOf, forPeople, useLooks } from "./parts.js";
import { MapFigure } from "./store-map.js";
import { aligned, cellsAt, saidAt, textAt } from "./store-words.js";

const AT_ONCE = 20_000;
const PAUSE = 5_000;

// `words` are the conditions that cells have to meet; `apart` is said where there are some that hold for other work.
export function Figures({ sweep, words, apart, growing, reachable }) {
  const [state, setState] = useState({});
  const [wanted, setWanted] = useState(false);
  const ask = useMemo(latest, []);
  const path = `/results/figures${query(words, [["sweep", sweep]])}`;
  const small = (growing?.stored ?? 0) <= AT_ONCE;
  useEffect(() => {
    if (!small && !wanted) return undefined;
    const draw = () => ask((signal) => get(path, { signal, step: (step) => setState((now) => ({ ...now, step })) }))
      .then((found) => setState({ found, path }), (error) => error.name !== "AbortError" && setState({ problem: error.message }));
    const timer = setTimeout(draw, state.path === path ? PAUSE : 0);
    return () => clearTimeout(timer);
  }, [path, small ? growing?.stored : 0, wanted, reachable]);
  const cancel = () => { ask(async () => null); setWanted(false); setState({}); };
  const { found, step, problem } = state;
  return html`<section class="figures" aria-labelledby="figures-head">
    <h2 id="figures-head">Curves and maps</h2>
    ${words.length > 0 && html`<p class="hint">Of cells with ${words.map(([name, value]) => `${name}=${value}`).join(" ")} alone.</p>`}
    ${apart && html`<p class="hint">They are of all verdicts of the sweep: the conditions are about other work.</p>`}
    ${problem && html`<p class="problem" role="alert">${problem}</p>`}
    ${!small && !wanted && html`<p><button type="button" onClick=${() => setWanted(true)}>Draw ${growing.stored.toLocaleString("en")} cells</button> This takes up to a minute.</p>`}
    ${step && html`<${Progress} step=${step} onCancel=${cancel} />`}
    ${found && html`<${Drawn} found=${found} sweep=${sweep} />`}
  </section>`;
}

function Drawn({ found, sweep }) {
  const known = useLooks();
  return html`
    ${found.finding && html`<p>${found.finding[0].toUpperCase()}${found.finding.slice(1)}.</p>`}
    <p class="hint">P is known so: ${found.evidence || "no cell has an answer yet"}. Computing time ${found.seconds}.${found.unfinished > 0 ? ` ${found.unfinished.toLocaleString("en")} cells of the sweep are not finished yet.` : ""}</p>
    ${found.curves.map((each, i) => html`<${Curve} key=${`curve ${i}`} curve=${each} known=${known} sweep=${sweep} />`)}
    ${found.curves_left_out > 0 && html`<p class="hint">${found.curves_left_out} curves are not drawn; <code>separatrix report --sweep ${sweep}</code> has more.</p>`}
    ${found.maps.length > 0 && html`<div class="maps">${found.maps.map((each, i) => html`<${MapFigure} key=${`map ${i}`} map=${each} sweep=${sweep} />`)}</div>`}
    ${found.maps_left_out > 0 && html`<p class="hint">${found.maps_left_out} maps are not drawn; <code>separatrix report --sweep ${sweep}</code> has more.</p>`}
    ${!found.curves.length && !found.maps.length && html`<p>No parameter takes three values here while the others stay, so there is no curve and no map.</p>`}
    ${found.plan && html`<details><summary>The plan</summary><pre tabindex="0">${found.plan}</pre></details>`}`;
}

function fixedText(fixed) {
  return Object.entries(fixed).map(([name, value]) => `${name}=${value}`).join(" ");
}

function Curve({ curve, known, sweep }) {
  const { lines } = curve;
  const data = useMemo(() => aligned(lines), [lines]);
  const [at, setAt] = useState(0);
  const index = Math.min(at, data[0].length - 1);
  const x = data[0][index];
  const hover = useCallback((plot) => { if (plot.cursor.event && plot.cursor.idx !== null && plot.cursor.idx !== undefined) setAt(plot.cursor.idx); }, []);
  const options = useCallback(() => ({
    scales: { x: { time: false, distr: curve.log ? 3 : 1 }, y: { range: [-0.04, 1.04] } },
    axes: [axis(curve.x, curve.log ? { values: powerTicks } : {}), axis("P(tells apart)")],
    series: [{}, ...lines.map((line, i) => ({ label: line.mechanism, stroke: colourOf(known, line.mechanism), width: 2, dash: DASHES[i % DASHES.length], points: { show: data[0].length < 60, size: 6 } }))],
    hooks: { setCursor: [hover], draw: [(plot) => drawSampled(plot, lines, known)] },
  }), [curve, known]);
  const open = () => go(cellsAt({ construction: curve.construction, parameters: { ...curve.fixed, [curve.x]: textAt(lines, x) }, sweep }));
  const said = saidAt(lines, x, forPeople);
  return html`<figure class="curve">
    <figcaption><h3>${curve.part ? `${curve.part}: ` : ""}P(tells apart) against ${curve.x}, ${curve.construction}</h3>
      ${curve.finding && html`<p>${curve.finding}.</p>`}
      <p class="hint">Fixed: ${fixedText(curve.fixed) || "nothing"}.${curve.follows.length ? ` ${curve.follows.join(", ")} changes with ${curve.x}.` : ""}${curve.left_out ? ` ${curve.left_out} mechanisms are not shown.` : ""}</p></figcaption>
    <ul class="keys">${lines.map((line, i) => html`<${Key} key=${line.mechanism} name=${line.mechanism} colour=${colourOf(known, line.mechanism)} dash=${DASHES[i % DASHES.length]} />`)}</ul>
    <${Chart} options=${options} data=${data} at=${index} label=${`P(tells apart) against ${curve.x}; the numbers are below`} />
    <div class="walk">
      <label>${curve.x} = ${textAt(lines, x)}
        <input type="range" min="0" max=${data[0].length - 1} value=${index} aria-valuetext=${`${curve.x} = ${textAt(lines, x)}`} onInput=${(event) => setAt(Number(event.target.value))} /></label>
      <button type="button" class="quiet" onClick=${open}>The cells here</button>
    </div>
    <ul class="said" aria-live="polite">${said.map((each, i) => html`<li key=${i}>${each}</li>`)}</ul>
  </figure>`;
}

const DASHES = [[], [8, 4], [2, 3], [10, 3, 2, 3]];

export function Key({ name, colour, dash }) {
  return html`<li><svg width="34" height="10" aria-hidden="true"><line x1="1" x2="33" y1="5" y2="5" style=${{ stroke: colour, strokeWidth: 2.5, strokeDasharray: dash.join(" ") }} /></svg> ${name}</li>`;
}

// Sampled cells: a ring with its interval for each.
function drawSampled(plot, lines, known) {
  const { ctx } = plot;
  ctx.save();
  ctx.lineWidth = 1.5 * devicePixelRatio;
  for (const line of lines) {
    const named = colourOf(known, line.mechanism);
    ctx.strokeStyle = named.startsWith("var") ? inks().ink : named;
    line.x.forEach((x, i) => {
      if (line.kind[i] !== "sampled" || line.p[i] === null) return;
      const [left, y, low, high] = [plot.valToPos(x, "x", true), ...[line.p[i], line.low[i], line.high[i]].map((value) => plot.valToPos(value, "y", true))];
      ctx.beginPath();
      ctx.moveTo(left, low);
      ctx.lineTo(left, high);
      ctx.stroke();
      ctx.beginPath();
      ctx.arc(left, y, 4 * devicePixelRatio, 0, 7);
      ctx.stroke();
    });
  }
  ctx.restore();
}
