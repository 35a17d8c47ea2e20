"""The base class of witnesses: constructed weights for a task and a mechanism, in the trained model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from separatrix.core.tensors import torch
from separatrix.layers import Model
from separatrix.mechanisms import Mechanism
from separatrix.training.learning.batch import score_model
from separatrix.training.learning.witnesses._writing import silence
from separatrix.training.tasks import Setting, Split, Task

TRIAL_ANSWERS = 1000
"""Answers to training samples by which the best of several plans is selected."""

Plan = Callable[[Any], None]
"""Writes weights into a `Model` whose blocks have no effect yet."""


class TaskWitness(ABC):
    """Constructed weights for one task, by mechanism. Each file of the package registers its witnesses.

    The score of a witness is a lower bound of what the mechanism can express, never an upper bound.
    """

    name: ClassVar[str]
    """Of the task."""
    mechanisms: ClassVar[Sequence[str]]
    """Mechanisms with a witness at the default setting of the task."""

    @abstractmethod
    def plans(self, task: Any, mechanism: Mechanism, setting: Setting) -> Sequence[Plan]:
        """Return ways to write the weights, of which the best on training samples is used.

        There are none if the construction does not apply: for other mechanisms, or for a model that is too
        narrow or has rotary positions.
        """


def write_best(model: Model, task: Task, plans: Sequence[Plan]) -> None:
    """Write the plan with the best score on training samples; a single plan is not tried."""
    if len(plans) == 1:
        return write(model, plans[0])
    answers = task.samples(1, Split.TRAIN).positions.shape[1]
    samples, scores = task.samples(max(50, TRIAL_ANSWERS // answers), Split.TRAIN), list[float]()
    for plan in plans:
        write(model, plan)
        scores.append(task.metric.sign * score_model(model, task, samples))
    return write(model, plans[scores.index(max(scores))])


def write(model: Model, plan: Plan) -> None:
    """Remove the effect of every block of the model, then write a plan."""
    with torch.no_grad():
        silence(model)
        plan(model)
