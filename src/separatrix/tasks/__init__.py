"""What models are trained on: samples with a known ceiling and a measured floor."""

import sys

from separatrix.parameters import UsageError, require_known
from separatrix.registry import by_name, defined
from separatrix.tasks._base import Answers, Bound, ProvedCeiling, Samples, Split, Task
from separatrix.tasks.setting import Setting

_found = defined(sys.modules[__name__], Task)
TASKS: dict[str, type[Task]] = by_name(_found, "tasks")
"""Every task that a file in this folder defines, by name."""


def task_named(name: str) -> type[Task]:
    """The task called `name`, such as `needle`, or a UsageError that lists them."""
    if not isinstance(name, str):
        raise UsageError(f"{name!r} is not the name of a task; write for example 'needle'")
    require_known("task", name, TASKS)
    return TASKS[name]


__all__ = [
    "TASKS",
    "Answers",
    "Bound",
    "ProvedCeiling",
    "Samples",
    "Setting",
    "Split",
    "Task",
    "task_named",
]
