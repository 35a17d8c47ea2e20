// D0 beside D1 as tables of tokens, shaded by size, with differences marked.

import { html } from "./framework.js";
import { forPeople } from "./format.js";

export function shortNumber(value) {
  if (value === null) return "⋯";
  const size = Math.abs(value);
  if (size > 0.9995 && size < 1) return `${value < 0 ? "<−" : ">"}0.999`; // never rounded to certainty
  return forPeople(value, size < 0.01 ? 1 : size < 0.1 ? 2 : 3);
}

function heading(picture, name) {
  return picture.columns.length === 2 && picture.columns[0] === "logit" && name === "1" ? "value" : name;
}

function Cell({ value, isChanged, share }) {
  if (value === null) return html`<td class="out">⋯</td>`;
  return html`<td class=${isChanged ? "changed" : value === 0 ? "zero" : ""} style=${{ "--share": share }}>
    ${shortNumber(value)}${isChanged && html`<span class="visually-hidden"> (differs)</span>`}</td>`;
}

function Table({ picture, label, largest }) {
  const rows = picture.tokens[label];
  return html`<table class="tokens" aria-label=${`D${label}`}>
    <thead><tr><th scope="col">token</th>${picture.columns.map((name, place) => html`<th scope="col" key=${place}>${heading(picture, name)}</th>`)}</tr></thead>
    <tbody>${rows.map((row) => html`<tr key=${row.tokens}>
      <th scope="row" class=${picture.difference === "counts of tokens differ" ? "changed" : ""}>${row.tokens}</th>
      ${row.cells.length
        ? row.cells.map((value, place) => html`<${Cell} key=${place} value=${value} isChanged=${row.changed[place]}
            share=${Math.sqrt(Math.abs(value ?? 0) / (largest[picture.columns[place] === "logit" ? 0 : 1] || 1))} />`)
        : html`<td class="out" colspan=${picture.columns.length}>⋮ <span class="visually-hidden">left out</span></td>`}
    </tr>`)}</tbody>
  </table>`;
}

export function Tokens({ picture }) {
  const sizes = (isLogit) => picture.tokens.flat().flatMap((row) => row.cells.map((value, place) => ((picture.columns[place] === "logit") === isLogit ? Math.abs(value ?? 0) : 0)));
  const largest = [Math.max(0, ...sizes(true)), Math.max(0, ...sizes(false))];
  const units = [
    picture.columns[0] === "logit" ? `logits in ${picture.logit_unit || "plain numbers"}` : "",
    picture.unit ? `values of tokens in ${picture.unit}` : "",
  ].filter(Boolean).join(", ");
  return html`<section class="token-tables" aria-label="Tokens of D0 and D1">
    ${[0, 1].map((label) => html`<div key=${label}>
      <h2>D${label}${label === 1 && html` <span class="hint">marked: ${picture.difference}</span>`}</h2>
      <div class="scroll" tabindex="0" role="group" aria-label=${`The tokens of D${label}`}><${Table} picture=${picture} label=${label} largest=${largest} /></div>
    </div>`)}
    <p class="hint">Equal tokens that follow each other share a row${units && `; ${units}`}.</p>
  </section>`;
}
