// Asking the server. Errors are { error, field } in the words of the command line; a server that is gone is
// `Unreachable`, and `whenBack` calls once it answers again.

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
let reachable = true;

function note(now) {
  if (now === reachable) return;
  reachable = now;
  for (const watcher of watchers) watcher(now);
  if (!now) wait();
}

async function wait() {
  while (!reachable) {
    await new Promise((done) => setTimeout(done, 1000));
    try {
      if ((await fetch(`${BASE}/about`, { cache: "no-store" })).ok) note(true);
    } catch {
      // still gone
    }
  }
}

// Calls with false when the server goes and with true when it is back; returns what ends it.
export function watchServer(watcher) {
  watchers.add(watcher);
  return () => watchers.delete(watcher);
}

async function send(path, accept, signal) {
  let response;
  try {
    response = await fetch(BASE + path, { headers: { accept }, signal, cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    note(false);
    throw new Unreachable();
  }
  note(true);
  if (!response.ok) {
    throw new Problem(await response.json().catch(() => ({ error: `the server answers ${response.status}` })), response.status);
  }
  return response;
}

// The document at a path below /api/v1.
export async function get(path, { signal, step } = {}) {
  const response = await send(path, step ? `application/json, ${LINES}` : "application/json", signal);
  return response.headers.get("content-type").startsWith(LINES) ? lines(response, step) : response.json();
}

// A map: { heading, arrays }, arrays of float64 in the order of heading.arrays. One that is made a cell at a time
// comes after lines of progress, in base64.
export async function getMap(path, { signal, step } = {}) {
  const response = await send(path, `${CELLS}, ${LINES}`, signal);
  const kind = response.headers.get("content-type");
  if (kind.startsWith(CELLS)) return unpack(await response.arrayBuffer());
  const text = window.atob(await lines(response, step ?? (() => {})));
  return unpack(Uint8Array.from(text, (each) => each.charCodeAt(0)).buffer);
}

export function unpack(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const heading = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));
  const cells = heading.shape[0] * heading.shape[1];
  const arrays = heading.arrays.map((_, i) => new Float64Array(buffer, 8 + length + 8 * cells * i, cells));
  return { heading, arrays };
}

// A stream that ends before its result: given up by the page, or the server is gone.
function gone(error) {
  if (error?.name === "AbortError") throw error;
  note(false);
  throw new Unreachable();
}

async function lines(response, step) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read().catch(gone);
    if (done) gone();
    rest += value;
    const whole = rest.split("\n");
    rest = whole.pop();
    for (const line of whole) {
      const said = JSON.parse(line);
      if (said.error) throw new Problem(said, 400);
      if (said.result !== undefined) return said.result;
      step(said.step);
    }
  }
}

// Only the latest of a kind of request: an older one is given up.
export function latest() {
  let current = null;
  return async (ask) => {
    current?.abort();
    const mine = new AbortController();
    current = mine;
    try {
      return await ask(mine.signal);
    } finally {
      if (current === mine) current = null;
    }
  };
}
