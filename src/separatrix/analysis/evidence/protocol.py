"""The protocol: learning rates by validation on pilot seeds, then fresh seeds, and the test samples once.

Every mechanism begins with the same weights and sees the same samples for a seed, but for what it alone
learns. Nothing is dropped: a run that diverged counts, and one that failed did not solve the task.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from fractions import Fraction
from statistics import fmean

from separatrix.analysis.evidence.estimates import SeedSummary, differences
from separatrix.analysis.evidence.found import (
    Curve,
    Learned,
    MechanismEvidence,
    Pilot,
    Run,
    solved_share,
    window,
)
from separatrix.analysis.evidence.runs import Laboratory, Row, one_thread
from separatrix.analysis.evidence.sentences import Scores, best, judged
from separatrix.core.judgement import Margin
from separatrix.core.parameters import UsageError, all_parameters, nearest, split_mechanisms
from separatrix.mechanisms import Mechanism
from separatrix.mechanisms.load import mechanism_from
from separatrix.sweeps.floors import FloorOf, floor_of
from separatrix.sweeps.progress import Tell
from separatrix.sweeps.store import DEFAULT, Address, Status, open_store
from separatrix.sweeps.sweep import executor_for, stop_on_signals
from separatrix.sweeps.training_runs import SCORE_AT, TrainingRun, training_run
from separatrix.training.learning import score_model
from separatrix.training.learning.witnesses import build_witness
from separatrix.training.tasks import Bound, RealTask, Samples, Setting, Split, Task, task_named

LEAST_SEEDS, MOST_SEEDS = 2, 1000
PILOT = 10_000
"""The first pilot seed; those that count begin with 1."""
TUNED = 20_000
"""The first seed of runs from a witness."""
NEAR_WITNESS = "witness:0.5"
"""Where these begin: with noise of half the size of each weight. As much noise as weights drowns some."""

UNMEASURED = Bound(0.0, "not measured yet", exact=False)


@dataclass(frozen=True)
class Experiment:
    """A task, the mechanisms that learn it, and how often."""

    task: Task
    mechanisms: tuple[Mechanism, ...]
    setting: Setting
    seeds: Sequence[int] = range(1, 7)
    """Of the runs that count."""
    pilots: int = 1
    """Seeds on which each learning rate is tried."""
    tuned: int = 2
    """Runs from a witness with noise, where there is one."""
    device: str = "cpu"


Pilots = Mapping[str, tuple[Pilot, ...]]
"""What each learning rate did, by mechanism."""


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
) -> Learned:
    """Train models on a task, and say what that shows: `sx.learn("needle", "softmax,elu", n=64)`.

    A script that calls this needs `if __name__ == "__main__":` around it, since workers import it.

    **Arguments:**

    - `task`: the name of a task, such as `mqar`.
    - `mechanisms`: names with parameters, separated by commas, or a list of them.
    - `parameters`, `named`: of the task, and of the model and its training, as a mapping or by name.
    - `seeds`: fresh runs of each mechanism, the same for all.
    - `pilots`: seeds on which every learning rate is tried, before.
    - `tuned`: runs from weights that are written down, with noise, where there are such.
    - `equal_state`: whether all but the first are trained once more, with keys so wide that they carry as
      much from token to token as the first does.
    - `store`: where runs are kept: a URL or a file. Those that are there are not run again.
    - `workers`, `scheduler`: how many processes here, or the address of a Dask cluster.
    - `tell`, `hear`: called with the progress, and when a signal asks to stop.
    """
    from separatrix.analysis.evidence.equal_state import compared, require_state

    asked = read_experiment(task, mechanisms, all_parameters(parameters, named), seeds, pilots, tuned)
    if equal_state:
        require_state(asked)
    with stop_on_signals(hear) as stop, closing(executor_for(workers, scheduler)) as executor:
        laboratory = Laboratory(open_store(store, create=True, check=True), executor, tell, stop)
        (found,) = learned([asked], laboratory, f"learn {asked.task.spelling}")
        return replace(found, equal_state=compared(asked, found, laboratory)) if equal_state else found


def read_experiment(
    task: str,
    mechanisms: str | Sequence[str],
    parameters: Mapping[str, object],
    seeds: int = 6,
    pilots: int = 1,
    tuned: int = 2,
) -> Experiment:
    """An experiment from words, or a UsageError of one line."""
    kind = task_named(task)
    known = kind.schema.model_fields
    own = {name: value for name, value in parameters.items() if name in known}
    rest = {name: value for name, value in parameters.items() if name not in known}
    for name in rest:
        if name not in Setting.model_fields:
            known_names = [*known, *Setting.model_fields]
            raise UsageError(
                f"{task} has no parameter {name}{nearest(name, known_names)}; it has: "
                f"{', '.join(known)}; the model and its training have: {', '.join(Setting.model_fields)}"
            )
    names = split_mechanisms(mechanisms) if isinstance(mechanisms, str) else list(mechanisms)
    if not names:
        raise UsageError("name a mechanism, for example softmax")
    read = [mechanism_from(each) for each in names]
    if len({each.spelled for each in read}) < len(read):
        raise UsageError("a mechanism is named twice; keep one")
    if not LEAST_SEEDS <= seeds <= MOST_SEEDS:
        raise UsageError(f"seeds={seeds} must be from {LEAST_SEEDS} to {MOST_SEEDS}")
    fresh = range(1, seeds + 1)
    return Experiment(kind.read(own), tuple(read), kind.default_setting(**rest), fresh, pilots, tuned)


def learned(experiments: Sequence[Experiment], laboratory: Laboratory, name: str) -> list[Learned]:
    """All experiments at once, pilots before seeds; what the store has is not computed again.

    Shortcuts that have to be fitted to real data are fitted beside the pilots, and kept. Weights that are
    written down are scored meanwhile, so that no worker waits for them.
    """
    with ThreadPoolExecutor(1) as aside:
        writing = aside.submit(lambda: [bounds_of(asked) for asked in experiments])
        first = [
            work
            for experiment in experiments
            for work in (*_pilot_runs(experiment), *_floor_works(experiment))
        ]
        rows = laboratory.rows(f"{name}, 1 of 2, pilots", first)
        bounds = [_with_floor(*each, rows) for each in zip(experiments, writing.result(), strict=True)]
    pilots = [_pilots(asked, rows) for asked in experiments]
    planned = [_planned(*each) for each in zip(experiments, pilots, bounds, strict=True)]
    every = [work for some in planned for runs in some.values() for work in (*runs.fresh, *runs.tuned)]
    rows = laboratory.rows(f"{name}, 2 of 2, seeds", every)
    return [
        _learned(*each, rows, laboratory) for each in zip(experiments, bounds, pilots, planned, strict=True)
    ]


@dataclass(frozen=True)
class Bounds:
    """What is known of an experiment without training."""

    ceiling: Bound
    floor: Bound
    written: Mapping[str, float | None]
    """What weights that are written down score, by mechanism."""
    margins: Mapping[str, Margin | None] = field(default_factory=dict)
    """How a proved ceiling compares with scores on the test samples, by mechanism; None without one."""


@dataclass(frozen=True)
class _Runs:
    """The runs of a mechanism: on fresh seeds from scratch, and from a witness with noise."""

    fresh: Sequence[TrainingRun]
    tuned: Sequence[TrainingRun]


def bounds_of(asked: Experiment) -> Bounds:
    """Ceiling, floor and written weights of an experiment, but for the floor of real data."""
    task, setting = asked.task, asked.setting
    samples = task.samples(setting.tests, Split.TEST)
    with one_thread():
        written = {
            mechanism.spelled: _written(task, mechanism, setting, samples) for mechanism in asked.mechanisms
        }
    ceiling = task.ceiling(samples)
    margins = {
        mechanism.spelled: margin_of(task, mechanism, setting, samples) for mechanism in asked.mechanisms
    }
    if isinstance(task, RealTask):
        return Bounds(ceiling, UNMEASURED, written, margins)
    # The ceiling holds in expectation: on a finite sample a shortcut may be luckier than the best rule.
    floor = task.floor(samples)
    worse = min((floor.score, ceiling.score), key=lambda score: task.metric.sign * score)
    return Bounds(ceiling, replace(floor, score=worse), written, margins)


def margin_of(task: Task, mechanism: Mechanism, setting: Setting, samples: Samples) -> Margin | None:
    """How the proved ceiling of a mechanism, if any, compares with scores on the samples."""
    proved = None if isinstance(task, RealTask) else task.proved_ceiling(mechanism, setting)
    return None if proved is None else task.proof_margin(proved, samples)


def _floor_works(asked: Experiment) -> list[FloorOf]:
    """The floor of real data, which takes a while."""
    return [floor_of(asked.task, asked.setting)] if isinstance(asked.task, RealTask) else []


def _with_floor(asked: Experiment, bounds: Bounds, rows: Mapping[str, Row]) -> Bounds:
    """The bounds with the floor that was measured meanwhile, where it was not known."""
    for work in _floor_works(asked):
        row = rows[work.id]
        if row["status"] != Status.DONE:
            raise UsageError(f"the floor of {asked.task.spelling} could not be measured: {row['message']}")
        bounds = replace(bounds, floor=Bound(float(row["floor"]), str(row["floor_by"])))
    return bounds


def _planned(asked: Experiment, pilots: Pilots, bounds: Bounds) -> dict[str, _Runs]:
    found = dict[str, _Runs]()
    for mechanism in asked.mechanisms:
        rate = chosen(pilots[mechanism.spelled], asked.task).rate
        witness = bounds.written[mechanism.spelled] is not None
        tuned = _from_witness(asked, mechanism, rate) if witness else []
        found[mechanism.spelled] = _Runs(_fresh(asked, mechanism, rate), tuned)
    return found


def _learned(
    asked: Experiment,
    bounds: Bounds,
    pilots: Pilots,
    planned: Mapping[str, _Runs],
    rows: Mapping[str, Row],
    laboratory: Laboratory,
) -> Learned:
    found = tuple(
        evidence_of(
            asked,
            mechanism,
            bounds,
            pilots[mechanism.spelled],
            [(work.seed, rows[work.id]) for work in planned[mechanism.spelled].fresh],
            [rows[work.id] for work in planned[mechanism.spelled].tuned],
            laboratory.curve,
        )
        for mechanism in asked.mechanisms
    )
    return learned_of(asked, bounds, found)


def learned_of(asked: Experiment, bounds: Bounds, found: tuple[MechanismEvidence, ...]) -> Learned:
    """What is known of each mechanism, with how they differ seed by seed."""
    scores = {each.mechanism: {run.seed: run.score for run in each.runs} for each in found}
    return Learned(asked.task, asked.setting, bounds.ceiling, bounds.floor, found, differences(scores))


def _pilot_runs(asked: Experiment) -> list[TrainingRun]:
    """Every rate on every pilot seed; none where there is nothing to choose."""
    if len(asked.setting.grid) == 1:
        return []
    return [
        work
        for mechanism in asked.mechanisms
        for rate in asked.setting.grid
        for work in _tried(asked, mechanism, rate)
    ]


def _tried(asked: Experiment, mechanism: Mechanism, rate: Fraction) -> list[TrainingRun]:
    """A rate on the pilot seeds, which never see the test samples."""
    return [
        training_run(
            *(asked.task, mechanism, asked.setting, rate, PILOT + seed), pilot=True, device=asked.device
        )
        for seed in range(asked.pilots)
    ]


def _pilots(asked: Experiment, rows: Mapping[str, Row]) -> Pilots:
    """What each learning rate did on the pilot seeds."""
    grid, sign = asked.setting.grid, asked.task.metric.sign
    if len(grid) == 1:
        return {each.spelled: (Pilot(grid[0], None),) for each in asked.mechanisms}

    return {
        mechanism.spelled: tuple(
            pilot_of(rate, [rows[work.id] for work in _tried(asked, mechanism, rate)], sign) for rate in grid
        )
        for mechanism in asked.mechanisms
    }


def pilot_of(rate: Fraction, rows: Sequence[Row], sign: int) -> Pilot:
    """What a learning rate did on the pilot seeds; one that failed is worse than all."""
    scores = [row["validation_score"] if row["status"] == Status.DONE else None for row in rows]
    return Pilot(rate, fmean(-sign * math.inf if score is None else float(score) for score in scores))


def chosen(pilots: Sequence[Pilot], task: Task) -> Pilot:
    """The middle of the window: of the rates as good as the best on validation, with room on either side.

    Where all failed it is the middle of all: the fresh runs show how.
    """
    equals = window(pilots, task.metric.sign, task.tolerance) or pilots
    return equals[len(equals) // 2]


def _written(task: Task, mechanism: Mechanism, setting: Setting, samples: Samples) -> float | None:
    """What weights that are written down score, where there are some."""
    model = build_witness(task, mechanism, setting)
    return None if model is None else score_model(model, task, samples)


def _fresh(asked: Experiment, mechanism: Mechanism, rate: Fraction) -> list[TrainingRun]:
    """The runs that count, on seeds that chose nothing."""
    return [
        training_run(asked.task, mechanism, asked.setting, rate, seed, device=asked.device)
        for seed in asked.seeds
    ]


def _from_witness(asked: Experiment, mechanism: Mechanism, rate: Fraction) -> list[TrainingRun]:
    """Runs from weights that are written down, with noise."""
    return [
        training_run(
            *(asked.task, mechanism, asked.setting, rate, TUNED + seed),
            start=NEAR_WITNESS,
            device=asked.device,
        )
        for seed in range(asked.tuned)
    ]


def evidence_of(
    asked: Experiment,
    mechanism: Mechanism,
    bounds: Bounds,
    pilots: tuple[Pilot, ...],
    fresh: Sequence[tuple[int, Row]],
    from_witness: Sequence[Row],
    curve: Callable[[str], Curve],
) -> MechanismEvidence:
    """Everything about one mechanism, with the sentence that follows from it.

    `fresh` are the stored runs that count, each with its seed; `from_witness` those from written weights
    with noise; `curve` gives the curve of a run by its identity.
    """
    task, setting, sign = asked.task, asked.setting, asked.task.metric.sign
    witness, ceiling = bounds.written[mechanism.spelled], bounds.ceiling
    tuned = [row for row in from_witness if row["status"] == Status.DONE]
    runs = tuple(_run(task, seed, row, curve) for seed, row in fresh if row["status"] == Status.DONE)
    failed = tuple(str(row["message"]) for _, row in fresh if row["status"] != Status.DONE)
    improved = _best_by_validation(tuned, sign)
    scores = Scores(
        sign=sign,
        tolerance=task.tolerance,
        ceiling=ceiling.score,
        proved=task.proved_ceiling(mechanism, setting),
        witness=best((witness, improved), sign),
        trained=SeedSummary.of([run.score for run in runs]).median if runs else None,
        solved=solved_share(runs, failed),
        floor=None if ceiling.exact else bounds.floor.score,
        margin=bounds.margins.get(mechanism.spelled),
        shortcut=bounds.floor.score if bounds.floor.universal else None,
        best_trained=best((run.score for run in runs), sign),
    )
    word, sentence = judged(scores)
    taken = chosen(pilots, task)
    sizes = next((row for _, row in fresh if row["status"] == Status.DONE), {})
    return MechanismEvidence(
        mechanism=mechanism.spelled,
        setting=setting,
        proved=scores.proved,
        witness=witness,
        tuned=improved,
        tuned_scores=tuple(float(row["score"]) for row in tuned),
        pilots=pilots,
        rate=taken.rate,
        window=tuple(each.rate for each in window(pilots, sign, task.tolerance)),
        runs=runs,
        parameters=sizes.get("weight_count"),
        state_bytes=sizes.get("state_bytes"),
        failed=failed,
        word=word,
        sentence=sentence,
    )


def _run(task: Task, seed: int, row: Row, curve: Callable[[str], Curve]) -> Run:
    """A finished run from its row; one that diverged is scored with its last weights."""
    return Run(
        seed=seed,
        score=float(row["score"]),
        steps=int(row["last_step"]),
        solved_at=row.get("solved_at"),
        diverged_at=row.get("diverged_at"),
        seconds=float(row["seconds"]),
        curve=curve(row["id"]),
        further={n: float(row[f"{SCORE_AT}{n}"]) for n in task.further_tasks()},
    )


def _best_by_validation(tuned: Sequence[Row], sign: int) -> float | None:
    """The test score of the run from a witness that did best on validation samples."""
    best = max(tuned, key=lambda row: sign * row["validation_score"], default=None)
    return None if best is None else float(best["score"])
