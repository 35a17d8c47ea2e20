"""The protocol: choose learning rates by validation on pilot seeds, then train fresh seeds and test once.

Every mechanism begins with the same weights and sees the same samples for a seed, apart from weights that it
alone has. Nothing is dropped: a run that diverged counts, and one that failed did not solve the task.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from statistics import fmean, median
from typing import Any

from separatrix.analysis.evidence.conclusions import Scores, best_score, describe_scores
from separatrix.analysis.evidence.estimates import SeedSummary, compare_pairs
from separatrix.analysis.evidence.runs import StoredRow, TrainingSession, open_session, read_curve
from separatrix.analysis.evidence.training_result import Curve, MechanismEvidence, SeedRun, TrainingResult, count_solved
from separatrix.core.judgement import ProofMargin
from separatrix.core.parameters import UsageError, all_parameters, nearest
from separatrix.core.tensors import one_thread
from separatrix.mechanisms import Mechanism
from separatrix.mechanisms.load import mechanisms_from
from separatrix.sweeps.floors import FloorOf, floor_of
from separatrix.sweeps.progress import Tell
from separatrix.sweeps.store import DEFAULT, Address, CellStatus, Store
from separatrix.sweeps.training_runs import SCORE_AT, TrainingRun, training_run
from separatrix.training.learning import score_model
from separatrix.training.learning.witnesses import build_witness
from separatrix.training.tasks import Bound, RealTask, Setting, Split, Task, task_named

MIN_SEEDS, MAX_SEEDS = 2, 1000
FIRST_PILOT_SEED, FIRST_TUNED_SEED = 10_000, 20_000
"""Seeds of pilots, and of runs from hand-written weights; those that count begin with 1."""
NEAR_WITNESS = "witness:0.5"
"""The start of runs from hand-written weights: with noise of half the size of each weight. More would drown
some of them."""
UNMEASURED = Bound(0.0, "not measured yet", exact=False)
Inputs = Mapping[str, object]
Pilots = Mapping[Fraction, float | None]
"""The mean validation score by learning rate; None where there is nothing to choose."""
StoredRows = Mapping[str, StoredRow]
"""Rows of runs and floors in a store, by identity."""


@dataclass(frozen=True)
class Experiment:
    """A task, the mechanisms to train on it, and the numbers of runs."""

    task: Task
    mechanisms: tuple[Mechanism, ...]
    setting: Setting
    seeds: Sequence[int] = range(1, 7)
    """The seeds of the runs that count."""
    pilots: int = 1
    """The number of seeds on which each learning rate is tried."""
    tuned: int = 2
    """The number of runs from hand-written weights with noise, if there are any."""
    device: str = "cpu"

    def run(self, mechanism: Mechanism, rate: Fraction, seed: int, **more: Any) -> TrainingRun:
        """Return one training run of this experiment; `more` are whether it is a pilot, and its start."""
        return training_run(self.task, mechanism, self.setting, rate, seed, device=self.device, **more)

    def pilot_runs(self, mechanism: Mechanism, rate: Fraction) -> list[TrainingRun]:
        """Return the runs that try a learning rate; they never see the test samples."""
        seeds = range(FIRST_PILOT_SEED, FIRST_PILOT_SEED + self.pilots)
        return [self.run(mechanism, rate, seed, pilot=True) for seed in seeds]


def learn(
    task: str,
    mechanisms: str | Sequence[str],
    parameters: Mapping[str, object] | None = None,
    *,
    seeds: int = 6,
    pilots: int = 1,
    tuned: int = 2,
    equal_state: bool = False,
    store: str | Address = DEFAULT,
    workers: int | None = None,
    scheduler: str | None = None,
    tell: Tell = lambda _: None,
    hear: Callable[[], None] = lambda: None,
    **named: object,
) -> TrainingResult:
    """Train models on a task, and conclude what that shows: `sx.learn("needle", "softmax,elu", n=64)`.

    A script that calls this needs `if __name__ == "__main__":` around it, since workers import it.

    **Arguments:**

    - `task`: name of a task, such as `mqar`.
    - `mechanisms`: comma-separated names with parameters, or a list of them.
    - `parameters`, `named`: parameters of the task, the model and its training, as a mapping or by name.
    - `seeds`: number of fresh runs of each mechanism; all mechanisms use the same seeds.
    - `pilots`: number of seeds on which every learning rate is tried before.
    - `tuned`: number of runs from hand-written weights with noise, if there are any.
    - `equal_state`: also train all but the first mechanism with keys of such a width that their state is as
      large as that of the first.
    - `store`: URL or file of the store. Runs in it are not computed again.
    - `workers`, `scheduler`: number of local processes, or the address of a Dask cluster.
    - `tell`, `hear`: called with the progress, and when a signal requests to stop.
    """
    from separatrix.analysis.evidence.equal_state import compare_at_equal_state, require_state

    experiment = read_experiment(task, mechanisms, all_parameters(parameters, named), seeds, pilots, tuned)
    if equal_state:
        require_state(experiment)
    with open_session(store, workers, scheduler, tell, hear) as session:
        (result,) = run_experiments([experiment], session, f"learn {experiment.task.spelling}")
        if equal_state:
            result = replace(result, equal_state=compare_at_equal_state(experiment, result, session))
        return result


def read_experiment(
    task: str, mechanisms: str | Sequence[str], parameters: Inputs, seeds: int = 6, pilots: int = 1, tuned: int = 2
) -> Experiment:
    """Return the experiment for words as they are typed, or raise a UsageError of one line."""
    kind = task_named(task)
    task_names, setting_names = kind.schema.model_fields, Setting.model_fields
    for name in parameters:
        if name not in task_names and name not in setting_names:
            raise UsageError(
                f"{task} has no parameter {name}{nearest(name, [*task_names, *setting_names])}; it has: "
                f"{', '.join(task_names)}; the model and its training have: {', '.join(setting_names)}"
            )
    parsed_mechanisms = mechanisms_from(mechanisms)
    if len({mechanism.spelled for mechanism in parsed_mechanisms}) < len(parsed_mechanisms):
        raise UsageError("a mechanism is named twice; keep one")
    if not MIN_SEEDS <= seeds <= MAX_SEEDS:
        raise UsageError(f"seeds={seeds} must be from {MIN_SEEDS} to {MAX_SEEDS}")
    task_values = {name: value for name, value in parameters.items() if name in task_names}
    setting = kind.default_setting(**{n: value for n, value in parameters.items() if n not in task_names})
    # Seeds count from 1, so that more seeds extend a stored experiment instead of replacing it.
    fresh = range(1, seeds + 1)
    return Experiment(kind.read(task_values), tuple(parsed_mechanisms), setting, fresh, pilots, tuned)


@dataclass(frozen=True)
class Bounds:
    """Scores that are known without training."""

    ceiling: Bound
    floor: Bound
    witnesses: Mapping[str, float | None]
    """The scores of hand-written weights by mechanism."""
    margins: Mapping[str, ProofMargin | None] = field(default_factory=dict)
    """How a proved ceiling compares with scores on the test samples, by mechanism; None without one."""


@dataclass(frozen=True)
class StoredRuns:
    """The stored rows of a mechanism's runs, and the scores of its pilots."""

    pilots: Pilots
    fresh: Mapping[int, StoredRow]
    """The runs that count, by seed."""
    tuned: Sequence[StoredRow]
    """The runs from hand-written weights with noise."""


