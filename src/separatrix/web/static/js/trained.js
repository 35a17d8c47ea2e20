// Trained evidence: the tasks, and the stored runs of each. The page itself trains nothing.

import { html, useEffect, useMemo, useState } from "./framework.js";
import { addressOf, commandOf, go } from "./address.js";
import { get, latest } from "./api.js";
import { forPeople } from "./format.js";
import { CopyButton, Progress } from "./parts.js";
import { Link, useSheet } from "./sheet.js";
import { Experiments } from "./trained-task.js";
import { Ledgers } from "./trained-ledgers.js";

const MECHANISMS = "softmax,identity-features:normalised=no";
const DEFAULT_STORE = "sqlite:///results.db";

// The command that trains two mechanisms on a task into the store of the page.
function trainingCommand(task, words, store) {
  return commandOf({ command: "learn", names: [task, MECHANISMS], words, options: [["store", store ?? DEFAULT_STORE]] });
}

// A document that is loaded once, and again when the server is back: { document, step, problem, cancel }.
export function useDocument(path, reachable) {
  const [state, setState] = useState({});
  const ask = useMemo(latest, []);
  useEffect(() => {
    setState({ step: { what: "loading" } });
    ask((signal) => get(path, { signal, step: (step) => setState({ step }) }))
      .then((document) => setState({ document }), (error) => error.name !== "AbortError" && setState({ problem: error.message }));
    return () => { ask(async () => null).catch(() => {}); };
  }, [path, reachable]);
  return { ...state, cancel: () => { ask(async () => null).catch(() => {}); setState({ problem: "Cancelled." }); } };
}

function Command({ line }) {
  return html`<span class="command-line"><code>${line}</code> <${CopyButton} text=${() => line} label="Copy" /></span>`;
}

export function View({ place, reachable }) {
  useSheet("/static/figures.css");
  useSheet("/static/trained.css");
  const [name] = place.names;
  const about = useDocument("/about", reachable).document;
  if (!about) return null;
  return html`<div class="trained">${name ? html`<${Task} key=${name} name=${name} place=${place} store=${about.store} reachable=${reachable} />` : html`<${Tasks} store=${about.store} reachable=${reachable} />`}</div>`;
}

function Tasks({ store, reachable }) {
  const overview = useDocument("/learn", reachable);
  const bounds = useDocument("/list/tasks", reachable);
  const boundsByName = new Map((bounds.document ?? []).map((row) => [row.name, row]));
  const tasks = overview.document?.tasks ?? [];
  const trained = tasks.filter((task) => task.runs);
  return html`
    <h1>Trained models between floor and ceiling</h1>
    <p>Every task has a ceiling, the best possible score, and a floor, the score of the best known shortcut without attention.
      Between them are the scores that a mechanism can express, by a proof or by constructed weights, and the scores of training.
      “Did not learn it here” does not mean “cannot”.</p>
    ${overview.problem && html`<p class="problem" role="alert">${overview.problem}</p>`}
    ${overview.document?.note && html`<p class="problem" role="alert">${overview.document.note}</p>`}
    ${overview.document && html`<p role="status">${trained.length ? `The store has runs of ${trained.map(({ name }) => name).join(", ")}.` : "No trained model is stored. "}
      ${!trained.length && html`The page does not train; this command does, in a minute or more${store ? "" : html`, and the page shows the result when started with <code>--store ${DEFAULT_STORE}</code>`}:<br /><${Command} line=${trainingCommand("needle", [["n", "64"]], store)} />`}</p>`}
    ${bounds.step && html`<${Progress} step=${{ ...bounds.step, what: "computing ceilings and floors on the test samples" }} />`}
    ${bounds.problem && html`<p class="problem" role="alert">${bounds.problem}</p>`}
    <ul class="tasks">${[...trained, ...tasks.filter((task) => !task.runs)].map((task) => html`<${Card} key=${task.name} task=${task} bounds=${boundsByName.get(task.name)} />`)}</ul>
    ${overview.document?.others.length > 0 && html`<p class="hint">Stored runs of unknown tasks: ${overview.document.others.join(", ")}.</p>`}
    <${Ledgers} reachable=${reachable} />`;
}

