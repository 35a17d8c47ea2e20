"""The two ledgers from the runs that a store holds: nothing is trained."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from separatrix.analysis.evidence.experiments import read_typed
from separatrix.analysis.evidence.found import Learned
from separatrix.analysis.evidence.predictions import Prediction, predictions
from separatrix.analysis.evidence.protocol import Experiment
from separatrix.analysis.evidence.published import PUBLISHED, Training
from separatrix.analysis.evidence.reproductions import Ledger, entry_of
from separatrix.analysis.evidence.stored import Load, stored_training, trained_tasks
from separatrix.core.parameters import UsageError
from separatrix.sweeps.store import Store
from separatrix.training.tasks import REAL_TASKS, TASKS

NOT_HERE = "it is not measured in this store"


def stored_predictions(
    store: Store, load: Load, say: Callable[[str], None] = lambda _: None
) -> tuple[Prediction, ...]:
    """The prediction ledger over all that a store has of any task."""
    known = [
        trained_task.task
        for trained_task in trained_tasks(store)
        if trained_task.task in {**TASKS, **REAL_TASKS}
    ]
    found = [one for task in known for one in stored_training(store, task, load, say).found]
    say("holding the exact side against them")
    return predictions(found)


def stored_reproductions(
    store: Store | None, load: Load, say: Callable[[str], None] = lambda _: None
) -> Ledger:
    """The reproduction ledger; a number whose runs the store lacks has no verdict."""
    typed = [each.how.typed for each in PUBLISHED if isinstance(each.how, Training)]
    trained = (
        {trained_task.task for trained_task in trained_tasks(store)} if store is not None else set[str]()
    )
    known = dict[str, tuple[Learned, ...]]()
    found = dict[str, Learned | UsageError]()
    for words in dict.fromkeys(typed):
        task = words.split()[0]
        if store is not None and task in trained and task not in known:
            known[task] = stored_training(store, task, load, say).found
        found[words] = _measured(read_typed(words), known) or UsageError(NOT_HERE)
    say("computing what needs no training")
    return Ledger(tuple(entry_of(each, found, {}) for each in PUBLISHED))


def _measured(asked: Experiment, known: Mapping[str, tuple[Learned, ...]]) -> Learned | None:
    """What is stored of an experiment of one mechanism, with its own rates where there are several."""
    (mechanism,) = asked.mechanisms
    same = [
        replace(each, mechanisms=(each[mechanism.spelled],), paired=())
        for each in known.get(asked.task.name, ())
        if each.task.parameters == asked.task.parameters
        and {**each.setting.shown(), "rates": ""} == {**asked.setting.shown(), "rates": ""}
        and any(one.mechanism == mechanism.spelled for one in each.mechanisms)
    ]
    return next((each for each in same if each.setting.grid == asked.setting.grid), next(iter(same), None))
