// The parts of a card besides its verdicts: description, contract, cost, nearest mechanisms, special cases.

import { html, useCallback } from "./framework.js";
import { forPeople } from "./format.js";
import { colourOf, useLooks } from "./parts.js";
import { CostPlot } from "./mechanisms-cost-plot.js";
import { Link } from "./sheet.js";
import { cardPlace, withOption } from "./mechanisms-parts.js";
import { lengthOf, NOT_COMPUTED } from "./mechanisms-words.js";

export function Heading({ state, place, isFirst }) {
  const looks = useLooks();
  const { heading, mechanism } = state;
  if (!heading) return html`<h2>${mechanism}</h2>`;
  const { listed, calling } = heading;
  return html`
    <h2><span class="swatch" style=${{ background: colourOf(looks, mechanism) }} aria-hidden="true"></span>${mechanism}</h2>
    ${calling.map((line, i) => html`<p key=${line} class=${i ? "" : "scale"}>${line}${isFirst && line.includes("--scale sqrt") && html` <${Link} to=${withOption(place, "scale", "sqrt")}>Undo it<//>`}</p>`)}
    <p class="formula"><code>${listed.formula}</code></p>
    <dl class="about">
      <dt>family</dt><dd>${listed.family}</dd>
      ${listed.source && html`<dt>source</dt><dd>${listed.source}</dd>`}
      ${listed.about && html`<dt>about</dt><dd>${listed.about.split("`").map((text, i) => (i % 2 ? html`<code>${text}</code>` : text))}</dd>`}
      ${Object.keys(listed.defaults ?? {}).length > 0 && html`<dt>defaults</dt><dd>${Object.entries(listed.defaults).map((pair) => pair.join("=")).join(", ")}</dd>`}
      ${listed.extras?.length > 0 && html`<dt>inputs</dt><dd>${listed.extras.join(", ")}</dd>`}
      ${listed.causal && html`<dt>causal</dt><dd>${listed.causal}</dd>`}
    </dl>`;
}

// The same part of every card under one heading, each under its name if there are several.
function Part({ title, cards, children, after }) {
  return html`<h2>${title}</h2><div class=${`cards of-${Math.min(cards.length, 3)}`}>
    ${cards.map((state) => html`<section key=${state.mechanism} aria-label=${`${title}: ${state.mechanism}`}>${cards.length > 1 && html`<h3>${state.mechanism}</h3>`}${children(state)}</section>`)}
  </div>${after}`;
}

export function Contract({ cards }) {
  return html`<${Part} title="Contract" cards=${cards}>${({ card }) => {
    if (!card) return html`<p>${NOT_COMPUTED} yet</p>`;
    const { passed, failed, skipped, not_tried: untried } = card.contract;
    const broken = Object.entries(failed);
    const skippedCount = Object.keys(skipped).length;
    return html`
      <p>${passed.length} kept, ${broken.length} broken, ${skippedCount} ${skippedCount === 1 ? "does" : "do"} not apply${Object.keys(untried).length ? `, ${Object.keys(untried).length} not tried` : ""}.</p>
      ${broken.map(([name, failure]) => html`<p key=${name} class="problem"><b>broken: ${name}</b>: ${failure}</p>`)}
      <details><summary>Every check</summary><ul class="checks">
        ${broken.map(([name, failure]) => html`<li key=${name}><b>${name}</b> broken: ${failure}</li>`)}
        ${Object.entries(untried).map(([name, cause]) => html`<li key=${name}><b>${name}</b> not tried, since ${cause} failed</li>`)}
        ${passed.map((name) => html`<li key=${name}><b>${name}</b> kept</li>`)}
        ${Object.entries(skipped).map(([name, reason]) => html`<li key=${name}><b>${name}</b> does not apply: ${reason}</li>`)}
      </ul></details>`;
  }}<//>`;
}