function Card({ task, bounds }) {
  const to = addressOf({ command: "learn", names: [task.name], words: [], options: [] });
  return html`<li class="card">
    <h2><${Link} to=${to}>${task.name}<//></h2>
    <p>${task.title}</p>
    <p class="hint">${task.runs ? html`<strong>${task.done.toLocaleString("en")} runs stored</strong>${task.runs > task.done ? `, ${task.runs - task.done} failed` : ""} · ` : ""}${task.score}
      ${bounds && (bounds.ceiling === null ? html` · real data: no ceiling is known` : html` · floor ${forPeople(bounds.floor, 4)}, ceiling ${forPeople(bounds.ceiling, 4)}`)}
      ${bounds?.mechanisms_with_witness.length > 0 && ` · constructed weights for ${bounds.mechanisms_with_witness.length} mechanisms`}</p>
  </li>`;
}

function Task({ name, place, store, reachable }) {
  const { document, step, problem, cancel } = useDocument(`/learn/${encodeURIComponent(name)}`, reachable);
  return html`
    <p><${Link} to="/learn">All tasks<//></p>
    <h1>${name}</h1>
    ${problem && html`<p class="problem" role="alert">${problem}</p>`}
    ${step && html`<${Progress} step=${step} onCancel=${cancel} />`}
    ${document && html`<${TaskDetails} document=${document} place=${place} store=${store} />`}`;
}

function TaskDetails({ document, place, store }) {
  const { task, proved, waiting, found: experiments } = document;
  const missing = !store ? "The page was started without a store." : waiting.length ? "No run of this task can be shown yet:" : "The store has no runs of this task.";
  const reasons = waiting.length > 0 && html`<ul>${waiting.map((reason) => html`<li key=${reason}>${reason}</li>`)}</ul>`;
  useEffect(() => {
    if (!experiments.length && place.names.length < 2) go({ ...place, names: [task.name, MECHANISMS] }, { replace: true });
  }, [document]);
  return html`
    <p><strong>${task.title}</strong></p>
    <p>${task.description}</p>
    <p class="hint">${task.provenance}. Scored by ${task.score}. ${task.ceiling === null ? "Real data: no ceiling is known, and the floor is measured during training."
      : `At its defaults (${Object.entries(task.defaults ?? {}).map(([name, value]) => `${name}=${value}`).join(" ")}): floor ${forPeople(task.floor, 4)}, ceiling ${forPeople(task.ceiling, 4)}.`}</p>
    ${experiments.length ? html`<${Experiments} experiments=${experiments} task=${task.name} place=${place} store=${store} />` : html`<p>${missing}</p>${reasons}<p>The page does not train; this command does: <${Command} line=${trainingCommand(task.name, [], store)} /></p>`}
    ${experiments.length > 0 && reasons && html`<h2>Stored runs that are not shown</h2>${reasons}`}
    <h2>Proved ceilings at the defaults</h2>
    ${proved.length ? html`<div class="scroll" tabindex="0" role="region" aria-label="Proved ceilings"><table>
      <thead><tr><th scope="col">Mechanism</th><th scope="col" class="number">At most</th><th scope="col">Proved for</th><th scope="col">Proof</th></tr></thead>
      <tbody>${proved.map(({ mechanism, score, models, proof }) => html`<tr key=${mechanism}><th scope="row">${mechanism}</th><td class="number">${forPeople(score, 4)}</td><td>${models}</td><td>${proof}</td></tr>`)}</tbody>
    </table></div>` : html`<p>No ceiling is proved for this task.</p>`}
    ${task.mechanisms_with_witness.length > 0 && html`<p>At the defaults there are constructed weights for ${task.mechanisms_with_witness.join(", ")}.</p>`}`;
}
