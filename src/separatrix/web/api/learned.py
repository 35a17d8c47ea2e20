"""Trained evidence: tasks, what the store's runs show of them, and the two ledgers. Nothing is trained."""

from __future__ import annotations

from functools import cache
from typing import Any

from fastapi import Path, Request
from starlette.responses import Response
from typing_extensions import TypedDict

from separatrix import catalog
from separatrix.analysis.evidence.predictions import Prediction
from separatrix.analysis.evidence.published import ReproductionLedger
from separatrix.analysis.evidence.training_result import TrainingResult
from separatrix.core.documents import schema_type
from separatrix.core.schemas._base import Texts, Whole, document
from separatrix.core.schemas.lists import ListedNumber, ListedTask
from separatrix.web.api._base import TheDesk, new_router
from separatrix.web.api._stores import state_of
from separatrix.web.requests import Desk
from separatrix.web.workers import Call

router = new_router("trained")


@document
class TaskRuns(TypedDict):
    """A task, and how many runs of it are stored."""

    name: str
    title: str
    description: str
    provenance: str
    score: str
    real_data: bool
    runs: Whole
    done: Whole


@document
class TrainedOverview(TypedDict):
    """Every task."""

    tasks: list[TaskRuns]
    others: Texts
    """Tasks of stored runs that are not known here."""
    note: str | None
    """Where there is no store at the address that was given: how to make one."""


@document
class ProvedCeiling(TypedDict):
    """The best score that a mechanism can have, by a proof."""

    mechanism: str
    score: float
    models: str
    """The class of models that the proof is about."""
    proof: str


@document
class RunCurve(TypedDict):
    """Scores of one run on the validation samples."""

    mechanism: str
    seed: int
    points: list[list[float]]
    """Steps made, and the score after them."""


@document
class StoredExperiment(TypedDict):
    """What `separatrix learn --json` prints, from stored runs, with what its page has besides."""

    learned: schema_type(TrainingResult)  # type: ignore[valid-type]
    spelled: str
    more_is_better: bool
    conclusions: Texts
    states_differ: bool
    curves: list[RunCurve]
    curves_left_out: Whole


@document
class TrainedTask(TypedDict):
    """A task, what is proved of mechanisms on it at its defaults, and every stored experiment."""

    task: ListedTask
    proved: list[ProvedCeiling]
    found: list[StoredExperiment]
    waiting: Texts
    """What is stored and cannot be shown, with why."""


async def _ask(desk: Desk, request: Request, name: str, **arguments: Any) -> Response:
    store = desk.settings.store
    asked = {"store": None if store is None else store.reveal(), **arguments}
    return await desk.answer(request, Call(name, asked), state=state_of(store))


@router.get("/list/tasks", response_model=list[ListedTask])
async def tasks(request: Request, desk: TheDesk) -> Response:
    """What `separatrix list tasks --json` prints."""
    return await desk.answer(request, Call("task_list", {}))


@router.get("/list/published", response_model=list[ListedNumber])
async def published() -> list[dict[str, Any]]:
    """What `separatrix list published --json` prints."""
    return _published()


@cache
def _published() -> list[dict[str, Any]]:
    return catalog.list_published()


@router.get("/learn", response_model=TrainedOverview)
async def overview(request: Request, desk: TheDesk) -> Response:
    """Every task, with how many runs of it the store has."""
    return await _ask(desk, request, "trained_overview")


@router.get("/learn/{task}", response_model=TrainedTask)
async def task(
    request: Request, desk: TheDesk, task: str = Path(description="As in `separatrix list tasks`.")
) -> Response:
    """What the store's runs show of a task; nothing is trained."""
    return await _ask(desk, request, "trained_task", task=task, own=list(desk.settings.mechanisms))


@router.get("/ledger/predictions", response_model=schema_type(list[Prediction]))
async def predictions(request: Request, desk: TheDesk) -> Response:
    """What the exact side says of mechanisms, against what the store's runs reached."""
    return await _ask(desk, request, "prediction_ledger", own=list(desk.settings.mechanisms))


@router.get("/ledger/published", response_model=schema_type(ReproductionLedger))
async def reproductions(request: Request, desk: TheDesk) -> Response:
    """What `separatrix learn --published --json` prints, with what the store has measured of it."""
    return await _ask(desk, request, "published_ledger", own=list(desk.settings.mechanisms))
