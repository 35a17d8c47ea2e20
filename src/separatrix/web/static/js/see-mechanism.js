// One mechanism: P and its word, the sentence, what it gives the tokens, what the neurons read against the threshold.

import { html, useEffect, useRef, useState } from "./framework.js";
import { get } from "./api.js";
import { Progress, forPeople } from "./parts.js";
import { short } from "./see-tokens.js";

const FORMATS = { bf16: "bfloat16", fp16: "float16", fp32: "float32", fp64: "float64" };
const MEANINGS = { distinguishes: "P ≥ 0.99", blind: "P ≤ 0.01, to this reader", saturated: "P ≤ 0.01: this reader fires on both", partial: "some of the time", undecided: "the draws do not decide" };
const PLACES = 60; // neurons whose readings fall into the same of so many places are piled up
const TALL = 40; // pixels of a strip
const DOT = 4;

function Said({ said, word, engine, evidence }) {
  return html`<p class="chance"><span class="p">P(tells apart) ${said.replace(/^P /, "")}</span>
    <span class=${`word ${word}`} title=${MEANINGS[word]}>${word}</span> <span class="hint" title=${evidence}>${engine}</span></p>`;
}

// P over all draws: with the picture where nothing has to be drawn for it, else when one asks.
export function Chance({ found, path }) {
  const [sampled, setSampled] = useState(null);
  const control = useRef(null);
  useEffect(() => {
    setSampled(null);
    return () => control.current?.abort();
  }, [path]);
  if (found.chance) return html`<${Said} said=${found.chance.said} word=${found.chance.verdict} engine=${found.chance.engine} evidence=${found.chance.evidence} />`;
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
    return html`<${Said} said=${`= ${forPeople(distinguish)} in [${low}, ${high}]`} word=${verdict} engine=${engine} evidence=${evidence} />`;
  }
  if (sampled?.problem) return html`<p class="problem" role="alert">${sampled.problem.message}</p>`;
  if (sampled) return html`<${Progress} step=${sampled.step} onCancel=${() => control.current?.abort()} />`;
  return html`<p class="chance"><span class="hint">P(tells apart) has no closed form here.</span>
    <button type="button" class="quiet" onClick=${estimate}>Estimate it by draws</button></p>`;
}

function Bar({ weight, most, label, colour }) {
  const width = weight === null ? 0 : Math.min(100, Math.max(0, (100 * weight) / most));
  return html`<div class="bar-line"><span class="visually-hidden">D${label}: </span>
    <span class="track"><span class=${`bar d${label}`} style=${{ width: `${width}%`, "--colour": colour }}></span></span>
    <span class="amount">${weight === null ? "no weight" : short(weight)}</span></div>`;
}

function Weights({ found, picture, asked, colour }) {
  const given = found.weights.map((kinds) => kinds[Math.min(asked, kinds.length - 1)]);
  const most = found.normalised ? 1 : Math.max(1e-300, ...given.flat().map((x) => x ?? 0));
  const names = picture.tokens[1].map((row, place) => (row.tokens === picture.tokens[0][place].tokens ? row.tokens : `${picture.tokens[0][place].tokens}, ${row.tokens}`));
  return html`<table class="weights">
    <caption>What attention gives the tokens${found.normalised ? "" : " (these weights need not add up to 1)"}</caption>
    <tbody>${names.map((name, place) => html`<tr key=${place}><th scope="row">${name}</th>
      <td><${Bar} weight=${given[0][place]} most=${most} label=${0} colour=${colour} />
      <${Bar} weight=${given[1][place]} most=${most} label=${1} colour=${colour} /></td></tr>`)}</tbody>
  </table>`;
}

// Where dots go: [{ x in percent, y in pixels, fires }], those that fire to the right of the threshold.
export function dotsOf(readings, fires, threshold, [low, high]) {
  const wide = high - low || 1;
  const at = (value) => 3 + (94 * (value - low)) / wide;
  const piles = new Map();
  const placed = readings.map((value, i) => {
    const place = Math.round((PLACES * (value - low)) / wide);
    const key = `${place} ${fires[i]}`;
    piles.set(key, (piles.get(key) ?? 0) + 1);
    const beyond = fires[i] ? Math.max(at(low + (place * wide) / PLACES), at(threshold) + 1.2) : Math.min(at(low + (place * wide) / PLACES), at(threshold) - 1.2);
    return { x: beyond, pile: key, height: piles.get(key) - 1, fires: fires[i] };
  });
  const tallest = Math.max(1, ...piles.values());
  const step = Math.min(2 * DOT + 1, (TALL - 2 * DOT - 2) / Math.max(1, tallest - 1));
  return placed.map(({ x, height, fires: fired }) => ({ x, y: TALL - DOT - 1 - height * step, fires: fired }));
}

function Strip({ found, picture, label, range, colour }) {
  const [readings, fires] = [found.readings[label], found.fires[label]];
  const fired = fires.filter(Boolean).length;
  const [low, high] = range;
  const line = 3 + (94 * (picture.threshold - low)) / (high - low || 1);
  const said = `D${label}: ${fired} of ${fires.length} neurons read more than the threshold ${short(picture.threshold)}; they read ${short(Math.min(...readings))} to ${short(Math.max(...readings))}.`;
  return html`<div class="strip"><span class="strip-name">D${label}</span>
    <svg role="img" aria-label=${said} height=${TALL} width="100%">
      <rect class="firing" x=${`${line}%`} y="0" width=${`${100 - line}%`} height=${TALL} />
      <line class="threshold" x1=${`${line}%`} x2=${`${line}%`} y1="0" y2=${TALL} />
      ${dotsOf(readings, fires, picture.threshold, range).map((dot, i) => html`<circle key=${i} cx=${`${dot.x}%`} cy=${dot.y} r=${fires.length > 100 ? 2 : DOT - 0.75}
        class=${dot.fires ? "fires" : "silent"} style=${{ "--colour": colour }} />`)}
    </svg>
    <span class=${fired ? "strip-count some" : "strip-count"}>${fired} of ${fires.length} fire</span></div>`;
}

function Formats({ found }) {
  const word = (same) => (same === null ? "not certain" : same ? "cannot see it" : "sees it");
  const mark = (same) => (same === null ? "?" : same ? "✕" : "✓");
  return html`<ul class="formats" aria-label="The difference as number formats keep it">
    ${Object.entries(FORMATS).map(([name, shown]) => html`<li key=${name} class=${found.formats[name] ? "unseen" : ""}>
      <span class="format">${shown}</span> <span aria-hidden="true">${mark(found.formats[name])}</span>
      <span class="visually-hidden">${word(found.formats[name])}</span></li>`)}
  </ul>`;
}

export function Mechanism({ found, picture, asked, range, colour, children }) {
  const said = found.sentence.slice(found.mechanism.length + 2);
  return html`<section class="mechanism" aria-label=${found.mechanism}>
    <div class="mechanism-head"><h2><span class="swatch" style=${{ background: colour }}></span>${found.mechanism}</h2>${children}</div>
    <p class="sentence">${said[0].toUpperCase()}${said.slice(1)}</p>
    <${Weights} found=${found} picture=${picture} asked=${asked} colour=${colour} />
    <div class="strips">
      <p class="strips-name">What ${picture.parameters.m} neurons read; above ${short(picture.threshold)}${picture.unit && ` ${picture.unit}`} they fire</p>
      ${[0, 1].map((label) => html`<${Strip} key=${label} found=${found} picture=${picture} label=${label} range=${range} colour=${colour} />`)}
    </div>
    <${Formats} found=${found} />
  </section>`;
}
