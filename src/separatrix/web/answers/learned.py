"""Tasks and what was learned of them, by the runs of a store: nothing is trained here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from separatrix import catalog
from separatrix.analysis.evidence.stored import (
    StoredTask,
    StoredTraining,
    count_stored_tasks,
    read_training,
    stored_predictions,
    stored_reproductions,
)
from separatrix.analysis.evidence.training_result import TrainingResult
from separatrix.core.errors import SeparatrixError, user_lines
from separatrix.core.parameters import require_known
from separatrix.mechanisms import MECHANISMS, Mechanism, mechanism_from
from separatrix.sweeps.store import NoStore, Store, open_store
from separatrix.training.tasks import REAL_TASKS, TASKS, task_named
from separatrix.web.answers._base import Tell, answer, document
from separatrix.web.settings import Settings
from separatrix.web.workers import Slow

MOST_CURVES = 240
"""Runs of one experiment whose curves are sent."""
SLOW = "weights that are written down are scored, and samples drawn"


def _load(own: Sequence[str], name: str) -> Mechanism:
    """A mechanism that a store names, if it is registered or was named on the command line."""
    return mechanism_from(Settings(mechanisms=tuple(own)).admitted(name))


@answer
def task_list(quick: bool, tell: Tell) -> bytes:
    """What `separatrix list tasks --json` prints."""
    if quick:
        raise Slow(SLOW)
    rows = []
    for place, name in enumerate((*TASKS, *REAL_TASKS)):
        tell({"done": place, "total": len(TASKS) + len(REAL_TASKS)})
        rows += catalog.list_tasks(True, name)
    return document(rows)


@answer
def trained_overview(store: str | None, quick: bool, tell: Tell) -> bytes:
    """The tasks, with how many runs of each the store has."""
    note, counted = None, dict[str, StoredTask]()
    try:
        counted = {each.task: each for each in count_stored_tasks(_opened(store))} if store else {}
    except NoStore as missing:
        (note,) = user_lines(missing)
    rows = []
    for name, kind in {**TASKS, **REAL_TASKS}.items():
        runs = counted.pop(name, None)
        rows.append(
            {
                "name": name,
                "title": kind.title,
                "description": kind.description,
                "provenance": kind.provenance,
                "score": kind.metric.value,
                "real_data": name in REAL_TASKS,
                "runs": runs.runs if runs else 0,
                "done": runs.finished if runs else 0,
            }
        )
    return document({"tasks": rows, "others": sorted(counted), "note": note})


@answer
def trained_task(task: str, store: str | None, own: Sequence[str], quick: bool, tell: Tell) -> bytes:
    """A task at its defaults, what is proved of mechanisms on it, and every experiment that is stored."""
    require_known("task", task, [*TASKS, *REAL_TASKS])
    if quick:
        raise Slow(SLOW)
    tell({"what": "drawing the samples to test with"})
    row = {**catalog.list_tasks(True, task)[0], **catalog.describe_task(task)}
    found = StoredTraining(())
    try:
        if store is not None:
            found = read_training(
                _opened(store), task, lambda name: _load(own, name), lambda what: tell({"what": what})
            )
    except NoStore as missing:
        found = StoredTraining((), tuple(user_lines(missing)))
    return document(
        {
            "task": row,
            "proved": _proved(task),
            "found": [_learned(each) for each in found.results],
            "waiting": list(found.waiting),
        }
    )


def _opened(store: str) -> Store:
    return open_store(store, timeout=20.0, read_only=True)


def _proved(task: str) -> list[dict[str, Any]]:
    """The proved ceilings at the defaults of the task."""
    kind = task_named(task)
    asked, setting, rows = kind.read(), kind.default_setting(), []
    for name, each in MECHANISMS.items():
        needed = ",".join(f"{key}={value}" for key, value in each.example.items())
        spelled = f"{name}:{needed}" if needed else name
        try:
            known = asked.proved_ceiling(mechanism_from(spelled), setting)
        except SeparatrixError:
            continue
        if known is not None:
            rows.append(
                {"mechanism": spelled, "score": known.score, "models": known.models, "proof": known.proof}
            )
    return rows


def _learned(found: TrainingResult) -> dict[str, Any]:
    """What `learn --json` prints, and beside it what its page has: curves, conclusions, how it is spelled."""
    curves: list[Mapping[str, Any]] = [
        {"mechanism": mechanism.mechanism, "seed": run.seed, "points": run.curve}
        for mechanism in found.mechanisms
        for run in mechanism.runs
        if run.curve
    ]
    return {
        "learned": found.as_json(),
        "spelled": found.label,
        "more_is_better": found.task.metric.sign > 0,
        "conclusions": list(found.conclusions),
        "states_differ": found.states_differ,
        "curves": curves[:MOST_CURVES],
        "curves_left_out": max(0, len(curves) - MOST_CURVES),
    }


@answer
def prediction_ledger(store: str | None, own: Sequence[str], quick: bool, tell: Tell) -> bytes:
    """What the exact side says, against what was trained."""
    if store is None:
        return document([])
    here = _opened(store)
    if not count_stored_tasks(here):
        return document([])
    if quick:
        raise Slow(SLOW)
    made = stored_predictions(here, lambda name: _load(own, name), lambda what: tell({"what": what}))
    return document([each.as_json() for each in made])


@answer
def published_ledger(store: str | None, own: Sequence[str], quick: bool, tell: Tell) -> bytes:
    """What `separatrix learn --published --json` prints, with what the store has measured of it."""
    if quick:
        raise Slow(SLOW)
    here = None if store is None else _opened(store)
    made = stored_reproductions(here, lambda name: _load(own, name), lambda what: tell({"what": what}))
    return document(made.as_json())
