// See it happen: D0 and D1, what attention gives their tokens, what the reader's neurons make of it, at the point
// that the dials are at. The picture follows while one drags; the address follows when one lets go.

import { html, useEffect, useRef, useState } from "./framework.js";
import { go, query, splitMechanisms } from "./address.js";
import { get } from "./api.js";
import { Choice, colourOf, useLooks } from "./parts.js";
import { Dials } from "./see-dials.js";
import { Tokens } from "./see-tokens.js";
import { Mechanism, Chance } from "./see-mechanism.js";

const CONSTRUCTION = "spike";
const MECHANISMS = "softmax,linear";
const MOST_MECHANISMS = 8;
const PATIENCE = 250; // ms that an answer which is not wanted any more may still take
const SETTLED = 700; // ms without a change before it is read out
const RESTED = 350; // ms without a change before a slider's place becomes the address

// The picture at a path, the last one until the next is there. One request at a time: while one drags the latest
// point is asked for as soon as the one before is answered, and an answer that takes long is given up.
function usePicture(path, reachable) {
  const [found, setFound] = useState({ picture: null, path: null, problem: null });
  const line = useRef({ asked: null, wanted: null });
  useEffect(() => {
    const { current } = line;
    current.wanted = path;
    const ask = () => {
      const wanted = current.wanted;
      const mine = { path: wanted, since: performance.now(), control: new AbortController() };
      current.asked = mine;
      get(wanted, { signal: mine.control.signal })
        .then(
          (picture) => setFound({ picture, path: wanted, problem: null }),
          (problem) => problem.name !== "AbortError" && setFound((before) => ({ ...before, path: wanted, problem })),
        )
        .finally(() => {
          current.asked = null;
          if (current.wanted && (current.wanted !== wanted || mine.control.signal.aborted)) ask();
        });
      setTimeout(() => current.asked === mine && current.wanted !== wanted && mine.control.abort(), PATIENCE);
    };
    if (!current.asked) ask();
    else if (performance.now() - current.asked.since > PATIENCE) current.asked.control.abort();
  }, [path, reachable]);
  useEffect(() => () => {
    line.current.wanted = null;
    line.current.asked?.control.abort();
  }, []);
  return found;
}

// A text that is said once nothing has changed for a while.
function useSettled(text) {
  const [said, setSaid] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => setSaid(text), SETTLED);
    return () => clearTimeout(timer);
  }, [text]);
  return said;
}

function useConstructions() {
  const [known, setKnown] = useState([]);
  useEffect(() => { get("/list/constructions").then(setKnown, () => {}); }, []);
  return known;
}

function MechanismsChoice({ chosen, looks, onChange }) {
  const families = [...new Set((looks ?? []).map((each) => each.family))];
  const others = (family) => looks.filter((each) => each.family === family && !chosen.includes(each.spelled));
  const add = (event) => {
    if (event.target.value) onChange([...chosen, event.target.value]);
    event.target.value = "";
  };
  return html`<fieldset class="chosen">
    <legend>Mechanisms</legend>
    <ul>${chosen.map((name) => html`<li key=${name}>
      <span class="swatch" style=${{ background: colourOf(looks, name) }}></span><span>${name}</span>
      ${chosen.length > 1 && html`<button type="button" class="remove" aria-label=${`Leave out ${name}`}
        onClick=${() => onChange(chosen.filter((each) => each !== name))}>×</button>`}
    </li>`)}</ul>
    ${looks && chosen.length < MOST_MECHANISMS && html`<select aria-label="Add a mechanism" onChange=${add} value="">
      <option value="">Add one …</option>
      ${families.map((family) => html`<optgroup key=${family} label=${family}>
        ${others(family).map((each) => html`<option key=${each.spelled} value=${each.spelled}>${each.spelled}</option>`)}
      </optgroup>`)}
    </select>`}
  </fieldset>`;
}

// The words of all mechanisms beside the dial of n, where the picture may be out of sight.
function Glance({ picture, looks }) {
  return html`<ul class="glance" aria-label="At a glance">${picture.mechanisms.map((each) => html`<li key=${each.mechanism}>
    <span class="swatch" style=${{ background: colourOf(looks, each.mechanism) }}></span>${each.mechanism}: <b>${each.chance ? each.chance.verdict : each.tells_apart ? "told apart" : "not told apart"}</b></li>`)}</ul>`;
}

function WhoAsks({ queries, asked, onChange }) {
  if (queries.length < 2) return null;
  const name = (tokens) => (tokens.includes("–") ? `tokens ${tokens}` : `token ${tokens}`);
  return html`<fieldset class="asks">
    <legend>Who asks</legend>
    ${queries.map((tokens, place) => html`<label key=${tokens}>
      <input type="radio" name="asks" checked=${place === asked} onChange=${() => onChange(place)} /> ${name(tokens)}
    </label>`)}
  </fieldset>`;
}

