// See it happen: D0 and D1, the attention weights of their tokens, and the readings of the reader's neurons, at the point of
// the dials. The picture follows a drag; the address follows when the dial is released.

import { html, useEffect, useRef, useState } from "./framework.js";
import { go, query, splitMechanisms } from "./address.js";
import { get } from "./api.js";
import { EveryN } from "./every-n.js";
import { Choice, colourOf, useLooks } from "./parts.js";
import { Dials } from "./see-dials.js";
import { Tokens } from "./see-tokens.js";
import { Mechanism, Chance } from "./see-mechanism.js";

const CONSTRUCTION = "spike";
const MECHANISMS = "softmax,linear";
const MAX_MECHANISMS = 8;
const PATIENCE = 250; // ms after which an outdated request is cancelled
const READ_OUT_DELAY = 700; // ms without a change before screen readers get the text
const ADDRESS_DELAY = 350; // ms without a change before a slider's value becomes the address

// The picture at a path; the last one until the next is loaded. One request at a time: during a drag the latest point is
// requested as soon as the request before is answered, or cancelled after `PATIENCE`.
function usePicture(path, reachable) {
  const [state, setState] = useState({ picture: null, path: null, problem: null });
  const queue = useRef({ current: null, latest: null });
  useEffect(() => {
    const requests = queue.current;
    requests.latest = path;
    const send = () => {
      const request = { path: requests.latest, sentAt: performance.now(), controller: new AbortController() };
      requests.current = request;
      const isOutdated = () => requests.latest !== request.path;
      get(request.path, { signal: request.controller.signal })
        .then(
          (picture) => setState({ picture, path: request.path, problem: null }),
          (problem) => problem.name !== "AbortError" && setState((before) => ({ ...before, path: request.path, problem })),
        )
        .finally(() => {
          requests.current = null;
          if (requests.latest && (isOutdated() || request.controller.signal.aborted)) send();
        });
      setTimeout(() => requests.current === request && isOutdated() && request.controller.abort(), PATIENCE);
    };
    if (!requests.current) send();
    else if (performance.now() - requests.current.sentAt > PATIENCE) requests.current.controller.abort();
  }, [path, reachable]);
  useEffect(() => () => {
    queue.current.latest = null;
    queue.current.current?.controller.abort();
  }, []);
  return state;
}

// A text that is returned once it has not changed for a while.
function useSettled(text) {
  const [settled, setSettled] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), READ_OUT_DELAY);
    return () => clearTimeout(timer);
  }, [text]);
  return settled;
}

function useConstructions() {
  const [constructions, setConstructions] = useState([]);
  useEffect(() => { get("/list/constructions").then(setConstructions, () => {}); }, []);
  return constructions;
}

function MechanismsChoice({ chosen, looks, onChange }) {
  const families = [...new Set((looks ?? []).map((look) => look.family))];
  const others = (family) => looks.filter((look) => look.family === family && !chosen.includes(look.spelled));
  const add = (event) => {
    if (event.target.value) onChange([...chosen, event.target.value]);
    event.target.value = "";
  };
  return html`<fieldset class="chosen">
    <legend>Mechanisms</legend>
    <ul>${chosen.map((name) => html`<li key=${name}>
      <span class="swatch" style=${{ background: colourOf(looks, name) }}></span><span>${name}</span>
      ${chosen.length > 1 && html`<button type="button" class="remove" aria-label=${`Remove ${name}`}
        onClick=${() => onChange(chosen.filter((other) => other !== name))}>×</button>`}
    </li>`)}</ul>
    ${looks && chosen.length < MAX_MECHANISMS && html`<select aria-label="Add a mechanism" onChange=${add} value="">
      <option value="">Add a mechanism …</option>
      ${families.map((family) => html`<optgroup key=${family} label=${family}>
        ${others(family).map(({ spelled }) => html`<option key=${spelled} value=${spelled}>${spelled}</option>`)}
      </optgroup>`)}
    </select>`}
  </fieldset>`;
}

// The verdicts of all mechanisms beside the dial of n, where the picture may be out of sight.
function Glance({ picture, looks }) {
  const verdictOf = ({ chance, tells_apart: isToldApart }) => (chance ? chance.verdict : isToldApart ? "told apart" : "not told apart");
  return html`<ul class="glance" aria-label="Verdicts">${picture.mechanisms.map((mechanism) => html`<li key=${mechanism.mechanism}>
    <span class="swatch" style=${{ background: colourOf(looks, mechanism.mechanism) }}></span>${mechanism.mechanism}: <b>${verdictOf(mechanism)}</b></li>`)}</ul>`;
}

function QueryChoice({ queries, query, onChange }) {
  if (queries.length < 2) return null;
  return html`<fieldset class="asks">
    <legend>Attention of token</legend>
    ${queries.map((tokens, i) => html`<label key=${tokens}>
      <input type="radio" name="query" checked=${i === query} onChange=${() => onChange(i)} /> ${tokens}
    </label>`)}
  </fieldset>`;
}

