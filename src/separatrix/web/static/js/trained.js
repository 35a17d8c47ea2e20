// Trained evidence: the tasks, and what the store's runs show of each. Nothing is trained from here.

import { html, useEffect, useMemo, useState } from "./framework.js";
import { addressOf, commandOf, go } from "./address.js";
import { get, latest } from "./api.js";
import { CopyButton, Progress, forPeople } from "./parts.js";
import { Link, useSheet } from "./sheet.js";
import { Experiments } from "./trained-task.js";
import { Ledgers } from "./trained-ledgers.js";

const TRAINED = "softmax,identity-features:normalised=no";
const USUAL_STORE = "sqlite:///results.db";

// The command that trains what a page without runs offers, into the store that the page shows.
function training(task, words, store) {
  return commandOf({ command: "learn", names: [task, TRAINED], words, options: [["store", store ?? USUAL_STORE]] });
}

// A document that is asked for once, and again when the server is back: { found, step, problem, cancel }.
export function useDocument(path, reachable) {
  const [state, setState] = useState({});
  const ask = useMemo(latest, []);
  useEffect(() => {
    setState({ step: { what: "looking" } });
    ask((signal) => get(path, { signal, step: (step) => setState({ step }) }))
      .then((found) => setState({ found }), (error) => error.name !== "AbortError" && setState({ problem: error.message }));
    return () => { ask(async () => null).catch(() => {}); };
  }, [path, reachable]);
  return { ...state, cancel: () => { ask(async () => null).catch(() => {}); setState({ problem: "Cancelled." }); } };
}

function Command({ line }) {
  return html`<span class="command-line"><code>${line}</code> <${CopyButton} text=${() => line} label="Copy" /></span>`;
}

export function View({ place, reachable }) {
  useSheet("/static/trained.css");
  const [name] = place.names;
  const about = useDocument("/about", reachable).found;
  if (!about) return null;
  return html`<div class="trained">${name ? html`<${Task} key=${name} name=${name} place=${place} store=${about.store} reachable=${reachable} />` : html`<${Tasks} store=${about.store} reachable=${reachable} />`}</div>`;
}

function Tasks({ store, reachable }) {
  const overview = useDocument("/learn", reachable);
  const bounds = useDocument("/list/tasks", reachable);
  const known = new Map((bounds.found ?? []).map((each) => [each.name, each]));
  const tasks = overview.found?.tasks ?? [];
  const trained = tasks.filter((each) => each.runs);
  return html`
    <h1>What training reaches, between a floor and a ceiling</h1>
    <p>Every task has a ceiling, the best score that anything can have, and a floor, what the best known shortcut scores without
      attention. Between them stands what a mechanism can express, by a proof or by weights that are written down, and what training found.
      “Did not learn it here” is not “cannot”.</p>
    ${overview.problem && html`<p class="problem" role="alert">${overview.problem}</p>`}
    ${overview.found?.note && html`<p class="problem" role="alert">${overview.found.note}</p>`}
    ${overview.found && html`<p role="status">${trained.length ? `The store has runs of ${trained.map((each) => each.name).join(", ")}.` : "Nothing is trained in a store that this page shows. "}
      ${!trained.length && html`The page never trains; this does, in a minute or more${store ? "" : html`, and the page shows it when started with <code>--store ${USUAL_STORE}</code>`}:<br /><${Command} line=${training("needle", [["n", "64"]], store)} />`}</p>`}
    ${bounds.step && html`<${Progress} step=${{ ...bounds.step, what: "computing ceilings and floors on the samples to test with" }} />`}
    ${bounds.problem && html`<p class="problem" role="alert">${bounds.problem}</p>`}
    <ul class="tasks">${[...trained, ...tasks.filter((each) => !each.runs)].map((each) => html`<${Card} key=${each.name} task=${each} bounds=${known.get(each.name)} />`)}</ul>
    ${overview.found?.others.length > 0 && html`<p class="hint">Runs of tasks that are not known here: ${overview.found.others.join(", ")}.</p>`}
    <${Ledgers} reachable=${reachable} />`;
}

function Card({ task, bounds }) {
  const to = addressOf({ command: "learn", names: [task.name], words: [], options: [] });
  return html`<li class="card">
    <h2><${Link} to=${to}>${task.name}<//></h2>
    <p>${task.title}</p>
    <p class="hint">${task.runs ? html`<strong>${task.done.toLocaleString("en")} runs stored</strong>${task.runs > task.done ? `, ${task.runs - task.done} failed` : ""} · ` : ""}${task.score}
      ${bounds && (bounds.ceiling === null ? html` · real data: no ceiling is known` : html` · floor ${forPeople(bounds.floor, 4)}, ceiling ${forPeople(bounds.ceiling, 4)}`)}
      ${bounds?.mechanisms_with_witness.length > 0 && ` · weights written down for ${bounds.mechanisms_with_witness.length} mechanisms`}</p>
  </li>`;
}

function Task({ name, place, store, reachable }) {
  const { found, step, problem, cancel } = useDocument(`/learn/${encodeURIComponent(name)}`, reachable);
  return html`
    <p><${Link} to="/learn">All tasks<//></p>
    <h1>${name}</h1>
    ${problem && html`<p class="problem" role="alert">${problem}</p>`}
    ${step && html`<${Progress} step=${step} onCancel=${cancel} />`}
    ${found && html`<${Shown} found=${found} place=${place} store=${store} />`}`;
}

function Shown({ found, place, store }) {
  const { task, proved, waiting } = found;
  const missing = !store ? "The page was started without a store." : waiting.length ? "Nothing of this task can be shown yet:" : "The store has no runs of this task.";
  const why = waiting.length > 0 && html`<ul>${waiting.map((each) => html`<li key=${each}>${each}</li>`)}</ul>`;
  useEffect(() => {
    if (!found.found.length && place.names.length < 2) go({ ...place, names: [task.name, TRAINED] }, { replace: true });
  }, [found]);
  return html`
    <p><strong>${task.title}</strong></p>
    <p>${task.description}</p>
    <p class="hint">${task.provenance}. Scored by ${task.score}. ${task.ceiling === null ? "Real data: no ceiling is known, and the floor is measured where it was trained."
      : `At its defaults (${Object.entries(task.defaults ?? {}).map(([name, value]) => `${name}=${value}`).join(" ")}): floor ${forPeople(task.floor, 4)}, ceiling ${forPeople(task.ceiling, 4)}.`}</p>
    ${found.found.length ? html`<${Experiments} found=${found.found} task=${task.name} place=${place} store=${store} />` : html`<p>${missing}</p>${why}<p>The page never trains; this does: <${Command} line=${training(task.name, [], store)} /></p>`}
    ${found.found.length > 0 && why && html`<h2>Stored, and not shown</h2>${why}`}
    <h2>What is proved at the defaults</h2>
    ${proved.length ? html`<div class="scroll" tabindex="0" role="region" aria-label="Proved ceilings"><table>
      <thead><tr><th scope="col">Mechanism</th><th scope="col" class="number">At best</th><th scope="col">Proved for</th><th scope="col">Proof</th></tr></thead>
      <tbody>${proved.map((each) => html`<tr key=${each.mechanism}><th scope="row">${each.mechanism}</th><td class="number">${forPeople(each.score, 4)}</td><td>${each.models}</td><td>${each.proof}</td></tr>`)}</tbody>
    </table></div>` : html`<p>No ceiling of a mechanism is proved for this task.</p>`}
    ${task.mechanisms_with_witness.length > 0 && html`<p>At the defaults weights are written down for ${task.mechanisms_with_witness.join(", ")}.</p>`}`;
}
