// The stored experiments of a task: bars between floor and ceiling with a dot for every seed, learning curves, learning
// rates, steps until solved.

import { html, useEffect, useMemo } from "./framework.js";
import { commandOf, go } from "./address.js";
import { Chart, Legend } from "./chart.js";
import { forPeople } from "./format.js";
import { Choice, CopyButton, colourOf, useLooks } from "./parts.js";
import { Bars } from "./trained-bars.js";
import { storeOption } from "./store-words.js";
import { curvesChart, describeSteps, matchExperiments, wordsOf } from "./trained-words.js";

export function Experiments({ experiments, task, place, store }) {
  const matches = matchExperiments(experiments, place.words);
  const shown = matches[0] ?? experiments[0];
  const names = experiments.map(({ spelled, learned }, i) => [String(i), `${spelled}, rates ${learned.setting.rates}`]);
  const choose = (i, how) => go({
    ...place,
    names: [task, experiments[i].learned.mechanisms.map(({ mechanism }) => mechanism).join(",")],
    words: [...wordsOf(experiments[i].spelled), ["rates", experiments[i].learned.setting.rates]],
  }, how);
  useEffect(() => { if (place.names.length < 2) choose(experiments.indexOf(shown), { replace: true }); }, [experiments]);
  const requested = place.names[1]?.split(/,(?![a-z_]+=)/) ?? [];
  const chosen = shown.learned.mechanisms.filter(({ mechanism }) => requested.includes(mechanism));
  const learned = { ...shown.learned, mechanisms: chosen.length ? chosen : shown.learned.mechanisms };
  return html`
    ${experiments.length > 1 && html`<${Choice} label="Experiment" value=${String(experiments.indexOf(shown))} options=${names} onChange=${(value) => choose(Number(value))} />`}
    ${place.words.length > 0 && !matches.length && html`<p class="problem" role="alert">No stored experiment has ${place.words.map(([name, value]) => `${name}=${value}`).join(" ")}; shown is ${shown.spelled}.</p>`}
    <${Experiment} experiment=${shown} learned=${learned} task=${task} store=${store} />`;
}

function Experiment({ experiment, learned, task, store }) {
  const looks = useLooks();
  const command = commandOf({
    command: "learn",
    names: [task, learned.mechanisms.map(({ mechanism }) => mechanism).join(",")],
    words: [...wordsOf(experiment.spelled), ["rates", learned.setting.rates]],
    options: storeOption(store),
  });
  return html`<section aria-labelledby="bars-head">
    <h2 id="bars-head">${experiment.spelled}</h2>
    <p>Ceiling ${forPeople(learned.ceiling, 4)}: ${learned.ceiling_by}. Floor ${forPeople(learned.floor, 4)}: ${learned.floor_by}. ${experiment.more_is_better ? "More is better." : "Less is better."}</p>
    <${Bars} learned=${learned} moreIsBetter=${experiment.more_is_better} colourOf=${(name) => colourOf(looks, name)} />
    <ul class="sentences">${learned.mechanisms.map(({ mechanism, sentence }) => html`<li key=${mechanism}><strong>${mechanism}</strong> ${sentence}.</li>`)}</ul>
    <h3>Comparison with the floor</h3>
    <ul>${experiment.conclusions.map((conclusion) => html`<li key=${conclusion}>${conclusion}</li>`)}</ul>
    ${experiment.states_differ && html`<p class="hint">States have different sizes here; <code>separatrix learn --equal-state</code> compares at equal state.</p>`}
    <${Numbers} learned=${learned} />
    <h3>Learning curves</h3>
    <${Curves} experiment=${experiment} learned=${learned} looks=${looks} />
    <h3>Learning rates</h3>
    <${Windows} learned=${learned} />
    <h3>Differences by seed</h3>
    <ul>${learned.paired.map((pair) => html`<li key=${`${pair.a} ${pair.b}`}>${pair.a} − ${pair.b}: ${signed(pair.difference)} (p = ${twoDigits(pair.p_value)}, adjusted ${twoDigits(pair.p_adjusted)})${pair.separated ? "" : ": no significant difference"}</li>`)}</ul>
    <p class="hint">Mean difference over the seeds that both mechanisms have, with the p-value of the exact paired sign-flip test, and adjusted for the number of pairs (Holm).</p>
    <p>The command: <code>${command}</code> <${CopyButton} text=${() => command} label="Copy" /></p>
  </section>`;
}

