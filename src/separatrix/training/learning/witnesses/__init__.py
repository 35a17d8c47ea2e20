"""Witnesses: constructed weights, which show what a model can express at least, without training."""

from __future__ import annotations

import sys
from typing import Any

from separatrix.core.registry import by_name, find_classes
from separatrix.layers import Model
from separatrix.mechanisms import mechanism_from
from separatrix.training.learning.model import build_model
from separatrix.training.learning.witnesses._base import TaskWitness, write_best
from separatrix.training.tasks import Setting, Task

_classes = find_classes(sys.modules[__name__], TaskWitness)
WITNESSES: dict[str, type[TaskWitness]] = by_name(_classes, "witnesses")
"""The witnesses that the files of this package define, by the name of their task."""


def witnessed_mechanisms(task: Task | type[Task]) -> list[str]:
    """Return the spellings of the mechanisms that have a witness for a task.

    >>> from separatrix.training.tasks import task_named
    >>> witnessed_mechanisms(task_named("needle"))[:2]
    ['softmax', 'identity-features:normalised=no']
    """
    witness = WITNESSES.get(task.name)
    return [] if witness is None else list(witness.mechanisms)


def build_witness(task: Task, mechanism: Any, setting: Setting) -> Model | None:
    """Return the model of a task with constructed weights; None if there is no construction.

    **Arguments:**

    - `task`: with its parameters, as `task_named("needle").read({"n": 64})`.
    - `mechanism`: a name with parameters, `module:attribute`, or the mechanism itself.
    - `setting`: the sizes of the model, for example `task.default_setting()`.

    >>> from separatrix.training.learning import score_model
    >>> from separatrix.training.tasks import Split, task_named
    >>> task = task_named("needle").read({"n": 16})
    >>> model = build_witness(task, "softmax", task.default_setting())
    >>> samples = task.samples(500, Split.TEST)
    >>> score_model(model, task, samples) == task.ceiling(samples).score
    True
    >>> build_witness(task, "softmax", task.default_setting(rope=10000)) is None
    True
    """
    kind, mechanism = WITNESSES.get(task.name), mechanism_from(mechanism)
    if kind is None or setting.rope:
        return None
    witness = kind()
    variants = list(witness.variants(task, mechanism, setting))
    if not variants:
        return None
    model = build_model(task, mechanism, setting)
    write_best(witness, model, task, setting, variants)
    return model


__all__ = ["WITNESSES", "TaskWitness", "build_witness", "witnessed_mechanisms"]
