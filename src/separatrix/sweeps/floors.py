"""Floors of real data as work items: shortcuts are fitted once, and stored beside the training runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from separatrix.sweeps.code import task_code
from separatrix.sweeps.store import Answer
from separatrix.sweeps.store.schema import FLOOR
from separatrix.sweeps.training_runs import parameter_texts
from separatrix.sweeps.work import WorkItem
from separatrix.training.tasks import Setting, Split, Task, task_named

NO_MECHANISM = "none"
"""The entry for the mechanism of work that has none."""


@dataclass(frozen=True)
class FloorOf(WorkItem):
    """The best shortcut on the test samples of a task; make one with `floor_of`.

    Its findings are `floor`, the score, and `floor_by`, the shortcut.
    """

    kind = FLOOR
    task: str
    parameters: dict[str, str]
    setting: dict[str, str]
    code: str

    def __str__(self) -> str:
        return f"the floor of {self.task}"

    def identity(self) -> Sequence[Any]:
        return self.task, self.parameters, self.setting

    @property
    def cost_key(self) -> tuple[str, ...]:
        return self.kind, self.task, NO_MECHANISM

    def columns(self) -> dict[str, Any]:
        parameters = {"task": self.task, **self.parameters, **self.setting}
        return {"mechanism": NO_MECHANISM, "parameters": parameters}

    def current_code(self) -> str:
        return task_code(task_named(self.task))

    def compute(self, checkpoint: bytes | None) -> Iterator[bytes | Answer]:
        task, setting = task_named(self.task).read(self.parameters), Setting.read(self.setting)
        floor = task.floor(task.samples(setting.tests, Split.TEST))
        yield Answer({"floor": floor.score, "floor_by": floor.basis})


def floor_of(task: Task, setting: Setting) -> FloorOf:
    """Return the floor of a task as a work item; of the setting, only `tests` matters.

    >>> work = floor_of(task_named("smnist").read({"patch": 7}), Setting(tests=100))
    >>> str(work), work.columns()["parameters"]
    ('the floor of smnist', {'task': 'smnist', 'patch': '7', 'tests': '100'})
    """
    relevant = {"tests": parameter_texts(setting)["tests"]}
    return FloorOf(task.name, parameter_texts(task.parameters), relevant, task_code(type(task)))