function signed(x) {
  return x === null ? "not known" : `${x >= 0 ? "+" : "−"}${Math.abs(x).toFixed(4)}`;
}

function twoDigits(x) {
  return x === null || x === undefined ? "–" : String(Number(x.toPrecision(2)));
}

function fourDecimals(x) {
  return x === null || x === undefined ? "–" : x.toFixed(4);
}

function Numbers({ learned }) {
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Numbers of each mechanism"><table>
    <thead><tr>${["Mechanism", "Proved", "Witness", "Tuned", "Trained", "Solved", "Rate", "Weights", "State, bytes"].map((name) => html`<th key=${name} scope="col">${name}</th>`)}</tr></thead>
    <tbody>${learned.mechanisms.map((evidence) => html`<tr key=${evidence.mechanism}>
      <th scope="row">${evidence.mechanism}</th><td class="number">${fourDecimals(evidence.proved_ceiling)}</td><td class="number">${fourDecimals(evidence.witness)}</td><td class="number">${fourDecimals(evidence.tuned_witness)}</td>
      <td class="number">${fourDecimals(evidence.trained.median)}${evidence.trained.interval ? ` [${fourDecimals(evidence.trained.interval[0])}, ${fourDecimals(evidence.trained.interval[1])}]` : ""}</td>
      <td>${describeSteps(evidence)}${evidence.diverged ? `, ${evidence.diverged} diverged` : ""}${evidence.failed.length ? `, ${evidence.failed.length} failed` : ""}</td>
      <td class="number">${evidence.lr}</td><td class="number">${evidence.parameters?.toLocaleString("en") ?? "–"}</td><td class="number">${evidence.state_bytes?.toLocaleString("en") ?? "–"}</td></tr>`)}</tbody>
  </table></div>
  <p class="hint">Trained is the median over seeds, with its 95 % interval in brackets if there are six seeds or more.</p>`;
}

function Curves({ experiment, learned, looks }) {
  const names = learned.mechanisms.map(({ mechanism }) => mechanism);
  const curves = useMemo(() => experiment.curves.filter(({ mechanism }) => names.includes(mechanism)), [experiment, names.join()]);
  const chart = useMemo(() => curvesChart(curves, learned, (name) => colourOf(looks, name)), [curves, looks, learned.ceiling, learned.floor]);
  if (!curves.length) return html`<p>No curve is stored.</p>`;
  return html`
    <${Legend} entries=${chart.legend} />
    <${Chart} chart=${chart} />
    <p class="hint">Each line is one run; the dotted lines are ceiling and floor.${experiment.curves_left_out ? ` ${experiment.curves_left_out} runs are not drawn.` : ""}</p>
    <details><summary>The last score of each run</summary><ul>${curves.map(({ mechanism, seed, points }, i) => html`<li key=${i}>${mechanism}, seed ${seed}: ${fourDecimals(points.at(-1)[1])} after ${points.at(-1)[0]} steps</li>`)}</ul></details>`;
}

function Windows({ learned }) {
  const rates = [...new Set(learned.mechanisms.flatMap(({ pilots }) => Object.keys(pilots)))].sort((a, b) => Number(a) - Number(b));
  const score = (pilots, rate) => (!(rate in pilots) ? "–" : pilots[rate] === null ? "given" : fourDecimals(pilots[rate]));
  return html`<p>The score of the pilot seeds on validation samples, by which the rate was chosen. ✓ marks rates as good as the best, a frame the chosen rate. A comparison at one rate for all would compare these windows.</p>
    <div class="scroll" tabindex="0" role="region" aria-label="Learning rates"><table class="windows">
    <thead><tr><th scope="col">Mechanism</th>${rates.map((rate) => html`<th key=${rate} scope="col" class="number">${rate}</th>`)}</tr></thead>
    <tbody>${learned.mechanisms.map(({ mechanism, lr, lr_window: window, pilots }) => html`<tr key=${mechanism}><th scope="row">${mechanism}</th>
      ${rates.map((rate) => html`<td key=${rate} class="number"><span class=${lr === rate ? "taken" : ""}>${score(pilots, rate)}${window.includes(rate) ? " ✓" : ""}${lr === rate ? html`<span class="visually-hidden">, chosen</span>` : ""}</span></td>`)}</tr>`)}</tbody>
  </table></div>`;
}
