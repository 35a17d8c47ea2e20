"""The base class of witnesses: constructed weights for a task and a mechanism, in the trained model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from separatrix.core.tensors import Float, Tensor, torch
from separatrix.layers import Model
from separatrix.mechanisms import Mechanism
from separatrix.training.learning.batch import SampleBatch, iterate_batches, score_model, take_positions
from separatrix.training.learning.witnesses._channels import Matrix
from separatrix.training.learning.witnesses._writing import silence
from separatrix.training.tasks import Samples, Setting, Split, Task

TRIAL_ANSWERS = 1000
"""Answers to training samples by which the best of several variants is selected."""
FIT_SAMPLES = 2000
"""Training samples for the numbers of a head, other than those on which variants are compared."""


class TaskWitness(ABC):
    """Constructed weights for one task, by mechanism. Each file of the package registers its witnesses.

    The score of a witness is a lower bound of what the mechanism can express, never an upper bound.
    """

    name: ClassVar[str]
    """Of the task."""
    mechanisms: ClassVar[Sequence[str]]
    """Mechanisms with a witness at the default setting of the task."""

    @abstractmethod
    def variants(self, task: Any, mechanism: Mechanism, setting: Setting) -> Iterator[Any]:
        """Yield variants of the construction, of which the best on training samples is used.

        There are none if the construction does not apply: for other mechanisms, or for a model that is too
        narrow. Models with rotary positions have no witness at all.
        """

    @abstractmethod
    def write(self, model: Any, task: Any, setting: Setting, variant: Any) -> None:
        """Write the weights of a variant into a model whose blocks have no effect yet."""


def write_best(witness: TaskWitness, model: Model, task: Task, setting: Setting, variants: Sequence[Any]) -> None:
    """Write the variant with the best score on training samples; a single one is not tried."""

    def write(variant: Any) -> None:
        with torch.no_grad():
            silence(model)
            witness.write(model, task, setting, variant)

    def score(variant: Any) -> float:
        write(variant)
        return task.metric.sign * score_model(model, task, samples)

    if len(variants) > 1:
        answers = task.samples(1, Split.TRAIN).positions.shape[1]
        samples = task.samples(max(50, TRIAL_ANSWERS // answers), Split.TRAIN)
        variants = [max(variants, key=score)]
    write(variants[0])


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
    # Halfway between two samples, so that neither of them lies on the threshold.
    threshold = ratio[index : index + 2].mean()
    excess = channel - threshold * reference
    model.head.weight[:] = torch.cat([-1.0 * excess, excess])


def fit_scale(model: Any, task: Task, channel: Matrix) -> None:
    """Let the head return a map (1, width) of the stream, scaled by least squares on training samples."""
    samples = task.samples(FIT_SAMPLES, Split.TRAIN, 0, 1)
    values, targets = final_stream(model, samples) @ channel.T, torch.from_numpy(samples.targets[:, :1])
    model.head.weight[:] = channel * (values * targets).sum() / values.square().sum()
