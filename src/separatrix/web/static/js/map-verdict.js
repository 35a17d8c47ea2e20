// Pinned points, A and B: the certified verdict of each, with what to copy and what to download.

import { html, useEffect, useMemo, useState } from "./framework.js";
import { addressOf, commandOf, pythonOf, query, splitMechanisms } from "./address.js";
import { get, latest } from "./api.js";
import { withOwn } from "./cells.js";
import { CopyButton, forPeople, Progress } from "./parts.js";
import { spelledPlace } from "./map-reading.js";

const PASSED_ON = ["engine", "draws", "seed", "confidence"];

// The question of a pinned point: the same words with the point's values in the place of the axes.
export function verdictPlace(place, pin, own) {
  const words = place.words.filter(([name, value]) => !(name in pin) && !/[:,]/.test(value));
  const mechanisms = splitMechanisms(place.names[1]).map((each) =>
    own.filter((name) => name in pin).reduce((spelled, name) => withOwn(spelled, name, pin[name]), each));
  const mine = Object.entries(pin).filter(([name]) => !own.includes(name));
  const options = place.options.filter(([name]) => PASSED_ON.includes(name));
  return { command: "verdict", names: [place.names[0], mechanisms.join(",")], words: [...mine, ...words], options };
}

function below(path, place, more = []) {
  return `${path}/${place.names.map(encodeURIComponent).join("/")}${query(place.words, [...place.options, ...more])}`;
}

function formats(verdict) {
  if (!verdict.lost_from) return "not computed";
  const to = forPeople(verdict.lost_searched_to, 2);
  return Object.entries(verdict.lost_from).map(([name, n]) => html`<span key=${name} class="format">${name} ${n === null ? `keeps it as far as was searched, n = ${to}` : `loses it from n = ${forPeople(n, 4)}`}</span>`);
}

const wordOf = (found) => (found.verdict === "none" ? "not computed" : found.verdict);

const ROWS = [
  ["Verdict", (each) => html`<strong class=${`stands ${each.verdict}`}>${wordOf(each)}</strong>`],
  ["P(tells apart)", (each) => `${forPeople(each.distinguish)}${each.interval && each.interval[0] !== each.interval[1] ? ` (${forPeople(each.interval[0])} to ${forPeople(each.interval[1])})` : ""}`],
  ["P(fires on D0)", (each) => forPeople(each.fire_d0)],
  ["P(fires on D1)", (each) => forPeople(each.fire_d1)],
  ["Margin", (each) => forPeople(each.margin)],
  ["Bits it takes", (each) => forPeople(each.bits, 4)],
  ["Number formats", formats],
  ["Evidence", (each) => `${each.engine}: ${each.evidence}`],
  ["Remarks", (each) => each.remarks?.map((said) => html`<p key=${said}>${said}</p>`)],
];

function One({ asked, mechanism, verdict }) {
  const one = { ...asked, names: [asked.names[0], mechanism] };
  const refused = verdict.verdict === "none";
  return html`<td>
    <p><${CopyButton} text=${() => commandOf(one)} label="Copy command" /></p>
    <p><${CopyButton} text=${() => pythonOf(one)} label="Copy Python" /></p>
    <p><a href=${addressOf(one)}>See it happen</a></p>
    ${!refused && verdict.engine === "certified" && html`<p><a href=${below("/api/v1/files/certificate", { ...one, options: [] })} download>Certificate</a></p>`}
  </td>`;
}

export function Pinned({ name, pin, place, own, reachable, settled, onRemove }) {
  const asked = useMemo(() => verdictPlace(place, pin, own), [addressOf(place), JSON.stringify(pin), own.join()]);
  const path = below("/verdict", asked);
  const [state, setState] = useState({});
  const [ask] = useState(latest);
  const [stop, setStop] = useState(null);
  useEffect(() => {
    if (!settled || !reachable) return undefined;
    const ending = new AbortController();
    setStop(() => () => { ending.abort(); setState((now) => ({ ...now, step: null })); });
    ask((signal) => {
      signal.addEventListener("abort", () => ending.abort());
      return get(path, { signal: ending.signal, step: (step) => setState((now) => ({ ...now, step })) });
    }).then(
      (found) => setState({ path, verdicts: [found].flat() }),
      (problem) => problem.name !== "AbortError" && setState({ path, problem }),
    );
    return () => ending.abort();
  }, [path, settled, reachable]);
  const stale = state.path !== path;
  const mechanisms = splitMechanisms(asked.names[1]);
  return html`<section class="pinned" aria-busy=${stale ? "true" : "false"}>
    <h2><span class="badge">${name}</span> ${spelledPlace(pin)} <button type="button" class="quiet remove" onClick=${onRemove} aria-label=${`Remove ${name}`}>×</button></h2>
    ${stale && !state.step && html`<p class="hint">computing its verdict …</p>`}
    ${state.step && html`<${Progress} step=${state.step} onCancel=${stop} />`}
    ${state.problem && html`<p class="problem" role="alert">${state.problem.message}</p>`}
    ${state.verdicts && html`<div class="scrolled"><table>
      <thead><tr><td></td>${state.verdicts.map((each, i) => html`<th key=${i} scope="col">${each.mechanism}</th>`)}</tr></thead>
      <tbody>
        ${ROWS.filter(([title]) => title !== "Remarks" || state.verdicts.some((each) => each.remarks?.length)).map(([title, show]) => html`<tr key=${title}><th scope="row">${title}</th>
          ${state.verdicts.map((each, i) => html`<td key=${i}>${each.verdict === "none" && title !== "Verdict" ? (title === "Evidence" ? each.evidence : "not computed") : show(each)}</td>`)}</tr>`)}
        <tr><th scope="row">Take along</th>${state.verdicts.map((each, i) => html`<${One} key=${i} asked=${asked} mechanism=${mechanisms[i] ?? each.mechanism} verdict=${each} />`)}</tr>
      </tbody></table></div>`}
    <p class="visually-hidden" aria-live="polite">${!stale && state.verdicts ? `${name}: ${state.verdicts.map((each) => `${each.mechanism} ${wordOf(each)}`).join(", ")}` : ""}</p>
  </section>`;
}

// Pins live behind the # of the address: they are no words of the command. #A=a1:0.85,n:1000000&B=…
export function readPins(hash) {
  const pins = {};
  for (const [name, text] of new URLSearchParams(hash.replace(/^#/, ""))) {
    if (!/^[AB]$/.test(name)) continue;
    const pairs = text.split(",").map((each) => each.split(":")).filter((each) => each.length === 2 && each.every(Boolean));
    if (pairs.length) pins[name] = Object.fromEntries(pairs);
  }
  return pins;
}

export function spellPins(pins) {
  const text = Object.entries(pins).map(([name, pin]) => `${name}=${Object.entries(pin).map(([each, value]) => `${each}:${value}`).join(",")}`).join("&");
  return text ? `#${text}` : "";
}
