// The store: sweeps as they grow, their cells, curves and maps, and two sweeps side by side. Nothing is changed.

import { html, useEffect, useState } from "./framework.js";
import { go } from "./address.js";
import { get } from "./api.js";
import { Choice } from "./parts.js";
import { Cells } from "./store-cells.js";
import { Comparison } from "./store-compare.js";
import { Figures } from "./store-figures.js";
import { progressText, valueOf, withValue } from "./store-words.js";
import { Link, useSheet } from "./sheet.js";

const BUSY = 1500;
const IDLE = 5000;

const NONE = "The page was started without a store.";

// What the store holds, asked again while somebody looks: often while a sweep runs, else now and then.
function useContents(reachable) {
  const [contents, setContents] = useState(null);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    let ended = false;
    let timer = null;
    let named = null;
    const look = async () => {
      if (ended || named === false) return;
      let wait = IDLE;
      if (document.visibilityState === "visible") {
        const start = performance.now();
        try {
          named ??= (await get("/about")).has_store;
          if (!named) {
            if (!ended) setProblem(NONE);
            return;
          }
          const found = await get("/store");
          if (ended) return;
          setContents(found);
          setProblem("");
          wait = Math.max(found.running ? BUSY : IDLE, 5 * (performance.now() - start));
        } catch (error) {
          if (ended) return;
          setProblem(error.message);
        }
      }
      timer = setTimeout(look, wait);
    };
    const seen = () => { if (document.visibilityState === "visible") { clearTimeout(timer); look(); } };
    document.addEventListener("visibilitychange", seen);
    if (reachable) look();
    return () => { ended = true; clearTimeout(timer); document.removeEventListener("visibilitychange", seen); };
  }, [reachable]);
  return [contents, problem];
}

function SweepRow({ sweep, chosen }) {
  const place = { command: "results", names: [], words: [], options: [["sweep", String(sweep.id)]] };
  const part = sweep.planned ? sweep.stored / sweep.planned : 1;
  return html`<tr aria-current=${chosen ? "true" : undefined}>
    <td class="number">${sweep.id}</td>
    <td><${Link} to=${place}>${sweep.name || "without a name"}<//></td>
    <td>${sweep.started.slice(0, 16).replace("T", " ")}</td>
    <td><progress max="1" value=${part} aria-label=${`Sweep ${sweep.id}: ${progressText(sweep)}`}></progress>
      <span class="how-far">${progressText(sweep)}</span></td>
  </tr>`;
}

function Sweeps({ contents, chosen }) {
  if (!contents.sweeps.length && contents.warning) return html`<p>No sweep of this store is intact. <code>separatrix store check</code> says what is wrong, <code>separatrix store repair</code> saves what is intact.</p>`;
  if (!contents.sweeps.length) return html`<p>No sweep is stored yet. <code>separatrix sweep plan.toml</code> fills the store.</p>`;
  const newest = [...contents.sweeps].reverse();
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Sweeps"><table class="sweeps">
    <thead><tr><th scope="col" class="number">No.</th><th scope="col">Sweep</th><th scope="col">Begun (UTC)</th><th scope="col">Stored</th></tr></thead>
    <tbody>${newest.map((each) => html`<${SweepRow} key=${each.id} sweep=${each} chosen=${chosen === String(each.id) || chosen === each.name} />`)}</tbody>
  </table></div>`;
}

function CompareForm({ sweeps, one, other }) {
  const known = [...sweeps].reverse().map((each) => [String(each.id), `${each.id}: ${each.name}`]);
  const [left, setLeft] = useState(one ?? known[0][0]);
  const [right, setRight] = useState(other ?? known[1][0]);
  const ask = (event) => { event.preventDefault(); go({ command: "compare", names: [left, right], words: [], options: [] }); };
  return html`<form class="compare-form" onSubmit=${ask}>
    <${Choice} label="Compare" value=${left} options=${known} onChange=${setLeft} />
    <${Choice} label="with" value=${right} options=${known} onChange=${setRight} />
    <button type="submit" disabled=${left === right}>Show what changed</button>
  </form>`;
}

function stateText(contents) {
  const count = (x, one) => `${x.toLocaleString("en")} ${x === 1 ? one : `${one}s`}`;
  const runs = contents.running ? `${count(contents.running, "run")} at work now` : "nothing runs now";
  return `${count(contents.sweeps.length, "sweep")}, ${count(contents.cells, "cell")}; ${runs}`;
}

export function View({ place, reachable }) {
  useSheet("/static/store.css");
  const [contents, problem] = useContents(reachable);
  const sweep = valueOf(place.options, "sweep");
  const comparing = place.command === "compare";
  const choose = (value) => go({ ...place, command: "results", names: [], options: withValue(place.options, "sweep", value) });
  if (!contents) {
    return html`<h1>Store</h1>${problem ? html`<p class="problem" role="alert">${problem}</p><${Start} />` : html`<p class="waiting" role="status">Looking into the store …</p>`}`;
  }
  const growing = contents.sweeps.find((each) => String(each.id) === sweep || each.name === sweep);
  const verdicts = (valueOf(place.options, "kind") || "verdict") === "verdict";
  const asked = place.words.length > 0 || !sweep;
  const cells = html`<${Cells} key="cells" place=${place} contents=${contents} reachable=${reachable} onSweep=${choose} />`;
  const figures = sweep && html`<${Figures} key=${`figures ${sweep}`} sweep=${sweep} words=${verdicts ? place.words : []} apart=${!verdicts && place.words.length > 0} growing=${growing} reachable=${reachable} />`;
  return html`<div class="store">
    <h1>Store <code>${contents.store}</code></h1>
    <p role="status" class=${contents.running ? "at-work" : ""}>${stateText(contents)}.</p>
    ${problem && html`<p class="problem" role="alert">${problem}</p>`}
    ${contents.warning && html`<p class="problem" role="alert">${contents.warning}</p>`}
    <h2>Sweeps</h2>
    <${Sweeps} contents=${contents} chosen=${sweep} />
    ${contents.sweeps.length > 1 && html`<${CompareForm} key=${place.names.join("/")} sweeps=${contents.sweeps} one=${comparing ? place.names[0] : undefined} other=${comparing ? place.names[1] : undefined} />`}
    ${comparing ? html`<${Comparison} place=${place} reachable=${reachable} />` : html`
      ${asked ? [cells, figures] : [figures, cells]}`}
  </div>`;
}

function Start() {
  return html`<p>Show a store by starting the page with it: <code>separatrix explore --store sqlite:///results.db</code>.
    A store is filled by <code>separatrix sweep plan.toml --store sqlite:///results.db</code>; cells appear here while it runs.</p>`;
}
