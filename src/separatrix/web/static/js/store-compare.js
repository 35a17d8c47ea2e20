// Two sweeps side by side: the same questions, and whether they have the same answers.

import { html, useEffect, useMemo, useState } from "./framework.js";
import { get, latest } from "./api.js";
import { Progress, forPeople } from "./parts.js";

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
      .then((found) => setState({ found }), (error) => error.name !== "AbortError" && setState({ problem: error.message }));
  }, [one, other, reachable]);
  return html`<section aria-labelledby="compared-head">
    <h2 id="compared-head">Sweep ${one} beside sweep ${other}</h2>
    ${state.problem && html`<p class="problem" role="alert">${state.problem}</p>`}
    ${state.step && html`<${Progress} step=${state.step} />`}
    ${state.found && html`<${Found} found=${state.found} />`}
  </section>`;
}

function Found({ found }) {
  const counts = [
    ["the same answer", found.same], ["another verdict", found.other_verdict], ["another P", found.other_probability],
    [`only in ${found.one}`, found.only_one], [`only in ${found.other}`, found.only_other],
  ];
  return html`
    <p role="status"><strong>${found.identical ? "The same cells, the same answers." : "They differ."}</strong></p>
    ${found.damaged.map((each) => html`<p key=${each.store} class="problem" role="alert">A part of ${each.store} is damaged and left out: ${damage(each)}.</p>`)}
    <table class="counts"><caption class="visually-hidden">How many cells agree</caption><tbody>${counts.map(([term, count]) => html`<tr key=${term}><th scope="row">${term}</th><td class="number">${count.toLocaleString("en")}</td></tr>`)}</tbody></table>
    <p class="hint">Two exact P differ if they are more than 10⁻¹² apart; where one is sampled, if their intervals do not overlap.</p>
    ${found.largest.length > 0 && html`<h3>The largest changes${found.changed > found.largest.length ? `, ${found.largest.length} of ${found.changed.toLocaleString("en")}` : ""}</h3>
      <div class="scroll" tabindex="0" role="region" aria-label="The largest changes"><table>
        <thead><tr><th scope="col">Cell</th><th scope="col">${found.one}</th><th scope="col">${found.other}</th><th scope="col" class="number">Difference</th></tr></thead>
        <tbody>${found.largest.map((each, i) => html`<${Change} key=${i} change=${each} />`)}</tbody>
      </table></div>`}`;
}

function damage({ altered, lost }) {
  const said = (counts, how) => Object.entries(counts).map(([what, count]) => `${count.toLocaleString("en")} ${what} ${how}`);
  return [...said(altered, "altered"), ...said(lost, "lost")].join(", ");
}

function Change({ change }) {
  const asked = Object.entries({ ...change.parameters, ...change.how }).map(([name, value]) => `${name}=${value}`).join(" ");
  const [p, q] = [change.one.distinguish, change.other.distinguish];
  return html`<tr>
    <td>${change.mechanism} on ${change.construction}<br /><span class="hint">${asked}</span></td>
    <td><${Answer} answer=${change.one} /></td><td><${Answer} answer=${change.other} /></td>
    <td class="number">${p === null || q === null ? "–" : `${p - q > 0 ? "+" : ""}${forPeople(p - q, 4)}`}</td>
  </tr>`;
}

function Answer({ answer }) {
  if (answer.distinguish === null) return answer.word;
  const exact = answer.low === answer.high;
  return html`${answer.word}<br /><span class="hint">P = ${forPeople(answer.distinguish)}, ${exact ? "exact" : `in [${forPeople(answer.low, 4)}, ${forPeople(answer.high, 4)}]`}</span>`;
}
