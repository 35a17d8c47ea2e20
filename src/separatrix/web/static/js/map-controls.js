// The controls of a map: construction, mechanisms, quantity, axes, and a slider for every fixed parameter.

import { html, useEffect, useId, useState } from "./framework.js";
import { splitMechanisms } from "./address.js";
import { get } from "./api.js";
import { mechanismParameter, numberOf, readAxis, setMechanismParameter, spellAxis, spellNumber } from "./cells.js";
import { Choice, Field } from "./parts.js";

export const QUANTITIES = [
  ["distinguish", "P(tells apart)"], ["fire_d0", "P(fires on D0)"], ["fire_d1", "P(fires on D1)"], ["margin", "margin"], ["bits", "bits"],
  ["accuracy:noise=0.5", "accuracy of the best reader of one row, noise 0.5"], ["accuracy:noise=0.5,rows=all", "accuracy of the best reader of all rows, noise 0.5"],
];

// The constructions, and the controls of the parameters; null until they are loaded.
export function useLists(place, reachable) {
  const [constructions, setConstructions] = useState(null);
  const [controls, setControls] = useState(null);
  const path = `/controls/${place.names.map(encodeURIComponent).join("/")}`;
  useEffect(() => { if (reachable && !constructions) get("/list/constructions").then(setConstructions, () => {}); }, [reachable]);
  useEffect(() => {
    let isCurrent = true;
    if (reachable) get(path).then((rows) => isCurrent && setControls(rows), () => {});
    return () => { isCurrent = false; };
  }, [path, reachable]);
  return { constructions, controls };
}

export function optionOf(place, name, usual) {
  return place.options.find(([option]) => option === name)?.[1] ?? usual;
}

export function withOption(place, name, value) {
  const others = place.options.filter(([option]) => option !== name);
  return { ...place, options: value === null ? others : [...others, [name, value]] };
}

export function withWord(place, name, value) {
  if (value === null) return { ...place, words: place.words.filter(([word]) => word !== name) };
  const hasWord = place.words.some(([word]) => word === name);
  return { ...place, words: hasWord ? place.words.map((pair) => (pair[0] === name ? [name, value] : pair)) : [...place.words, [name, value]] };
}

export function withMechanisms(place, mechanisms) {
  const named = { ...place, names: [place.names[0], mechanisms.join(",")] };
  return mechanisms.length === 2 ? named : withOption(named, "difference", null);
}

// The names of both axes, in order.
export function axesOf(place) {
  return place.words.filter(([, value]) => readAxis(value)).map(([name]) => name);
}

function usualAxis(control, count) {
  const { low, high, log } = control.span;
  const whole = control.kind === "whole";
  return spellAxis({ low: spellNumber(low, high - low, whole, log), high: spellNumber(high, high - low, whole, log), count, log, list: null });
}

// The place with another parameter as one of its axes; the parameter that it replaces is at the reference point again.
export function withAxis(place, which, control) {
  const axes = axesOf(place);
  const other = axes[1 - which];
  const texts = Object.fromEntries(place.words);
  if (control.name === other) {
    const swapped = axes.toReversed().map((name) => [name, texts[name]]);
    return { ...place, words: [...swapped, ...place.words.filter(([name]) => !axes.includes(name))] };
  }
  const count = readAxis(texts[axes[which]])?.count ?? 200;
  const axis = [control.name, usualAxis(control, count)];
  const pair = which ? [[other, texts[other]], axis] : [axis, [other, texts[other]]];
  const others = place.words.filter(([name]) => !axes.includes(name) && name !== control.name);
  const next = { ...place, words: [...pair, ...others] };
  if (control.of !== "mechanism") return next;
  return withMechanisms(next, splitMechanisms(place.names[1]).map((mechanism) => setMechanismParameter(mechanism, control.name, null)));
}

export function Question({ place, lists, looks, problem, onChange, onStart }) {
  const mechanisms = splitMechanisms(place.names[1]);
  const others = (looks ?? []).filter((look) => !mechanisms.some((mechanism) => mechanism.split(":")[0] === look.name));
  const quantity = optionOf(place, "of", "distinguish");
  const start = async (name) => {
    const axes = await get(`/axes/${encodeURIComponent(name)}`).catch(() => null);
    if (axes) onStart({ ...place, names: [name, place.names[1]], words: axes.map((axis) => [axis.name, axis.range]) });
  };
  return html`<div class="question">
    ${lists.constructions && html`<${Choice} label="Construction" value=${place.names[0]} options=${lists.constructions.map((construction) => construction.name)} onChange=${start} />`}
    <${Field} label="Mechanisms" value=${place.names[1]} onChange=${(text) => onChange(withMechanisms(place, splitMechanisms(text)))} problem=${problem} />
    <${Choice} label="Add a mechanism" value="" options=${[["", "…"], ...others.map((look) => [look.spelled, look.spelled])]} onChange=${(name) => name && onChange(withMechanisms(place, [...mechanisms, name]))} />
    <${Choice} label="Quantity" value=${quantity} options=${QUANTITIES.some(([name]) => name === quantity) ? QUANTITIES : [...QUANTITIES, [quantity, quantity]]} onChange=${(name) => onChange(withOption(place, "of", name === "distinguish" ? null : name))} />
    ${mechanisms.length === 2 && html`<label class="tick"><input type="checkbox" checked=${optionOf(place, "difference", "no") === "yes"}
      onChange=${(event) => onChange(withOption(place, "difference", event.target.checked ? "yes" : null))} /> difference</label>`}
  </div>`;
}

