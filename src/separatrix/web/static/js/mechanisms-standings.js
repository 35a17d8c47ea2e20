// What mechanisms tell apart: a row for each construction, columns for each mechanism.

import { html } from "./framework.js";
import { forPeople } from "./parts.js";
import { Link } from "./sheet.js";
import { questionPlace } from "./mechanisms-parts.js";
import { blindFrom, growthOf, NOT_COMPUTED, probabilityOf, wordOf } from "./mechanisms-words.js";

const MARKS = { certified: "≡", closed: "=", sampled: "~" };

// What is known of a construction: the card's standing, or what a closed form answers until it is there.
function standingOf({ card, verdicts }, column) {
  const whole = card?.constructions[column.name];
  if (whole) return whole.verdict === "none" ? whole : { ...whole, low: whole.interval[0], high: whole.interval[1] };
  return verdicts?.find((each) => each.construction === column.name);
}

const shown = (value) => value ?? html`<span class="faint">${NOT_COMPUTED}</span>`;

function Cells({ found, column, columns, wide }) {
  const standing = standingOf(found, column);
  if (!standing) return html`<td class="unknown" colspan=${wide ? 6 : 5}>${NOT_COMPUTED}</td>`;
  if (standing.verdict === "none") return html`<td class="none" colspan=${wide ? 6 : 5}>no answer: ${standing.evidence}</td>`;
  const whole = "margin_law" in standing;
  return html`
    <td class=${`verdict ${standing.verdict}`}><${Link} to=${questionPlace(found.mechanism, column, columns)} title="See it happen">${wordOf(standing.verdict)}<//></td>
    <td class="number" title=${`${probabilityOf(standing)}; ${standing.kind}: ${standing.evidence}`}><span aria-hidden="true">${MARKS[standing.kind]}</span><span class="visually-hidden">${standing.kind}</span> ${wide ? probabilityOf(standing) : forPeople(standing.distinguish)}</td>
    <td class="number">${standing.bits === null ? "–" : forPeople(standing.bits, 3)}</td>
    <td class="number" title=${whole && standing.margin_exponent === null ? standing.margin_law : undefined}>${shown(whole ? growthOf(standing) : null)}</td>
    <td class="number">${shown(whole ? blindFrom(standing) : null)}</td>
    ${wide && html`<td class="evidence">${standing.kind}: ${standing.evidence}</td>`}`;
}

// On which constructions two mechanisms have different verdicts, as far as both are known.
function Difference({ cards, columns }) {
  const both = columns.map((column) => ({ name: column.name, words: cards.map((each) => standingOf(each, column)?.verdict) })).filter(({ words }) => words.every(Boolean));
  const groups = new Map();
  for (const { name, words } of both.filter(({ words: [one, other] }) => one !== other)) {
    const said = cards.map((each, i) => `${each.mechanism} ${wordOf(words[i])}`).join(", ");
    groups.set(said, [...(groups.get(said) ?? []), name]);
  }
  if (!both.length) return null;
  const differ = [...groups.values()].flat().length;
  return html`<p>Their verdicts differ on ${differ} of ${both.length} constructions.</p>
    <ul class="difference">${[...groups].map(([said, names]) => html`<li key=${said}>${said}: ${names.join("; ")}</li>`)}</ul>`;
}

export function Standings({ cards, columns }) {
  if (!columns.length) return null;
  const wide = cards.length === 1;
  const span = wide ? 6 : 5;
  return html`<h2>What it tells apart</h2>
    <p class="hint">Each construction at its reference point. P(tells apart) is ≡ certified, = closed form or ~ sampled; bits are those needed to tell
      the labels apart; the margin's growth with n is fitted; “blind from n” is where this reader goes blind, ≈ where it was sampled.</p>
    ${cards.length === 2 && html`<${Difference} cards=${cards} columns=${columns} />`}
    <div class="standings-region" role="region" aria-label="What it tells apart" tabindex="0">
      <table class="standings">
        <thead>
          ${!wide && html`<tr><td></td>${cards.map((each) => html`<th key=${each.mechanism} scope="colgroup" colspan=${span}>${each.mechanism}</th>`)}</tr>`}
          <tr><th scope="col">construction</th>${cards.map((each) => html`
            <th scope="col">verdict</th><th scope="col" class="number">P(tells apart)</th><th scope="col" class="number">bits</th>
            <th scope="col" class="number">margin grows</th><th scope="col" class="number">blind from n</th>
            ${wide && html`<th scope="col">evidence</th>`}`)}</tr>
        </thead>
        <tbody>${columns.map((column) => html`<tr key=${column.name}>
          <th scope="row" title=${column.title}>${column.name}</th>
          ${cards.map((found) => html`<${Cells} found=${found} column=${column} columns=${columns} wide=${wide} />`)}
        </tr>`)}</tbody>
      </table>
    </div>`;
}
