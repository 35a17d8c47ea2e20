// Scores on an axis from worse to better, and which stored experiment an address means: no page, so that it
// can be tested alone.

// Where scores stand, from 0 (left, worse) to 1 (right, better): floor and ceiling with room for what lies
// beyond them.
export function scale(learned, moreIsBetter) {
  const scores = learned.mechanisms.flatMap((each) => [...each.trained.seeds, each.witness, each.tuned_witness, each.proved_ceiling, ...(each.trained.interval ?? [])]);
  const known = [learned.floor, learned.ceiling, ...scores].filter((score) => Number.isFinite(score));
  const [low, high] = [Math.min(...known), Math.max(...known)];
  const room = (high - low || 1) * 0.04;
  const [from, to] = [low - room, high + room];
  return (score) => (moreIsBetter ? (score - from) / (to - from) : (to - score) / (to - from));
}

export const WORDS = {
  cannot: "cannot",
  learns: "can, and learns it",
  "not learned": "can, and did not learn it here",
  unknown: "unknown",
  contradiction: "contradiction",
};

// The experiments that have the words of an address: parameters of the task, or of the model and its training.
export function matching(found, words) {
  const same = (each, [name, value]) => {
    const { parameters, setting } = each.learned;
    const own = name in parameters ? parameters[name] : setting[name];
    return own !== undefined && (String(own) === value || Number(own) === Number(value));
  };
  return found.filter((each) => words.every((word) => same(each, word)));
}

// The words that tell an experiment from the task's defaults: "needle n=16 steps=300" is n=16, steps=300.
export function wordsOf(spelled) {
  return spelled.split(" ").slice(1).map((word) => {
    const [name, ...value] = word.split("=");
    return [name, value.join("=")];
  });
}

// The curves of some runs as uPlot takes them: all steps that any run was looked at, a column for each run.
export function curveColumns(curves) {
  const steps = [...new Set(curves.flatMap((each) => each.points.map(([step]) => step)))].sort((a, b) => a - b);
  const place = new Map(steps.map((step, i) => [step, i]));
  const columns = curves.map((each) => {
    const scores = new Array(steps.length).fill(undefined);
    for (const [step, score] of each.points) scores[place.get(step)] = score;
    return scores;
  });
  return [steps, ...columns];
}

// Steps until solved, in words.
export function stepsText(evidence) {
  const solved = evidence.steps_to_solve.filter((step) => step !== null);
  const { count, of } = evidence.solved;
  if (!of) return "no run yet";
  if (!solved.length) return `none of ${of} seeds solved it`;
  const sorted = [...solved].sort((a, b) => a - b);
  const steps = sorted[0] === sorted.at(-1) ? `${sorted[0]}` : `${sorted[0]} to ${sorted.at(-1)}`;
  return `${count} of ${of} seeds, after ${steps} steps`;
}
