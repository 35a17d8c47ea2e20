// The atlas: every mechanism on every construction at its reference point, filled in as cells are computed.

import { html, useEffect, useMemo, useState } from "./framework.js";
import { get, Problem } from "./api.js";
import { commandOf, go, query } from "./address.js";
import { Choice, Progress, useLooks } from "./parts.js";
import { Link } from "./sheet.js";
import { cardPlace, optionOf, pageStateOf, questionPlace, withOption, withPageState } from "./mechanisms-parts.js";
import { cellOf, count, failureOf, useFilling } from "./mechanisms-cells.js";
import { AtlasTable, Legend } from "./mechanisms-table.js";
import { arrange, columnOf, sentences, sortName } from "./mechanisms-words.js";

const ASKED = ["mechanisms", "constructions", "family", "sort"];
const NOTHING = [];

function useTable(place, reachable) {
  const [table, setTable] = useState(null);
  const [problem, setProblem] = useState(null);
  const asked = query([], place.options.filter(([name]) => ASKED.includes(name)));
  useEffect(() => {
    if (!reachable) return undefined;
    const ending = new AbortController();
    get(`/atlas/table${asked}`, { signal: ending.signal }).then(
      (found) => { setTable(found); setProblem(null); },
      (error) => error instanceof Problem && setProblem(error),
    );
    return () => ending.abort();
  }, [asked, reachable]);
  return { table, problem };
}

export function AtlasView({ place, reachable }) {
  const { table, problem } = useTable(place, reachable);
  const sort = optionOf(place, "sort") || "family";
  const find = pageStateOf(place, "find");
  const [details, setDetails] = useState(true);
  const [sampling, setSampling] = useState(null);
  const [reading, setReading] = useState(null);
  const columns = table?.constructions ?? NOTHING;
  const all = table?.mechanisms ?? NOTHING;
  const shown = useMemo(() => arrange(all, columns, { find }, cellOf), [all, columns, find]);
  const { version, working } = useFilling(shown, columns, { details, sampled: sampling !== null, reachable });
  const rows = useMemo(() => arrange(all, columns, { find, sort }, cellOf), [all, columns, find, sort, version]);
  const counted = count(rows, columns);
  useEffect(() => { if (sampling && counted.whole === counted.all) setSampling(null); }, [version]);
  const change = (name, value) => go(withOption(place, name, value));
  return html`
    <h1>Every mechanism on every construction</h1>
    <p>Does the random-sign reader tell D0 from D1? The letter of a cell is the verdict at the construction's reference point, the
      number is P(tells apart), the mark before it says how that is known.</p>
    <${Controls} place=${place} problem=${problem} sort=${sort} find=${find} columns=${columns} change=${change} />
    ${!table && !problem && html`<p class="waiting">Asking for the table …</p>`}
    ${table && html`
      <${Status} counted=${counted} working=${working} details=${details} sampling=${sampling} setDetails=${setDetails} setSampling=${setSampling} rows=${rows} all=${all} />
      ${rows.length ? html`<${AtlasTable} groups=${grouped(rows, sort)} columns=${columns} table=${table} sort=${sort} marked=${columnOf(sort, columns)}
        onSort=${(name) => change("sort", name === sort ? "" : name)} onRead=${setReading} cellOf=${cellOf} />`
        : html`<p>No mechanism has “${find}” in its name, family or formula.</p>`}
      <${Reading} reading=${reading} table=${table} />
      <${Legend} table=${table} />
      <${Asked} columns=${columns} />`}`;
}

// In families, one's own first; in any other order without them.
function grouped(rows, sort) {
  const own = rows.filter((row) => row.own);
  const others = rows.filter((row) => !row.own);
  const groups = own.length ? [{ title: "your own", rows: own }] : [];
  if (sort !== "family") return [...groups, { title: own.length ? "all others" : "", rows: others }];
  const families = [...new Set(others.map((row) => row.family))];
  return [...groups, ...families.map((family) => ({ title: family, rows: others.filter((row) => row.family === family) }))];
}

