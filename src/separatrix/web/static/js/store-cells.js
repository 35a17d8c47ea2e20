// Stored cells: conditions as fields, pages of rows, and the details of a cell.

import { html, useEffect, useMemo, useState } from "./framework.js";
import { commandOf, go, query } from "./address.js";
import { get, latest } from "./api.js";
import { forPeople } from "./format.js";
import { Choice, CopyButton, Field, Progress } from "./parts.js";
import { Link } from "./sheet.js";
import { VERDICTS, describeProbability, otherConditions, questionOf, spellValue, splitParameters, storeOption, valueOf, withOtherConditions, withValue } from "./store-words.js";

const PAGE_ROWS = 100;

function Filters({ place, contents, problem, onSweep }) {
  const change = (name) => (value) => go({ ...place, command: "results", words: withValue(place.words, name, value.trim()) });
  const problemOf = (name) => (problem?.field === name ? problem.message : undefined);
  const kinds = [...new Set(["verdict", ...Object.keys(contents.kinds)])];
  const sweeps = [["", "all cells"], ...[...contents.sweeps].reverse().map(({ id, name }) => [String(id), `${id}: ${name}`])];
  const chosen = valueOf(place.options, "sweep");
  const sweep = contents.sweeps.find(({ id, name }) => String(id) === chosen || name === chosen);
  const text = (name, label, hint) => html`<${Field} label=${label} value=${valueOf(place.words, name)} onChange=${change(name)} problem=${problemOf(name)} placeholder=${hint} />`;
  return html`<form class="filters" role="search" aria-label="Conditions" onSubmit=${(event) => event.preventDefault()}>
    <${Choice} label="Sweep" value=${sweep ? String(sweep.id) : chosen} options=${sweeps} onChange=${onSweep} />
    ${kinds.length > 1 && html`<${Choice} label="Kind of work" value=${valueOf(place.options, "kind") || "verdict"} options=${kinds}
      onChange=${(value) => go({ ...place, options: withValue(place.options, "kind", value === "verdict" ? "" : value) })} />`}
    ${text("construction", "Construction", "any")}
    ${text("mechanism", "Mechanism", "softmax,linear")}
    <${Choice} label="Verdict" value=${valueOf(place.words, "verdict")} options=${[["", "any"], ...VERDICTS]} onChange=${change("verdict")} />
    <${Choice} label="Status" value=${valueOf(place.words, "status")} options=${[["", "any"], "done", "refused", "failed"]} onChange=${change("status")} />
    ${text("n", "n", "1e3:1e6")}
    <${Field} label="More conditions" value=${otherConditions(place.words)} placeholder="a1=0.7 engine=closed"
      problem=${problem && !["construction", "mechanism", "n"].includes(problem.field) ? problem.message : undefined}
      onChange=${(text) => go({ ...place, words: withOtherConditions(place.words, text) })} />
  </form>`;
}

// A page of cells and the number of cells by verdict, loaded again when the address or the store changes.
function useCells(place, contents, reachable, after) {
  const [state, setState] = useState({ page: null, counts: null, problem: null, step: null });
  const asks = useMemo(() => [latest(), latest()], []);
  const words = JSON.stringify([place.words, place.options]);
  useEffect(() => {
    const options = place.options.filter(([name]) => name === "sweep" || name === "kind");
    const update = (more) => setState((now) => ({ ...now, ...more }));
    const failed = (error) => { if (error.name !== "AbortError") update({ problem: error, step: null }); };
    const paged = [...options, ["limit", valueOf(place.options, "limit") || PAGE_ROWS], ...(after ? [["after", after]] : [])];
    asks[0]((signal) => get(`/results${query(place.words, paged)}`, { signal, step: (step) => update({ step }) }))
      .then((page) => update({ page, problem: null, step: null }), failed);
    asks[1]((signal) => get(`/results/counts${query(place.words, options)}`, { signal, step: () => {} }))
      .then((counts) => update({ counts }), (error) => error.name !== "AbortError" && update({ counts: null }));
  }, [words, after, contents.cells, reachable]);
  return state;
}

export function Cells({ place, contents, reachable, onSweep }) {
  const address = JSON.stringify([place.words, place.options]);
  const [pages, setPages] = useState({ address, places: [""] });
  const places = pages.address === address ? pages.places : [""];
  const { page, counts, problem, step } = useCells(place, contents, reachable, places.at(-1));
  const command = commandOf({ ...place, command: "results", names: [], options: [...place.options, ...storeOption(contents.store)] });
  const move = (next) => setPages({ address, places: next });
  return html`<section aria-labelledby="cells-head">
    <h2 id="cells-head">Cells</h2>
    <${Filters} place=${place} contents=${contents} problem=${problem} onSweep=${onSweep} />
    ${step && html`<${Progress} step=${step} />`}
    <p role="status">${problem ? "" : counts ? describeCounts(counts) : "Counting …"}</p>
    ${page?.warning && html`<p class="problem" role="alert">${page.warning}</p>`}
    ${page && !problem && html`<${CellTable} cells=${page.cells} />`}
    ${page && !problem && (page.next || places.length > 1) && html`<nav class="pages" aria-label="Pages of cells">
      <button type="button" class="quiet" disabled=${places.length < 2} onClick=${() => move(places.slice(0, -1))}>Previous</button>
      <span>page ${places.length}</span>
      <button type="button" class="quiet" disabled=${!page.next} onClick=${() => move([...places, page.next])}>Next</button>
    </nav>`}
    <p class="hint">In a terminal, with this store: <code>${command}</code> <${CopyButton} text=${() => command} label="Copy" />${contents.store.includes("***") && " Type the password instead of ***."}</p>
  </section>`;
}

