// Charts of time, memory and state against the length, on logarithmic axes.

import { html, useMemo } from "./framework.js";
import { Chart, Legend } from "./chart.js";
import { lengthOf } from "./mechanisms-words.js";

const QUANTITIES = [["time, ms", "seconds", 1e-3], ["memory, MiB", "peak_bytes", 2 ** 20], ["state or cache, KiB", "state_bytes", 2 ** 10]];
const DASHES = [[], [6, 3], [2, 3], [8, 3, 2, 3]];

// `costs` is [{ mechanism, cost }]; lengths where a quantity is zero have no place on a logarithmic axis.
export function costCharts(costs, colourOf) {
  const lengths = [...new Set(costs.flatMap(({ cost }) => cost.lengths))].sort((a, b) => a - b);
  const ticks = [lengths[0], lengths.at(-1)].map((n) => [n, lengthOf(n)]);
  return QUANTITIES.map(([label, quantity, unit]) => {
    const series = costs.map(({ mechanism, cost }, i) => {
      const points = cost.lengths.map((n, k) => [n, cost[quantity][k] / unit]).filter(([, value]) => value > 0);
      return { name: mechanism, colour: colourOf(mechanism), dash: DASHES[i % DASHES.length], width: 2.2, line: true, symbol: "", x: points.map(([n]) => n), y: points.map(([, value]) => value) };
    });
    return { label: `${label} against n; the table has the numbers`, height: 210, x: { label: "n", log: true, ticks }, y: { label, log: true }, series };
  }).filter(({ series }) => series.some(({ x }) => x.length));
}

export function CostPlot({ costs, colourOf }) {
  const charts = useMemo(() => costCharts(costs, colourOf), [costs.map(({ mechanism }) => mechanism).join(), colourOf]);
  return html`<${Legend} entries=${charts[0]?.series ?? []} />
    <div class="cost-plots">${charts.map((chart) => html`<div key=${chart.y.label} class="cost-plot"><${Chart} chart=${chart} /></div>`)}</div>`;
}