@dataclass(frozen=True)
class _PlannedRuns:
    """The runs of a mechanism: on fresh seeds from scratch, and from hand-written weights with noise."""

    pilots: Pilots
    fresh: Sequence[TrainingRun]
    tuned: Sequence[TrainingRun]

    def find_rows(self, rows: StoredRows) -> StoredRuns:
        """Return the stored rows of these runs."""
        fresh = {run.seed: rows[run.id] for run in self.fresh}
        return StoredRuns(self.pilots, fresh, [rows[run.id] for run in self.tuned])


def run_experiments(experiments: Sequence[Experiment], session: TrainingSession, name: str) -> list[TrainingResult]:
    """Run all experiments at once, pilots before seeds; runs in the store are not computed again."""
    with ThreadPoolExecutor(1) as background:
        # Hand-written weights are scored in this process while the workers train pilots.
        future = background.submit(lambda: [compute_bounds(experiment) for experiment in experiments])
        first = [work for experiment in experiments for work in _first_works(experiment)]
        rows = session.fetch_rows(f"{name}, 1 of 2, pilots", first)
        bounds = [
            _add_floor(experiment, computed_bounds, rows)
            for experiment, computed_bounds in zip(experiments, future.result(), strict=True)
        ]
    # The pilots of all experiments come before the seeds of any: workers wait once, not once per experiment.
    plans = [_plan_runs(*parts, rows) for parts in zip(experiments, bounds, strict=True)]
    works = [work for plan in plans for runs in plan.values() for work in (*runs.fresh, *runs.tuned)]
    rows = session.fetch_rows(f"{name}, 2 of 2, seeds", works)
    return [
        build_result(experiment, bound, {name: runs.find_rows(rows) for name, runs in plan.items()}, session.store)
        for experiment, bound, plan in zip(experiments, bounds, plans, strict=True)
    ]


