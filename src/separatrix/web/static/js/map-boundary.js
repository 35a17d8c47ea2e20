// The certified boundary of each mechanism: where P(tells apart) passes 1/2 along one axis, at some values of the
// other. It is searched when one has let go, and given up when anything moves.

import { useEffect, useState } from "./framework.js";
import { get } from "./api.js";
import { query, splitMechanisms } from "./address.js";
import { readAxis } from "./cells.js";

const VALUES = 17;

// { name, path } for each mechanism; searched along the axis that is no whole number, where there is one.
export function boundaryPaths(place, axes, whole) {
  const [x, y] = axes;
  const [along, over] = whole.includes(x) && !whole.includes(y) ? [y, x] : [x, y];
  const text = Object.fromEntries(place.words);
  const [search, values] = [readAxis(text[along]), readAxis(text[over])];
  if (!search || !values) return [];
  const fixed = place.words.filter(([name]) => name !== along && name !== over);
  const range = `${search.low}:${search.high}${search.log ? ":log" : ""}`;
  const counted = values.list ? values.list.join(",") : `${values.low}:${values.high}:${Math.min(VALUES, values.count)}${values.log ? ":log" : ""}`;
  const options = [...place.options.filter(([name]) => ["engine", "draws", "seed", "confidence"].includes(name)), ["over", `${over}=${counted}`]];
  return splitMechanisms(place.names[1]).map((name) => ({
    name,
    path: `/boundary/${encodeURIComponent(place.names[0])}/${encodeURIComponent(name)}${query([[along, range], ...fixed], options)}`,
  }));
}

// The curves by mechanism, how far the search is, and a way to end it.
export function useBoundary(paths, wanted, reachable) {
  const [state, setState] = useState({ of: "", curves: {}, step: null, problem: null });
  const key = JSON.stringify(paths);
  const [ended, setEnded] = useState("");
  const searching = wanted && reachable && paths.length > 0 && ended !== key;
  useEffect(() => {
    if (!searching) return undefined;
    const ending = new AbortController();
    const tell = (change) => !ending.signal.aborted && setState((now) => ({ ...now, ...change }));
    const search = async () => {
      await new Promise((done) => setTimeout(done, 300));
      if (ending.signal.aborted) return;
      const curves = {};
      setState({ of: key, curves, step: null, problem: null });
      for (const { name, path } of paths) {
        try {
          curves[name] = await get(path, { signal: ending.signal, step: (step) => tell({ step: { what: `boundary of ${name}: ${step.what ?? "started"}` } }) });
        } catch (problem) {
          if (problem.name === "AbortError") return;
          tell({ problem: `No boundary of ${name}: ${problem.message}` });
        }
        tell({ curves: { ...curves } });
      }
      tell({ step: null });
    };
    search();
    return () => ending.abort();
  }, [key, searching]);
  const current = wanted && state.of === key;
  return { curves: current ? state.curves : {}, step: searching && current ? state.step : null, problem: current ? state.problem : null, stop: () => setEnded(key) };
}
