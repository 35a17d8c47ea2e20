// Asking for maps while one drags: a coarse map at once, the fine one when one lets go. At most one request is
// under way, and the latest that is wanted waits; what was wanted in between is dropped.

import { useEffect, useLayoutEffect, useRef, useState } from "./framework.js";
import { getMap } from "./api.js";
import { query } from "./address.js";
import { coarser } from "./cells.js";

export const COARSE = 64;
export const FINEST = 400;
const SLOW_SIDES = [12, 25, 50]; // cells along an axis where each is computed by itself
const SOON = 5000; // ms that a finer map may take to be made without being asked for

// The path of a map with at most so many cells along each axis.
export function mapPath(place, across, up = across) {
  const axes = place.words.filter(([, value]) => /[:,]/.test(value)).map(([name]) => name);
  const most = { [axes[0]]: across, [axes[1]]: up };
  const words = place.words.map(([name, value]) => [name, name in most ? coarser(value, most[name]) : value]);
  return `/map/${place.names.map(encodeURIComponent).join("/")}${query(words, place.options)}`;
}

function asker(show) {
  let under = null;
  let wanted = null;

  async function ask(want) {
    under = want;
    try {
      const step = (said) => {
        want.slow = true;
        if (wanted) want.abort.abort();
        else show({ want, step: said });
      };
      const found = await getMap(want.path, { signal: want.abort.signal, step });
      show({ want, found });
    } catch (problem) {
      show(problem.name === "AbortError" ? { want } : { want, problem });
    } finally {
      under = null;
      const next = wanted;
      wanted = null;
      if (next) ask(next);
    }
  }

  return {
    want(request) {
      const want = { ...request, abort: new AbortController(), asked: performance.now() };
      if (!under) return ask(want);
      wanted = want;
      if (under.fine || under.slow) under.abort.abort();
      return undefined;
    },
    stop() {
      wanted = null;
      under?.abort.abort();
    },
  };
}

// The latest map of a place: { map, other, problem, step, stopped, stop, again, slow }; `other` is whether it is still of
// other mechanisms or another quantity. Where there is no closed form for whole maps, `slow` is { side, next, wait }: how many cells are made along an axis, how many could be, and about how
// many ms that takes; such a map does not follow the drag.
export function useMap(place, moving, pixels, reachable) {
  const [state, setState] = useState({ map: null, problem: null, step: null, stopped: false });
  const [slow, setSlow] = useState({ of: "", most: 0, side: 0 });
  const asking = useRef(null);
  if (!asking.current) {
    asking.current = asker(({ want, found, problem, step = null }) => {
      if (!found && !problem) setState((now) => ({ ...now, step }));
      if (step?.total > SLOW_SIDES[0] ** 2 && !want.side) setSlow({ of: want.of, most: SLOW_SIDES.at(-1), side: SLOW_SIDES[0] });
      if (found) setState({ map: { ...found, of: want.of, asked: want.asked, took: performance.now() - want.asked }, problem: null, step: null, stopped: false });
      if (problem?.mostCells) setSlow({ of: want.of, most: Math.floor(Math.sqrt(problem.mostCells)), side: SLOW_SIDES[0] });
      if (problem) setState((now) => ({ ...now, problem: problem.mostCells ? null : problem, step: null }));
    });
  }
  useEffect(() => () => asking.current.stop(), []);
  const of = `${place.names.join("/")} ${query([], place.options)}`;
  const side = slow.of === of ? slow.side : 0;
  const across = side || Math.max(2, Math.min(FINEST, pixels.width));
  const up = side || Math.max(2, Math.min(FINEST, pixels.height));
  const coarse = mapPath(place, COARSE);
  const fine = mapPath(place, across, up);
  useLayoutEffect(() => { // before the page is painted: the answer is waited for
    if (reachable && !side) asking.current.want({ path: coarse, of, side: 0, fine: false });
  }, [coarse, reachable, side]);
  useLayoutEffect(() => {
    if (reachable && !moving && (side || (pixels.width && fine !== coarse))) asking.current.want({ path: fine, of, side, fine: true });
  }, [fine, moving, reachable, side]);
  const next = SLOW_SIDES.find((each) => each > side && each <= slow.most);
  const [rows, columns] = state.map?.heading.shape ?? [0, 0];
  const made = side && state.map?.of === of && Math.max(rows, columns) === side;
  const wait = made && next ? (state.map.took * next * next) / (rows * columns) : Infinity;
  const finer = () => next && setSlow((now) => ({ ...now, side: next }));
  useEffect(() => { if (wait < SOON && !moving) finer(); }, [wait < SOON, moving, side]);
  const stop = () => {
    asking.current.stop();
    setState((now) => ({ ...now, step: null, stopped: true }));
  };
  const again = () => asking.current.want({ path: fine, of, side, fine: true });
  const other = state.map !== null && state.map.of !== of;
  return { ...state, other, stop, again, slow: side ? { side, next: made ? next : null, wait, finer } : null };
}
