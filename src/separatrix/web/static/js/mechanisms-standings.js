// The verdicts of mechanisms: a row for each construction, columns for each mechanism.

import { html } from "./framework.js";
import { forPeople } from "./format.js";
import { Link } from "./sheet.js";
import { questionPlace } from "./mechanisms-parts.js";
import { blindFrom, growthOf, NOT_COMPUTED, probabilityOf, wordOf } from "./mechanisms-words.js";

const MARKS = { certified: "≡", closed: "=", sampled: "~" };

// The standing of the card, or the verdict of a closed form until the card has it.
function standingOf({ card, verdicts }, column) {
  const standing = card?.constructions[column.name];
  if (standing) return standing.verdict === "none" ? standing : { ...standing, low: standing.interval[0], high: standing.interval[1] };
  return verdicts?.find(({ construction }) => construction === column.name);
}

const orMissing = (value) => value ?? html`<span class="faint">${NOT_COMPUTED}</span>`;

function Cells({ state, column, columns, isWide }) {
  const standing = standingOf(state, column);
  if (!standing) return html`<td class="unknown" colspan=${isWide ? 6 : 5}>${NOT_COMPUTED}</td>`;
  if (standing.verdict === "none") return html`<td class="none" colspan=${isWide ? 6 : 5}>no answer: ${standing.evidence}</td>`;
  const isComplete = "margin_law" in standing;
  return html`
    <td class=${`verdict ${standing.verdict}`}><${Link} to=${questionPlace(state.mechanism, column, columns)} title="See it happen">${wordOf(standing.verdict)}<//></td>
    <td class="number" title=${`${probabilityOf(standing)}; ${standing.kind}: ${standing.evidence}`}><span aria-hidden="true">${MARKS[standing.kind]}</span><span class="visually-hidden">${standing.kind}</span> ${isWide ? probabilityOf(standing) : forPeople(standing.distinguish)}</td>
    <td class="number">${standing.bits === null ? "–" : forPeople(standing.bits, 3)}</td>
    <td class="number" title=${isComplete && standing.margin_exponent === null ? standing.margin_law : undefined}>${orMissing(isComplete ? growthOf(standing) : null)}</td>
    <td class="number">${orMissing(isComplete ? blindFrom(standing) : null)}</td>
    ${isWide && html`<td class="evidence">${standing.kind}: ${standing.evidence}</td>`}`;
}

// The constructions on which two mechanisms have different verdicts, as far as both are known.
function Difference({ cards, columns }) {
  const pairs = columns.map((column) => ({ name: column.name, words: cards.map((state) => standingOf(state, column)?.verdict) })).filter(({ words }) => words.every(Boolean));
  if (!pairs.length) return null;
  const groups = new Map();
  for (const { name, words } of pairs.filter(({ words: [a, b] }) => a !== b)) {
    const key = cards.map((state, i) => `${state.mechanism} ${wordOf(words[i])}`).join(", ");
    groups.set(key, [...(groups.get(key) ?? []), name]);
  }
  const count = [...groups.values()].flat().length;
  return html`<p>Their verdicts differ on ${count} of ${pairs.length} constructions.</p>
    <ul class="difference">${[...groups].map(([key, names]) => html`<li key=${key}>${key}: ${names.join("; ")}</li>`)}</ul>`;
}

export function Standings({ cards, columns }) {
  if (!columns.length) return null;
  const isWide = cards.length === 1;
  const span = isWide ? 6 : 5;
  return html`<h2>Verdicts</h2>
    <p class="hint">Each construction at its reference point. P(tells apart) is ≡ certified, = closed form or ~ sampled; bits are the significant bits
      that tell the labels apart; the growth of the margin with n is fitted; this reader is blind “from n” on, ≈ if sampled.</p>
    ${cards.length === 2 && html`<${Difference} cards=${cards} columns=${columns} />`}
    <div class="standings-region" role="region" aria-label="Verdicts" tabindex="0">
      <table class="standings">
        <thead>
          ${!isWide && html`<tr><td></td>${cards.map(({ mechanism }) => html`<th key=${mechanism} scope="colgroup" colspan=${span}>${mechanism}</th>`)}</tr>`}
          <tr><th scope="col">construction</th>${cards.map(() => html`
            <th scope="col">verdict</th><th scope="col" class="number">P(tells apart)</th><th scope="col" class="number">bits</th>
            <th scope="col" class="number">margin grows</th><th scope="col" class="number">blind from n</th>
            ${isWide && html`<th scope="col">evidence</th>`}`)}</tr>
        </thead>
        <tbody>${columns.map((column) => html`<tr key=${column.name}>
          <th scope="row" title=${column.title}>${column.name}</th>
          ${cards.map((state) => html`<${Cells} state=${state} column=${column} columns=${columns} isWide=${isWide} />`)}
        </tr>`)}</tbody>
      </table>
    </div>`;
}