function Controls({ place, problem, sort, find, columns, change }) {
  const looks = useLooks();
  const family = optionOf(place, "family");
  const families = [...new Set((looks ?? []).map((each) => each.family))].filter((each) => each !== "your own");
  const known = family === "" || families.includes(family);
  const orders = [["family", "family"], ["name", "name"], ["seen", "what tells most apart"], ...columns.map((each) => [sortName(each, columns), `surest on ${each.name}`])];
  const chosen = orders.some(([name]) => name === sort) ? orders : [...orders, [sort, sort]];
  const limited = ["mechanisms", "constructions"].filter((name) => optionOf(place, name));
  const about = problem && (["family", "order"].find((word) => problem.message.startsWith(`there is no ${word} `)) ?? "all");
  const beside = (what) => about === what && html`<p class="problem" role="alert">${problem.message}</p>`;
  return html`<div class="controls">
    <div><${Choice} label="Family" value=${family} onChange=${(value) => change("family", value)}
      options=${[["", "all families"], ...families, ...(known ? [] : [family])]} />${beside("family")}</div>
    <div><${Choice} label="Order" value=${sort} onChange=${(value) => change("sort", value === "family" ? "" : value)} options=${chosen} />${beside("order")}</div>
    <label class="field">Find <input type="search" value=${find} placeholder="a name or a formula" spellcheck="false"
      onInput=${(event) => go(withPageState(place, "find", event.target.value), { replace: true })} /></label>
    ${limited.map((name) => html`<p key=${name} class="limited">Only the ${name} <code>${optionOf(place, name)}</code>
      <button type="button" class="quiet" onClick=${() => change(name, "")}>Show all</button></p>`)}
    ${beside("all")}
  </div>`;
}

function Status({ counted, working, details, sampling, setDetails, setSampling, rows, all }) {
  const surveyed = counted.rows === rows.length;
  const unfinished = counted.closedWhole < counted.closed;
  const missing = counted.all - counted.whole - (counted.closed - counted.closedWhole);
  const some = rows.length < all.length ? " of these rows" : "";
  const sampled = sampling && counted.whole - sampling.from;
  const seconds = sampled > 2 ? ((performance.now() - sampling.since) / 1000 / sampled) * (counted.all - sampling.from) : 0;
  return html`<div class="status">
    <p>${rows.length} mechanisms, ${counted.some.toLocaleString("en")} of ${counted.all.toLocaleString("en")} cells computed.</p>
    ${working && !surveyed && html`<p>Closed forms answer: <${Progress} step=${{ done: counted.rows, total: rows.length }} /></p>`}
    ${working && surveyed && details && unfinished && html`<p>Where they go blind, and who else sees:
      <${Progress} step=${{ done: counted.closedWhole, total: counted.closed }} onCancel=${() => setDetails(false)} /></p>`}
    ${!details && unfinished && html`<p><button type="button" class="quiet" onClick=${() => setDetails(true)}>Go on: where they go blind, and who else sees</button></p>`}
    ${sampling && html`<p>Sampled cells: <${Progress} step=${{ done: sampled, total: counted.all - sampling.from, seconds }} onCancel=${() => setSampling(null)} /></p>`}
    ${!sampling && surveyed && missing > 0 && html`<p><button type="button" class="quiet" onClick=${() => setSampling({ from: counted.whole, since: performance.now() })}>
      Compute the ${missing} sampled cells${some}</button> <span class="hint">seconds each, one after the other</span></p>`}
  </div>`;
}

function Reading({ reading, table }) {
  if (!reading?.row && !reading?.column) {
    return html`<div class="reading"><p>Point at a cell, or walk the cells with the arrow keys, to read it here.</p></div>`;
  }
  const { row, column } = reading;
  if (!column) return html`<div class="reading"><p><b>${row.asked_as}</b>, ${row.family}: <code>${row.formula}</code></p></div>`;
  if (!row) return html`<div class="reading"><p><b>${column.name}</b>: ${column.title} ${parametersOf(column)}</p></div>`;
  const cell = cellOf(row, column);
  const failure = cell ? undefined : failureOf(row, column);
  const question = questionPlace(row.asked_as, column, table.constructions);
  return html`<div class="reading">
    <p><b>${row.asked_as} on ${column.name}</b>: ${sentences(cell, table).join("; ")}${failure ? `: ${failure}` : ""}.</p>
    <p><${Link} to=${cardPlace(row.asked_as)}>Card of ${row.asked_as}<//> · <${Link} to=${question}>See it happen<//> · <code>${commandOf(question)}</code></p>
  </div>`;
}

function parametersOf(column) {
  return Object.entries(column.parameters).map(([name, value]) => `${name}=${value}`).join(" ");
}

function Asked({ columns }) {
  return html`<details class="asked"><summary>What each column asks</summary>
    <dl>${columns.map((column) => html`<dt key=${column.name}>${column.name}</dt><dd>${column.title} <code>${parametersOf(column)}</code></dd>`)}</dl>
  </details>`;
}
