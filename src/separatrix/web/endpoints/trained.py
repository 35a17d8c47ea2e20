"""Trained evidence: tasks, the stored runs, and the two ledgers. Nothing is trained here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from separatrix import catalog
from separatrix.analysis.evidence.predictions import Prediction
from separatrix.analysis.evidence.published import ReproductionLedger
from separatrix.analysis.evidence.training_result import Curve, TrainingResult
from separatrix.core.documents import Document, Inlined
from separatrix.core.errors import SeparatrixError, user_lines
from separatrix.core.parameters import require_known
from separatrix.core.schemas._base import Texts, Whole
from separatrix.core.schemas.lists import ListedNumber, ListedTask
from separatrix.training.tasks import REAL_TASKS, TASKS, ProvedCeiling, task_named
from separatrix.web.endpoints._base import TaskName, endpoint, open_for_reading
from separatrix.web.settings import Settings
from separatrix.web.workers import Report, Slow

if TYPE_CHECKING:
    from separatrix.mechanisms import Mechanism

MAX_CURVES = 240
"""Runs of one experiment whose curves are sent."""


@dataclass(frozen=True)
class TaskRuns(Document):
    """A task, and the number of its stored runs."""

    name: str
    title: str
    description: str
    provenance: str
    score: str
    real_data: bool
    runs: Whole
    done: Whole


@dataclass(frozen=True)
class TrainedOverview(Document):
    """Every task."""

    tasks: list[TaskRuns]
    others: Texts
    """Tasks of stored runs that are not known here."""
    note: str | None
    """How to make a store, if there is none at the address that was given."""


@dataclass(frozen=True)
class MechanismCeiling(Document):
    """The best score that a mechanism can have, by a proof."""

    mechanism: str
    ceiling: Inlined[ProvedCeiling]


@dataclass(frozen=True)
class RunCurve(Document):
    """Scores of one run on the validation samples."""

    mechanism: str
    seed: int
    points: Curve
    """Steps, and the score after them."""


@dataclass(frozen=True)
class StoredExperiment(Document):
    """What `separatrix learn --json` prints, from stored runs, and what its page shows in addition."""

    learned: TrainingResult
    spelled: str
    more_is_better: bool
    conclusions: Texts
    states_differ: bool
    curves: list[RunCurve]
    curves_left_out: Whole


@dataclass(frozen=True)
class TrainedTask(Document):
    """A task, what is proved of mechanisms on it at its defaults, and every stored experiment."""

    task: ListedTask
    proved: list[MechanismCeiling]
    found: list[StoredExperiment]
    waiting: Texts
    """What is stored and cannot be shown, with the reason."""


@endpoint("/list/tasks", list[ListedTask])
def list_tasks(is_quick: bool, report: Report) -> list[dict[str, Any]]:
    """What `separatrix list tasks --json` prints."""
    if is_quick:
        raise Slow
    names, rows = [*TASKS, *REAL_TASKS], []
    for count, name in enumerate(names):
        report({"done": count, "total": len(names)})
        rows += catalog.list_tasks(True, name)
    return rows


@endpoint("/list/published", list[ListedNumber], in_server=True)
@cache
def list_published() -> list[dict[str, Any]]:
    """What `separatrix list published --json` prints."""
    return catalog.list_published()


@endpoint("/learn", TrainedOverview)
def list_trained_tasks(store_address: str | None) -> TrainedOverview:
    """Every task, with the number of its runs in the store."""
    from separatrix.analysis.evidence.stored import StoredTask, count_stored_tasks
    from separatrix.sweeps.store import NoStore

    note, counts = None, dict[str, StoredTask]()
    try:
        if store_address is not None:
            counts = {task.task: task for task in count_stored_tasks(open_for_reading(store_address))}
    except NoStore as missing:
        (note,) = user_lines(missing)
    tasks = []
    for name, kind in {**TASKS, **REAL_TASKS}.items():
        runs = counts.pop(name, StoredTask(name, 0, 0))
        tasks.append(
            TaskRuns(
                *(name, kind.title, kind.description, kind.provenance, kind.metric.value),
                real_data=name in REAL_TASKS,
                runs=runs.runs,
                done=runs.finished,
            )
        )
    return TrainedOverview(tasks, sorted(counts), note)


@endpoint("/learn/{task}", TrainedTask)
def describe_trained_task(
    task: TaskName, store_address: str | None, own_mechanisms: list[str], is_quick: bool, report: Report
) -> TrainedTask:
    """What the store's runs show of a task; nothing is trained."""
    from separatrix.analysis.evidence.stored import StoredTraining, read_training
    from separatrix.sweeps.store import NoStore

    require_known("task", task, [*TASKS, *REAL_TASKS])
    if is_quick:
        raise Slow
    report({"what": "drawing the samples to test with"})
    row = {**catalog.list_tasks(True, task)[0], **catalog.describe_task(task)}
    training = StoredTraining(())
    try:
        if store_address is not None:
            load = _mechanism_loader(own_mechanisms)
            training = read_training(open_for_reading(store_address), task, load, lambda text: report({"what": text}))
    except NoStore as missing:
        training = StoredTraining((), tuple(user_lines(missing)))
    return TrainedTask(
        task=row,  # type: ignore[arg-type]
        proved=_list_ceilings(task),
        found=[_describe_experiment(result) for result in training.results],
        waiting=list(training.skipped_reasons),
    )


