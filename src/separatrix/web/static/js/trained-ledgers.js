// The two ledgers: what the exact side predicts against what was trained, and published numbers beside ours.

import { html, useState } from "./framework.js";
import { Progress, forPeople } from "./parts.js";
import { useDocument } from "./trained.js";

export function Ledgers({ reachable }) {
  return html`
    <${Ledger} title="What the exact side predicts" about="Three quantities that need no training, each held against what the store's runs reached, with its misses by name."
      path="/ledger/predictions" reachable=${reachable} show=${(found) => html`<${Predictions} found=${found} />`} />
    <${Ledger} title="Published numbers beside ours" about="Numbers of papers, with what the store has measured of them by the same protocol."
      path="/ledger/published" reachable=${reachable} show=${(found) => html`<${Published} found=${found} />`} />`;
}

function Ledger({ title, about, path, reachable, show }) {
  const [open, setOpen] = useState(false);
  return html`<section><h2>${title}</h2><p>${about}</p>
    ${open ? html`<${Opened} path=${path} reachable=${reachable} show=${show} onCancel=${() => setOpen(false)} />` : html`<button type="button" class="quiet" onClick=${() => setOpen(true)}>Show the ledger</button>`}
  </section>`;
}

function Opened({ path, reachable, show, onCancel }) {
  const { found, step, problem } = useDocument(path, reachable);
  if (problem) return html`<p class="problem" role="alert">${problem}</p>`;
  return step ? html`<${Progress} step=${step} onCancel=${onCancel} />` : found ? show(found) : null;
}

function correlation({ correlation: r, interval }) {
  if (r === null) return "too few, or all alike";
  return interval ? `${r.toFixed(2)} [${interval[0].toFixed(2)}, ${interval[1].toFixed(2)}]` : `${r.toFixed(2)}, ranks all equal: no interval`;
}

function Predictions({ found }) {
  if (!found.length) return html`<p>Nothing is trained in the store, so there is nothing to hold a prediction against.</p>`;
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Predictions"><table>
      <thead><tr><th scope="col">Prediction</th><th scope="col">By</th><th scope="col" class="number">Pairs</th><th scope="col">Rank correlation</th></tr></thead>
      <tbody>${found.map((each) => html`<tr key=${each.name}><th scope="row">${each.name}</th><td>${each.what}</td><td class="number">${each.pairs.length}</td><td>${correlation(each)}</td></tr>`)}</tbody>
    </table></div>
    ${found.map((each) => html`<div key=${each.name}>
      ${each.misses.length > 0 && html`<h3>Where ${each.name} said otherwise</h3><ul>${each.misses.map((miss) => html`<li key=${miss}>${miss}</li>`)}</ul>`}
      <details><summary>All ${each.pairs.length} pairs of ${each.name}</summary><ul>${each.pairs.map((pair, i) => html`<li key=${i}>${pair.mechanism} on ${pair.task}: predicted ${forPeople(pair.predicted, 4)}, trained ${forPeople(Math.abs(pair.trained), 4)}</li>`)}</ul></details>
    </div>`)}`;
}

function Published({ found }) {
  const counts = Object.entries(found.counts).filter(([, count]) => count).map(([word, count]) => `${count} ${word}`).join(", ");
  return html`<p>${counts}.</p><p class="hint">${found.rule}</p>
    <div class="scroll" tabindex="0" role="region" aria-label="Published numbers"><table>
      <thead><tr><th scope="col">What is stated</th><th scope="col" class="number">Published</th><th scope="col" class="number">Ours</th><th scope="col">Verdict</th></tr></thead>
      <tbody>${found.entries.map((each) => html`<tr key=${each.name}>
        <td>${each.states}<br /><span class="hint">${each.source}${each.differs_in ? `; ours differs in: ${each.differs_in}` : ""}</span></td>
        <td class="number">${each.published === null ? "–" : forPeople(each.published, 4)}</td>
        <td class="number">${each.ours === null ? "–" : `${forPeople(each.ours, 4)}${each.interval ? ` [${forPeople(each.interval[0], 4)}, ${forPeople(each.interval[1], 4)}]` : ""}`}</td>
        <td><strong>${each.verdict}</strong>: ${each.why}${each.ours === null && each.command ? html`<br /><code>${each.command}</code>` : ""}</td></tr>`)}</tbody>
    </table></div>`;
}
