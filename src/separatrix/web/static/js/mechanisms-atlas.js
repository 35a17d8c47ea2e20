// The atlas: every mechanism on every construction at its reference point; cells appear as they are computed.

import { html, useEffect, useMemo, useState } from "./framework.js";
import { get, Problem } from "./api.js";
import { commandOf, go, query } from "./address.js";
import { Choice, Progress, useLooks } from "./parts.js";
import { Link } from "./sheet.js";
import { cardPlace, optionOf, pageStateOf, questionPlace, withOption, withPageState } from "./mechanisms-parts.js";
import { cellOf, countCells, failureOf, useCells } from "./mechanisms-cells.js";
import { AtlasTable, Legend } from "./mechanisms-table.js";
import { arrange, columnOf, sentences, sortName } from "./mechanisms-words.js";

const TABLE_OPTIONS = ["mechanisms", "constructions", "family", "sort"];
const NO_ROWS = [];

function useTable(place, reachable) {
  const [table, setTable] = useState(null);
  const [problem, setProblem] = useState(null);
  const options = query([], place.options.filter(([name]) => TABLE_OPTIONS.includes(name)));
  useEffect(() => {
    if (!reachable) return undefined;
    const controller = new AbortController();
    get(`/atlas/table${options}`, { signal: controller.signal }).then(
      (rows) => { setTable(rows); setProblem(null); },
      (error) => error instanceof Problem && setProblem(error),
    );
    return () => controller.abort();
  }, [options, reachable]);
  return { table, problem };
}

export function AtlasView({ place, reachable }) {
  const { table, problem } = useTable(place, reachable);
  const sort = optionOf(place, "sort") || "family";
  const find = pageStateOf(place, "find");
  const [details, setDetails] = useState(true);
  const [sampling, setSampling] = useState(null);
  const [reading, setReading] = useState(null);
  const columns = table?.constructions ?? NO_ROWS;
  const all = table?.mechanisms ?? NO_ROWS;
  const shown = useMemo(() => arrange(all, columns, { find }, cellOf), [all, columns, find]);
  const { version, isWorking } = useCells(shown, columns, { details, sampled: sampling !== null, reachable });
  const rows = useMemo(() => arrange(all, columns, { find, sort }, cellOf), [all, columns, find, sort, version]);
  const counts = countCells(rows, columns);
  useEffect(() => { if (sampling && counts.complete === counts.all) setSampling(null); }, [version]);
  const change = (name, value) => go(withOption(place, name, value));
  return html`
    <h1>Every mechanism on every construction</h1>
    <p>Does the random-sign reader tell D0 from D1? The letter of a cell is the verdict at the construction's reference point, the
      number is P(tells apart), and the mark before it is the kind of evidence.</p>
    <${Controls} place=${place} problem=${problem} sort=${sort} find=${find} columns=${columns} change=${change} />
    ${!table && !problem && html`<p class="waiting">Loading the table …</p>`}
    ${table && html`
      <${Status} counts=${counts} isWorking=${isWorking} details=${details} sampling=${sampling} setDetails=${setDetails} setSampling=${setSampling} rows=${rows} all=${all} />
      ${rows.length ? html`<${AtlasTable} groups=${groupRows(rows, sort)} columns=${columns} table=${table} sort=${sort} sortColumn=${columnOf(sort, columns)}
        onSort=${(name) => change("sort", name === sort ? "" : name)} onRead=${setReading} cellOf=${cellOf} />`
        : html`<p>No mechanism has “${find}” in its name, family or formula.</p>`}
      <${Reading} reading=${reading} table=${table} />
      <${Legend} table=${table} />
      <${Questions} columns=${columns} />`}`;
}

// Rows by family, the user's mechanisms first; in any other order without families.
function groupRows(rows, sort) {
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
  const families = [...new Set((looks ?? []).map((look) => look.family))].filter((name) => name !== "your own");
  const isKnown = family === "" || families.includes(family);
  const orders = [["family", "family"], ["name", "name"], ["seen", "number of constructions told apart"], ...columns.map((column) => [sortName(column, columns), `P on ${column.name}`])];
  const options = orders.some(([name]) => name === sort) ? orders : [...orders, [sort, sort]];
  const limited = ["mechanisms", "constructions"].filter((name) => optionOf(place, name));
  const subject = problem && (["family", "order"].find((word) => problem.message.startsWith(`there is no ${word} `)) ?? "all");
  const problemAt = (field) => subject === field && html`<p class="problem" role="alert">${problem.message}</p>`;
  return html`<div class="controls">
    <div><${Choice} label="Family" value=${family} onChange=${(value) => change("family", value)}
      options=${[["", "all families"], ...families, ...(isKnown ? [] : [family])]} />${problemAt("family")}</div>
    <div><${Choice} label="Order" value=${sort} onChange=${(value) => change("sort", value === "family" ? "" : value)} options=${options} />${problemAt("order")}</div>
    <label class="field">Find <input type="search" value=${find} placeholder="a name or a formula" spellcheck="false"
      onInput=${(event) => go(withPageState(place, "find", event.target.value), { replace: true })} /></label>
    ${limited.map((name) => html`<p key=${name} class="limited">Only ${name} <code>${optionOf(place, name)}</code>
      <button type="button" class="quiet" onClick=${() => change(name, "")}>Show all</button></p>`)}
    ${problemAt("all")}
  </div>`;
}

function Status({ counts, isWorking, details, sampling, setDetails, setSampling, rows, all }) {
  const isSurveyed = counts.rows === rows.length;
  const hasOpenDetails = counts.closedComplete < counts.closed;
  const missing = counts.all - counts.complete - (counts.closed - counts.closedComplete);
  const scope = rows.length < all.length ? " of these rows" : "";
  const sampled = sampling && counts.complete - sampling.from;
  const seconds = sampled > 2 ? ((performance.now() - sampling.since) / 1000 / sampled) * (counts.all - sampling.from) : 0;
  return html`<div class="status">
    <p>${rows.length} mechanisms, ${counts.known.toLocaleString("en")} of ${counts.all.toLocaleString("en")} cells computed.</p>
    ${isWorking && !isSurveyed && html`<p>Closed forms: <${Progress} step=${{ done: counts.rows, total: rows.length }} /></p>`}
    ${isWorking && isSurveyed && details && hasOpenDetails && html`<p>Blindness and other readers:
      <${Progress} step=${{ done: counts.closedComplete, total: counts.closed }} onCancel=${() => setDetails(false)} /></p>`}
    ${!details && hasOpenDetails && html`<p><button type="button" class="quiet" onClick=${() => setDetails(true)}>Continue: blindness and other readers</button></p>`}
    ${sampling && html`<p>Sampled cells: <${Progress} step=${{ done: sampled, total: counts.all - sampling.from, seconds }} onCancel=${() => setSampling(null)} /></p>`}
    ${!sampling && isSurveyed && missing > 0 && html`<p><button type="button" class="quiet" onClick=${() => setSampling({ from: counts.complete, since: performance.now() })}>
      Compute the ${missing} sampled cells${scope}</button> <span class="hint">seconds each, one after the other</span></p>`}
  </div>`;
}

function Reading({ reading, table }) {
  if (!reading?.row && !reading?.column) {
    return html`<div class="reading"><p>Point at a cell, or walk with the arrow keys, to read it here.</p></div>`;
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

function Questions({ columns }) {
  return html`<details class="asked"><summary>The question of each column</summary>
    <dl>${columns.map((column) => html`<dt key=${column.name}>${column.name}</dt><dd>${column.title} <code>${parametersOf(column)}</code></dd>`)}</dl>
  </details>`;
}
