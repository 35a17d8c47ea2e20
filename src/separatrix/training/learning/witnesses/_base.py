"""What a witness is: weights written down for a task and a mechanism, in the very model that is trained."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from separatrix.core.tensors import torch
from separatrix.training.learning.batch import score_of
from separatrix.training.learning.witnesses._writing import silence
from separatrix.training.tasks import Split

if TYPE_CHECKING:
    from separatrix.layers import Model
    from separatrix.mechanisms import Mechanism
    from separatrix.training.tasks import Setting, Task

TRIED = 1000
"""Answers to training samples by which the best of several plans is chosen."""

Plan = Callable[[Any], None]
"""Writes weights into a `Model` whose blocks do nothing so far."""


class Witness(ABC):
    """The weights for one task, by mechanism. One file for a task; it registers itself by being there.

    What a witness scores can be expressed: it is a lower bound, and says nothing of what cannot be.
    """

    name: ClassVar[str]
    """Of the task."""
    mechanisms: ClassVar[Sequence[str]]
    """Those that it has weights for, at the sizes that the task is learned with by default."""

    @abstractmethod
    def plans(self, task: Any, mechanism: Mechanism, setting: Setting) -> Sequence[Plan]:
        """Ways to write the weights; the best on training samples is taken, and none is no witness.

        None is what there has to be where the construction does not hold: a mechanism that it is not for, or
        a model too narrow, or turned by rotary places.
        """


def write_best(model: Model, task: Task, plans: Sequence[Plan]) -> None:
    """Write the plan that scores best on training samples; one alone is not tried."""
    if len(plans) == 1:
        return write(model, plans[0])
    asked = task.samples(1, Split.TRAIN).places.shape[1]
    samples, scores = task.samples(max(50, TRIED // asked), Split.TRAIN), list[float]()
    for plan in plans:
        write(model, plan)
        scores.append(task.answers.sign * score_of(model, task, samples))
    return write(model, plans[scores.index(max(scores))])


def write(model: Model, plan: Plan) -> None:
    """Make every block of the model do nothing, and then what the plan says."""
    with torch.no_grad():
        silence(model)
        plan(model)
