"""Samples as tensors, the outputs of a model for them, its loss and its score."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from separatrix.training.tasks import Metric, Samples, Task

MAX_BATCH_TOKENS = 2**13
"""Tokens of a batch when a model is scored, few enough to stay in a cache."""


@dataclass(frozen=True)
class SampleBatch:
    """Samples on the device of a model."""

    inputs: Tensor
    positions: Tensor
    targets: Tensor
    present: Tensor | None
    last: int
    """The number of tokens from the first scored position on; the model computes only their outputs."""

    @classmethod
    def of(cls, samples: Samples, device: str = "cpu") -> SampleBatch:
        """Convert samples to tensors; on a CPU they share the memory of the arrays."""
        arrays = samples.inputs, samples.positions, samples.targets
        present = None if samples.present is None else _to_tensor(samples.present, device)
        last = samples.inputs.shape[1] - int(samples.positions.min())
        inputs, positions, targets = (_to_tensor(array, device) for array in arrays)
        return cls(inputs, positions, targets, present, last)


def iterate_batches(samples: Samples, device: str = "cpu") -> Iterator[SampleBatch]:
    """Yield batches of at most `MAX_BATCH_TOKENS` tokens, so that memory does not grow with the samples."""
    size = max(1, MAX_BATCH_TOKENS // samples.inputs.shape[1])
    for start in range(0, len(samples), size):
        rows = np.arange(start, min(start + size, len(samples)))
        yield SampleBatch.of(samples.select(rows), device)


def _to_tensor(array: NDArray[Any], device: str) -> Tensor:
    # Broadcast arrays, such as the positions of enwik8, have no memory of their own that torch could share.
    tensor = torch.from_numpy(np.ascontiguousarray(array)).to(device)
    return tensor.float() if tensor.is_floating_point() else tensor


def compute_outputs(model: nn.Module, batch: SampleBatch) -> Tensor:
    """Return the outputs of a model at the scored positions, (samples, answers, outputs)."""
    outputs, _ = model(batch.inputs, batch.present, last=batch.last)
    return take_positions(outputs, batch, batch.positions)


def take_positions(stream: Tensor, batch: SampleBatch, positions: Tensor) -> Tensor:
    """Return the values of a stream of the last tokens, (samples, last, width), at positions of the input."""
    first = batch.inputs.shape[1] - batch.last
    return stream.take_along_dim(positions[..., None] - first, dim=1)


def compute_loss(outputs: Tensor, batch: SampleBatch, task: Task) -> Tensor:
    """Return the cross-entropy if answers are classes, the mean squared error if they are numbers."""
    if task.metric is Metric.RELATIVE_ERROR:
        return functional.mse_loss(outputs[..., 0], batch.targets)
    return functional.cross_entropy(outputs.flatten(0, 1), batch.targets.flatten())


def score_model(model: nn.Module, task: Task, samples: Samples, device: str = "cpu") -> float:
    """Return the score of a model on samples; outputs that are not finite count as 0.

    >>> from separatrix.training.learning import build_model
    >>> from separatrix.training.tasks import Split, task_named
    >>> needle = task_named("needle").read({"n": 16})
    >>> untrained = build_model(needle, "softmax", needle.default_setting())
    >>> 0.4 < score_model(untrained, needle, needle.samples(1000, Split.VALIDATION)) < 0.6
    True
    """
    was_training = model.training
    model.eval()
    with torch.no_grad():
        outputs = [compute_outputs(model, batch) for batch in iterate_batches(samples, device)]
    model.train(was_training)
    return task.score(torch.cat(outputs).nan_to_num(0.0, 0.0, 0.0), samples)
