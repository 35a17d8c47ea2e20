// The two ledgers: predictions without training against trained scores, and published numbers beside ours.

import { html, useState } from "./framework.js";
import { forPeople } from "./format.js";
import { Progress } from "./parts.js";
import { useDocument } from "./trained.js";

export function Ledgers({ reachable }) {
  return html`
    <${Ledger} title="Predictions without training" about="Three quantities that need no training, each compared with the scores of the stored runs, with its wrong predictions."
      path="/ledger/predictions" reachable=${reachable} show=${(predictions) => html`<${Predictions} predictions=${predictions} />`} />
    <${Ledger} title="Published numbers beside ours" about="Numbers from papers, with the results of the stored runs by the same protocol."
      path="/ledger/published" reachable=${reachable} show=${(ledger) => html`<${Published} ledger=${ledger} />`} />`;
}

function Ledger({ title, about, path, reachable, show }) {
  const [open, setOpen] = useState(false);
  return html`<section><h2>${title}</h2><p>${about}</p>
    ${open ? html`<${LedgerContent} path=${path} reachable=${reachable} show=${show} onCancel=${() => setOpen(false)} />` : html`<button type="button" class="quiet" onClick=${() => setOpen(true)}>Show the ledger</button>`}
  </section>`;
}

function LedgerContent({ path, reachable, show, onCancel }) {
  const { document, step, problem } = useDocument(path, reachable);
  if (problem) return html`<p class="problem" role="alert">${problem}</p>`;
  return step ? html`<${Progress} step=${step} onCancel=${onCancel} />` : document ? show(document) : null;
}

function describeCorrelation({ correlation: r, interval }) {
  if (r === null) return "too few, or all alike";
  return interval ? `${r.toFixed(2)} [${interval[0].toFixed(2)}, ${interval[1].toFixed(2)}]` : `${r.toFixed(2)}, ranks all equal: no interval`;
}

function Predictions({ predictions }) {
  if (!predictions.length) return html`<p>No trained model is stored, so there is nothing to compare a prediction with.</p>`;
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Predictions"><table>
      <thead><tr><th scope="col">Prediction</th><th scope="col">Definition</th><th scope="col" class="number">Pairs</th><th scope="col">Rank correlation</th></tr></thead>
      <tbody>${predictions.map((prediction) => html`<tr key=${prediction.name}><th scope="row">${prediction.name}</th><td>${prediction.what}</td><td class="number">${prediction.pairs.length}</td><td>${describeCorrelation(prediction)}</td></tr>`)}</tbody>
    </table></div>
    ${predictions.map(({ name, misses, pairs }) => html`<div key=${name}>
      ${misses.length > 0 && html`<h3>Wrong predictions of ${name}</h3><ul>${misses.map((miss) => html`<li key=${miss}>${miss}</li>`)}</ul>`}
      <details><summary>All ${pairs.length} pairs of ${name}</summary><ul>${pairs.map((pair, i) => html`<li key=${i}>${pair.mechanism} on ${pair.task}: predicted ${forPeople(pair.predicted, 4)}, trained ${forPeople(Math.abs(pair.trained), 4)}</li>`)}</ul></details>
    </div>`)}`;
}

function Published({ ledger }) {
  const counts = Object.entries(ledger.counts).filter(([, count]) => count).map(([word, count]) => `${count} ${word}`).join(", ");
  const describeOurs = ({ ours, interval }) => (ours === null ? "–" : `${forPeople(ours, 4)}${interval ? ` [${forPeople(interval[0], 4)}, ${forPeople(interval[1], 4)}]` : ""}`);
  return html`<p>${counts}.</p><p class="hint">${ledger.rule}</p>
    <div class="scroll" tabindex="0" role="region" aria-label="Published numbers"><table>
      <thead><tr><th scope="col">Statement</th><th scope="col" class="number">Published</th><th scope="col" class="number">Ours</th><th scope="col">Verdict</th></tr></thead>
      <tbody>${ledger.entries.map((entry) => html`<tr key=${entry.name}>
        <td>${entry.states}<br /><span class="hint">${entry.source}${entry.differs_in ? `; ours differs in: ${entry.differs_in}` : ""}</span></td>
        <td class="number">${entry.published === null ? "–" : forPeople(entry.published, 4)}</td>
        <td class="number">${describeOurs(entry)}</td>
        <td><strong>${entry.verdict}</strong>: ${entry.why}${entry.ours === null && entry.command ? html`<br /><code>${entry.command}</code>` : ""}</td></tr>`)}</tbody>
    </table></div>`;
}
