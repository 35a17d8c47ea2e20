// One mechanism: P and the verdict, a sentence, the attention weights, and the readings of the neurons.

import { html, useEffect, useRef, useState } from "./framework.js";
import { get } from "./api.js";
import { forPeople } from "./format.js";
import { Progress } from "./parts.js";
import { shortNumber } from "./see-tokens.js";

const FORMATS = { bf16: "bfloat16", fp16: "float16", fp32: "float32", fp64: "float64" };
const MEANINGS = { distinguishes: "P ≥ 0.99", blind: "P ≤ 0.01 with this reader", saturated: "P ≤ 0.01: this reader fires on both", partial: "P between 0.01 and 0.99", undecided: "the draws do not decide" };
const BINS = 60; // neurons whose readings fall into the same of this many bins are stacked
const HEIGHT = 40; // pixels of a strip
const RADIUS = 4; // pixels of a dot

function Verdict({ probability, word, engine, evidence }) {
  return html`<p class="chance"><span class="p">P(tells apart) ${probability.replace(/^P /, "")}</span>
    <span class=${`word ${word}`} title=${MEANINGS[word]}>${word}</span> <span class="hint" title=${evidence}>${engine}</span></p>`;
}

// P over all signs: at once where there is a closed form, else sampled on request.
export function Chance({ mechanism, path }) {
  const [sampled, setSampled] = useState(null);
  const control = useRef(null);
  useEffect(() => {
    setSampled(null);
    return () => control.current?.abort();
  }, [path]);
  const { chance } = mechanism;
  if (chance) return html`<${Verdict} probability=${chance.said} word=${chance.verdict} engine=${chance.engine} evidence=${chance.evidence} />`;
  const estimate = async () => {
    control.current = new AbortController();
    setSampled({ step: null });
    try {
      setSampled({ answer: await get(path, { signal: control.current.signal, step: (step) => setSampled({ step }) }) });
    } catch (problem) {
      setSampled(problem.name === "AbortError" ? null : { problem });
    }
  };
  if (sampled?.answer) {
    const { distinguish, interval, verdict, engine, evidence } = sampled.answer;
    const [low, high] = interval.map((end) => forPeople(end, 4));
    return html`<${Verdict} probability=${`= ${forPeople(distinguish)} in [${low}, ${high}]`} word=${verdict} engine=${engine} evidence=${evidence} />`;
  }
  if (sampled?.problem) return html`<p class="problem" role="alert">${sampled.problem.message}</p>`;
  if (sampled) return html`<${Progress} step=${sampled.step} onCancel=${() => control.current?.abort()} />`;
  return html`<p class="chance"><span class="hint">P(tells apart) has no closed form here.</span>
    <button type="button" class="quiet" onClick=${estimate}>Estimate it by sampling</button></p>`;
}

function Bar({ weight, most, label, colour }) {
  const width = weight === null ? 0 : Math.min(100, Math.max(0, (100 * weight) / most));
  return html`<div class="bar-line"><span class="visually-hidden">D${label}: </span>
    <span class="track"><span class=${`bar d${label}`} style=${{ width: `${width}%`, "--colour": colour }}></span></span>
    <span class="amount">${weight === null ? "no weight" : shortNumber(weight)}</span></div>`;
}

function Weights({ mechanism, picture, query, colour }) {
  const weights = mechanism.weights.map((rows) => rows[Math.min(query, rows.length - 1)]);
  const most = mechanism.normalised ? 1 : Math.max(1e-300, ...weights.flat().map((weight) => weight ?? 0));
  const names = picture.tokens[1].map((row, place) => (row.tokens === picture.tokens[0][place].tokens ? row.tokens : `${picture.tokens[0][place].tokens}, ${row.tokens}`));
  return html`<table class="weights">
    <caption>Attention weights of the tokens${mechanism.normalised ? "" : " (they need not add up to 1)"}</caption>
    <tbody>${names.map((name, place) => html`<tr key=${place}><th scope="row">${name}</th>
      <td><${Bar} weight=${weights[0][place]} most=${most} label=${0} colour=${colour} />
      <${Bar} weight=${weights[1][place]} most=${most} label=${1} colour=${colour} /></td></tr>`)}</tbody>
  </table>`;
}

