"""What was learned, from the runs that a store holds: nothing is trained, nothing is written.

Runs of one task, with the same parameters and the same setting, are one experiment. Where pilots were run,
the learning rate is the one that the protocol takes by them; where none were, runs of each rate are an
experiment of their own. Of two runs that differ in the version of the code alone, the later counts.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

from sqlalchemy import func, select

from separatrix.analysis.evidence.found import Learned, Pilot
from separatrix.analysis.evidence.protocol import (
    NEAR_WITNESS,
    Bounds,
    Experiment,
    bounds_of,
    chosen,
    evidence_of,
    learned_of,
    pilot_of,
)
from separatrix.analysis.evidence.runs import Row, curve_of
from separatrix.core.errors import SeparatrixError
from separatrix.core.numbers import format_exact, parse_exact
from separatrix.core.parameters import UsageError
from separatrix.mechanisms import MECHANISMS, Mechanism
from separatrix.sweeps.store import Status, Store, selected
from separatrix.sweeps.store.filters import read_filter
from separatrix.sweeps.store.migrations import KINDS_KNOWN
from separatrix.sweeps.store.schema import FLOOR, TRAINING, cells
from separatrix.sweeps.training_runs import PILOT, SCRATCH, TEST
from separatrix.training.tasks import Bound, RealTask, Setting, Task, task_named

MOST_RUNS = 20_000
"""Of one task, that are read at once."""
ASKED = ("task", "rate", "start", "purpose")
Load = Callable[[str], Mechanism]
"""The mechanism that a spelling names, or an error where it may not be loaded: a store names no code."""


@dataclass(frozen=True)
class StoredTraining:
    """The experiments of a task whose fresh runs are there, and what cannot be shown."""

    found: tuple[Learned, ...]
    waiting: tuple[str, ...] = ()
    """Mechanisms whose runs were not scored on the test samples, or cannot be told of, each with why."""


@dataclass(frozen=True)
class TrainedTask:
    """How many runs of a task a store has."""

    task: str
    runs: int
    done: int


def trained_tasks(store: Store) -> list[TrainedTask]:
    """The tasks that a store has runs of; counted, not read."""
    if store.version < KINDS_KNOWN:
        return []
    name = cells.c.parameters["task"].as_string()
    asked = select(name, cells.c.status, func.count()).where(cells.c.kind == TRAINING)
    counted = defaultdict[str, dict[str, int]](dict)
    for task, status, count in store.select(asked.group_by(name, cells.c.status)):
        counted[str(task)][str(status)] = int(count)
    return [TrainedTask(task, sum(x.values()), x.get(Status.DONE, 0)) for task, x in sorted(counted.items())]


def stored_training(
    store: Store, task: str, load: Load, say: Callable[[str], None] = lambda _: None
) -> StoredTraining:
    """Everything that a store shows of a task; `say` hears what is looked at."""
    kind = task_named(task)
    if store.version < KINDS_KNOWN:
        return StoredTraining(())
    found, waiting = list[Learned](), list[str]()
    for (parameters, setting), rows in _groups(_rows(store, {"task": task}, TRAINING), kind).items():
        try:
            asked = kind.read(dict(parameters))
        except SeparatrixError as error:
            waiting.append(f"{len(rows)} runs of {task}: {error}")
            continue
        for variant in _variants(asked, dict(setting), rows, waiting):
            say(f"{asked.spelling}, {len(variant.runs)} mechanisms")
            try:
                found += _learned(store, variant, load, waiting)
            except SeparatrixError as error:
                waiting.append(f"{asked.spelling}: {error}")
    return StoredTraining(tuple(found), tuple(dict.fromkeys(waiting)))


Key = tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]
"""The parameters of the task, and the setting without its rates and tests."""


@dataclass(frozen=True)
class _Run:
    """A stored run, with what was asked of it."""

    row: Row
    mechanism: str
    rate: Fraction
    seed: int
    start: str
    purpose: str
    tests: str | None


@dataclass(frozen=True)
class _Variant:
    """Runs of one experiment: of each mechanism its pilots, and the runs at the rate that they gave."""

    task: Task
    setting: Setting
    runs: Mapping[str, Sequence[_Run]]
    pilots: Mapping[str, tuple[Pilot, ...]]


def _rows(store: Store, conditions: Mapping[str, object], kind: str) -> list[Row]:
    with selected(store, read_filter(conditions, kind), limit=MOST_RUNS) as chosen_:
        return [row for frame in chosen_.frames() for row in frame.iter_rows(named=True)]


def _groups(rows: Iterable[Row], kind: type[Task]) -> dict[Key, list[_Run]]:
    """Runs by the parameters of the task and the setting, the latest of those that ask the same."""
    latest = dict[tuple[object, ...], tuple[Key, _Run]]()
    for row in sorted(rows, key=lambda row: str(row["finished"])):
        given = json.loads(row["parameters"])
        if not all(isinstance(given.get(name), str) for name in ASKED):
            continue
        own = {name: value for name, value in given.items() if name in kind.schema.model_fields}
        rest = {name: x for name, x in given.items() if name not in (*own, *ASKED, "tests")}
        key = (tuple(sorted(own.items())), tuple(sorted(rest.items())))
        try:
            rate = parse_exact(given["rate"])
        except UsageError:
            continue
        mechanism, tests = str(row["mechanism"]), given.get("tests")
        run = _Run(row, mechanism, rate, int(row.get("seed") or 0), given["start"], given["purpose"], tests)
        latest[(key, mechanism, rate, run.seed, run.start, run.purpose, tests)] = key, run
    groups = defaultdict[Key, list[_Run]](list)
    for key, run in latest.values():
        groups[key].append(run)
    return groups


def _variants(
    task: Task, setting: Mapping[str, str], runs: Sequence[_Run], waiting: list[str]
) -> Iterator[_Variant]:
    """The experiments that runs of one task and setting belong to."""
    tried, fresh = defaultdict[str, list[_Run]](list), defaultdict[str, list[_Run]](list)
    for run in sorted(runs, key=lambda run: (_order(run.mechanism), run.seed)):
        (tried if run.purpose == PILOT else fresh)[run.mechanism].append(run)
    sign = task.metric.sign
    pilots = {name: _pilots(own, sign) for name, own in tried.items()}
    for tests in sorted({run.tests or "" for own in fresh.values() for run in own}):
        own = {name: [run for run in some if run.tests == tests] for name, some in fresh.items()}
        by_pilots, alone = dict[str, list[_Run]](), defaultdict[Fraction, dict[str, list[_Run]]](dict)
        for name, some in own.items():
            rates = {run.rate for run in some if run.start == SCRATCH}
            taken = chosen(pilots[name], task).rate if len(pilots.get(name, ())) > 1 else None
            if taken in rates:
                by_pilots[name] = [run for run in some if run.rate == taken]
                continue
            for rate in rates:
                alone[rate][name] = [run for run in some if run.rate == rate]
        given = {**setting, "tests": tests}
        if by_pilots:
            grid = sorted({each.rate for name in by_pilots for each in pilots[name]})
            spelled = ",".join(format_exact(rate) for rate in grid)
            yield _Variant(task, Setting.read({**given, "rates": spelled}), by_pilots, pilots)
        for rate, some_of in sorted(alone.items()):
            single = Setting.read({**given, "rates": format_exact(rate)})
            yield _Variant(task, single, some_of, {name: (Pilot(rate, None),) for name in some_of})
    only = sorted(tried.keys() - fresh.keys(), key=_order)
    waiting += [f"{name} on {task.spelling}: {_untested(len(tried[name]))}" for name in only]


def _untested(runs: int) -> str:
    """Why runs that are stored are no evidence yet."""
    scored = "1 run is stored, and was" if runs == 1 else f"{runs:,} runs are stored, and were"
    return (
        f"{scored} not scored on the test samples; test = true in the [[learn]] table of a plan does that, "
        "and separatrix learn does it on fresh seeds"
    )


def _pilots(tried: Sequence[_Run], sign: int) -> tuple[Pilot, ...]:
    rates = sorted({run.rate for run in tried})
    return tuple(pilot_of(rate, [run.row for run in tried if run.rate == rate], sign) for rate in rates)


def _order(mechanism: str) -> tuple[int, str]:
    """Mechanisms as they are listed everywhere."""
    names = list(MECHANISMS)
    name = mechanism.partition(":")[0]
    return names.index(name) if name in names else len(names), mechanism


def _learned(store: Store, variant: _Variant, load: Load, waiting: list[str]) -> list[Learned]:
    mechanisms = dict[str, Mechanism]()
    for name in variant.runs:
        try:
            mechanisms[name] = load(name)
        except SeparatrixError as error:
            waiting.append(f"{name} on {variant.task.spelling}: {error}")
    if not mechanisms:
        return []
    asked = Experiment(variant.task, tuple(mechanisms.values()), variant.setting)
    bounds = _with_floor(store, variant.task, variant.setting, _bounds(asked))
    evidence = []
    for name, mechanism in mechanisms.items():
        runs = [run for run in variant.runs[name] if run.purpose == TEST]
        fresh = [(run.seed, run.row) for run in runs if run.start == SCRATCH]
        tuned = [run.row for run in runs if run.start == NEAR_WITNESS]
        curve = lambda run: curve_of(store, run)  # noqa: E731
        evidence.append(evidence_of(asked, mechanism, bounds, variant.pilots[name], fresh, tuned, curve))
    return [learned_of(asked, bounds, tuple(evidence))]


def _bounds(asked: Experiment) -> Bounds:
    """What is known without training, each mechanism by itself: another one there changes nothing."""
    alone = [_bounds_of_one(_Same(replace(asked, mechanisms=(mechanism,)))) for mechanism in asked.mechanisms]
    written = {name: score for each in alone for name, score in each.written.items()}
    margins = {name: margin for each in alone for name, margin in each.margins.items()}
    return replace(alone[0], written=written, margins=margins)


@dataclass(frozen=True)
class _Same:
    """An experiment that is the same as another where both are spelled so."""

    asked: Experiment

    def __hash__(self) -> int:
        return hash(self._spelled)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self._spelled == other._spelled

    @property
    def _spelled(self) -> str:
        task, setting = self.asked.task, self.asked.setting
        shown = (task.name, task.parameters.shown(), {**setting.shown(), "rates": ""})
        return json.dumps([*shown, [mechanism.spelled for mechanism in self.asked.mechanisms]], default=str)


@lru_cache(maxsize=200)
def _bounds_of_one(same: _Same) -> Bounds:
    return bounds_of(same.asked)


def _with_floor(store: Store, task: Task, setting: Setting, bounds: Bounds) -> Bounds:
    """The floor of real data is a stored row, too."""
    if not isinstance(task, RealTask):
        return bounds
    wanted = {"task": task.name, **{name: str(x) for name, x in task.parameters.shown().items()}}
    wanted["tests"] = str(setting.tests)
    rows = _rows(store, {"task": task.name}, FLOOR)
    done = [row for row in rows if row["status"] == Status.DONE and json.loads(row["parameters"]) == wanted]
    if not done:
        raise UsageError(f"its floor is not measured; separatrix data floors {task.data} does")
    last = max(done, key=lambda row: str(row["finished"]))
    return replace(bounds, floor=Bound(float(last["floor"]), str(last["floor_by"])))