def compute_bounds(experiment: Experiment) -> Bounds:
    """Compute ceiling, floor and the scores of hand-written weights, without the floor of real data."""
    task, setting = experiment.task, experiment.setting
    samples = task.samples(setting.tests, Split.TEST)
    witnesses, margins = dict[str, float | None](), dict[str, ProofMargin | None]()
    for mechanism in experiment.mechanisms:
        # One thread, as in training: several would compete with the workers, and sum in another order.
        with one_thread():
            model = build_witness(task, mechanism, setting)
            witnesses[mechanism.spelled] = None if model is None else score_model(model, task, samples)
        proof = None if isinstance(task, RealTask) else task.proved_ceiling(mechanism, setting)
        margins[mechanism.spelled] = None if proof is None else task.proof_margin(proof, samples)
    ceiling = task.ceiling(samples)
    if isinstance(task, RealTask):
        return Bounds(ceiling, UNMEASURED, witnesses, margins)
    # The ceiling holds in expectation: on a finite sample a shortcut may be luckier than the best rule.
    floor = task.floor(samples)
    worse = min((floor.score, ceiling.score), key=lambda score: task.metric.sign * score)
    return Bounds(ceiling, replace(floor, score=worse), witnesses, margins)


def _first_works(experiment: Experiment) -> list[TrainingRun | FloorOf]:
    """Return the pilots, if there are learning rates to choose from, and the floor of real data."""
    grid = experiment.setting.grid
    pilots = [
        run
        for mechanism in experiment.mechanisms
        for rate in (grid if len(grid) > 1 else ())
        for run in experiment.pilot_runs(mechanism, rate)
    ]
    return [*pilots, *_floor_works(experiment)]


def _floor_works(experiment: Experiment) -> list[FloorOf]:
    """Return the work that fits shortcuts to real data, which takes a while."""
    is_real = isinstance(experiment.task, RealTask)
    return [floor_of(experiment.task, experiment.setting)] if is_real else []


def _add_floor(experiment: Experiment, bounds: Bounds, rows: StoredRows) -> Bounds:
    """Return the bounds with the measured floor of real data."""
    for work in _floor_works(experiment):
        row = rows[work.id]
        if row["status"] != CellStatus.DONE:
            name = experiment.task.spelling
            raise UsageError(f"the floor of {name} could not be measured: {row['message']}")
        bounds = replace(bounds, floor=Bound(float(row["floor"]), str(row["floor_by"])))
    return bounds


def _collect_pilots(experiment: Experiment, mechanism: Mechanism, rows: StoredRows) -> Pilots:
    """Return the scores of the pilots of a mechanism."""
    grid, sign = experiment.setting.grid, experiment.task.metric.sign
    if len(grid) == 1:
        return {grid[0]: None}
    pilots = {rate: [rows[run.id] for run in experiment.pilot_runs(mechanism, rate)] for rate in grid}
    return {rate: mean_pilot_score(pilot_rows, sign) for rate, pilot_rows in pilots.items()}


def mean_pilot_score(rows: Sequence[StoredRow], sign: int) -> float:
    """Return the mean validation score of pilot runs; one that failed is worse than all."""
    scores = [row["validation_score"] if row["status"] == CellStatus.DONE else None for row in rows]
    return fmean(-sign * math.inf if score is None else float(score) for score in scores)


