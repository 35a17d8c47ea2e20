"""What models are trained on: samples with a known ceiling and a measured floor; or real data."""

import sys

from separatrix.core.parameters import UsageError, require_known
from separatrix.core.registry import by_name, defined
from separatrix.training.tasks import real
from separatrix.training.tasks._base import Answers, Bound, ProvedCeiling, Samples, Split, Task
from separatrix.training.tasks.real._base import RealTask
from separatrix.training.tasks.setting import Setting

_found = defined(sys.modules[__name__], Task)
TASKS: dict[str, type[Task]] = by_name(_found, "tasks")
"""Every task that a file in this folder defines, by name."""
_real = defined(real, RealTask)
REAL_TASKS: dict[str, type[RealTask]] = by_name(_real, "tasks")
"""Every task on real data, by name: a file each in the folder `real`. The data set must be there."""


def task_named(name: str) -> type[Task]:
    """The task called `name`, such as `needle`, or a UsageError that lists them."""
    if not isinstance(name, str):
        raise UsageError(f"{name!r} is not the name of a task; write for example 'needle'")
    known: dict[str, type[Task]] = {**TASKS, **REAL_TASKS}
    require_known("task", name, known)
    return known[name]


__all__ = [
    "REAL_TASKS",
    "TASKS",
    "Answers",
    "Bound",
    "ProvedCeiling",
    "RealTask",
    "Samples",
    "Setting",
    "Split",
    "Task",
    "task_named",
]
