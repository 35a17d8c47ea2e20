"""The one number of a head without a formula: a threshold or a scale, fitted to training samples."""

from __future__ import annotations

from typing import Any

from separatrix.core.tensors import Float, Tensor, torch
from separatrix.training.learning.batch import SampleBatch, iterate_batches, take_positions
from separatrix.training.learning.witnesses._writing import Matrix
from separatrix.training.tasks import Samples, Split, Task

FIT_SAMPLES = 2000
"""Training samples, other than those on which plans are compared."""


def final_stream(model: Any, samples: Samples) -> Float[Tensor, "samples width"]:
    """Return the stream after all blocks and the last norm, at the first scored position."""
    return torch.cat([_final_stream(model, batch) for batch in iterate_batches(samples)])


def _final_stream(model: Any, batch: SampleBatch) -> Float[Tensor, "batch width"]:
    x = model.inputs(batch.inputs)
    *before, last = model.blocks
    for block in before:
        x, _ = block(x, batch.present)
    x, _ = last(x, batch.present, last=batch.last)
    return take_positions(model.norm(x), batch, batch.positions[:, :1])[:, 0]


def fit_threshold(model: Any, task: Task, channel: Matrix, reference: Matrix) -> None:
    """Let the head return class 1 if `channel` exceeds a multiple of `reference`, a positive number.

    Both are maps (1, width) of the stream. The multiple is the most accurate one on training samples.
    """
    samples = task.samples(FIT_SAMPLES, Split.TRAIN, 0, 1)
    stream, targets = final_stream(model, samples), torch.from_numpy(samples.targets[:, 0])
    ratio = (stream @ channel.T / (stream @ reference.T))[:, 0]
    ratio, order = ratio.sort()
    gain = (1 - 2 * targets[order]).cumsum(0)  # zeros below the threshold minus ones below it
    index = int(gain.argmax())
    threshold = ratio[index : index + 2].mean()
    excess = channel - threshold * reference
    model.head.weight[:] = torch.cat([-1.0 * excess, excess])


def fit_scale(model: Any, task: Task, channel: Matrix) -> None:
    """Let the head return a map (1, width) of the stream, scaled by least squares on training samples."""
    samples = task.samples(FIT_SAMPLES, Split.TRAIN, 0, 1)
    values, targets = final_stream(model, samples) @ channel.T, torch.from_numpy(samples.targets[:, :1])
    model.head.weight[:] = channel * (values * targets).sum() / values.square().sum()
