"""Tasks that models are trained on: samples with a known ceiling and a measured floor, or real data."""

import sys

from separatrix.core.parameters import find_known
from separatrix.core.registry import by_name, find_classes
from separatrix.training.tasks import real
from separatrix.training.tasks._base import Bound, Metric, ProvedCeiling, Samples, Split, Task
from separatrix.training.tasks.real._base import RealTask
from separatrix.training.tasks.setting import Setting

_synthetic = find_classes(sys.modules[__name__], Task)
TASKS: dict[str, type[Task]] = by_name(_synthetic, "tasks")
"""The tasks that the files of this package define, by name."""
_real = find_classes(real, RealTask)
REAL_TASKS: dict[str, type[RealTask]] = by_name(_real, "tasks")
"""The tasks on real data that the files of `real` define, by name. They need their data sets."""


def task_named(name: str) -> type[Task]:
    """Return the task of this name, for example `needle`, or raise a UsageError that lists the names."""
    return find_known("task", name, {**TASKS, **REAL_TASKS}, "needle")


__all__ = [
    "REAL_TASKS",
    "TASKS",
    "Bound",
    "Metric",
    "ProvedCeiling",
    "RealTask",
    "Samples",
    "Setting",
    "Split",
    "Task",
    "task_named",
]
