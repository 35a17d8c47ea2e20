// The comparison of two sweeps: cells with the same question, and whether their answers agree.

import { html, useEffect, useMemo, useState } from "./framework.js";
import { get, latest } from "./api.js";
import { forPeople } from "./format.js";
import { Progress } from "./parts.js";

export function Comparison({ place, reachable }) {
  const [one, other] = place.names;
  const [state, setState] = useState({});
  const ask = useMemo(latest, []);
  useEffect(() => {
    if (!one || !other) {
      setState({ problem: "Name two sweeps: separatrix compare 1 2" });
      return;
    }
    setState({ step: { what: "comparing" } });
    ask((signal) => get(`/compare/${encodeURIComponent(one)}/${encodeURIComponent(other)}`, { signal, step: (step) => setState({ step }) }))
      .then((comparison) => setState({ comparison }), (error) => error.name !== "AbortError" && setState({ problem: error.message }));
  }, [one, other, reachable]);
  return html`<section aria-labelledby="compared-head">
    <h2 id="compared-head">Sweep ${one} and sweep ${other}</h2>
    ${state.problem && html`<p class="problem" role="alert">${state.problem}</p>`}
    ${state.step && html`<${Progress} step=${state.step} />`}
    ${state.comparison && html`<${Result} comparison=${state.comparison} />`}
  </section>`;
}

function Result({ comparison }) {
  const counts = [
    ["the same answer", comparison.same], ["another verdict", comparison.other_verdict], ["another P", comparison.other_probability],
    [`only in ${comparison.one}`, comparison.only_one], [`only in ${comparison.other}`, comparison.only_other],
  ];
  return html`
    <p role="status"><strong>${comparison.identical ? "The same cells, the same answers." : "They differ."}</strong></p>
    ${comparison.damaged.map((damage) => html`<p key=${damage.store} class="problem" role="alert">A part of ${damage.store} is damaged and left out: ${describeDamage(damage)}.</p>`)}
    <table class="counts"><caption class="visually-hidden">How many cells agree</caption><tbody>${counts.map(([term, count]) => html`<tr key=${term}><th scope="row">${term}</th><td class="number">${count.toLocaleString("en")}</td></tr>`)}</tbody></table>
    <p class="hint">Two exact P differ if they are more than 10⁻¹² apart; where one is sampled, if their intervals do not overlap.</p>
    ${comparison.largest.length > 0 && html`<h3>The largest changes${comparison.changed > comparison.largest.length ? `, ${comparison.largest.length} of ${comparison.changed.toLocaleString("en")}` : ""}</h3>
      <div class="scroll" tabindex="0" role="region" aria-label="The largest changes"><table>
        <thead><tr><th scope="col">Cell</th><th scope="col">${comparison.one}</th><th scope="col">${comparison.other}</th><th scope="col" class="number">Difference</th></tr></thead>
        <tbody>${comparison.largest.map((change, i) => html`<${Change} key=${i} change=${change} />`)}</tbody>
      </table></div>`}`;
}

function describeDamage({ altered, lost }) {
  const describe = (counts, verb) => Object.entries(counts).map(([noun, count]) => `${count.toLocaleString("en")} ${noun} ${verb}`);
  return [...describe(altered, "altered"), ...describe(lost, "lost")].join(", ");
}

function Change({ change }) {
  const words = Object.entries({ ...change.parameters, ...change.how }).map(([name, value]) => `${name}=${value}`).join(" ");
  const [p, q] = [change.one.distinguish, change.other.distinguish];
  return html`<tr>
    <td>${change.mechanism} on ${change.construction}<br /><span class="hint">${words}</span></td>
    <td><${Answer} answer=${change.one} /></td><td><${Answer} answer=${change.other} /></td>
    <td class="number">${p === null || q === null ? "–" : `${p - q > 0 ? "+" : ""}${forPeople(p - q, 4)}`}</td>
  </tr>`;
}

function Answer({ answer }) {
  if (answer.distinguish === null) return answer.word;
  const isExact = answer.low === answer.high;
  return html`${answer.word}<br /><span class="hint">P = ${forPeople(answer.distinguish)}, ${isExact ? "exact" : `in [${forPeople(answer.low, 4)}, ${forPeople(answer.high, 4)}]`}</span>`;
}
