"""Floors of real data as work: shortcuts are fitted once, and kept beside the runs held against them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from separatrix.sweeps.code import task_code
from separatrix.sweeps.store import Answer
from separatrix.sweeps.store.schema import FLOOR
from separatrix.sweeps.training_runs import texts
from separatrix.sweeps.work import Work
from separatrix.training.tasks import Setting, Split, Task, task_named

NOBODY = "none"
"""What stands for a mechanism where there is none."""


@dataclass(frozen=True)
class FloorOf(Work):
    """The best shortcut on the test samples of a task; make one with `floor_of`.

    What it finds: `floor`, its score, and `floor_by`, what it is.
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
        return self.kind, self.task, NOBODY

    def columns(self) -> dict[str, Any]:
        n = self.parameters.get("n")
        return {
            "mechanism": NOBODY,
            "parameters": {"task": self.task, **self.parameters, **self.setting},
            "n": None if n is None else float(n),
        }

    def code_here(self) -> str:
        return task_code(task_named(self.task))

    def compute(self, checkpoint: bytes | None) -> Iterator[bytes | Answer]:
        task, setting = task_named(self.task).read(self.parameters), Setting.read(self.setting)
        found = task.floor(task.samples(setting.tests, Split.TEST))
        yield Answer({"floor": found.score, "floor_by": found.basis})


def floor_of(task: Task, setting: Setting) -> FloorOf:
    """The floor of a task as work that `run` and a store take; of the setting, `tests` matters.

    >>> work = floor_of(task_named("smnist").read({"patch": 7}), Setting(tests=100))
    >>> str(work), work.columns()["parameters"]
    ('the floor of smnist', {'task': 'smnist', 'patch': '7', 'tests': '100'})
    """
    matters = {"tests": texts(setting)["tests"]}
    return FloorOf(task.name, texts(task.parameters), matters, task_code(type(task)))
