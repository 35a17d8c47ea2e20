// The card of a mechanism, or cards side by side: the description at once, verdicts of closed forms next, the rest as it is
// computed. Each mechanism has its own stream; a finished card is shown at once the next time.

import { html, useEffect, useId, useState } from "./framework.js";
import { get, Problem } from "./api.js";
import { go, query, splitMechanisms } from "./address.js";
import { Field, Progress, useLooks } from "./parts.js";
import { Link } from "./sheet.js";
import { optionOf, withOption } from "./mechanisms-parts.js";
import { Contract, Costs, Heading, Lattice, Likeness } from "./mechanisms-card-parts.js";
import { Standings } from "./mechanisms-standings.js";

const CALL_OPTIONS = ["width", "heads", "scale", "seed"];
const encode = (name) => encodeURIComponent(name).replace(/%(2C|3A|3D)/gi, (code) => decodeURIComponent(code));

// The state of one mechanism: { heading, verdicts, card, step, problem, isCancelled }.
function useMechanism(name, callOptions, reachable) {
  const [state, setState] = useState({});
  const [attempt, setAttempt] = useState(0);
  const [stream, setStream] = useState(null);
  const options = query([], callOptions);
  const update = (part) => setState((old) => (old.name === name && old.options === options ? { ...old, ...part } : { name, options, ...part }));
  useEffect(() => {
    if (!reachable || !name) return undefined;
    const controller = new AbortController();
    const { signal } = controller;
    const failed = (error) => { if (error instanceof Problem) update({ problem: error }); };
    update({ problem: null, isCancelled: false });
    const step = (progress) => update(progress.card ? { card: progress.card, step: progress } : { step: progress });
    const compute = () => {
      if (!options) get(`/atlas/verdicts${query([], [["mechanisms", name]])}`, { signal }).then((verdicts) => update({ verdicts }), failed);
      get(`/assess/${encode(name)}${options}`, { signal, step }).then((card) => update({ card, step: null }), (error) => {
        failed(error);
        if (!signal.aborted) update({ step: null });
      });
    };
    get(`/mechanism/${encode(name)}${options}`, { signal }).then((heading) => { update({ heading }); compute(); }, failed);
    setStream(controller);
    return () => controller.abort();
  }, [name, options, reachable, attempt]);
  const cancel = () => { stream?.abort(); update({ step: null, isCancelled: true }); };
  const current = state.name === name && state.options === options ? state : {};
  return { mechanism: name, ...current, cancel, resume: () => setAttempt(attempt + 1) };
}

// A component for each mechanism, because the number of hooks in a component must not change.
function Stream({ name, callOptions, reachable, onChange }) {
  const state = useMechanism(name, callOptions, reachable);
  useEffect(() => onChange(name, state), [state.heading, state.verdicts, state.card, state.step, state.problem, state.isCancelled]);
  return null;
}

export function CardView({ place, reachable }) {
  const [mechanism] = place.names;
  const against = splitMechanisms(optionOf(place, "against"));
  const names = [mechanism, ...against.filter((name) => name !== mechanism)];
  const callOptions = place.options.filter(([name]) => CALL_OPTIONS.includes(name));
  const [states, setStates] = useState({});
  const onChange = (name, state) => setStates((old) => ({ ...old, [name]: state }));
  const cards = names.map((name) => states[name] ?? { mechanism: name });
  const usable = cards.filter(({ heading, problem }) => heading || !problem);
  const columns = useColumns(reachable);
  useEffect(() => window.scrollTo(0, 0), [mechanism]);
  return html`
    ${names.map((name, i) => html`<${Stream} key=${name} name=${name} callOptions=${i ? [] : callOptions} reachable=${reachable} onChange=${onChange} />`)}
    <p class="back"><${Link} to="/atlas">All mechanisms<//></p>
    <h1>Card of ${names.join(" and ")}</h1>
    <${Choose} place=${place} mechanism=${mechanism} problems=${cards.map(({ problem }) => problem)} />
    <div class=${`cards of-${Math.min(names.length, 3)}`}>
      ${cards.map((state, i) => html`<section key=${names[i]} aria-label=${`${names[i]} in short`}>
        <${Heading} state=${state} place=${place} isFirst=${i === 0} />
        <${Working} state=${state} />
      </section>`)}
    </div>
    ${usable.length > 0 && html`
      <${Standings} cards=${usable} columns=${columns} />
      <${Contract} cards=${usable} />
      <${Costs} cards=${usable} />
      <${Likeness} cards=${usable} />
      <${Lattice} cards=${usable} />`}`;
}

let cachedColumns = null;

// The constructions at their reference points.
function useColumns(reachable) {
  const [columns, setColumns] = useState(cachedColumns ?? []);
  useEffect(() => {
    if (cachedColumns || !reachable) return;
    get("/atlas/table").then((table) => { cachedColumns = table.constructions; setColumns(cachedColumns); }, () => {});
  }, [reachable]);
  return columns;
}

function Choose({ place, mechanism, problems }) {
  const looks = useLooks();
  const id = useId();
  const [first, ...others] = problems;
  const nameProblem = first && (first.field?.startsWith("--") && !["--mechanism", "--against"].includes(first.field) ? null : first.message);
  const rename = (name) => name.trim() && go({ ...place, names: [name.trim()], options: place.options.filter(([option]) => !CALL_OPTIONS.includes(option)) });
  return html`<div class="controls">
    <datalist id=${id}>${(looks ?? []).map(({ spelled, family }) => html`<option key=${spelled} value=${spelled}>${family}</option>`)}</datalist>
    <${Field} label="Mechanism" value=${mechanism} list=${id} onChange=${rename} problem=${nameProblem} />
    <${Field} label="Compare with" value=${optionOf(place, "against")} list=${id} placeholder="linear,delta"
      onChange=${(names) => go(withOption(place, "against", names.trim()))} problem=${others.find(Boolean)?.message} />
    ${first && !nameProblem && html`<p class="problem" role="alert">${first.message}</p>`}
  </div>`;
}

function Working({ state }) {
  const { card, step, isCancelled, problem } = state;
  if (problem) return null;
  return html`
    <p class="said-in-short" aria-live="polite">${card?.reading ?? ""}</p>
    ${step && html`<div class="working"><${Progress} step=${step.total ? step : null} onCancel=${state.cancel} /><p class="hint">${step.what ?? ""}</p></div>`}
    ${isCancelled && !card?.finished && html`<p>Cancelled. <button type="button" class="quiet" onClick=${state.resume}>Compute the card</button></p>`}`;
}
