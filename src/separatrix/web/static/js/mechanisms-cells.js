// The cells of the atlas, kept while the page is open, and how they are filled in: first what closed forms answer
// at the reference points, a row at a time; then these cells in full; sampled ones only when they are asked for.

import { get, Problem } from "./api.js";
import { query } from "./address.js";
import { useEffect, useRef, useState } from "./framework.js";

const cells = new Map();
const asked = new Set();
const failed = new Map();
const CLOSED = new Set(["certified", "closed"]);
let known = null;

const key = (row, column) => `${row.mechanism}\n${column.name}`;

export function cellOf(row, column) {
  return cells.get(key(row, column));
}

export function failureOf(row, column) {
  return failed.get(key(row, column));
}

function keep(found) {
  for (const cell of found) cells.set(`${cell.mechanism}\n${cell.construction}`, cell);
}

function isWhole(cell) {
  return cell !== undefined && (cell.verdict === "none" || cell.rescued_by !== undefined);
}

function isClosed(cell) {
  return cell !== undefined && CLOSED.has(cell.kind);
}

// How many cells there are, how many are known at all, how many closed forms answer, how many are whole; and
// how many rows were asked for what closed forms answer.
export function count(rows, columns) {
  const found = { rows: 0, all: 0, some: 0, closed: 0, closedWhole: 0, whole: 0 };
  for (const row of rows) {
    found.rows += asked.has(row.mechanism);
    for (const column of columns) {
      const cell = cellOf(row, column);
      found.all += 1;
      found.some += cell !== undefined;
      found.whole += isWhole(cell) || failed.has(key(row, column));
      found.closed += isClosed(cell);
      found.closedWhole += isClosed(cell) && (isWhole(cell) || failed.has(key(row, column)));
    }
  }
  return found;
}

// What to ask for next, or null.
function next(rows, columns, { details, sampled }) {
  const row = rows.find((each) => !asked.has(each.mechanism));
  if (row) return { row, path: "/atlas/verdicts", options: [["mechanisms", row.asked_as]] };
  const wanted = [details && isClosed, sampled && (() => true)].filter(Boolean);
  for (const isWanted of wanted) {
    for (const each of rows) {
      for (const column of columns) {
        const cell = cellOf(each, column);
        if (!isWanted(cell) || isWhole(cell) || failed.has(key(each, column))) continue;
        return { row: each, column, path: "/atlas", options: [["mechanisms", each.asked_as], ["constructions", column.construction]] };
      }
    }
  }
  return null;
}

async function fill(wish, signal, changed) {
  known ??= get("/atlas/known", { signal });
  try {
    const { verdicts, cells: whole } = await known;
    keep(verdicts);
    keep(whole);
  } catch (error) {
    known = null;
    throw error;
  }
  changed();
  for (let job = next(...wish()); job && !signal.aborted; job = next(...wish())) {
    try {
      keep(await get(`${job.path}${query([], job.options)}`, { signal, step: () => {} }));
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      if (job.column) failed.set(key(job.row, job.column), error.message);
    }
    if (!job.column) asked.add(job.row.mechanism);
    changed();
  }
}

// Fills in the cells of these rows as long as the view is shown; `details` and `sampled` say how much of it.
// Returns how many times something has come, and whether it is at work.
export function useFilling(rows, columns, { details, sampled, reachable }) {
  const [version, setVersion] = useState(0);
  const [working, setWorking] = useState(false);
  const wish = useRef(null);
  const running = useRef(null);
  wish.current = [rows, columns, { details, sampled }];
  const start = () => {
    if (running.current || !reachable || !rows.length) return;
    const mine = new AbortController();
    running.current = mine;
    let drawing = null;
    const draw = () => { drawing = null; if (!mine.signal.aborted) setVersion((old) => old + 1); };
    setWorking(true);
    fill(() => wish.current, mine.signal, () => { drawing ??= setTimeout(draw, 80); })
      .catch(() => {})
      .finally(() => {
        if (running.current !== mine) return;
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
  return { version, working };
}
