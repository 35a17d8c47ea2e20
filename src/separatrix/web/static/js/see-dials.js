// Dials for the parameters of a construction: n on a row of its own, from 10 to 10^18, the others beside the picture. A dial
// is a slider and a field, which takes numbers as 1e9. A slider calls `onDrag` while it is dragged and then `onLetGo`; a field
// calls `onSettle`.

import { html, useId, useRef, useState, useEffect } from "./framework.js";
import { forPeople } from "./format.js";

const MAX_N = 1e18;
const MIN_VALUES = { n: 10, d: 4 };
const LOG_STEP = { n: 0.05 };
const TICKS = [1, 3, 6, 9, 12, 15, 18];
const POWERS = "⁰¹²³⁴⁵⁶⁷⁸⁹";

// The range of a slider, from the value at the reference point, or from the first value.
export function scaleOf(name, usual, whole) {
  const size = Math.abs(Number(usual)) || 0;
  if (whole) {
    const low = MIN_VALUES[name] ?? 1;
    const high = name === "n" ? MAX_N : Math.max(10 * size, 16);
    return { log: true, low: Math.log10(low), high: Math.log10(high), step: LOG_STEP[name] ?? 0.01 };
  }
  const high = Math.max(1, 2 * size);
  return { log: false, low: 0, high, step: 10 ** (Math.floor(Math.log10(high)) - 2) };
}

// The text of a slider position: integers in three digits, beyond a million as 3.16e8.
export function textAt(scale, place) {
  if (!scale.log) return String(Number(place.toFixed(6)));
  const value = 10 ** place;
  if (value < 1e6) return String(Math.max(1, Math.round(Number(value.toPrecision(3)))));
  const [digits, power] = value.toExponential(2).split("e");
  return `${Number(digits)}e${Number(power)}`;
}

export function placeOf(scale, text) {
  const [top, bottom] = String(text).split("/").map(Number);
  const value = bottom ? top / bottom : top;
  const place = scale.log ? Math.log10(value) : value;
  return Number.isFinite(place) ? Math.min(Math.max(place, scale.low), scale.high) : scale.low;
}

function Dial({ name, value, scale, problem, hint, wide, onDrag, onLetGo, onSettle }) {
  const id = useId();
  const [draft, setDraft] = useState(value);
  useEffect(() => setDraft(value), [value]);
  const at = (event) => textAt(scale, Number(event.target.value));
  const help = problem || hint;
  return html`<div class=${wide ? "dial wide" : "dial"}>
    <label for=${id}>${wide ? html`<b>n</b>, number of tokens` : name}</label>
    <input id=${id} class="typed" value=${draft} onInput=${(event) => setDraft(event.target.value)}
      onChange=${(event) => event.target.value !== String(value) && onSettle(event.target.value.trim())}
      aria-invalid=${problem ? "true" : undefined} aria-describedby=${help ? `${id}-help` : undefined}
      spellcheck="false" autocomplete="off" inputmode=${wide ? "text" : "decimal"} />
    <input type="range" aria-label=${`${name}, slider`} min=${scale.low} max=${scale.high} step=${scale.step} value=${placeOf(scale, value)}
      aria-valuetext=${`${name} = ${forPeople(Number(value), 3)}`}
      onInput=${(event) => onDrag(at(event))} onChange=${(event) => onLetGo(at(event))} />
    ${wide && html`<div class="ticks" aria-hidden="true">${TICKS.map((power) => html`<span key=${power}
      style=${{ left: `${(100 * (power - scale.low)) / (scale.high - scale.low)}%` }}>10${power > 1 ? [...String(power)].map((digit) => POWERS[digit]).join("") : ""}</span>`)}</div>`}
    ${help && html`<p id=${`${id}-help`} class=${problem ? "problem" : "hint"} role=${problem ? "alert" : undefined}>${help}</p>`}
  </div>`;
}

function WordDial({ name, value, choices, onSettle }) {
  const id = useId();
  return html`<div class="dial"><label for=${id}>${name}</label>
    <select id=${id} value=${value} onChange=${(event) => onSettle(event.target.value)}>
      ${choices.map((choice) => html`<option key=${choice} value=${choice} selected=${choice === value}>${choice}</option>`)}
    </select></div>`;
}

// Values of a reference point as a picture has them: integers as numbers, others as text.
function readReference(reference) {
  return Object.fromEntries(Object.entries(reference).map(([name, text]) => [name, /^\d+$/.test(text) ? Number(text) : text]));
}

export function Dials({ picture, moved, words, problem, construction, glance, onDrag, onLetGo, onSettle, children }) {
  const usual = useRef({ construction: null, values: {} });
  if (picture && usual.current.construction !== picture.construction) {
    usual.current = { construction: picture.construction, values: { ...picture.parameters } };
  }
  const settings = Object.fromEntries(words);
  const parameters = { ...(picture?.parameters ?? readReference(construction?.reference ?? { n: "1000" })) };
  if (picture && !("tau" in parameters)) parameters.tau = String(Number(picture.threshold.toPrecision(6)));
  const choices = construction?.choices ?? {};
  const dial = (name, wide) => {
    const value = settings[name] ?? String(parameters[name]);
    if (choices[name]) return html`<${WordDial} key=${name} name=${name} value=${value} choices=${choices[name].split(",")} onSettle=${(text) => onSettle(name, text)} />`;
    const whole = typeof parameters[name] === "number";
    const scale = scaleOf(name, construction?.reference[name] ?? usual.current.values[name] ?? value, whole);
    return html`<${Dial} key=${name} name=${name} value=${value} scale=${scale} wide=${wide} problem=${problem?.field === name ? problem.message : ""}
      hint=${name === "n" ? moved : name === "tau" ? "the reader’s threshold" : ""}
      onDrag=${(text) => onDrag(name, text)} onLetGo=${(text) => onLetGo(name, text)} onSettle=${(text) => onSettle(name, text)} />`;
  };
  const others = Object.keys(parameters).filter((name) => name !== "n");
  return html`<div class="see-n">${dial("n", true)}${glance}</div>
    <form class="see-dials" aria-label="The point" onSubmit=${(event) => event.preventDefault()}>
      ${children}
      <div class="dials">${others.map((name) => dial(name, false))}</div>
      ${construction && html`<details class="about"><summary>About this construction</summary>
        <p>${construction.description}</p><p class="hint">${construction.provenance}</p></details>`}
    </form>`;
}
