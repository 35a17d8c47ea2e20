// What can be chosen of a map: construction, mechanisms, quantity, axes, and a slider for every parameter that is
// fixed.

import { html, useEffect, useId, useState } from "./framework.js";
import { splitMechanisms } from "./address.js";
import { get } from "./api.js";
import { numberOf, ownValue, readAxis, spellAxis, typed, withOwn } from "./cells.js";
import { Choice, Field } from "./parts.js";

export const QUANTITIES = [
  ["distinguish", "P(tells apart)"], ["fire_d0", "P(fires on D0)"], ["fire_d1", "P(fires on D1)"], ["margin", "margin"], ["bits", "bits"],
];

// The names of constructions and of mechanisms, and what can be moved: null until it is there.
export function useLists(place, reachable) {
  const [constructions, setConstructions] = useState(null);
  const [controls, setControls] = useState(null);
  const path = `/controls/${place.names.map(encodeURIComponent).join("/")}`;
  useEffect(() => { if (reachable && !constructions) get("/list/constructions").then(setConstructions, () => {}); }, [reachable]);
  useEffect(() => {
    let wanted = true;
    if (reachable) get(path).then((found) => wanted && setControls(found), () => {});
    return () => { wanted = false; };
  }, [path, reachable]);
  return { constructions, controls };
}

export function optionOf(place, name, usual) {
  return place.options.find(([each]) => each === name)?.[1] ?? usual;
}

export function withOption(place, name, value) {
  const rest = place.options.filter(([each]) => each !== name);
  return { ...place, options: value === null ? rest : [...rest, [name, value]] };
}

export function withWord(place, name, value) {
  const there = place.words.some(([each]) => each === name);
  if (value === null) return { ...place, words: place.words.filter(([each]) => each !== name) };
  return { ...place, words: there ? place.words.map((pair) => (pair[0] === name ? [name, value] : pair)) : [...place.words, [name, value]] };
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
  return spellAxis({ low: typed(low, high - low, whole, log), high: typed(high, high - low, whole, log), count, log, list: null });
}

// A place whose axes are a parameter and another; one that is no axis any more is taken from the reference point.
export function withAxis(place, which, control) {
  const axes = axesOf(place);
  const other = axes[1 - which];
  const texts = Object.fromEntries(place.words);
  if (control.name === other) {
    const turned = axes.toReversed().map((name) => [name, texts[name]]);
    return { ...place, words: [...turned, ...place.words.filter(([name]) => !axes.includes(name))] };
  }
  const count = readAxis(texts[axes[which]])?.count ?? 200;
  const chosen = [control.name, usualAxis(control, count)];
  const pair = which ? [[other, texts[other]], chosen] : [chosen, [other, texts[other]]];
  const rest = place.words.filter(([name]) => !axes.includes(name) && name !== control.name);
  const free = { ...place, words: [...pair, ...rest] };
  if (control.of !== "mechanism") return free;
  return withMechanisms(free, splitMechanisms(place.names[1]).map((each) => withOwn(each, control.name, null)));
}

export function Question({ place, lists, looks, problem, onChange, onStart }) {
  const mechanisms = splitMechanisms(place.names[1]);
  const rest = (looks ?? []).filter((each) => !mechanisms.some((name) => name.split(":")[0] === each.name));
  const of = optionOf(place, "of", "distinguish");
  const start = async (name) => {
    const axes = await get(`/axes/${encodeURIComponent(name)}`).catch(() => null);
    if (axes) onStart({ ...place, names: [name, place.names[1]], words: axes.map((each) => [each.name, each.range]) });
  };
  return html`<div class="question">
    ${lists.constructions && html`<${Choice} label="Construction" value=${place.names[0]} options=${lists.constructions.map((each) => each.name)} onChange=${start} />`}
    <${Field} label="Mechanisms" value=${place.names[1]} onChange=${(text) => onChange(withMechanisms(place, splitMechanisms(text)))} problem=${problem} />
    <${Choice} label="Add one" value="" options=${[["", "…"], ...rest.map((each) => [each.spelled, each.spelled])]} onChange=${(name) => name && onChange(withMechanisms(place, [...mechanisms, name]))} />
    <${Choice} label="Quantity" value=${of} options=${QUANTITIES} onChange=${(name) => onChange(withOption(place, "of", name === "distinguish" ? null : name))} />
    ${mechanisms.length === 2 && html`<label class="tick"><input type="checkbox" checked=${optionOf(place, "difference", "no") === "yes"}
      onChange=${(event) => onChange(withOption(place, "difference", event.target.checked ? "yes" : null))} /> their difference</label>`}
  </div>`;
}

export function AxisFields({ place, which, controls, problemOf, onChange }) {
  const name = axesOf(place)[which];
  const text = Object.fromEntries(place.words)[name];
  const axis = readAxis(text);
  const movable = (controls ?? []).filter((each) => each.span);
  const known = movable.some((each) => each.name === name) ? movable : [{ name }, ...movable];
  const change = (part) => onChange(withWord(place, name, spellAxis({ ...axis, ...part })));
  const side = which ? "Up" : "Across";
  return html`<fieldset class="axis"><legend>${side}</legend>
    <${Choice} label="Parameter" value=${name} options=${known.map((each) => each.name)} onChange=${(chosen) => onChange(withAxis(place, which, movable.find((each) => each.name === chosen)))} />
    ${axis.list ? html`<${Field} label="Values" value=${text} onChange=${(typedText) => onChange(withWord(place, name, typedText))} problem=${problemOf(name)} />` : html`
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
    const there = log ? low * (high / low) ** (step / STEPS) : low + (high - low) * (step / STEPS);
    return typed(there, high - low, whole, log);
  };
  return html`<div class="mover">
    <${Field} label=${control.name} value=${value ?? ""} placeholder="follows" onChange=${(text) => onSettle(text || null)} problem=${problem} size="8" />
    ${value !== null && html`<label class="visually-hidden" for=${id}>${control.name}, to drag</label>
    <input id=${id} type="range" min="0" max=${STEPS} step="1" value=${Math.round(STEPS * Math.max(0, Math.min(1, share)))}
      aria-valuetext=${`${control.name} = ${value}`}
      onInput=${(event) => onMove(at(Number(event.target.value)))} onChange=${(event) => onSettle(at(Number(event.target.value)))} />`}
  </div>`;
}

export function Sliders({ place, controls, problemOf, onMove, onSettle }) {
  if (!controls) return null;
  const given = Object.fromEntries(place.words);
  const axes = axesOf(place);
  const [first] = splitMechanisms(place.names[1]);
  const valueOf = (each) => (each.of === "mechanism" ? ownValue(first, each.name) : given[each.name]) ?? each.value;
  const set = (each, value) => each.of === "mechanism"
    ? withMechanisms(place, splitMechanisms(place.names[1]).map((name) => withOwn(name, each.name, value)))
    : withWord(place, each.name, value);
  return html`<fieldset class="sliders"><legend>Fixed: drag, and the map follows</legend>
    ${controls.filter((each) => !axes.includes(each.name)).map((each) => (each.span
      ? html`<${Slider} key=${each.name} control=${each} value=${valueOf(each)} problem=${problemOf(each.name)} onMove=${(value) => onMove(set(each, value))} onSettle=${(value) => onSettle(set(each, value))} />`
      : each.words.length > 0 && html`<${Choice} key=${each.name} label=${each.name} value=${valueOf(each)} options=${each.words} onChange=${(value) => onSettle(set(each, value))} />`))}
  </fieldset>`;
}
