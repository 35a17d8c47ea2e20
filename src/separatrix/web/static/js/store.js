// The store: sweeps as they grow, their cells, curves and maps, and the comparison of two sweeps. It is only read.

import { html, useEffect, useState } from "./framework.js";
import { go } from "./address.js";
import { get } from "./api.js";
import { Choice } from "./parts.js";
import { Cells } from "./store-cells.js";
import { Comparison } from "./store-compare.js";
import { Figures } from "./store-figures.js";
import { progressText, valueOf, withValue } from "./store-words.js";
import { Link, useSheet } from "./sheet.js";

const BUSY_PERIOD = 1500; // ms between requests while a sweep runs
const IDLE_PERIOD = 5000;
const NO_STORE = "The page was started without a store.";

// The contents of the store, loaded again while the page is visible, more often while a sweep runs.
function useContents(reachable) {
  const [contents, setContents] = useState(null);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    let isEnded = false;
    let timer = null;
    let hasStore = null;
    const load = async () => {
      if (isEnded || hasStore === false) return;
      let wait = IDLE_PERIOD;
      if (document.visibilityState === "visible") {
        const start = performance.now();
        try {
          hasStore ??= (await get("/about")).has_store;
          if (!hasStore) {
            if (!isEnded) setProblem(NO_STORE);
            return;
          }
          const next = await get("/store");
          if (isEnded) return;
          setContents(next);
          setProblem("");
          wait = Math.max(next.running ? BUSY_PERIOD : IDLE_PERIOD, 5 * (performance.now() - start));
        } catch (error) {
          if (isEnded) return;
          setProblem(error.message);
        }
      }
      timer = setTimeout(load, wait);
    };
    const onVisible = () => { if (document.visibilityState === "visible") { clearTimeout(timer); load(); } };
    document.addEventListener("visibilitychange", onVisible);
    if (reachable) load();
    return () => { isEnded = true; clearTimeout(timer); document.removeEventListener("visibilitychange", onVisible); };
  }, [reachable]);
  return [contents, problem];
}

function SweepRow({ sweep, isChosen }) {
  const place = { command: "results", names: [], words: [], options: [["sweep", String(sweep.id)]] };
  const share = sweep.planned ? sweep.stored / sweep.planned : 1;
  return html`<tr aria-current=${isChosen ? "true" : undefined}>
    <td class="number">${sweep.id}</td>
    <td><${Link} to=${place}>${sweep.name || "unnamed"}<//></td>
    <td>${sweep.started.slice(0, 16).replace("T", " ")}</td>
    <td><progress max="1" value=${share} aria-label=${`Sweep ${sweep.id}: ${progressText(sweep)}`}></progress>
      <span class="how-far">${progressText(sweep)}</span></td>
  </tr>`;
}

function Sweeps({ contents, chosen }) {
  if (!contents.sweeps.length && contents.warning) return html`<p>No sweep of this store is intact. <code>separatrix store check</code> reports the damage, <code>separatrix store repair</code> keeps the intact cells.</p>`;
  if (!contents.sweeps.length) return html`<p>No sweep is stored yet. <code>separatrix sweep plan.toml</code> fills the store.</p>`;
  const newest = [...contents.sweeps].reverse();
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Sweeps"><table class="sweeps">
    <thead><tr><th scope="col" class="number">No.</th><th scope="col">Sweep</th><th scope="col">Started (UTC)</th><th scope="col">Stored</th></tr></thead>
    <tbody>${newest.map((sweep) => html`<${SweepRow} key=${sweep.id} sweep=${sweep} isChosen=${chosen === String(sweep.id) || chosen === sweep.name} />`)}</tbody>
  </table></div>`;
}

function CompareForm({ sweeps, one, other }) {
  const options = [...sweeps].reverse().map(({ id, name }) => [String(id), `${id}: ${name}`]);
  const [left, setLeft] = useState(one ?? options[0][0]);
  const [right, setRight] = useState(other ?? options[1][0]);
  const submit = (event) => { event.preventDefault(); go({ command: "compare", names: [left, right], words: [], options: [] }); };
  return html`<form class="compare-form" onSubmit=${submit}>
    <${Choice} label="Compare" value=${left} options=${options} onChange=${setLeft} />
    <${Choice} label="with" value=${right} options=${options} onChange=${setRight} />
    <button type="submit" disabled=${left === right}>Show changes</button>
  </form>`;
}

function describeContents(contents) {
  const count = (number, noun) => `${number.toLocaleString("en")} ${number === 1 ? noun : `${noun}s`}`;
  const runs = contents.running ? `${count(contents.running, "run")} in progress` : "no run in progress";
  return `${count(contents.sweeps.length, "sweep")}, ${count(contents.cells, "cell")}; ${runs}`;
}

export function View({ place, reachable }) {
  useSheet("/static/figures.css");
  useSheet("/static/store.css");
  const [contents, problem] = useContents(reachable);
  const sweep = valueOf(place.options, "sweep");
  const isComparison = place.command === "compare";
  const choose = (value) => go({ ...place, command: "results", names: [], options: withValue(place.options, "sweep", value) });
  if (!contents) {
    return html`<h1>Store</h1>${problem ? html`<p class="problem" role="alert">${problem}</p><${StartHelp} />` : html`<p class="waiting" role="status">Loading the store …</p>`}`;
  }
  const growing = contents.sweeps.find(({ id, name }) => String(id) === sweep || name === sweep);
  const areVerdicts = (valueOf(place.options, "kind") || "verdict") === "verdict";
  const cellsFirst = place.words.length > 0 || !sweep;
  const cells = html`<${Cells} key="cells" place=${place} contents=${contents} reachable=${reachable} onSweep=${choose} />`;
  const figures = sweep && html`<${Figures} key=${`figures ${sweep}`} sweep=${sweep} words=${areVerdicts ? place.words : []} hasOtherConditions=${!areVerdicts && place.words.length > 0} growing=${growing} reachable=${reachable} />`;
  return html`<div class="store">
    <h1>Store <code>${contents.store}</code></h1>
    <p role="status" class=${contents.running ? "at-work" : ""}>${describeContents(contents)}.</p>
    ${problem && html`<p class="problem" role="alert">${problem}</p>`}
    ${contents.warning && html`<p class="problem" role="alert">${contents.warning}</p>`}
    <h2>Sweeps</h2>
    <${Sweeps} contents=${contents} chosen=${sweep} />
    ${contents.sweeps.length > 1 && html`<${CompareForm} key=${place.names.join("/")} sweeps=${contents.sweeps} one=${isComparison ? place.names[0] : undefined} other=${isComparison ? place.names[1] : undefined} />`}
    ${isComparison ? html`<${Comparison} place=${place} reachable=${reachable} />` : html`
      ${cellsFirst ? [cells, figures] : [figures, cells]}`}
  </div>`;
}

function StartHelp() {
  return html`<p>Start the page with a store: <code>separatrix explore --store sqlite:///results.db</code>.
    A store is filled by <code>separatrix sweep plan.toml --store sqlite:///results.db</code>; cells appear here while it runs.</p>`;
}