def _mechanism_loader(own_mechanisms: list[str]) -> Callable[[str], Mechanism]:
    """Return a function that loads the mechanisms a store names, if a request may name them as well."""
    from separatrix.mechanisms import mechanism_from

    settings = Settings(mechanisms=tuple(own_mechanisms))
    return lambda name: mechanism_from(settings.require_admitted(name))


def _list_ceilings(task: str) -> list[MechanismCeiling]:
    """Return the proved ceilings of all mechanisms at the defaults of a task."""
    from separatrix.mechanisms.load import examples

    kind = task_named(task)
    definition, setting, ceilings = kind.read(), kind.default_setting(), []
    for mechanism in examples():
        try:
            ceiling = definition.proved_ceiling(mechanism, setting)
        except SeparatrixError:
            continue
        if ceiling is not None:
            ceilings.append(MechanismCeiling(mechanism.spelled, ceiling))
    return ceilings


def _describe_experiment(result: TrainingResult) -> StoredExperiment:
    curves = [
        RunCurve(mechanism.mechanism, run.seed, run.curve)
        for mechanism in result.mechanisms
        for run in mechanism.runs
        if run.curve
    ]
    return StoredExperiment(
        learned=result,
        spelled=result.label,
        more_is_better=result.task.metric.sign > 0,
        conclusions=list(result.conclusions),
        states_differ=result.states_differ,
        curves=curves[:MAX_CURVES],
        curves_left_out=max(0, len(curves) - MAX_CURVES),
    )


@endpoint("/ledger/predictions", list[Prediction])
def check_stored_predictions(
    store_address: str | None, own_mechanisms: list[str], is_quick: bool, report: Report
) -> Sequence[Prediction]:
    """The exact predictions about mechanisms, compared with the scores of the store's runs."""
    from separatrix.analysis.evidence.stored import count_stored_tasks, stored_predictions

    if store_address is None or not count_stored_tasks(open_for_reading(store_address)):
        return ()
    if is_quick:
        raise Slow
    return stored_predictions(
        open_for_reading(store_address), _mechanism_loader(own_mechanisms), lambda text: report({"what": text})
    )


@endpoint("/ledger/published", ReproductionLedger)
def compare_published(
    store_address: str | None, own_mechanisms: list[str], is_quick: bool, report: Report
) -> ReproductionLedger:
    """What `separatrix learn --published --json` prints, with what the store has measured of it."""
    from separatrix.analysis.evidence.stored import stored_reproductions

    if is_quick:
        raise Slow
    store = None if store_address is None else open_for_reading(store_address)
    return stored_reproductions(store, _mechanism_loader(own_mechanisms), lambda text: report({"what": text}))
