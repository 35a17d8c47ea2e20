"""Weights written down: what a model of a task and a mechanism can do at least, without any training."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from separatrix.layers import Model
    from separatrix.tasks import Setting, Task

WITNESSES: dict[str, type[Any]] = {}
"""The witnesses that the files in this folder define, by the name of their task."""


def witness_for(task: Task, mechanism: Any, setting: Setting) -> Model | None:
    """The model that is trained on a task, with weights written down; None where there are none."""
    return None
