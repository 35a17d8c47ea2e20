"""What is known of a mechanism on a task: what is proved, was trained, or is written down; or nothing."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from separatrix.choices.budget import Budget
from separatrix.choices.sight import CANNOT, UNKNOWN, Cell
from separatrix.learning.witnesses import witnessed
from separatrix.mechanisms import Mechanism
from separatrix.parameters import UsageError
from separatrix.tasks import TASKS, RealTask, Split, Task, task_named

if TYPE_CHECKING:
    from separatrix.store import Store

CAN, LEARNED, NOT_LEARNED = "can", "learned", "not learned"
SAMPLES = 200
"""On which the ceiling of a task is looked at."""


@cache
def nearest_task(name: str, n: int) -> Task:
    """A task at the length nearest to n that it has; at its defaults where it has no parameter n.

    >>> nearest_task("needle", 131_072).parameters.n, nearest_task("mqar", 131_072).parameters.pairs
    (4096, 16)
    """
    kind = task_named(name)
    lengths = (n, *(1 << power for power in reversed(range(n.bit_length()))))
    for each in lengths if "n" in kind.schema.model_fields else ():
        try:
            return kind.read({"n": each})
        except UsageError:
            continue
    return kind.read()


def task_sight(name: str, mechanism: Mechanism, budget: Budget, store: Store | None = None) -> Cell:
    """What is known of a mechanism on the task `name`, the strongest first."""
    task = nearest_task(name, budget.n)
    n = getattr(task.parameters, "n", None)
    words = f"{name} {mechanism.spelled}{f' n={n}' if n else ''}"
    ceiling = None if isinstance(task, RealTask) else task.proved_ceiling(mechanism, task.default_setting())
    best = None if ceiling is None else _best(task)
    if ceiling is not None and best is not None:
        sign = task.answers.sign
        if sign * ceiling.score < sign * best - task.tolerance:
            said = f"at most {ceiling.score:.4f}, where {best:.4f} can be had: proved for {ceiling.models}"
            return Cell(name, CANNOT, "proved", n, said, f"separatrix learn {words}")
    trained = None if store is None else _trained(name, mechanism, store)
    if trained is not None:
        return trained
    if name in TASKS and mechanism.spelled in witnessed(task):
        usual = getattr(task_named(name).read().parameters, "n", None)
        at = f", at n={usual:,}" if usual else ""
        said = f"weights for it are written down{at}; whether they are learned is not known"
        return Cell(name, CAN, "written down", usual, said, f"separatrix learn {name} {mechanism.spelled}")
    return Cell(
        name, UNKNOWN, UNKNOWN, n, "nothing is proved, and no run is stored", f"separatrix learn {words}"
    )


@cache
def _best(task: Task) -> float:
    return task.ceiling(task.samples(SAMPLES, Split.TEST)).score


def _trained(name: str, mechanism: Mechanism, store: Store) -> Cell | None:
    """The runs from scratch that a store has, at the greatest length among them."""
    from separatrix.store import results

    wanted: dict[str, Any] = {
        "task": name,
        "mechanism": mechanism.spelled,
        "start": "scratch",
        "purpose": "test",
    }
    try:
        found = results(store, kind="training", **wanted)
    except UsageError:
        return None  # it has no training runs
    rows = [row for row in found.iter_rows(named=True) if row.get("score") is not None]
    if not rows:
        return None
    longest = max(row["n"] or 0 for row in rows)
    at = [row for row in rows if (row["n"] or 0) == longest]
    solved = sum(row["outcome"] == "solved" for row in at)
    scores = sorted(float(row["score"]) for row in at)
    said = f"{solved} of {len(at)} runs solved it, with scores of {scores[0]:.4f} to {scores[-1]:.4f}"
    where = f"{said}{f', at n={longest:,.0f}' if longest else ''}"
    command = (
        f"separatrix results --kind training task={name} mechanism={mechanism.spelled} --store {store.where}"
    )
    word = LEARNED if 2 * solved > len(at) else NOT_LEARNED
    return Cell(name, word, "trained", int(longest) or None, where, command)
