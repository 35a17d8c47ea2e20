// Requests to the server. Errors are { error, field } with the message of the command line. A server that does not answer
// is `Unreachable`; it is asked every second whether it is back.

import { bytesOf, unpack } from "./map-data.js";

const BASE = "/api/v1";
const CELLS = "application/vnd.separatrix.cells";
const LINES = "application/x-ndjson";

export class Problem extends Error {
  constructor({ error, field, most_cells: mostCells }, status) {
    super(error);
    this.field = field ?? null;
    this.mostCells = mostCells ?? null;
    this.status = status;
  }
}

export class Unreachable extends Error {
  constructor() {
    super("The explorer does not answer. Start it again with: separatrix explore");
  }
}

const watchers = new Set();
let isReachable = true;

function setReachable(value) {
  if (value === isReachable) return;
  isReachable = value;
  for (const watcher of watchers) watcher(value);
  if (!value) waitForServer();
}

async function waitForServer() {
  while (!isReachable) {
    await new Promise((resolve) => setTimeout(resolve, 1000));
    try {
      if ((await fetch(`${BASE}/about`, { cache: "no-store" })).ok) setReachable(true);
    } catch {
      // it does not answer yet
    }
  }
}

// Calls the watcher with false when the server goes and with true when it is back; returns a function that ends this.
export function watchServer(watcher) {
  watchers.add(watcher);
  return () => watchers.delete(watcher);
}

async function send(path, accept, signal) {
  let response;
  try {
    response = await fetch(BASE + path, { headers: { accept }, signal, cache: "no-store" });
  } catch (error) {
    return raiseUnreachable(error);
  }
  setReachable(true);
  if (!response.ok) {
    throw new Problem(await response.json().catch(() => ({ error: `the server answers ${response.status}` })), response.status);
  }
  return response;
}

// The document at a path below /api/v1. `step` is called with the progress of slow work.
export async function get(path, { signal, step } = {}) {
  const response = await send(path, step ? `application/json, ${LINES}` : "application/json", signal);
  return response.headers.get("content-type").startsWith(LINES) ? readLines(response, step) : response.json();
}

// A map; one that is computed cell by cell comes in base64 after lines of progress.
export async function getMap(path, { signal, step } = {}) {
  const response = await send(path, `${CELLS}, ${LINES}`, signal);
  const isBinary = response.headers.get("content-type").startsWith(CELLS);
  return unpack(isBinary ? await response.arrayBuffer() : bytesOf(await readLines(response, step ?? (() => {}))));
}

// A request that the page cancelled is no failure of the server.
function raiseUnreachable(error) {
  if (error?.name === "AbortError") throw error;
  setReachable(false);
  throw new Unreachable();
}

async function readLines(response, step) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read().catch(raiseUnreachable);
    if (done) raiseUnreachable();
    rest += value;
    const lines = rest.split("\n");
    rest = lines.pop();
    for (const line of lines) {
      const message = JSON.parse(line);
      if (message.error) throw new Problem(message, 400);
      if (message.result !== undefined) return message.result;
      step(message.step);
    }
  }
}

// Returns a function that sends requests of one kind: a new one cancels the one before.
export function latest() {
  let current = null;
  return async (ask) => {
    current?.abort();
    const controller = new AbortController();
    current = controller;
    try {
      return await ask(controller.signal);
    } finally {
      if (current === controller) current = null;
    }
  };
}