export function Costs({ cards }) {
  const looks = useLooks();
  const colour = useCallback((name) => colourOf(looks, name), [looks]);
  const timed = cards.filter(({ card }) => card?.cost.lengths).map(({ mechanism, card }) => ({ mechanism, cost: card.cost }));
  return html`<${Part} title="Cost on this machine" cards=${cards} after=${timed.length > 0 && html`<${CostPlot} costs=${timed} colourOf=${colour} />`}>${({ card }) => {
    if (!card || card.cost.disagreement === "the card is not finished") return html`<p>${NOT_COMPUTED} yet</p>`;
    const { cost } = card;
    if (cost.disagreement) return html`<p>It was not timed: ${cost.disagreement}.</p>`;
    const start = cost.faster_than_softmax_from;
    return html`
      <p>Faster than softmax on this machine ${start ? `from ${lengthOf(start)} tokens on` : "at no length tried"}. Width ${cost.width}, float32; other
        programs may have slowed the measurement. State carried from token to token: ${cost.state_is}.</p>
      <div class="standings-region" role="region" aria-label=${`Cost of ${cost.mechanism}`} tabindex="0"><table>
        <thead><tr>${["n", "ms", "MiB", "GFLOP", "KiB of state"].map((name) => html`<th key=${name} scope="col" class="number">${name}</th>`)}</tr></thead>
        <tbody>${cost.lengths.map((n, i) => html`<tr key=${n}><th scope="row" class="number">${lengthOf(n)}</th>
          <td class="number">${forPeople(1e3 * cost.seconds[i], 3)}</td><td class="number">${forPeople(cost.peak_bytes[i] / 2 ** 20, 3)}</td>
          <td class="number">${forPeople(cost.flops[i] / 1e9, 3)}</td><td class="number">${forPeople(cost.state_bytes[i] / 2 ** 10, 5)}</td></tr>`)}</tbody>
      </table></div>`;
  }}<//>`;
}

export function Likeness({ cards }) {
  return html`<${Part} title="Nearest known mechanisms" cards=${cards}>${({ card }) => {
    if (!card?.nearest.length) return html`<p>${card?.finished ? "No known mechanism is near." : `${NOT_COMPUTED} yet`}</p>`;
    return html`<p class="hint">The difference of the results on the same tokens over their mean size: 0% is the same, 200% the opposite.</p>
      <ul>${card.nearest.map(({ mechanism, distance }) => html`<li key=${mechanism}><${Link} to=${cardPlace(mechanism)}>${mechanism}<//>: ${forPeople(100 * (distance < 1e-9 ? 0 : distance), 2)}%</li>`)}</ul>`;
  }}<//>`;
}

// A mechanism of the lattice, as a link to its card where it has one; words may follow it, as “times 1e+09”.
function MechanismLink({ text }) {
  const [name, ...words] = text.split(" ");
  const hasCard = name.split(":").length <= 2;
  return html`${hasCard ? html`<${Link} to=${cardPlace(name)}>${name}<//>` : html`<code>${name}</code>`}${words.length ? ` ${words.join(" ")}` : ""}`;
}

export function Lattice({ cards }) {
  if (!cards.some((state) => state.heading?.special_cases.length)) return null;
  return html`<${Part} title="Special cases" cards=${cards}>${({ heading }) => (heading?.special_cases.length
    ? html`<ul>${heading.special_cases.map((edge) => html`<li key=${edge.special + edge.general}><${MechanismLink} text=${edge.special} /> is <${MechanismLink} text=${edge.general} />: ${edge.why}${describeConditions(edge)}</li>`)}</ul>`
    : html`<p>None is known.</p>`)}<//>`;
}

function describeConditions({ causal, inputs }) {
  const conditions = [{ yes: "causal", no: "not causal" }[causal], inputs === "all" ? null : `tokens: ${inputs}`].filter(Boolean);
  return conditions.length ? ` (${conditions.join(", ")})` : "";
}
