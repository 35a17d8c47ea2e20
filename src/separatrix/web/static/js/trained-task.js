// The experiments of a task that are stored: bars between floor and ceiling with every seed as a dot, curves,
// windows of learning rates, steps until solved.

import { html, useCallback, useEffect, useMemo } from "./framework.js";
import { commandOf, go } from "./address.js";
import { Chart, axis, inks } from "./chart.js";
import { Choice, CopyButton, colourOf, forPeople, useLooks } from "./parts.js";
import { Bars } from "./trained-bars.js";
import { storeOption } from "./store-words.js";
import { curveColumns, matching, stepsText, wordsOf } from "./trained-words.js";

export function Experiments({ found, task, place, store }) {
  const chosen = matching(found, place.words);
  const shown = chosen[0] ?? found[0];
  const names = found.map((each, i) => [String(i), `${each.spelled}, rates ${each.learned.setting.rates}`]);
  const choose = (i, how) => go({
    ...place,
    names: [task, found[i].learned.mechanisms.map((each) => each.mechanism).join(",")],
    words: [...wordsOf(found[i].spelled), ["rates", found[i].learned.setting.rates]],
  }, how);
  useEffect(() => { if (place.names.length < 2) choose(found.indexOf(shown), { replace: true }); }, [found]);
  const asked = place.names[1]?.split(/,(?![a-z_]+=)/) ?? [];
  const some = shown.learned.mechanisms.filter((each) => asked.includes(each.mechanism));
  const learned = { ...shown.learned, mechanisms: some.length ? some : shown.learned.mechanisms };
  return html`
    ${found.length > 1 && html`<${Choice} label="Experiment" value=${String(found.indexOf(shown))} options=${names} onChange=${(value) => choose(Number(value))} />`}
    ${place.words.length > 0 && !chosen.length && html`<p class="problem" role="alert">No stored experiment has ${place.words.map(([name, value]) => `${name}=${value}`).join(" ")}; shown is ${shown.spelled}.</p>`}
    <${Experiment} experiment=${shown} learned=${learned} task=${task} store=${store} />`;
}

function Experiment({ experiment, learned, task, store }) {
  const known = useLooks();
  const command = commandOf({
    command: "learn",
    names: [task, learned.mechanisms.map((each) => each.mechanism).join(",")],
    words: [...wordsOf(experiment.spelled), ["rates", learned.setting.rates]],
    options: storeOption(store),
  });
  return html`<section aria-labelledby="bars-head">
    <h2 id="bars-head">${experiment.spelled}</h2>
    <p>Ceiling ${forPeople(learned.ceiling, 4)}: ${learned.ceiling_by}. Floor ${forPeople(learned.floor, 4)}: ${learned.floor_by}. ${experiment.more_is_better ? "More is better." : "Less is better."}</p>
    <${Bars} learned=${learned} moreIsBetter=${experiment.more_is_better} known=${known} />
    <ul class="sentences">${learned.mechanisms.map((each) => html`<li key=${each.mechanism}><strong>${each.mechanism}</strong> ${each.sentence}.</li>`)}</ul>
    <h3>Beside the floor</h3>
    <ul>${experiment.conclusions.map((each) => html`<li key=${each}>${each}</li>`)}</ul>
    ${experiment.states_differ && html`<p class="hint">States are not equal here; <code>separatrix learn --equal-state</code> compares at equal state.</p>`}
    <${Numbers} learned=${learned} />
    <h3>Learning curves</h3>
    <${Curves} experiment=${experiment} learned=${learned} known=${known} />
    <h3>Learning rates</h3>
    <${Windows} learned=${learned} />
    <h3>Seed by seed</h3>
    <ul>${learned.paired.map((each) => html`<li key=${`${each.a} ${each.b}`}>${each.a} − ${each.b}: ${signed(each.difference)} (p = ${short(each.p_value)}, adjusted ${short(each.p_adjusted)})${each.separated ? "" : ": no significant difference"}</li>`)}</ul>
    <p class="hint">Mean difference over the seeds both have, with the p-value of the exact paired sign-flip test, and adjusted for the number of pairs (Holm).</p>
    <p>The command: <code>${command}</code> <${CopyButton} text=${() => command} label="Copy" /></p>
  </section>`;
}

function signed(x) {
  return x === null ? "not known" : `${x >= 0 ? "+" : "−"}${Math.abs(x).toFixed(4)}`;
}

function short(x) {
  return x === null || x === undefined ? "–" : String(Number(x.toPrecision(2)));
}

function four(x) {
  return x === null || x === undefined ? "–" : x.toFixed(4);
}

