// Scores on an axis from worse to better, and the stored experiment that an address means; nothing here needs a page, so
// that it can be tested alone.

// Returns a function from scores to positions, from 0 (left, worse) to 1 (right, better).
export function scoreScale(learned, moreIsBetter) {
  const scores = learned.mechanisms.flatMap(({ trained, witness, tuned_witness: tuned, proved_ceiling: proved }) => [...trained.seeds, witness, tuned, proved, ...(trained.interval ?? [])]);
  const known = [learned.floor, learned.ceiling, ...scores].filter((score) => Number.isFinite(score));
  const [low, high] = [Math.min(...known), Math.max(...known)];
  const room = (high - low || 1) * 0.04;
  const [from, to] = [low - room, high + room];
  return (score) => (moreIsBetter ? (score - from) / (to - from) : (to - score) / (to - from));
}

// The experiments with the words of an address: parameters of the task, or of the model and its training.
export function matchExperiments(experiments, words) {
  const matches = ({ parameters, setting }, [name, value]) => {
    const actual = name in parameters ? parameters[name] : setting[name];
    return actual !== undefined && (String(actual) === value || Number(actual) === Number(value));
  };
  return experiments.filter(({ learned }) => words.every((word) => matches(learned, word)));
}

// The words in which an experiment differs from the task's defaults: "needle n=16 steps=300" is n=16, steps=300.
export function wordsOf(spelled) {
  return spelled.split(" ").slice(1).map((word) => {
    const [name, ...value] = word.split("=");
    return [name, value.join("=")];
  });
}

const DASHES = [[], [8, 4], [2, 3], [10, 3, 2, 3]];

// The chart of validation scores by step: a line for each run, with ceiling and floor.
export function curvesChart(curves, { ceiling, floor }, colourOf) {
  const names = [...new Set(curves.map(({ mechanism }) => mechanism))];
  const series = curves.map(({ mechanism, seed, points }) => ({
    name: `${mechanism}, seed ${seed}`, colour: colourOf(mechanism), dash: DASHES[names.indexOf(mechanism) % DASHES.length], width: 1.5, line: true, symbol: "",
    x: points.map(([step]) => step), y: points.map(([, score]) => score),
  }));
  const rules = [["ceiling", ceiling], ["floor", floor]].map(([text, at]) => ({ axis: "y", at, colour: "faint", dash: [2, 4], text, side: "left" }));
  return {
    label: "Score on validation samples by step, a line for each run; the table below has the last scores",
    x: { label: "steps", log: false }, y: { label: "score on validation samples", log: false }, series, rules,
    legend: names.map((name, i) => ({ name, colour: colourOf(name), dash: DASHES[i % DASHES.length] })),
  };
}

// Steps until solved, in words.
export function describeSteps(evidence) {
  const solved = evidence.steps_to_solve.filter((step) => step !== null);
  const { count, of } = evidence.solved;
  if (!of) return "no run yet";
  if (!solved.length) return `none of ${of} seeds solved it`;
  const sorted = [...solved].sort((a, b) => a - b);
  const steps = sorted[0] === sorted.at(-1) ? `${sorted[0]}` : `${sorted[0]} to ${sorted.at(-1)}`;
  return `${count} of ${of} seeds, after ${steps} steps`;
}
