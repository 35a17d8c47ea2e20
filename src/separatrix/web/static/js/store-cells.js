// Stored cells: conditions as fields, pages of rows, and all that is known of one.

import { html, useEffect, useMemo, useState } from "./framework.js";
import { commandOf, go, query } from "./address.js";
import { get, latest } from "./api.js";
import { Choice, CopyButton, Field, Progress, forPeople } from "./parts.js";
import { Link } from "./sheet.js";
import { VERDICTS, chance, otherConditions, questionOf, spelled, spread, storeOption, valueOf, withOthers, withValue } from "./store-words.js";

const ROWS = 100;

function Filters({ place, contents, problem, onSweep }) {
  const change = (name) => (value) => go({ ...place, command: "results", words: withValue(place.words, name, value.trim()) });
  const said = (name) => (problem?.field === name ? problem.message : undefined);
  const kinds = [...new Set(["verdict", ...Object.keys(contents.kinds)])];
  const sweeps = [["", "all cells"], ...[...contents.sweeps].reverse().map((each) => [String(each.id), `${each.id}: ${each.name}`])];
  const chosen = valueOf(place.options, "sweep");
  const sweep = contents.sweeps.find((each) => String(each.id) === chosen || each.name === chosen);
  const text = (name, label, hint) => html`<${Field} label=${label} value=${valueOf(place.words, name)} onChange=${change(name)} problem=${said(name)} placeholder=${hint} />`;
  return html`<form class="filters" role="search" aria-label="Conditions" onSubmit=${(event) => event.preventDefault()}>
    <${Choice} label="Sweep" value=${sweep ? String(sweep.id) : chosen} options=${sweeps} onChange=${onSweep} />
    ${kinds.length > 1 && html`<${Choice} label="Kind of work" value=${valueOf(place.options, "kind") || "verdict"} options=${kinds}
      onChange=${(value) => go({ ...place, options: withValue(place.options, "kind", value === "verdict" ? "" : value) })} />`}
    ${text("construction", "Construction", "any")}
    ${text("mechanism", "Mechanism", "softmax,linear")}
    <${Choice} label="Verdict" value=${valueOf(place.words, "verdict")} options=${[["", "any"], ...VERDICTS]} onChange=${change("verdict")} />
    <${Choice} label="Ended" value=${valueOf(place.words, "status")} options=${[["", "any way"], "done", "refused", "failed"]} onChange=${change("status")} />
    ${text("n", "n", "1e3:1e6")}
    <${Field} label="More conditions" value=${otherConditions(place.words)} placeholder="a1=0.7 engine=closed"
      problem=${problem && !["construction", "mechanism", "n"].includes(problem.field) ? problem.message : undefined}
      onChange=${(typed) => go({ ...place, words: withOthers(place.words, typed) })} />
  </form>`;
}

// A page of cells and how all came out; asked again when the address or the store changes.
function useCells(place, contents, reachable, after) {
  const [state, setState] = useState({ page: null, counts: null, problem: null, step: null });
  const asks = useMemo(() => [latest(), latest()], []);
  const words = JSON.stringify([place.words, place.options]);
  useEffect(() => {
    const options = place.options.filter(([name]) => name === "sweep" || name === "kind");
    const update = (more) => setState((now) => ({ ...now, ...more }));
    const failed = (error) => { if (error.name !== "AbortError") update({ problem: error, step: null }); };
    const paged = [...options, ["limit", valueOf(place.options, "limit") || ROWS], ...(after ? [["after", after]] : [])];
    asks[0]((signal) => get(`/results${query(place.words, paged)}`, { signal, step: (step) => update({ step }) }))
      .then((page) => update({ page, problem: null, step: null }), failed);
    asks[1]((signal) => get(`/results/counts${query(place.words, options)}`, { signal, step: () => {} }))
      .then((counts) => update({ counts }), (error) => error.name !== "AbortError" && update({ counts: null }));
  }, [words, after, contents.cells, reachable]);
  return state;
}

export function Cells({ place, contents, reachable, onSweep }) {
  const address = JSON.stringify([place.words, place.options]);
  const [pages, setPages] = useState({ of: address, places: [""] });
  const places = pages.of === address ? pages.places : [""];
  const { page, counts, problem, step } = useCells(place, contents, reachable, places.at(-1));
  const command = commandOf({ ...place, command: "results", names: [], options: [...place.options, ...storeOption(contents.store)] });
  const move = (next) => setPages({ of: address, places: next });
  return html`<section aria-labelledby="cells-head">
    <h2 id="cells-head">Cells</h2>
    <${Filters} place=${place} contents=${contents} problem=${problem} onSweep=${onSweep} />
    ${step && html`<${Progress} step=${step} />`}
    <p role="status">${problem ? "" : counts ? html`<${Came} counts=${counts} />` : "Counting …"}</p>
    ${page?.warning && html`<p class="problem" role="alert">${page.warning}</p>`}
    ${page && !problem && html`<${CellTable} cells=${page.cells} />`}
    ${page && !problem && (page.next || places.length > 1) && html`<nav class="pages" aria-label="Pages of cells">
      <button type="button" class="quiet" disabled=${places.length < 2} onClick=${() => move(places.slice(0, -1))}>Previous</button>
      <span>page ${places.length}</span>
      <button type="button" class="quiet" disabled=${!page.next} onClick=${() => move([...places, page.next])}>Next</button>
    </nav>`}
    <p class="hint">In a terminal, with this store: <code>${command}</code> <${CopyButton} text=${() => command} label="Copy" />${contents.store.includes("***") && " Its password stands where *** is."}</p>
  </section>`;
}

