// Requests for maps during a drag: a coarse map at once, the fine one when the pointer is released. At most one request is
// under way, and only the latest one waits.

import { useEffect, useLayoutEffect, useRef, useState } from "./framework.js";
import { getMap } from "./api.js";
import { query } from "./address.js";
import { coarsenAxis } from "./cells.js";

export const COARSE = 64; // cells along an axis during a drag
export const FINEST = 400;
const SLOW_SIDES = [12, 25, 50]; // cells along an axis where each cell is computed by itself
const MAX_WAIT = 5000; // ms that a finer map may take to be computed without being asked for

// The path of a map with at most so many cells along each axis.
export function mapPath(place, across, up = across) {
  const axes = place.words.filter(([, value]) => /[:,]/.test(value)).map(([name]) => name);
  const most = { [axes[0]]: across, [axes[1]]: up };
  const words = place.words.map(([name, value]) => [name, name in most ? coarsenAxis(value, most[name]) : value]);
  return `/map/${place.names.map(encodeURIComponent).join("/")}${query(words, place.options)}`;
}

function createQueue(show) {
  let current = null;
  let waiting = null;

  async function send(request) {
    current = request;
    try {
      const step = (progress) => {
        request.isSlow = true;
        if (waiting) request.controller.abort();
        else show({ request, step: progress });
      };
      const map = await getMap(request.path, { signal: request.controller.signal, step });
      show({ request, map });
    } catch (problem) {
      show(problem.name === "AbortError" ? { request } : { request, problem });
    } finally {
      current = null;
      const next = waiting;
      waiting = null;
      if (next) send(next);
    }
  }

  return {
    add(options) {
      const request = { ...options, controller: new AbortController(), sentAt: performance.now() };
      if (!current) return send(request);
      waiting = request;
      if (current.isFine || current.isSlow) current.controller.abort();
      return undefined;
    },
    stop() {
      waiting = null;
      current?.controller.abort();
    },
  };
}

// The latest map of a place: { map, isOutdated, problem, step, isStopped, stop, again, slow }. `isOutdated` if the map is
// still of other mechanisms or another quantity. Where there is no closed form for whole maps, `slow` is { side, next,
// wait, finer }: the cells along an axis now and in the next finer map, and about how many ms that takes; such a map does
// not follow the drag.
export function useMap(place, moving, pixels, reachable) {
  const [state, setState] = useState({ map: null, problem: null, step: null, isStopped: false });
  const [slow, setSlow] = useState({ subject: "", most: 0, side: 0 });
  const queue = useRef(null);
  if (!queue.current) {
    queue.current = createQueue(({ request, map, problem, step = null }) => {
      const { subject, sentAt } = request;
      if (!map && !problem) setState((now) => ({ ...now, step }));
      if (step?.total > SLOW_SIDES[0] ** 2 && !request.side) setSlow({ subject, most: SLOW_SIDES.at(-1), side: SLOW_SIDES[0] });
      if (map) setState({ map: { ...map, subject, requestedAt: sentAt, duration: performance.now() - sentAt }, problem: null, step: null, isStopped: false });
      if (problem?.mostCells) setSlow({ subject, most: Math.floor(Math.sqrt(problem.mostCells)), side: SLOW_SIDES[0] });
      if (problem) setState((now) => ({ ...now, problem: problem.mostCells ? null : problem, step: null }));
    });
  }
  useEffect(() => () => queue.current.stop(), []);
  const subject = `${place.names.join("/")} ${query([], place.options)}`;
  const side = slow.subject === subject ? slow.side : 0;
  const across = side || Math.max(2, Math.min(FINEST, pixels.width));
  const up = side || Math.max(2, Math.min(FINEST, pixels.height));
  const coarse = mapPath(place, COARSE);
  const fine = mapPath(place, across, up);
  useLayoutEffect(() => { // before the page is painted, so that the answer comes sooner
    if (reachable && !side) queue.current.add({ path: coarse, subject, side: 0, isFine: false });
  }, [coarse, reachable, side]);
  useLayoutEffect(() => {
    if (reachable && !moving && (side || (pixels.width && fine !== coarse))) queue.current.add({ path: fine, subject, side, isFine: true });
  }, [fine, moving, reachable, side]);
  const next = SLOW_SIDES.find((option) => option > side && option <= slow.most);
  const [rows, columns] = state.map?.heading.shape ?? [0, 0];
  const isComplete = side && state.map?.subject === subject && Math.max(rows, columns) === side;
  const wait = isComplete && next ? (state.map.duration * next * next) / (rows * columns) : Infinity;
  const finer = () => next && setSlow((now) => ({ ...now, side: next }));
  useEffect(() => { if (wait < MAX_WAIT && !moving) finer(); }, [wait < MAX_WAIT, moving, side]);
  const stop = () => {
    queue.current.stop();
    setState((now) => ({ ...now, step: null, isStopped: true }));
  };
  const again = () => queue.current.add({ path: fine, subject, side, isFine: true });
  const isOutdated = state.map !== null && state.map.subject !== subject;
  return { ...state, isOutdated, stop, again, slow: side ? { side, next: isComplete ? next : null, wait, finer } : null };
}