def choose_rate(pilots: Pilots, task: Task) -> Fraction:
    """Return the middle of the rates that are as good as the best on validation, with room on either side.

    Where all failed it is the middle of all; the fresh runs then show the errors.
    """
    rates = rates_near_best(pilots, task.metric.sign, task.tolerance) or list(pilots)
    return rates[len(rates) // 2]


def rates_near_best(pilots: Mapping[Fraction, float | None], sign: int, tolerance: float) -> list[Fraction]:
    """Return the learning rates whose pilots are as good as the best, within a tolerance; not failed ones.

    >>> rates_near_best({Fraction(1): 0.5, Fraction(2): 0.9, Fraction(3): -math.inf}, 1, 0.01)
    [Fraction(2, 1)]
    """
    scores = {rate: 0.0 if score is None else sign * score for rate, score in pilots.items()}
    best = max(scores.values())
    return [rate for rate, score in scores.items() if score > -math.inf and best - score <= tolerance]


def _plan_runs(experiment: Experiment, bounds: Bounds, rows: StoredRows) -> dict[str, _PlannedRuns]:
    plan = dict[str, _PlannedRuns]()
    for mechanism in experiment.mechanisms:
        pilots = _collect_pilots(experiment, mechanism, rows)
        rate = choose_rate(pilots, experiment.task)
        tuned_count = experiment.tuned if bounds.witnesses[mechanism.spelled] is not None else 0
        tuned_seeds = range(FIRST_TUNED_SEED, FIRST_TUNED_SEED + tuned_count)
        plan[mechanism.spelled] = _PlannedRuns(
            pilots,
            [experiment.run(mechanism, rate, seed) for seed in experiment.seeds],
            [experiment.run(mechanism, rate, seed, start=NEAR_WITNESS) for seed in tuned_seeds],
        )
    return plan


def build_result(experiment: Experiment, bounds: Bounds, runs: dict[str, StoredRuns], store: Store) -> TrainingResult:
    """Return the evidence about each mechanism from its runs, and the differences between them seed by seed."""
    curve_of = partial(read_curve, store)
    evidence = tuple(
        build_evidence(experiment, mechanism, bounds, runs[mechanism.spelled], curve_of)
        for mechanism in experiment.mechanisms
    )
    return TrainingResult(
        *(experiment.task, experiment.setting),
        *(bounds.ceiling.score, bounds.ceiling.basis, bounds.floor.score, bounds.floor.basis),
        *(evidence, compare_pairs({item.mechanism: {run.seed: run.score for run in item.runs} for item in evidence})),
    )


def build_evidence(
    experiment: Experiment, mechanism: Mechanism, bounds: Bounds, runs_of: StoredRuns, curve_of: Callable[[str], Curve]
) -> MechanismEvidence:
    """Return everything about one mechanism, with the conclusion.

    `curve_of` returns the curve of a run by its identity.
    """
    task, setting, sign = experiment.task, experiment.setting, experiment.task.metric.sign
    witness, ceiling = bounds.witnesses[mechanism.spelled], bounds.ceiling
    pilots, fresh = runs_of.pilots, runs_of.fresh
    tuned_rows = [row for row in runs_of.tuned if row["status"] == CellStatus.DONE]
    finished_rows = {seed: row for seed, row in fresh.items() if row["status"] == CellStatus.DONE}
    runs = tuple(_build_run(task, seed, row, curve_of) for seed, row in finished_rows.items())
    errors = tuple(str(row["message"]) for row in fresh.values() if row["status"] != CellStatus.DONE)
    # Selected by validation: the best test score of several runs would favour lucky ones.
    best_tuned = max(tuned_rows, key=lambda row: sign * row["validation_score"], default=None)
    improvements = [measure_late_improvement(run.curve, sign) for run in runs]
    scores = Scores(
        sign=sign,
        tolerance=task.tolerance,
        ceiling=ceiling.score,
        proved=task.proved_ceiling(mechanism, setting),
        witness=witness,
        trained=SeedSummary([run.score for run in runs]).median if runs else None,
        solved=count_solved(runs, errors),
        floor=None if ceiling.exact else bounds.floor.score,
        margin=bounds.margins.get(mechanism.spelled),
        shortcut=bounds.floor.score if bounds.floor.universal else None,
        best_trained=best_score((run.score for run in runs), sign),
        tuned=None if best_tuned is None else float(best_tuned["score"]),
        steps=max((run.steps for run in runs), default=None),
        is_improving=bool(improvements) and median(improvements) > task.tolerance,
    )
    word, sentence = describe_scores(scores)
    sizes: StoredRow = next(iter(finished_rows.values()), {})
    return MechanismEvidence(
        mechanism=mechanism.spelled,
        setting=setting,
        proved=scores.proved,
        witness=witness,
        tuned_witness=scores.tuned,
        tuned_seeds=tuple(float(row["score"]) for row in tuned_rows),
        pilots=pilots,
        lr=choose_rate(pilots, task),
        lr_window=tuple(rates_near_best(pilots, sign, task.tolerance)),
        runs=runs,
        parameters=sizes.get("weight_count"),
        state_bytes=sizes.get("state_bytes"),
        failed=errors,
        word=word,
        sentence=sentence,
    )


def measure_late_improvement(curve: Curve, sign: int) -> float:
    """Return the rise of the validation score from the third to the last quarter of the steps.

    Means over quarters, because single scores scatter. Minus infinity if a quarter has no finite score.

    >>> round(measure_late_improvement(((0, 0.1), (25, 0.3), (50, 0.5), (75, 0.6), (100, 0.8)), 1), 6)
    0.2
    """
    finite = [(step, score) for step, score in curve if math.isfinite(score)]
    last = curve[-1][0] if curve else 0
    bounds = ((2 * last, 3 * last), (3 * last, 4 * last))
    third, fourth = ([score for step, score in finite if low < 4 * step <= high] for low, high in bounds)
    return sign * (fmean(fourth) - fmean(third)) if third and fourth else -math.inf


def _build_run(task: Task, seed: int, row: StoredRow, curve_of: Callable[[str], Curve]) -> SeedRun:
    """Return a finished run from its row; a diverged run is scored with its last weights."""
    return SeedRun(
        seed=seed,
        score=float(row["score"]),
        steps=int(row["last_step"]),
        solved_at=row.get("solved_at"),
        diverged_at=row.get("diverged_at"),
        seconds=float(row["seconds"]),
        curve=curve_of(row["id"]),
        further={n: float(row[f"{SCORE_AT}{n}"]) for n in task.further_tasks()},
    )
