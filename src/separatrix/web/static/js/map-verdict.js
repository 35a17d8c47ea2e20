// Pinned points, A and B: the verdict of each, with texts to copy and files to download.

import { html, useEffect, useMemo, useState } from "./framework.js";
import { addressOf, commandOf, pythonOf, query, splitMechanisms } from "./address.js";
import { get, latest } from "./api.js";
import { numberOf } from "./cells.js";
import { EveryN } from "./every-n.js";
import { forPeople } from "./format.js";
import { cellOf, parametersAt } from "./map-data.js";
import { describePoint, verdictPlace } from "./map-reading.js";
import { CopyButton, Progress } from "./parts.js";

function pathOf(base, place) {
  return `${base}/${place.names.map(encodeURIComponent).join("/")}${query(place.words, place.options)}`;
}

function describeFormats(verdict) {
  if (!verdict.lost_from) return "not computed";
  const limit = forPeople(verdict.lost_searched_to, 2);
  return Object.entries(verdict.lost_from).map(([name, n]) => html`<span key=${name} class="format">${name} ${n === null ? `keeps it up to n = ${limit}, the longest searched` : `loses it from n = ${forPeople(n, 4)}`}</span>`);
}

const wordOf = ({ verdict }) => (verdict === "none" ? "not computed" : verdict);

const ROWS = [
  ["Verdict", (answer) => html`<strong class=${`stands ${answer.verdict}`}>${wordOf(answer)}</strong>`],
  ["P(tells apart)", ({ distinguish, interval }) => `${forPeople(distinguish)}${interval && interval[0] !== interval[1] ? ` (${forPeople(interval[0])} to ${forPeople(interval[1])})` : ""}`],
  ["P(fires on D0)", (answer) => forPeople(answer.fire_d0)],
  ["P(fires on D1)", (answer) => forPeople(answer.fire_d1)],
  ["Margin", (answer) => forPeople(answer.margin)],
  ["Significant bits", (answer) => forPeople(answer.bits, 4)],
  ["Number formats", describeFormats],
  ["Evidence", (answer) => `${answer.engine}: ${answer.evidence}`],
  ["Remarks", (answer) => answer.remarks?.map((remark) => html`<p key=${remark}>${remark}</p>`)],
];

function Actions({ place, mechanism, answer }) {
  const single = { ...place, names: [place.names[0], mechanism] };
  return html`<td>
    <p><${CopyButton} text=${() => commandOf(single)} label="Copy command" /></p>
    <p><${CopyButton} text=${() => pythonOf(single)} label="Copy Python" /></p>
    <p><a href=${addressOf(single)}>See it happen</a></p>
    ${answer.verdict !== "none" && answer.engine === "certified" && html`<p><a href=${pathOf("/api/v1/files/certificate", { ...single, options: [] })} download>Certificate</a></p>`}
  </td>`;
}

// The parameters of a pinned point: its values on the axes, and n where the map rounded it.
function pointOf(pin, map) {
  const values = Object.fromEntries(Object.entries(pin).map(([name, value]) => [name, numberOf(value)]));
  const cell = map?.heading.moved ? cellOf(map, values) : null;
  return cell && !("n" in pin) ? { ...pin, n: parametersAt(map.heading, cell).n } : pin;
}

export function Pinned({ name, pin, place, own, map, reachable, settled, onRemove }) {
  const point = pointOf(pin, map);
  const question = useMemo(() => verdictPlace(place, point, own), [addressOf(place), JSON.stringify(point), own.join()]);
  const path = pathOf("/verdict", question);
  const [state, setState] = useState({});
  const [ask] = useState(latest);
  const [stop, setStop] = useState(null);
  useEffect(() => {
    if (!settled || !reachable) return undefined;
    const controller = new AbortController();
    setStop(() => () => { controller.abort(); setState((now) => ({ ...now, step: null })); });
    ask((signal) => {
      signal.addEventListener("abort", () => controller.abort());
      return get(path, { signal: controller.signal, step: (step) => setState((now) => ({ ...now, step })) });
    }).then(
      (answer) => setState({ path, answers: [answer].flat() }),
      (problem) => problem.name !== "AbortError" && setState({ path, problem }),
    );
    return () => controller.abort();
  }, [path, settled, reachable]);
  const isOutdated = state.path !== path;
  const { answers } = state;
  const mechanisms = splitMechanisms(question.names[1]);
  return html`<section class="pinned" aria-busy=${isOutdated ? "true" : "false"}>
    <h2><span class="badge">${name}</span> ${describePoint(point)} <button type="button" class="quiet remove" onClick=${onRemove} aria-label=${`Remove ${name}`}>×</button></h2>
    ${isOutdated && !state.step && html`<p class="hint">Computing the verdict …</p>`}
    ${state.step && html`<${Progress} step=${state.step} onCancel=${stop} />`}
    ${state.problem && html`<p class="problem" role="alert">${state.problem.message}</p>`}
    ${answers && html`<div class="scrolled"><table>
      <thead><tr><td></td>${answers.map((answer, i) => html`<th key=${i} scope="col">${answer.mechanism}</th>`)}</tr></thead>
      <tbody>
        ${ROWS.filter(([title]) => title !== "Remarks" || answers.some((answer) => answer.remarks?.length)).map(([title, show]) => html`<tr key=${title}><th scope="row">${title}</th>
          ${answers.map((answer, i) => html`<td key=${i}>${answer.verdict === "none" && title !== "Verdict" ? (title === "Evidence" ? answer.evidence : "not computed") : show(answer)}</td>`)}</tr>`)}
        <tr><th scope="row">Every n</th>${mechanisms.map((mechanism) => html`<td key=${mechanism}><${EveryN} construction=${question.names[0]} mechanism=${mechanism} words=${question.words} settled=${settled && reachable} open="open: no proof is known here" /></td>`)}</tr>
        <tr><th scope="row">Copy and download</th>${answers.map((answer, i) => html`<${Actions} key=${i} place=${question} mechanism=${mechanisms[i] ?? answer.mechanism} answer=${answer} />`)}</tr>
      </tbody></table></div>`}
    <p class="visually-hidden" aria-live="polite">${!isOutdated && answers ? `${name}: ${answers.map((answer) => `${answer.mechanism} ${wordOf(answer)}`).join(", ")}` : ""}</p>
  </section>`;
}

// Pins are in the fragment of the address, because they are no words of the command: #A=a1:0.85,n:1e6&B=…
export function readPins(hash) {
  const pins = {};
  for (const [name, text] of new URLSearchParams(hash.replace(/^#/, ""))) {
    if (!/^[AB]$/.test(name)) continue;
    const pairs = text.split(",").map((part) => part.split(":")).filter((pair) => pair.length === 2 && pair.every(Boolean));
    if (pairs.length) pins[name] = Object.fromEntries(pairs);
  }
  return pins;
}

export function spellPins(pins) {
  const text = Object.entries(pins).map(([name, pin]) => `${name}=${Object.entries(pin).map(([parameter, value]) => `${parameter}:${value}`).join(",")}`).join("&");
  return text ? `#${text}` : "";
}
