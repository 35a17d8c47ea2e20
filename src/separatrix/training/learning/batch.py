"""Samples as tensors, what a model answers to them, and how good that is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from separatrix.core.errors import UsageError, one_line
from separatrix.training.tasks import Answers, Samples, Task

if TYPE_CHECKING:
    from numpy.typing import NDArray

READ_AT_ONCE = 2**13
"""Tokens that a model reads at once when it is scored, few enough to stay in a cache."""


def require_device(name: str) -> None:
    """Refuse a device of torch that is not here."""
    try:
        torch.empty(0, device=name)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise UsageError(f"device={name} cannot be used here: {one_line(error, 120)}") from None


@dataclass(frozen=True)
class Batch:
    """Samples on the device of a model."""

    inputs: Tensor
    places: Tensor
    targets: Tensor
    present: Tensor | None
    last: int
    """Of how many of the last tokens some are asked; none before is."""

    @classmethod
    def of(cls, samples: Samples, device: str = "cpu") -> Batch:
        """The samples; on a CPU they share the memory of the arrays."""
        there = samples.present
        return cls(
            _tensor(samples.inputs, device),
            _tensor(samples.places, device),
            _tensor(samples.targets, device),
            None if there is None else _tensor(there, device),
            samples.inputs.shape[1] - int(samples.places.min()),
        )


def batches_of(samples: Samples, device: str = "cpu") -> Iterator[Batch]:
    """The samples in batches of at most `READ_AT_ONCE` tokens: memory does not grow with their number."""
    rows = max(1, READ_AT_ONCE // samples.inputs.shape[1])
    for start in range(0, len(samples), rows):
        yield Batch.of(samples.chosen(np.arange(start, min(start + rows, len(samples)))), device)


def _tensor(array: NDArray[Any], device: str) -> Tensor:
    made = torch.from_numpy(np.ascontiguousarray(array)).to(device)
    return made.float() if made.is_floating_point() else made


def answers(model: nn.Module, batch: Batch) -> Tensor:
    """What the model says at the places that are asked, (samples, asked, outputs)."""
    said, _ = model(batch.inputs, batch.present, last=batch.last)
    first = batch.inputs.shape[1] - batch.last
    found: Tensor = said.take_along_dim(batch.places[..., None] - first, dim=1)
    return found


def loss_of(said: Tensor, batch: Batch, task: Task) -> Tensor:
    """Cross-entropy where classes are asked for, the mean squared error where numbers are."""
    if task.answers is Answers.NUMBERS:
        return functional.mse_loss(said[..., 0], batch.targets)
    return functional.cross_entropy(said.flatten(0, 1), batch.targets.flatten())


def score_of(model: nn.Module, task: Task, samples: Samples, device: str = "cpu") -> float:
    """The score of a model on samples; where it says what is no number, it is taken to say 0.

    >>> from separatrix.training.learning import model_for
    >>> from separatrix.training.tasks import Split, task_named
    >>> needle = task_named("needle").read({"n": 16})
    >>> untrained = model_for(needle, "softmax", needle.default_setting())
    >>> 0.4 < score_of(untrained, needle, needle.samples(1000, Split.VALIDATION)) < 0.6
    True
    """
    was_training = model.training
    model.eval()
    with torch.no_grad():
        said = [answers(model, batch) for batch in batches_of(samples, device)]
    model.train(was_training)
    return task.score(torch.cat(said).nan_to_num(0.0, 0.0, 0.0), samples)