function describeCounts(counts) {
  if (!counts.cells) return "No stored cell meets these conditions.";
  const words = Object.entries(counts.came).map(([word, count]) => `${count.toLocaleString("en")} ${word}`).join(", ");
  return `${counts.cells.toLocaleString("en")} ${counts.cells === 1 ? "cell" : "cells"}: ${words}.`;
}

function CellTable({ cells }) {
  const [open, setOpen] = useState(null);
  useEffect(() => setOpen((now) => (cells.length === 1 ? cells[0].id : now)), [cells]);
  const { varying, left, shared } = useMemo(() => splitParameters(cells), [cells]);
  if (!cells.length) return null;
  const areVerdicts = cells[0].kind === undefined;
  const head = ["", "Construction", "Mechanism", ...varying, ...(areVerdicts ? ["Verdict", "P(tells apart)", "Engine"] : ["Seed", "Status", "Result"])];
  return html`
    ${shared.length > 0 && html`<p class="hint">Common to all: ${shared.map(([name, value]) => `${name}=${spellValue(value)}`).join(" ")}</p>`}
    ${left > 0 && html`<p class="hint">${left} more parameters differ; the details of a cell show them.</p>`}
    <div class="scroll tall" tabindex="0" role="region" aria-label="Stored cells"><table>
      <thead><tr>${head.map((name) => html`<th key=${name} scope="col">${name || html`<span class="visually-hidden">Details</span>`}</th>`)}</tr></thead>
      <tbody>${cells.map((cell, i) => html`<${CellRow} key=${`${cell.id} ${cell.part ?? ""} ${i}`} cell=${cell} varying=${varying} areVerdicts=${areVerdicts} columns=${head.length}
        isOpen=${open === cell.id} toggle=${() => setOpen(open === cell.id ? null : cell.id)} />`)}</tbody>
    </table></div>`;
}

function CellRow({ cell, varying, areVerdicts, columns, isOpen, toggle }) {
  const word = cell.verdict ?? cell.status;
  return html`<tr>
      <td><button type="button" class="quiet small" aria-expanded=${isOpen ? "true" : "false"} onClick=${toggle} aria-label=${`Details of ${cell.mechanism ?? "this cell"}`}>${isOpen ? "−" : "+"}</button></td>
      <td>${cell.construction ?? cell.parameters?.task ?? ""}</td><td>${cell.mechanism ?? ""}</td>
      ${varying.map((name) => html`<td key=${name} class="number">${spellValue(cell.parameters?.[name] ?? "")}</td>`)}
      ${areVerdicts ? html`<td><span class=${`word ${VERDICTS.includes(word) ? word : "none"}`}>${word}</span></td>
        <td class="number">${cell.verdict ? describeProbability(cell) : cell.message ?? ""}</td><td>${cell.engine ?? ""}</td>`
        : html`<td class="number">${cell.seed ?? ""}</td><td>${cell.status}</td>
        <td>${[cell.outcome, cell.score === null || cell.score === undefined ? "" : `score ${forPeople(cell.score, 4)}`, cell.message].filter(Boolean).join(", ")}</td>`}
    </tr>
    ${isOpen && html`<tr class="details"><td colspan=${columns}><${Details} cell=${cell} isVerdict=${areVerdicts} /></td></tr>`}`;
}

const HIDDEN = new Set(["parameters", "versions", "neuron", "interval", "construction", "mechanism", "kind", "distinguish"]);
const SAMPLING = new Set(["draws", "seed", "confidence", "dtype", "until_decided"]);
const NAMES = {
  fire_d0: "P(the reader fires on D0)", fire_d1: "P(the reader fires on D1)", bits: "significant bits", asked: "requested engine", delta: "delta of the verdict",
  code: "version of the code", seconds: "computing time, seconds", finished: "finished", host: "machine", id: "identity", part: "part of the plan", message: "message",
  validation_score: "score on validation samples", score: "score on test samples", last_step: "steps", weight_count: "weights", state_bytes: "state, bytes", solved_at: "solved after step",
};

function valueText(value) {
  return typeof value === "number" && !Number.isInteger(value) ? forPeople(value) : String(value);
}

function Details({ cell, isVerdict }) {
  const question = isVerdict ? questionOf(cell) : null;
  const isExact = cell.interval && cell.interval[0] === cell.interval[1];
  const hidden = (name) => HIDDEN.has(name) || (isExact && SAMPLING.has(name)) || name in (cell.parameters ?? {});
  const others = Object.entries(cell).filter(([name, value]) => value !== null && !hidden(name));
  const neuron = (name) => (cell.neuron[name] === null ? "not known" : valueText(cell.neuron[name]));
  const rows = [
    ["parameters", Object.entries(cell.parameters ?? {}).map(([name, value]) => `${name}=${spellValue(value)}`).join(" ")],
    ...(cell.interval ? [["P(tells apart)", isExact ? `${forPeople(cell.distinguish, 12)}, exact` : `${forPeople(cell.distinguish)} in [${forPeople(cell.interval[0])}, ${forPeople(cell.interval[1])}]`]] : []),
    ...(isVerdict && cell.verdict ? [["P(one neuron fires on D0)", neuron("p0")], ["P(it fires on D1)", neuron("p1")], ["P(it fires on neither)", neuron("q")]] : []),
    ...others.map(([name, value]) => [NAMES[name] ?? name, valueText(value)]),
    ["versions", Object.entries(cell.versions ?? {}).map(([name, value]) => `${name} ${value}`).join(", ")],
  ];
  return html`<dl>${rows.map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>
    ${question && html`<p>Compute it again: <${Link} to=${question}><code>${commandOf(question)}</code><//> <${CopyButton} text=${() => commandOf(question)} label="Copy" /></p>`}`;
}
