// The cells of the atlas, which are cached while the page is open. First the closed forms at the reference points are
// loaded, row by row; then these cells in full; sampled cells only on request.

import { get, Problem } from "./api.js";
import { query } from "./address.js";
import { useEffect, useRef, useState } from "./framework.js";

const cells = new Map();
const surveyedRows = new Set();
const failures = new Map();
const CLOSED = new Set(["certified", "closed"]);
let computedCells = null;

const key = (row, column) => `${row.mechanism}\n${column.name}`;

export function cellOf(row, column) {
  return cells.get(key(row, column));
}

export function failureOf(row, column) {
  return failures.get(key(row, column));
}

function addCells(rows) {
  for (const cell of rows) cells.set(`${cell.mechanism}\n${cell.construction}`, cell);
}

function isComplete(cell) {
  return cell !== undefined && (cell.verdict === "none" || cell.rescued_by !== undefined);
}

function isClosed(cell) {
  return cell !== undefined && CLOSED.has(cell.kind);
}

// Counts: rows whose closed forms were loaded, all cells, cells with a verdict, cells of closed forms, those of them that are
// complete, and all complete cells.
export function countCells(rows, columns) {
  const counts = { rows: 0, all: 0, known: 0, closed: 0, closedComplete: 0, complete: 0 };
  for (const row of rows) {
    counts.rows += surveyedRows.has(row.mechanism);
    for (const column of columns) {
      const cell = cellOf(row, column);
      counts.all += 1;
      counts.known += cell !== undefined;
      counts.complete += isComplete(cell) || failures.has(key(row, column));
      counts.closed += isClosed(cell);
      counts.closedComplete += isClosed(cell) && (isComplete(cell) || failures.has(key(row, column)));
    }
  }
  return counts;
}

// The next request, or null.
function nextRequest(rows, columns, { details, sampled }) {
  const row = rows.find(({ mechanism }) => !surveyedRows.has(mechanism));
  if (row) return { row, path: "/atlas/verdicts", options: [["mechanisms", row.asked_as]] };
  const conditions = [details && isClosed, sampled && (() => true)].filter(Boolean);
  for (const isWanted of conditions) {
    for (const candidate of rows) {
      for (const column of columns) {
        const cell = cellOf(candidate, column);
        if (!isWanted(cell) || isComplete(cell) || failures.has(key(candidate, column))) continue;
        return { row: candidate, column, path: "/atlas", options: [["mechanisms", candidate.asked_as], ["constructions", column.construction]] };
      }
    }
  }
  return null;
}

async function loadCells(currentWish, signal, onChange) {
  computedCells ??= get("/atlas/known", { signal });
  try {
    const { verdicts, cells: completeCells } = await computedCells;
    addCells(verdicts);
    addCells(completeCells);
  } catch (error) {
    computedCells = null;
    throw error;
  }
  onChange();
  for (let job = nextRequest(...currentWish()); job && !signal.aborted; job = nextRequest(...currentWish())) {
    try {
      addCells(await get(`${job.path}${query([], job.options)}`, { signal, step: () => {} }));
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      if (job.column) failures.set(key(job.row, job.column), error.message);
    }
    if (!job.column) surveyedRows.add(job.row.mechanism);
    onChange();
  }
}

// Loads the cells of these rows while the view is shown; `details` and `sampled` choose how much. Returns a number that
// changes with the cells, and whether it is loading.
export function useCells(rows, columns, { details, sampled, reachable }) {
  const [version, setVersion] = useState(0);
  const [isWorking, setWorking] = useState(false);
  const wish = useRef(null);
  const running = useRef(null);
  wish.current = [rows, columns, { details, sampled }];
  const start = () => {
    if (running.current || !reachable || !rows.length) return;
    const controller = new AbortController();
    running.current = controller;
    let timer = null;
    const draw = () => { timer = null; if (!controller.signal.aborted) setVersion((old) => old + 1); };
    setWorking(true);
    loadCells(() => wish.current, controller.signal, () => { timer ??= setTimeout(draw, 80); })
      .catch(() => {})
      .finally(() => {
        if (running.current !== controller) return;
        running.current = null;
        setWorking(false);
        draw();
      });
  };
  const stop = () => {
    running.current?.abort();
    running.current = null;
    setWorking(false);
  };
  useEffect(() => { start(); return stop; }, [details, sampled, reachable]);
  useEffect(start, [rows.map((row) => row.mechanism).sort().join(), columns.map((column) => column.name).join()]);
  return { version, isWorking };
}
