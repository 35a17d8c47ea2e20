// The card of a mechanism, or cards side by side: what is known at once, what closed forms answer, and the rest as
// it is computed. Each mechanism has its own stream; a card that was finished is shown at once the next time.

import { html, useEffect, useId, useState } from "./framework.js";
import { get, Problem } from "./api.js";
import { go, query, splitMechanisms } from "./address.js";
import { Field, Progress, useLooks } from "./parts.js";
import { Link } from "./sheet.js";
import { optionOf, withOption } from "./mechanisms-parts.js";
import { Contract, Costs, Heading, Lattice, Likeness } from "./mechanisms-card-parts.js";
import { Standings } from "./mechanisms-standings.js";

const CALLED = ["width", "heads", "scale", "seed"];
const spell = (name) => encodeURIComponent(name).replace(/%(2C|3A|3D)/gi, (code) => decodeURIComponent(code));

// What is known of one mechanism so far: { heading, verdicts, card, step, problem, cancelled }.
function useMechanism(name, called, reachable) {
  const [found, setFound] = useState({});
  const [asked, setAsked] = useState(0);
  const [stream, setStream] = useState(null);
  const how = query([], called);
  const more = (part) => setFound((old) => (old.name === name && old.how === how ? { ...old, ...part } : { name, how, ...part }));
  useEffect(() => {
    if (!reachable || !name) return undefined;
    const ending = new AbortController();
    const { signal } = ending;
    const failed = (error) => { if (error instanceof Problem) more({ problem: error }); };
    more({ problem: null, cancelled: false });
    const step = (said) => more(said.card ? { card: said.card, step: said } : { step: said });
    const compute = () => {
      if (!how) get(`/atlas/verdicts${query([], [["mechanisms", name]])}`, { signal }).then((verdicts) => more({ verdicts }), failed);
      get(`/assess/${spell(name)}${how}`, { signal, step }).then((card) => more({ card, step: null }), (error) => {
        failed(error);
        if (!signal.aborted) more({ step: null });
      });
    };
    get(`/mechanism/${spell(name)}${how}`, { signal }).then((heading) => { more({ heading }); compute(); }, failed);
    setStream(ending);
    return () => ending.abort();
  }, [name, how, reachable, asked]);
  const cancel = () => { stream?.abort(); more({ step: null, cancelled: true }); };
  const current = found.name === name && found.how === how ? found : {};
  return { mechanism: name, ...current, cancel, goOn: () => setAsked(asked + 1) };
}

// As many streams as there are mechanisms; hooks need a number that stays, so each has a component of its own.
function Stream({ name, called, reachable, onChange }) {
  const found = useMechanism(name, called, reachable);
  useEffect(() => onChange(name, found), [found.heading, found.verdicts, found.card, found.step, found.problem, found.cancelled]);
  return null;
}

export function CardView({ place, reachable }) {
  const [mechanism] = place.names;
  const against = splitMechanisms(optionOf(place, "against"));
  const names = [mechanism, ...against.filter((name) => name !== mechanism)];
  const called = place.options.filter(([name]) => CALLED.includes(name));
  const [all, setAll] = useState({});
  const onChange = (name, found) => setAll((old) => ({ ...old, [name]: found }));
  const cards = names.map((name) => all[name] ?? { mechanism: name });
  const found = cards.filter((each) => each.heading || !each.problem);
  const columns = useColumns(reachable);
  useEffect(() => window.scrollTo(0, 0), [mechanism]);
  return html`
    ${names.map((name, i) => html`<${Stream} key=${name} name=${name} called=${i ? [] : called} reachable=${reachable} onChange=${onChange} />`)}
    <p class="back"><${Link} to="/atlas">All mechanisms<//></p>
    <h1>Card of ${names.join(" beside ")}</h1>
    <${Choose} place=${place} mechanism=${mechanism} problems=${cards.map((each) => each.problem)} />
    <div class=${`cards of-${Math.min(names.length, 3)}`}>
      ${cards.map((each, i) => html`<section key=${names[i]} aria-label=${`${names[i]} in short`}>
        <${Heading} found=${each} place=${place} first=${i === 0} />
        <${Working} found=${each} />
      </section>`)}
    </div>
    ${found.length > 0 && html`
      <${Standings} cards=${found} columns=${columns} />
      <${Contract} cards=${found} />
      <${Costs} cards=${found} />
      <${Likeness} cards=${found} />
      <${Lattice} cards=${found} />`}`;
}

let known = null;

// The constructions, at their reference points.
function useColumns(reachable) {
  const [columns, setColumns] = useState(known ?? []);
  useEffect(() => {
    if (known || !reachable) return;
    get("/atlas/table").then((table) => { known = table.constructions; setColumns(known); }, () => {});
  }, [reachable]);
  return columns;
}

function Choose({ place, mechanism, problems }) {
  const looks = useLooks();
  const id = useId();
  const [first, ...others] = problems;
  const wrong = first && (first.field?.startsWith("--") && !["--mechanism", "--against"].includes(first.field) ? null : first.message);
  const rename = (name) => name.trim() && go({ ...place, names: [name.trim()], options: place.options.filter(([each]) => !CALLED.includes(each)) });
  return html`<div class="controls">
    <datalist id=${id}>${(looks ?? []).map((each) => html`<option key=${each.spelled} value=${each.spelled}>${each.family}</option>`)}</datalist>
    <${Field} label="Mechanism" value=${mechanism} list=${id} onChange=${rename} problem=${wrong} />
    <${Field} label="Beside" value=${optionOf(place, "against")} list=${id} placeholder="none; as linear,delta"
      onChange=${(names) => go(withOption(place, "against", names.trim()))} problem=${others.find(Boolean)?.message} />
    ${first && !wrong && html`<p class="problem" role="alert">${first.message}</p>`}
  </div>`;
}

function Working({ found }) {
  const { card, step, cancelled, problem } = found;
  if (problem) return null;
  const sentence = card?.reading ?? "";
  return html`
    <p class="said-in-short" aria-live="polite">${sentence}</p>
    ${step && html`<div class="working"><${Progress} step=${step.total ? step : null} onCancel=${found.cancel} /><p class="hint">${step.what ?? ""}</p></div>`}
    ${cancelled && !card?.finished && html`<p>Stopped before its end. <button type="button" class="quiet" onClick=${found.goOn}>Compute the card</button></p>`}`;
}