function Came({ counts }) {
  if (!counts.cells) return "No stored cell is like that.";
  const came = Object.entries(counts.came).map(([word, count]) => `${count.toLocaleString("en")} ${word}`).join(", ");
  return `${counts.cells.toLocaleString("en")} ${counts.cells === 1 ? "cell" : "cells"}: ${came}.`;
}

function CellTable({ cells }) {
  const [open, setOpen] = useState(null);
  useEffect(() => setOpen((now) => (cells.length === 1 ? cells[0].id : now)), [cells]);
  const { varying, left, shared } = useMemo(() => spread(cells), [cells]);
  if (!cells.length) return null;
  const verdicts = cells[0].kind === undefined;
  const head = ["", "Construction", "Mechanism", ...varying, ...(verdicts ? ["Verdict", "P(tells apart)", "Engine"] : ["Seed", "Ended", "Found"])];
  return html`
    ${shared.length > 0 && html`<p class="hint">All with ${shared.map(([name, value]) => `${name}=${spelled(value)}`).join(" ")}</p>`}
    ${left > 0 && html`<p class="hint">${left} more parameters differ; details have them.</p>`}
    <div class="scroll tall" tabindex="0" role="region" aria-label="Stored cells"><table>
      <thead><tr>${head.map((name) => html`<th key=${name} scope="col">${name || html`<span class="visually-hidden">Details</span>`}</th>`)}</tr></thead>
      <tbody>${cells.map((cell, i) => html`<${CellRow} key=${`${cell.id} ${cell.part ?? ""} ${i}`} cell=${cell} varying=${varying} verdicts=${verdicts} wide=${head.length}
        open=${open === cell.id} toggle=${() => setOpen(open === cell.id ? null : cell.id)} />`)}</tbody>
    </table></div>`;
}

function CellRow({ cell, varying, verdicts, wide, open, toggle }) {
  const word = cell.verdict ?? cell.status;
  return html`<tr>
      <td><button type="button" class="quiet small" aria-expanded=${open ? "true" : "false"} onClick=${toggle} aria-label=${`Details of ${cell.mechanism ?? "this cell"}`}>${open ? "−" : "+"}</button></td>
      <td>${cell.construction ?? cell.parameters?.task ?? ""}</td><td>${cell.mechanism ?? ""}</td>
      ${varying.map((name) => html`<td key=${name} class="number">${spelled(cell.parameters?.[name] ?? "")}</td>`)}
      ${verdicts ? html`<td><span class=${`word ${VERDICTS.includes(word) ? word : "none"}`}>${word}</span></td>
        <td class="number">${cell.verdict ? chance(cell, forPeople) : cell.message ?? ""}</td><td>${cell.engine ?? ""}</td>`
        : html`<td class="number">${cell.seed ?? ""}</td><td>${cell.status}</td>
        <td>${[cell.outcome, cell.score === null || cell.score === undefined ? "" : `score ${forPeople(cell.score, 4)}`, cell.message].filter(Boolean).join(", ")}</td>`}
    </tr>
    ${open && html`<tr class="details"><td colspan=${wide}><${Details} cell=${cell} verdicts=${verdicts} /></td></tr>`}`;
}

const HIDDEN = new Set(["parameters", "versions", "neuron", "interval", "construction", "mechanism", "kind", "distinguish"]);
const DRAWN = new Set(["draws", "seed", "confidence", "dtype", "until_decided"]);
const NAMES = {
  fire_d0: "P(the reader fires on D0)", fire_d1: "P(the reader fires on D1)", bits: "significant bits it takes", asked: "engine asked for", delta: "delta of the verdict",
  code: "version of the code", seconds: "computed in, seconds", finished: "finished", host: "machine", id: "identity", part: "part of the plan", message: "message",
  validation_score: "score on validation samples", score: "score on test samples", last_step: "steps made", weight_count: "weights", state_bytes: "state, bytes", solved_at: "solved after step",
};

function valueText(value) {
  return typeof value === "number" && !Number.isInteger(value) ? forPeople(value) : String(value);
}

function Details({ cell, verdicts }) {
  const asked = verdicts ? questionOf(cell) : null;
  const exact = cell.interval && cell.interval[0] === cell.interval[1];
  const hidden = (name) => HIDDEN.has(name) || (exact && DRAWN.has(name)) || name in (cell.parameters ?? {});
  const shown = Object.entries(cell).filter(([name, value]) => value !== null && !hidden(name));
  const neuron = (name) => (cell.neuron[name] === null ? "not known" : valueText(cell.neuron[name]));
  const rows = [
    ["parameters", Object.entries(cell.parameters ?? {}).map(([name, value]) => `${name}=${spelled(value)}`).join(" ")],
    ...(cell.interval ? [["P(tells apart)", exact ? `${forPeople(cell.distinguish, 12)}, exact` : `${forPeople(cell.distinguish)} in [${forPeople(cell.interval[0])}, ${forPeople(cell.interval[1])}]`]] : []),
    ...(verdicts && cell.verdict ? [["P(one neuron fires on D0)", neuron("p0")], ["P(it fires on D1)", neuron("p1")], ["P(it fires on neither)", neuron("q")]] : []),
    ...shown.map(([name, value]) => [NAMES[name] ?? name, valueText(value)]),
    ["versions", Object.entries(cell.versions ?? {}).map(([name, value]) => `${name} ${value}`).join(", ")],
  ];
  return html`<dl>${rows.map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>
    ${asked && html`<p>Ask it again: <${Link} to=${asked}><code>${commandOf(asked)}</code><//> <${CopyButton} text=${() => commandOf(asked)} label="Copy" /></p>`}`;
}
