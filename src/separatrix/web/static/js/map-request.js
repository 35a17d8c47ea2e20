// Asking for maps while one drags: a coarse map at once, the fine one when one lets go. At most one request is
// under way, and the latest that is wanted waits; what was wanted in between is dropped.

import { useEffect, useRef, useState } from "./framework.js";
import { getMap } from "./api.js";
import { query } from "./address.js";
import { coarser } from "./cells.js";

export const COARSE = 64;
export const FINEST = 400;

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
      const found = await getMap(want.path, { signal: want.abort.signal, step: (step) => show({ want, step }) });
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
      if (under.fine) under.abort.abort();
      return undefined;
    },
    stop() {
      wanted = null;
      under?.abort.abort();
    },
  };
}

// The latest map of a place: { map, problem, step, stopped, stop, again, slow }. `slow` is how many cells are made along an
// axis where there is no closed form for whole maps; such a map does not follow the drag.
export function useMap(place, moving, pixels, reachable) {
  const [state, setState] = useState({ map: null, problem: null, step: null, stopped: false });
  const [slow, setSlow] = useState({ of: "", cells: 0 });
  const asking = useRef(null);
  if (!asking.current) {
    asking.current = asker(({ want, found, problem, step = null }) => {
      if (!found && !problem) setState((now) => ({ ...now, step }));
      if (found) setState({ map: { ...found, asked: want.asked }, problem: null, step: null, stopped: false });
      if (problem?.mostCells) setSlow({ of: want.of, cells: problem.mostCells });
      if (problem) setState((now) => ({ ...now, problem: problem.mostCells ? null : problem, step: null }));
    });
  }
  useEffect(() => () => asking.current.stop(), []);
  const of = `${place.names.join("/")} ${query([], place.options)}`;
  const cells = slow.of === of ? slow.cells : 0;
  const side = cells ? Math.floor(Math.sqrt(cells)) : 0;
  const across = side || Math.max(2, Math.min(FINEST, pixels.width));
  const up = side || Math.max(2, Math.min(FINEST, pixels.height));
  const coarse = mapPath(place, COARSE);
  const fine = mapPath(place, across, up);
  useEffect(() => {
    if (!reachable || !pixels.width) return;
    if (!cells) asking.current.want({ path: coarse, of, fine: false });
  }, [coarse, reachable, cells, Boolean(pixels.width)]);
  useEffect(() => {
    if (!reachable || !pixels.width || moving || (fine === coarse && !cells)) return;
    asking.current.want({ path: fine, of, fine: true });
  }, [fine, moving, reachable, cells]);
  const stop = () => {
    asking.current.stop();
    setState((now) => ({ ...now, step: null, stopped: true }));
  };
  const again = () => asking.current.want({ path: fine, of, fine: true });
  return { ...state, slow: side, stop, again };
}
