"""Results of training from the runs in a store: nothing is trained, nothing is written.

Runs of one task, with the same parameters and the same setting, are one experiment. If there are pilots, the
learning rate is the one that the protocol chooses by them; otherwise the runs of each rate are an experiment
of their own. Of several runs that differ only in the version of the code, the latest counts.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache, partial

from sqlalchemy import func, select

from separatrix.analysis.evidence.experiments import read_command
from separatrix.analysis.evidence.predictions import Prediction, check_predictions
from separatrix.analysis.evidence.protocol import (
    NEAR_WITNESS,
    Bounds,
    Experiment,
    Pilots,
    StoredRuns,
    build_result,
    choose_rate,
    compute_bounds,
    mean_pilot_score,
)
from separatrix.analysis.evidence.published import PUBLISHED, ReproductionLedger
from separatrix.analysis.evidence.reproductions import compare_entry
from separatrix.analysis.evidence.runs import StoredRow
from separatrix.analysis.evidence.training_result import TrainingResult
from separatrix.core.errors import SeparatrixError, UsageError
from separatrix.core.numbers import format_exact, parse_exact
from separatrix.mechanisms import MECHANISMS, Mechanism
from separatrix.sweeps.store import CellStatus, Store, select_cells
from separatrix.sweeps.store.filters import read_filter
from separatrix.sweeps.store.schema import FLOOR, TRAINING, cells
from separatrix.sweeps.training_runs import PILOT, SCRATCH, TEST
from separatrix.training.tasks import REAL_TASKS, TASKS, Bound, RealTask, Setting, Task, task_named

RUN_KEYS = ("task", "rate", "start", "purpose")
NOT_STORED = "it is not measured in this store"
Load = Callable[[str], Mechanism]
"""Returns the mechanism of a name, or raises an error if it may not be loaded: a store never names code."""
Say = Callable[[str], None]
Items = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class StoredTraining:
    """The experiments of a task for which runs on the test samples are stored."""

    results: tuple[TrainingResult, ...]
    skipped_reasons: tuple[str, ...] = ()
    """Sentences about runs that are not in the results, because they have no score on the test samples or an error."""


@dataclass(frozen=True)
class StoredTask:
    """The number of runs of a task in a store."""

    task: str
    runs: int
    finished: int


def count_stored_tasks(store: Store) -> list[StoredTask]:
    """Count the runs of each task, without reading them."""
    name = cells.c.parameters["task"].as_string()
    query = select(name, cells.c.status, func.count()).where(cells.c.kind == TRAINING)
    counts = defaultdict[str, dict[str, int]](dict)
    for task, status, count in store.select(query.group_by(name, cells.c.status)):
        counts[str(task)][str(status)] = int(count)
    return [StoredTask(task, sum(x.values()), x.get(CellStatus.DONE, 0)) for task, x in sorted(counts.items())]


def read_training(store: Store, task_name: str, load: Load, say: Say = lambda _: None) -> StoredTraining:
    """Return the result of every stored experiment of a task; `say` is called with each experiment."""
    task_class = task_named(task_name)
    results, skipped_reasons = list[TrainingResult](), list[str]()
    for (parameters, setting), runs in _group_runs(_read_rows(store, task_name, TRAINING), task_class).items():
        try:
            task = task_class.read(dict(parameters))
        except SeparatrixError as error:
            skipped_reasons.append(f"{len(runs)} runs of {task_name}: {error}")
            continue
        for experiment in _split_experiments(task, dict(setting), runs, skipped_reasons):
            say(f"{task.spelling}, {len(experiment.runs)} mechanisms")
            try:
                results += _build_results(store, experiment, load, skipped_reasons)
            except SeparatrixError as error:
                skipped_reasons.append(f"{task.spelling}: {error}")
    return StoredTraining(tuple(results), tuple(dict.fromkeys(skipped_reasons)))


@dataclass(frozen=True)
class _StoredRun:
    """A stored run, with its parameters."""

    row: StoredRow
    mechanism: str
    rate: Fraction
    seed: int
    start: str
    purpose: str
    tests: str | None


@dataclass(frozen=True)
class _StoredExperiment:
    """The runs of one experiment by mechanism, at the rate that its pilots chose, and the pilots."""

    task: Task
    setting: Setting
    runs: Mapping[str, Sequence[_StoredRun]]
    pilots: Mapping[str, Pilots]


def _read_rows(store: Store, task_name: str, cell_kind: str) -> list[StoredRow]:
    with select_cells(store, read_filter({"task": task_name}, cell_kind)) as selection:
        return [row for frame in selection.frames() for row in frame.iter_rows(named=True)]


def _group_runs(rows: Iterable[StoredRow], task_class: type[Task]) -> dict[tuple[Items, Items], list[_StoredRun]]:
    """Group runs by the parameters of the task and the setting, without rates and tests."""
    groups = defaultdict[tuple[Items, Items], dict[tuple[object, ...], _StoredRun]](dict)
    # Sorted by time, so that a later run with the same parameters replaces an earlier one.
    for row in sorted(rows, key=lambda row: str(row["finished"])):
        values = json.loads(row["parameters"])
        if not all(isinstance(values.get(name), str) for name in RUN_KEYS):
            continue
        try:
            rate = parse_exact(values["rate"])
        except UsageError:
            continue
        task_items = {name: value for name, value in values.items() if name in task_class.schema.model_fields}
        other_names = (*task_items, *RUN_KEYS, "tests")
        setting_items = {name: value for name, value in values.items() if name not in other_names}
        key = tuple(sorted(task_items.items())), tuple(sorted(setting_items.items()))
        identity = (str(row["mechanism"]), rate, int(row.get("seed") or 0), values["start"])
        run = _StoredRun(row, *identity, values["purpose"], values.get("tests"))
        groups[key][(*identity, run.purpose, run.tests)] = run
    return {key: list(runs.values()) for key, runs in groups.items()}


def _split_experiments(
    task: Task, setting: Mapping[str, str], runs: Sequence[_StoredRun], skipped_reasons: list[str]
) -> Iterator[_StoredExperiment]:
    """Yield the experiments to which the runs of one task and setting belong.

    For each number of test samples, the mechanisms whose pilots chose a rate at which they have runs are one
    experiment. The runs of the other mechanisms are one experiment for each rate.
    """
    pilot_runs, test_runs = defaultdict[str, list[_StoredRun]](list), defaultdict[str, list[_StoredRun]](list)
    for run in sorted(runs, key=lambda run: (_list_position(run.mechanism), run.seed)):
        (pilot_runs if run.purpose == PILOT else test_runs)[run.mechanism].append(run)
    pilots = {name: _collect_pilots(tried_runs, task.metric.sign) for name, tried_runs in pilot_runs.items()}
    for tests in sorted({run.tests or "" for candidates in test_runs.values() for run in candidates}):
        by_pilots = dict[str, list[_StoredRun]]()
        by_rate = defaultdict[Fraction, dict[str, list[_StoredRun]]](dict)
        for name, candidates in test_runs.items():
            matching = [run for run in candidates if run.tests == tests]
            rates = {run.rate for run in matching if run.start == SCRATCH}
            best = choose_rate(pilots[name], task) if len(pilots.get(name, ())) > 1 else None
            if best in rates:
                by_pilots[name] = [run for run in matching if run.rate == best]
                continue
            for rate in rates:
                by_rate[rate][name] = [run for run in matching if run.rate == rate]
        read_setting = partial(_read_setting, {**setting, "tests": tests})
        if by_pilots:
            grid = {rate for name in by_pilots for rate in pilots[name]}
            yield _StoredExperiment(task, read_setting(grid), by_pilots, pilots)
        for rate, group in sorted(by_rate.items()):
            yield _StoredExperiment(task, read_setting([rate]), group, {name: {rate: None} for name in group})
    for name in sorted(pilot_runs.keys() - test_runs.keys(), key=_list_position):
        count = len(pilot_runs[name])
        count_text = "1 run is stored, and was" if count == 1 else f"{count:,} runs are stored, and were"
        skipped_reasons.append(
            f"{name} on {task.spelling}: {count_text} not scored on the test samples; test = true in the "
            "[[learn]] table of a plan does that, and separatrix learn does it on fresh seeds"
        )


def _read_setting(values: Mapping[str, str], rates: Iterable[Fraction]) -> Setting:
    return Setting.read({**values, "rates": ",".join(map(format_exact, sorted(rates)))})


def _collect_pilots(runs: Sequence[_StoredRun], sign: int) -> Pilots:
    rates = sorted({run.rate for run in runs})
    return {rate: mean_pilot_score([run.row for run in runs if run.rate == rate], sign) for rate in rates}


def _list_position(mechanism: str) -> tuple[int, str]:
    """Return the sort key of a mechanism: its position in lists, then its name."""
    names, name = list(MECHANISMS), mechanism.partition(":")[0]
    return names.index(name) if name in names else len(names), mechanism


def _build_results(
    store: Store, stored: _StoredExperiment, load: Load, skipped_reasons: list[str]
) -> list[TrainingResult]:
    mechanisms = dict[str, Mechanism]()
    for name in stored.runs:
        try:
            mechanisms[name] = load(name)
        except SeparatrixError as error:
            skipped_reasons.append(f"{name} on {stored.task.spelling}: {error}")
    if not mechanisms:
        return []
    experiment = Experiment(stored.task, tuple(mechanisms.values()), stored.setting)
    bounds = _read_floor(store, experiment, _compute_bounds(experiment))
    stored_runs = dict[str, StoredRuns]()
    for name, mechanism in mechanisms.items():
        runs = [run for run in stored.runs[name] if run.purpose == TEST]
        scratch_rows = {run.seed: run.row for run in runs if run.start == SCRATCH}
        tuned_rows = [run.row for run in runs if run.start == NEAR_WITNESS]
        stored_runs[mechanism.spelled] = StoredRuns(stored.pilots[name], scratch_rows, tuned_rows)
    return [build_result(experiment, bounds, stored_runs, store)]


@dataclass(frozen=True)
class _BoundsKey:
    """The cache key of an experiment of one mechanism: experiments of equal text have equal bounds."""

    text: str
    experiment: Experiment = field(compare=False)


@lru_cache(maxsize=200)
def _cached_bounds(key: _BoundsKey) -> Bounds:
    return compute_bounds(key.experiment)


def _compute_bounds(experiment: Experiment) -> Bounds:
    """Compute the bounds for each mechanism separately, so that the cache serves every combination of mechanisms."""
    task, setting = experiment.task, {**experiment.setting.as_json(), "rates": ""}
    bounds = list[Bounds]()
    for mechanism in experiment.mechanisms:
        text = json.dumps([task.name, task.parameters.as_json(), setting, mechanism.spelled], default=str)
        bounds.append(_cached_bounds(_BoundsKey(text, replace(experiment, mechanisms=(mechanism,)))))
    witnesses = {name: score for part in bounds for name, score in part.witnesses.items()}
    margins = {name: margin for part in bounds for name, margin in part.margins.items()}
    return replace(bounds[0], witnesses=witnesses, margins=margins)


def _read_floor(store: Store, experiment: Experiment, bounds: Bounds) -> Bounds:
    """Return the bounds; for real data, with the floor from its stored row."""
    task = experiment.task
    if not isinstance(task, RealTask):
        return bounds
    parameters = {"task": task.name, **{name: str(x) for name, x in task.parameters.as_json().items()}}
    parameters["tests"] = str(experiment.setting.tests)
    rows = [row for row in _read_rows(store, task.name, FLOOR) if row["status"] == CellStatus.DONE]
    matching = [row for row in rows if json.loads(row["parameters"]) == parameters]
    if not matching:
        raise UsageError(f"its floor is not measured; separatrix data floors {task.data} measures it")
    last = max(matching, key=lambda row: str(row["finished"]))
    return replace(bounds, floor=Bound(float(last["floor"]), str(last["floor_by"])))


def stored_predictions(store: Store, load: Load, say: Say = lambda _: None) -> tuple[Prediction, ...]:
    """Return the prediction ledger over all stored runs of all tasks."""
    tasks = [row.task for row in count_stored_tasks(store) if row.task in {**TASKS, **REAL_TASKS}]
    results = [result for task in tasks for result in read_training(store, task, load, say).results]
    say("comparing exact predictions with them")
    return check_predictions(results)


def stored_reproductions(store: Store | None, load: Load, say: Say = lambda _: None) -> ReproductionLedger:
    """Return the reproduction ledger; a number whose runs are not stored has no verdict."""
    tasks = set() if store is None else {row.task for row in count_stored_tasks(store)}
    training = dict[str, tuple[TrainingResult, ...]]()
    results = dict[str, TrainingResult | UsageError]()
    for command in dict.fromkeys(entry.learn for entry in PUBLISHED if entry.learn):
        task = command.split()[0]
        if store is not None and task in tasks and task not in training:
            training[task] = read_training(store, task, load, say).results
        results[command] = _find_result(read_command(command), training.get(task, ())) or UsageError(NOT_STORED)
    say("computing numbers that need no training")
    return ReproductionLedger(tuple(compare_entry(entry, results, {}) for entry in PUBLISHED))


def _find_result(experiment: Experiment, results: Iterable[TrainingResult]) -> TrainingResult | None:
    """Return the stored result of an experiment of one mechanism, if possible with the same rates."""
    (mechanism,) = experiment.mechanisms

    def setting_of(item: Experiment | TrainingResult) -> dict[str, object]:
        return {**item.setting.as_json(), "rates": ""}

    matching = [
        replace(result, mechanisms=(result[mechanism.spelled],), paired=())
        for result in results
        if result.task.parameters == experiment.task.parameters
        and setting_of(result) == setting_of(experiment)
        and any(evidence.mechanism == mechanism.spelled for evidence in result.mechanisms)
    ]
    same_rates = [result for result in matching if result.setting.grid == experiment.setting.grid]
    return next(iter((*same_rates, *matching)), None)