export function AxisFields({ place, which, controls, problemOf, onChange }) {
  const name = axesOf(place)[which];
  const text = Object.fromEntries(place.words)[name];
  const axis = readAxis(text);
  const movable = (controls ?? []).filter((control) => control.span);
  const choices = movable.some((control) => control.name === name) ? movable : [{ name }, ...movable];
  const change = (part) => onChange(withWord(place, name, spellAxis({ ...axis, ...part })));
  const side = which ? "Up" : "Across";
  return html`<fieldset class="axis"><legend>${side}</legend>
    <${Choice} label="Parameter" value=${name} options=${choices.map((control) => control.name)} onChange=${(chosen) => onChange(withAxis(place, which, movable.find((control) => control.name === chosen)))} />
    ${axis.list ? html`<${Field} label="Values" value=${text} onChange=${(values) => onChange(withWord(place, name, values))} problem=${problemOf(name)} />` : html`
      <${Field} label="From" value=${axis.low} onChange=${(low) => change({ low })} problem=${problemOf(name)} size="7" />
      <${Field} label="To" value=${axis.high} onChange=${(high) => change({ high })} size="7" />
      <${Field} label="Cells" value=${axis.count} onChange=${(count) => change({ count })} size="4" inputmode="numeric" />
      <label class="tick"><input type="checkbox" checked=${axis.log} onChange=${(event) => change({ log: event.target.checked })} /> log</label>`}
  </fieldset>`;
}

// A slider has a thousand steps, evenly in the logarithm where the span is wide.
const STEPS = 1000;

function Slider({ control, value, problem, onMove, onSettle }) {
  const id = useId();
  const { low, high, log } = control.span;
  const whole = control.kind === "whole";
  const number = value === null ? NaN : numberOf(value);
  const share = log ? Math.log(number / low) / Math.log(high / low) : (number - low) / (high - low);
  const at = (step) => {
    const position = log ? low * (high / low) ** (step / STEPS) : low + (high - low) * (step / STEPS);
    return spellNumber(position, high - low, whole, log);
  };
  return html`<div class="mover">
    <${Field} label=${control.name} value=${value ?? ""} placeholder=${control.derived ?? ""} onChange=${(text) => onSettle(text || null)} problem=${problem} size="8" />
    ${value !== null && html`<label class="visually-hidden" for=${id}>${control.name}, slider</label>
    <input id=${id} type="range" min="0" max=${STEPS} step="1" value=${Math.round(STEPS * Math.max(0, Math.min(1, share)))}
      aria-valuetext=${`${control.name} = ${value}`}
      onInput=${(event) => onMove(at(Number(event.target.value)))} onChange=${(event) => onSettle(at(Number(event.target.value)))} />`}
  </div>`;
}

export function Sliders({ place, controls, problemOf, onMove, onSettle }) {
  if (!controls) return null;
  const words = Object.fromEntries(place.words);
  const axes = axesOf(place);
  const [first] = splitMechanisms(place.names[1]);
  const valueOf = ({ name, of, value }) => (of === "mechanism" ? mechanismParameter(first, name) : words[name]) ?? value;
  const set = ({ name, of }, value) => of === "mechanism"
    ? withMechanisms(place, splitMechanisms(place.names[1]).map((mechanism) => setMechanismParameter(mechanism, name, value)))
    : withWord(place, name, value);
  return html`<fieldset class="sliders"><legend>Fixed parameters: the map follows the sliders</legend>
    ${controls.filter(({ name }) => !axes.includes(name)).map((control) => (control.span
      ? html`<${Slider} key=${control.name} control=${control} value=${valueOf(control)} problem=${problemOf(control.name)} onMove=${(value) => onMove(set(control, value))} onSettle=${(value) => onSettle(set(control, value))} />`
      : control.words.length > 0 && html`<${Choice} key=${control.name} label=${control.name} value=${valueOf(control)} options=${control.words} onChange=${(value) => onSettle(set(control, value))} />`))}
  </fieldset>`;
}
