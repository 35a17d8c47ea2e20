"""The one number of a head that no formula gives: a threshold or a scale, fitted on training samples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from separatrix.core.tensors import Float, Tensor, torch
from separatrix.training.learning.batch import Batch, batches_of
from separatrix.training.tasks import Split

if TYPE_CHECKING:
    from separatrix.training.learning.witnesses._writing import Matrix
    from separatrix.training.tasks import Samples, Task

FITTED = 2000
"""Training samples for it; others than those on which plans are compared."""


def heard(model: Any, samples: Samples) -> Float[Tensor, "samples width"]:
    """The stream after all blocks and the last norm, at the first place that is asked."""
    return torch.cat([_heard_by_batch(model, batch) for batch in batches_of(samples)])


def _heard_by_batch(model: Any, batch: Batch) -> Float[Tensor, "batch width"]:
    x = model.inputs(batch.inputs)
    *before, last = model.blocks
    for block in before:
        x, _ = block(x, batch.present)
    x, _ = last(x, batch.present, last=batch.last)
    first = batch.inputs.shape[1] - batch.last
    found: Tensor = model.norm(x).take_along_dim(batch.places[:, :1, None] - first, dim=1)[:, 0]
    return found


def fit_threshold(model: Any, task: Task, above: Matrix, reference: Matrix) -> None:
    """Let the head say class 1 where `above` exceeds `reference`, a positive number, so many times.

    Both are maps (1, width) of the stream. How many times it is that is right most often on training samples.
    """
    samples = task.samples(FITTED, Split.TRAIN, 0, 1)
    stream, targets = heard(model, samples), torch.from_numpy(samples.targets[:, 0])
    ratio = (stream @ above.T / (stream @ reference.T))[:, 0]
    ratio, order = ratio.sort()
    right = (1 - 2 * targets[order]).cumsum(0)  # zeros below, less ones below
    place = int(right.argmax())
    threshold = ratio[place : place + 2].mean()
    model.head.weight[:] = torch.cat([-1.0 * (above - threshold * reference), above - threshold * reference])


def fit_scale(model: Any, task: Task, said: Matrix) -> None:
    """Let the head say a map (1, width) of the stream, times what least squares on training samples gives."""
    samples = task.samples(FITTED, Split.TRAIN, 0, 1)
    found, targets = heard(model, samples) @ said.T, torch.from_numpy(samples.targets[:, :1])
    model.head.weight[:] = said * (found * targets).sum() / found.square().sum()
