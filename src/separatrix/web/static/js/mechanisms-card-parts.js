// The parts of a card besides its standings: what a mechanism is, what it keeps, costs and resembles.

import { html } from "./framework.js";
import { colourOf, forPeople, useLooks } from "./parts.js";
import { CostPlot } from "./mechanisms-cost-plot.js";
import { Link } from "./sheet.js";
import { cardPlace, withOption } from "./mechanisms-parts.js";
import { lengthOf, NOT_COMPUTED } from "./mechanisms-words.js";

export function Heading({ found, place, first }) {
  const looks = useLooks();
  const { heading, mechanism } = found;
  if (!heading) return html`<h2>${mechanism}</h2>`;
  const { listed, calling } = heading;
  return html`
    <h2><span class="swatch" style=${{ background: colourOf(looks, mechanism) }} aria-hidden="true"></span>${mechanism}</h2>
    ${calling.map((line, i) => html`<p key=${line} class=${i ? "" : "scale"}>${line}${first && line.includes("--scale sqrt") && html` <${Link} to=${withOption(place, "scale", "sqrt")}>Undo it<//>`}</p>`)}
    <p class="formula"><code>${listed.formula}</code></p>
    <dl class="about">
      <dt>family</dt><dd>${listed.family}</dd>
      ${listed.source && html`<dt>source</dt><dd>${listed.source}</dd>`}
      ${listed.about && html`<dt>about</dt><dd>${listed.about.split("`").map((text, i) => (i % 2 ? html`<code>${text}</code>` : text))}</dd>`}
      ${Object.keys(listed.defaults ?? {}).length > 0 && html`<dt>usually</dt><dd>${Object.entries(listed.defaults).map((pair) => pair.join("=")).join(", ")}</dd>`}
      ${listed.extras?.length > 0 && html`<dt>takes also</dt><dd>${listed.extras.join(", ")}</dd>`}
      ${listed.causal && html`<dt>causal</dt><dd>${listed.causal}</dd>`}
    </dl>`;
}

// A part of every card under one heading, each below its name where there are several.
function Part({ title, cards, children, after }) {
  return html`<h2>${title}</h2><div class=${`cards of-${Math.min(cards.length, 3)}`}>
    ${cards.map((each) => html`<section key=${each.mechanism} aria-label=${`${title}: ${each.mechanism}`}>${cards.length > 1 && html`<h3>${each.mechanism}</h3>`}${children(each)}</section>`)}
  </div>${after}`;
}

export function Contract({ cards }) {
  return html`<${Part} title="Contract" cards=${cards}>${({ card }) => {
    if (!card) return html`<p>${NOT_COMPUTED} yet</p>`;
    const { passed, failed, skipped, not_tried: untried } = card.contract;
    const broken = Object.entries(failed);
    const left = Object.keys(skipped).length;
    return html`
      <p>${passed.length} kept, ${broken.length} broken, ${left} ${left === 1 ? "does" : "do"} not apply${Object.keys(untried).length ? `, ${Object.keys(untried).length} not tried` : ""}.</p>
      ${broken.map(([name, what]) => html`<p key=${name} class="problem"><b>broken: ${name}</b>: ${what}</p>`)}
      <details><summary>Every check</summary><ul class="checks">
        ${broken.map(([name, what]) => html`<li key=${name}><b>${name}</b> broken: ${what}</li>`)}
        ${Object.entries(untried).map(([name, root]) => html`<li key=${name}><b>${name}</b> not tried, since ${root} failed</li>`)}
        ${passed.map((name) => html`<li key=${name}><b>${name}</b> kept</li>`)}
        ${Object.entries(skipped).map(([name, why]) => html`<li key=${name}><b>${name}</b> does not apply: ${why}</li>`)}
      </ul></details>`;
  }}<//>`;
}

export function Costs({ cards }) {
  const looks = useLooks();
  const timed = cards.filter(({ card }) => card?.cost.lengths).map(({ mechanism, card }) => ({ mechanism, cost: card.cost }));
  return html`<${Part} title="Cost on this machine" cards=${cards} after=${timed.length > 0 && html`<${CostPlot} costs=${timed} looks=${looks} />`}>${({ card }) => {
    if (!card || card.cost.disagreement === "the card is not finished") return html`<p>${NOT_COMPUTED} yet</p>`;
    const { cost } = card;
    if (cost.disagreement) return html`<p>It was not timed: ${cost.disagreement}.</p>`;
    const start = cost.faster_than_softmax_from;
    return html`
      <p>Faster than softmax, measured here, ${start ? `from ${lengthOf(start)} tokens on` : "at no length tried"}. Width ${cost.width}, float32, beside
        whatever else this machine did; what is kept from token to token: ${cost.state_is}.</p>
      <div class="standings-region" role="region" aria-label=${`Cost of ${cost.mechanism}`} tabindex="0"><table>
        <thead><tr>${["n", "ms", "MiB", "GFLOP", "KiB kept"].map((name) => html`<th key=${name} scope="col" class="number">${name}</th>`)}</tr></thead>
        <tbody>${cost.lengths.map((n, i) => html`<tr key=${n}><th scope="row" class="number">${lengthOf(n)}</th>
          <td class="number">${forPeople(1e3 * cost.seconds[i], 3)}</td><td class="number">${forPeople(cost.peak_bytes[i] / 2 ** 20, 3)}</td>
          <td class="number">${forPeople(cost.flops[i] / 1e9, 3)}</td><td class="number">${forPeople(cost.state_bytes[i] / 2 ** 10, 5)}</td></tr>`)}</tbody>
      </table></div>`;
  }}<//>`;
}

export function Likeness({ cards }) {
  return html`<${Part} title="What it is like" cards=${cards}>${({ card }) => {
    if (!card?.nearest.length) return html`<p>${card?.finished ? "Nothing is known that it is like." : `${NOT_COMPUTED} yet`}</p>`;
    return html`<p class="hint">How much results differ on the same tokens, over their mean size: 0% is the same, 200% the opposite.</p>
      <ul>${card.nearest.map((each) => html`<li key=${each.mechanism}><${Link} to=${cardPlace(each.mechanism)}>${each.mechanism}<//>: ${forPeople(100 * (each.distance < 1e-9 ? 0 : each.distance), 2)}%</li>`)}</ul>`;
  }}<//>`;
}

// A name in the lattice, as a link where a page can name it; words may follow it, as “times 1e+09”.
function Named({ text }) {
  const [name, ...rest] = text.split(" ");
  const known = name.split(":").length <= 2;
  return html`${known ? html`<${Link} to=${cardPlace(name)}>${name}<//>` : html`<code>${name}</code>`}${rest.length ? ` ${rest.join(" ")}` : ""}`;
}

export function Lattice({ cards }) {
  if (!cards.some((each) => each.heading?.special_cases.length)) return null;
  return html`<${Part} title="Special cases" cards=${cards}>${({ heading }) => (heading?.special_cases.length
    ? html`<ul>${heading.special_cases.map((edge) => html`<li key=${edge.special + edge.general}><${Named} text=${edge.special} /> is <${Named} text=${edge.general} />: ${edge.why}${where(edge)}</li>`)}</ul>`
    : html`<p>None is known.</p>`)}<//>`;
}

function where({ causal, inputs }) {
  const said = [{ yes: "causal", no: "not causal" }[causal], inputs === "all" ? null : `tokens: ${inputs}`].filter(Boolean);
  return said.length ? ` (${said.join(", ")})` : "";
}