export function View({ place, reachable }) {
  const construction = place.names[0] ?? CONSTRUCTION;
  const mechanisms = place.names[1] ?? MECHANISMS;
  const chosen = splitMechanisms(mechanisms);
  const [draft, setDraft] = useState(null);
  const [chosenQuery, setQuery] = useState(0);
  const looks = useLooks();
  const constructions = useConstructions();
  const words = draft ?? place.words;
  const seed = place.options.find(([name]) => name === "seed")?.[1] ?? "0";
  const options = seed === "0" ? [] : [["seed", seed]];
  const path = `/see/${encodeURIComponent(construction)}/${encodeURIComponent(mechanisms)}${query(words, options)}`;
  const { picture, problem, path: shownPath } = usePicture(path, reachable);
  const queryIndex = picture ? Math.min(chosenQuery, picture.queries.length - 1) : 0;
  const readOut = useSettled(picture && !problem
    ? picture.mechanisms.map(({ sentence, chance }) => `${sentence}${chance ? ` Over all signs, ${chance.said}: ${chance.verdict}.` : ""}`).join(" ")
    : (problem?.message ?? ""));

  const [moved, setMoved] = useState("");
  const timer = useRef(null);
  const goTo = (change) => {
    clearTimeout(timer.current);
    setDraft(null);
    go({ command: "verdict", names: [construction, mechanisms], words: place.words, options: place.options, ...change });
  };
  useEffect(() => () => clearTimeout(timer.current), []);
  useEffect(() => setDraft(null), [place]);
  const withWord = (name, value) => [...words.filter(([word]) => word !== name), [name, value]];
  const drag = (name, value) => {
    clearTimeout(timer.current);
    setMoved("");
    setDraft(withWord(name, value));
  };
  const letGo = (name, value) => {
    drag(name, value);
    timer.current = setTimeout(() => goTo({ words: withWord(name, value) }), ADDRESS_DELAY);
  };
  // The address, and with it the command, has the n of the picture, which the construction admits.
  const isCurrent = picture && !draft && !problem && shownPath === path;
  const rounded = isCurrent && picture.moved && picture.n !== place.words.find(([name]) => name === "n")?.[1] ? picture : null;
  useEffect(() => {
    if (!rounded || !place.words.some(([name]) => name === "n")) return;
    setMoved(rounded.moved);
    const roundedWords = place.words.map(([name, value]) => [name, name === "n" ? rounded.n : value]);
    go({ ...place, command: "verdict", names: [construction, mechanisms], words: roundedWords }, { replace: true });
  }, [rounded]);
  const listed = constructions.find((entry) => entry.name === construction);
  const current = picture?.construction === construction ? picture : null;
  const drawReader = () => goTo({ options: [...place.options.filter(([name]) => name !== "seed"), ["seed", String(Number(seed) + 1)]] });
  const field = problem?.field;
  const hasDial = field && (field in (current?.parameters ?? listed?.reference ?? {}) || field === "tau");
  const readings = picture?.mechanisms.flatMap((mechanism) => mechanism.readings.flat()) ?? [];
  const range = picture && [Math.min(picture.threshold, ...readings), Math.max(picture.threshold, ...readings)];
  const title = picture && `${picture.difference[0].toUpperCase()}${picture.difference.slice(1)} between D0 and D1. Which mechanisms tell them apart?`;

  return html`<div class=${`see ${problem || shownPath !== path ? "behind" : ""}`}>
    <div class="see-head">
      <h1>${title ?? "D0 and D1 differ. Which mechanisms tell them apart?"}</h1>
      <p class="lead">${picture?.title ?? listed?.title ?? ""} The reader after attention has neurons with random signs, which should
        fire on D1 only.</p>
    </div>
    <p class="visually-hidden" role="status">${readOut}</p>
    ${problem && !hasDial && html`<p class="problem wide" role="alert">${problem.message}</p>`}
    <${Dials} picture=${current} moved=${current?.moved || moved} words=${words} problem=${problem} construction=${listed}
      glance=${picture && html`<${Glance} picture=${picture} looks=${looks} />`}
      onDrag=${drag} onLetGo=${letGo} onSettle=${(name, value) => { setMoved(""); goTo({ words: withWord(name, value) }); }}>
      <${Choice} label="Construction" value=${construction} options=${constructions.length ? constructions.map((entry) => entry.name) : [construction]}
        onChange=${(name) => { setQuery(0); goTo({ names: [name, mechanisms], words: [], options: [] }); }} />
      <${MechanismsChoice} chosen=${chosen} looks=${looks} onChange=${(names) => goTo({ names: [construction, names.join(",")] })} />
      <div class="acts">
        <button type="button" onClick=${drawReader}>New random reader</button>
        ${(place.words.length > 0 || seed !== "0") && html`<button type="button" class="quiet" onClick=${() => goTo({ words: [], options: [] })}>Reset</button>`}
      </div>
    <//>
    ${picture && html`<div class="see-picture">
      <${Tokens} picture=${picture} />
      <div class="between">
        <${QueryChoice} queries=${picture.queries} query=${queryIndex} onChange=${setQuery} />
        <p class="hint">Bars: D0 outlined, D1 filled. Dots: the neurons of one random reader (seed ${picture.seed}), filled where they fire.</p>
        ${picture.theorem && html`<p class="hint">${picture.theorem}</p>`}
      </div>
      <div class="mechanisms">
        ${picture.mechanisms.map((mechanism) => html`<${Mechanism} key=${mechanism.mechanism} mechanism=${mechanism} picture=${picture} query=${queryIndex} range=${range}
          colour=${colourOf(looks, mechanism.mechanism)}>
          <${Chance} mechanism=${mechanism} path=${`/verdict/${encodeURIComponent(construction)}/${encodeURIComponent(mechanism.mechanism)}${query(words, options)}`} />
          <${EveryN} construction=${construction} mechanism=${mechanism.mechanism} words=${words} settled=${isCurrent && reachable} />
        <//>`)}
        ${picture.refused.map(({ mechanism, reason }) => html`<section key=${mechanism} class="mechanism refused">
          <h2>${mechanism}</h2><p>No picture here: ${reason}.</p></section>`)}
      </div>
    </div>`}
  </div>`;
}