// The positions of dots, [{ x in percent, y in pixels, fires }]; neurons that fire are right of the threshold.
export function placeDots(readings, fires, threshold, [low, high]) {
  const span = high - low || 1;
  const at = (value) => 3 + (94 * (value - low)) / span;
  const stacks = new Map();
  const dots = readings.map((value, i) => {
    const bin = Math.round((BINS * (value - low)) / span);
    const key = `${bin} ${fires[i]}`;
    const height = stacks.get(key) ?? 0;
    stacks.set(key, height + 1);
    const centre = at(low + (bin * span) / BINS);
    const x = fires[i] ? Math.max(centre, at(threshold) + 1.2) : Math.min(centre, at(threshold) - 1.2);
    return { x, height, fires: fires[i] };
  });
  const tallest = Math.max(1, ...stacks.values());
  const step = Math.min(2 * RADIUS + 1, (HEIGHT - 2 * RADIUS - 2) / Math.max(1, tallest - 1));
  return dots.map(({ x, height, fires: doesFire }) => ({ x, y: HEIGHT - RADIUS - 1 - height * step, fires: doesFire }));
}

function Strip({ mechanism, picture, label, range, colour }) {
  const [readings, fires] = [mechanism.readings[label], mechanism.fires[label]];
  const count = fires.filter(Boolean).length;
  const [low, high] = range;
  const threshold = 3 + (94 * (picture.threshold - low)) / (high - low || 1);
  const description = `D${label}: ${count} of ${fires.length} neurons read more than the threshold ${shortNumber(picture.threshold)}; readings from ${shortNumber(Math.min(...readings))} to ${shortNumber(Math.max(...readings))}.`;
  return html`<div class="strip"><span class="strip-name">D${label}</span>
    <svg role="img" aria-label=${description} height=${HEIGHT} width="100%">
      <rect class="firing" x=${`${threshold}%`} y="0" width=${`${100 - threshold}%`} height=${HEIGHT} />
      <line class="threshold" x1=${`${threshold}%`} x2=${`${threshold}%`} y1="0" y2=${HEIGHT} />
      ${placeDots(readings, fires, picture.threshold, range).map((dot, i) => html`<circle key=${i} cx=${`${dot.x}%`} cy=${dot.y} r=${fires.length > 100 ? 2 : RADIUS - 0.75}
        class=${dot.fires ? "fires" : "silent"} style=${{ "--colour": colour }} />`)}
    </svg>
    <span class=${count ? "strip-count some" : "strip-count"}>${count} of ${fires.length} fire</span></div>`;
}

function Formats({ formats }) {
  const word = (isEqual) => (isEqual === null ? "not certain" : isEqual ? "cannot see it" : "sees it");
  const mark = (isEqual) => (isEqual === null ? "?" : isEqual ? "✕" : "✓");
  return html`<ul class="formats" aria-label="Number formats that keep the difference">
    ${Object.entries(FORMATS).map(([name, text]) => html`<li key=${name} class=${formats[name] ? "unseen" : ""}>
      <span class="format">${text}</span> <span aria-hidden="true">${mark(formats[name])}</span>
      <span class="visually-hidden">${word(formats[name])}</span></li>`)}
  </ul>`;
}

export function Mechanism({ mechanism, picture, query, range, colour, children }) {
  const sentence = mechanism.sentence.slice(mechanism.mechanism.length + 2);
  return html`<section class="mechanism" aria-label=${mechanism.mechanism}>
    <div class="mechanism-head"><h2><span class="swatch" style=${{ background: colour }}></span>${mechanism.mechanism}</h2>${children}</div>
    <p class="sentence">${sentence[0].toUpperCase()}${sentence.slice(1)}</p>
    <${Weights} mechanism=${mechanism} picture=${picture} query=${query} colour=${colour} />
    <div class="strips">
      <p class="strips-name">Readings of ${picture.parameters.m} neurons; above ${shortNumber(picture.threshold)}${picture.unit && ` ${picture.unit}`} they fire</p>
      ${[0, 1].map((label) => html`<${Strip} key=${label} mechanism=${mechanism} picture=${picture} label=${label} range=${range} colour=${colour} />`)}
    </div>
    <${Formats} formats=${mechanism.formats} />
  </section>`;
}
