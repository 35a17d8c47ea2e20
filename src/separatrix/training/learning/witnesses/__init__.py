"""Weights written down: what a model of a task and a mechanism can do at least, without any training."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from separatrix.core.registry import by_name, defined
from separatrix.mechanisms import mechanism_from
from separatrix.training.learning.model import model_for
from separatrix.training.learning.witnesses._base import Plan, Witness, write_best

if TYPE_CHECKING:
    from separatrix.layers import Model
    from separatrix.training.tasks import Setting, Task

_found = defined(sys.modules[__name__], Witness)
WITNESSES: dict[str, type[Witness]] = by_name(_found, "witnesses")
"""The witnesses that the files in this folder define, by the name of their task."""


def witnessed(task: Task | type[Task]) -> list[str]:
    """The mechanisms for which weights are written down for a task, as they are spelled.

    >>> from separatrix.training.tasks import task_named
    >>> witnessed(task_named("needle"))[:2]
    ['softmax', 'identity-features:normalised=no']
    """
    found = WITNESSES.get(task.name)
    return [] if found is None else list(found.mechanisms)


def witness_for(task: Task, mechanism: Any, setting: Setting) -> Model | None:
    """The model that is trained on a task, with weights written down; None where there are none.

    **Arguments:**

    - `task`: at its parameters, as `task_named("needle").read({"n": 64})`.
    - `mechanism`: a name with parameters, `module:attribute`, or the mechanism itself.
    - `setting`: the sizes of the model, `task.default_setting()` unless others are wanted.

    >>> from separatrix.training.learning import score_of
    >>> from separatrix.training.tasks import Split, task_named
    >>> task = task_named("needle").read({"n": 16})
    >>> model = witness_for(task, "softmax", task.default_setting())
    >>> samples = task.samples(500, Split.TEST)
    >>> score_of(model, task, samples) == task.ceiling(samples).score
    True
    >>> witness_for(task, "softmax", task.default_setting(rope=10000)) is None
    True
    """
    kind, found = WITNESSES.get(task.name), mechanism_from(mechanism)
    plans = [] if kind is None or setting.rope else kind().plans(task, found, setting)
    if not plans:
        return None
    model = model_for(task, found, setting)
    write_best(model, task, plans)
    return model


__all__ = ["WITNESSES", "Plan", "Witness", "witness_for", "witnessed"]