function Numbers({ learned }) {
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Numbers of each mechanism"><table>
    <thead><tr>${["Mechanism", "Proved", "Witness", "Tuned", "Trained", "Solved", "Rate", "Weights", "State, bytes"].map((name) => html`<th key=${name} scope="col">${name}</th>`)}</tr></thead>
    <tbody>${learned.mechanisms.map((each) => html`<tr key=${each.mechanism}>
      <th scope="row">${each.mechanism}</th><td class="number">${four(each.proved_ceiling)}</td><td class="number">${four(each.witness)}</td><td class="number">${four(each.tuned_witness)}</td>
      <td class="number">${four(each.trained.median)}${each.trained.interval ? ` [${four(each.trained.interval[0])}, ${four(each.trained.interval[1])}]` : ""}</td>
      <td>${stepsText(each)}${each.diverged ? `, ${each.diverged} diverged` : ""}${each.failed.length ? `, ${each.failed.length} failed` : ""}</td>
      <td class="number">${each.lr}</td><td class="number">${each.parameters?.toLocaleString("en") ?? "–"}</td><td class="number">${each.state_bytes?.toLocaleString("en") ?? "–"}</td></tr>`)}</tbody>
  </table></div>
  <p class="hint">Trained is the median over seeds; in brackets its 95 % interval, which takes six seeds or more.</p>`;
}

function Curves({ experiment, learned, known }) {
  const names = learned.mechanisms.map((each) => each.mechanism);
  const curves = useMemo(() => experiment.curves.filter((each) => names.includes(each.mechanism)), [experiment, names.join()]);
  const data = useMemo(() => curveColumns(curves), [curves]);
  const options = useCallback(() => ({
    scales: { x: { time: false } },
    axes: [axis("steps"), axis("score on validation samples")],
    series: [{}, ...curves.map((each) => ({ stroke: colourOf(known, each.mechanism), width: 1.5, dash: dashOf(names, each.mechanism), points: { show: false } }))],
    hooks: { draw: [(plot) => drawBounds(plot, learned)] },
  }), [curves, known, learned]);
  if (!curves.length) return html`<p>No curve is stored.</p>`;
  return html`
    <ul class="keys">${names.map((name) => html`<li key=${name}><svg width="34" height="10" aria-hidden="true"><line x1="1" x2="33" y1="5" y2="5" style=${{ stroke: colourOf(known, name), strokeWidth: 2.5, strokeDasharray: dashOf(names, name).join(" ") }} /></svg> ${name}</li>`)}</ul>
    <${Chart} options=${options} data=${data} label="Score on validation samples by step, a line for each run; the table below has the last scores" />
    <p class="hint">A line is one run; the dotted lines are ceiling and floor.${experiment.curves_left_out ? ` ${experiment.curves_left_out} runs are not drawn.` : ""}</p>
    <details><summary>The last look at each run</summary><ul>${curves.map((each, i) => html`<li key=${i}>${each.mechanism}, seed ${each.seed}: ${four(each.points.at(-1)[1])} after ${each.points.at(-1)[0]} steps</li>`)}</ul></details>`;
}

const DASHES = [[], [8, 4], [2, 3], [10, 3, 2, 3]];

function dashOf(names, name) {
  return DASHES[names.indexOf(name) % DASHES.length];
}

function drawBounds(plot, learned) {
  const { ctx } = plot;
  ctx.save();
  ctx.strokeStyle = inks().faint;
  ctx.lineWidth = devicePixelRatio;
  ctx.setLineDash([2 * devicePixelRatio, 4 * devicePixelRatio]);
  for (const score of [learned.ceiling, learned.floor]) {
    const y = plot.valToPos(score, "y", true);
    if (y < plot.bbox.top || y > plot.bbox.top + plot.bbox.height) continue;
    ctx.beginPath();
    ctx.moveTo(plot.bbox.left, y);
    ctx.lineTo(plot.bbox.left + plot.bbox.width, y);
    ctx.stroke();
  }
  ctx.restore();
}

function Windows({ learned }) {
  const rates = [...new Set(learned.mechanisms.flatMap((each) => Object.keys(each.pilots)))].sort((a, b) => Number(a) - Number(b));
  return html`<p>The score on validation samples of the pilot seeds, which chose the rate; ✓ marks those as good as the best, the one that was taken is in a frame. A comparison at one rate for all compares their windows.</p>
    <div class="scroll" tabindex="0" role="region" aria-label="Learning rates"><table class="windows">
    <thead><tr><th scope="col">Mechanism</th>${rates.map((rate) => html`<th key=${rate} scope="col" class="number">${rate}</th>`)}</tr></thead>
    <tbody>${learned.mechanisms.map((each) => html`<tr key=${each.mechanism}><th scope="row">${each.mechanism}</th>
      ${rates.map((rate) => html`<td key=${rate} class="number"><span class=${each.lr === rate ? "taken" : ""}>${!(rate in each.pilots) ? "–" : each.pilots[rate] === null ? "taken as given" : four(each.pilots[rate])}${each.lr_window.includes(rate) ? " ✓" : ""}${each.lr === rate ? html`<span class="visually-hidden">, taken</span>` : ""}</span></td>`)}</tr>`)}</tbody>
  </table></div>`;
}
