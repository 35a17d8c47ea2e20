// The certified boundary of each mechanism: where P(tells apart) passes 1/2 along one axis, at some values of the other. The
// search begins when the map is at rest, and is cancelled when it moves.

import { useEffect, useState } from "./framework.js";
import { get } from "./api.js";
import { query, splitMechanisms } from "./address.js";
import { readAxis } from "./cells.js";

const MAX_VALUES = 17; // of the other axis

// { name, path } for each mechanism. The search is along an axis that is not integer, where there is one.
export function boundaryPaths(place, axes, whole) {
  const [x, y] = axes;
  const [along, over] = whole.includes(x) && !whole.includes(y) ? [y, x] : [x, y];
  const text = Object.fromEntries(place.words);
  const [search, values] = [readAxis(text[along]), readAxis(text[over])];
  if (!search || !values) return [];
  const fixed = place.words.filter(([name]) => name !== along && name !== over);
  const range = `${search.low}:${search.high}${search.log ? ":log" : ""}`;
  const counted = values.list ? values.list.join(",") : `${values.low}:${values.high}:${Math.min(MAX_VALUES, values.count)}${values.log ? ":log" : ""}`;
  const options = [...place.options.filter(([name]) => ["engine", "draws", "seed", "confidence"].includes(name)), ["over", `${over}=${counted}`]];
  return splitMechanisms(place.names[1]).map((name) => ({
    name,
    path: `/boundary/${encodeURIComponent(place.names[0])}/${encodeURIComponent(name)}${query([[along, range], ...fixed], options)}`,
  }));
}

// The curves by mechanism, the progress of the search, and a function that ends it.
export function useBoundary(paths, isWanted, reachable) {
  const [state, setState] = useState({ key: "", curves: {}, step: null, problem: null });
  const key = JSON.stringify(paths);
  const [endedKey, setEndedKey] = useState("");
  const isSearching = isWanted && reachable && paths.length > 0 && endedKey !== key;
  useEffect(() => {
    if (!isSearching) return undefined;
    const controller = new AbortController();
    const update = (change) => !controller.signal.aborted && setState((now) => ({ ...now, ...change }));
    const search = async () => {
      await new Promise((resolve) => setTimeout(resolve, 300));
      if (controller.signal.aborted) return;
      const curves = {};
      setState({ key, curves, step: null, problem: null });
      for (const { name, path } of paths) {
        try {
          curves[name] = await get(path, { signal: controller.signal, step: (step) => update({ step: { what: `boundary of ${name}: ${step.what ?? "started"}` } }) });
        } catch (problem) {
          if (problem.name === "AbortError") return;
          update({ problem: `No boundary of ${name}: ${problem.message}` });
        }
        update({ curves: { ...curves } });
      }
      update({ step: null });
    };
    search();
    return () => controller.abort();
  }, [key, isSearching]);
  const isCurrent = isWanted && state.key === key;
  return { curves: isCurrent ? state.curves : {}, step: isSearching && isCurrent ? state.step : null, problem: isCurrent ? state.problem : null, stop: () => setEndedKey(key) };
}