export function View({ place, reachable }) {
  const construction = place.names[0] ?? CONSTRUCTION;
  const mechanisms = place.names[1] ?? MECHANISMS;
  const chosen = splitMechanisms(mechanisms);
  const [draft, setDraft] = useState(null);
  const [asked, setAsked] = useState(0);
  const looks = useLooks();
  const constructions = useConstructions();
  const words = draft ?? place.words;
  const seed = place.options.find(([name]) => name === "seed")?.[1] ?? "0";
  const options = seed === "0" ? [] : [["seed", seed]];
  const path = `/see/${encodeURIComponent(construction)}/${encodeURIComponent(mechanisms)}${query(words, options)}`;
  const { picture, problem, path: shown } = usePicture(path, reachable);
  const kind = picture ? Math.min(asked, picture.queries.length - 1) : 0;
  const said = useSettled(picture && !problem
    ? picture.mechanisms.map((each) => `${each.sentence}${each.chance ? ` Over all signs, ${each.chance.said}: ${each.chance.verdict}.` : ""}`).join(" ")
    : (problem?.message ?? ""));

  const [moved, setMoved] = useState("");
  const rest = useRef(null);
  const to = (change) => {
    clearTimeout(rest.current);
    setDraft(null);
    go({ command: "verdict", names: [construction, mechanisms], words: place.words, options: place.options, ...change });
  };
  useEffect(() => () => clearTimeout(rest.current), []);
  useEffect(() => setDraft(null), [place]);
  const withWord = (name, value) => [...words.filter(([each]) => each !== name), [name, value]];
  const drag = (name, value) => {
    clearTimeout(rest.current);
    setMoved("");
    setDraft(withWord(name, value));
  };
  const letGo = (name, value) => {
    drag(name, value);
    rest.current = setTimeout(() => to({ words: withWord(name, value) }), RESTED);
  };
  // The address, and with it the command, has the n of the picture: one that the construction admits.
  const admitted = picture && !draft && !problem && shown === path && picture.moved && picture.n !== place.words.find(([name]) => name === "n")?.[1] ? picture : null;
  useEffect(() => {
    if (!admitted || !place.words.some(([name]) => name === "n")) return;
    setMoved(admitted.moved);
    const there = place.words.map(([name, value]) => [name, name === "n" ? admitted.n : value]);
    go({ ...place, command: "verdict", names: [construction, mechanisms], words: there }, { replace: true });
  }, [admitted]);
  const listed = constructions.find((each) => each.name === construction);
  const current = picture?.construction === construction ? picture : null;
  const drawAgain = () => to({ options: [...place.options.filter(([name]) => name !== "seed"), ["seed", String(Number(seed) + 1)]] });
  const field = problem?.field;
  const elsewhere = problem && !(field && (field in (current?.parameters ?? listed?.reference ?? {}) || field === "tau"));
  const readings = picture?.mechanisms.flatMap((each) => each.readings.flat()) ?? [];
  const range = picture && [Math.min(picture.threshold, ...readings), Math.max(picture.threshold, ...readings)];
  const title = picture && `${picture.difference[0].toUpperCase()}${picture.difference.slice(1)} between D0 and D1. Who can tell?`;

  return html`<div class=${`see ${problem || shown !== path ? "behind" : ""}`}>
    <div class="see-head">
      <h1>${title ?? "Two inputs differ. Who can tell?"}</h1>
      <p class="lead">${picture?.title ?? listed?.title ?? ""} The reader behind attention, neurons with random
        signs, ought to fire on D1 alone.</p>
    </div>
    <p class="visually-hidden" role="status">${said}</p>
    ${elsewhere && html`<p class="problem wide" role="alert">${problem.message}</p>`}
    <${Dials} picture=${current} moved=${current?.moved || moved} words=${words} problem=${problem} construction=${listed}
      glance=${picture && html`<${Glance} picture=${picture} looks=${looks} />`}
      onDrag=${drag} onLetGo=${letGo} onSettle=${(name, value) => { setMoved(""); to({ words: withWord(name, value) }); }}>
      <${Choice} label="Construction" value=${construction} options=${constructions.length ? constructions.map((each) => each.name) : [construction]}
        onChange=${(name) => { setAsked(0); to({ names: [name, mechanisms], words: [], options: [] }); }} />
      <${MechanismsChoice} chosen=${chosen} looks=${looks} onChange=${(names) => to({ names: [construction, names.join(",")] })} />
      <div class="acts">
        <button type="button" onClick=${drawAgain}>Draw other signs</button>
        ${(place.words.length > 0 || seed !== "0") && html`<button type="button" class="quiet" onClick=${() => to({ words: [], options: [] })}>Back to the start</button>`}
      </div>
    <//>
    ${picture && html`<div class="see-picture">
      <${Tokens} picture=${picture} />
      <div class="between">
        <${WhoAsks} queries=${picture.queries} asked=${kind} onChange=${setAsked} />
        <p class="hint">Bars: D0 outlined, D1 filled. Dots: neurons of one draw of signs (seed ${picture.seed}), filled where they fire.</p>
        ${picture.theorem && html`<p class="hint">${picture.theorem}</p>`}
      </div>
      <div class="mechanisms">
        ${picture.mechanisms.map((each) => html`<${Mechanism} key=${each.mechanism} found=${each} picture=${picture} asked=${kind} range=${range}
          colour=${colourOf(looks, each.mechanism)}>
          <${Chance} found=${each} path=${`/verdict/${encodeURIComponent(construction)}/${encodeURIComponent(each.mechanism)}${query(words, options)}`} />
        <//>`)}
        ${picture.refused.map((each) => html`<section key=${each.mechanism} class="mechanism refused">
          <h2>${each.mechanism}</h2><p>No picture here: ${each.reason}.</p></section>`)}
      </div>
    </div>`}
  </div>`;
}
