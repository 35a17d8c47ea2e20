"""Retrieval of the largest: the class of the item of the highest priority, beyond the trained length."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from separatrix.core.parameters import Constraint, Natural, between
from separatrix.training.tasks._base import Bound, Samples, Split
from separatrix.training.tasks._lengths import Lengths, LengthTask

if TYPE_CHECKING:
    from numpy.random import Generator

    from separatrix.training.tasks.setting import Setting

FITTED = 4000
"""Training samples by which the offset of the shortcut is chosen."""
OFFSETS = tuple(tenths / 10 for tenths in range(10))


class RetrievalParameters(Lengths):
    """How many items there are to train with and to test with, of how many classes."""

    owner = "retrieval"
    trained: Natural = 16
    tested: Natural = 64
    classes: Natural = 10
    constraints: ClassVar[tuple[Constraint, ...]] = (*Lengths.constraints, between("classes", 2, 256))


class Retrieval(LengthTask):
    """Items with a priority and a class: say the class of the one with the highest priority."""

    name = "retrieval"
    title = "Say the class of the item with the highest priority, among more items than in training."
    provenance = "[rec] max retrieval, arXiv 2410.01104, with a fixed number of items to train with"
    description = (
        "Items with a priority, uniform between 0 and 1, and one of `classes` classes; the last token has a "
        "mark only, and answers with the class of the item of the highest priority. Models are trained on "
        "`trained` items and tested on `tested`: the more there are, the closer the highest two, and with "
        "logits that are bounded softmax spreads its weight over all. A shortcut says the class with the "
        "largest sum of priorities, each less an offset that is chosen on training samples."
    )
    schema = RetrievalParameters
    example: ClassVar[dict[str, object]] = {"trained": 8, "tested": 24}
    setting: ClassVar[dict[str, object]] = {
        "width": 32,
        "norm": "no",
        "out_norm": "no",
        "batch": 64,
        "rates": "0.003,0.01,0.03",
        "tests": 4000,
    }
    parameters: RetrievalParameters

    @property
    def features(self) -> int:
        return self.parameters.classes + 2

    @property
    def outputs(self) -> int:
        return self.parameters.classes

    def draw(self, count: int, split: Split, chance: Generator) -> Samples:
        n, classes = self.parameters.length(split), self.parameters.classes
        priorities = chance.random((count, n), dtype=np.float32)
        kinds = chance.integers(classes, size=(count, n))
        inputs = np.zeros((count, n + 1, classes + 2), dtype=np.float32)
        inputs[:, :n, 0], inputs[:, :n, 2:], inputs[:, n, 1] = priorities, np.eye(classes)[kinds], 1
        targets = kinds[np.arange(count), priorities.argmax(1)]
        return Samples(inputs, np.full((count, 1), n), targets[:, None])

    def ceiling(self, samples: Samples) -> Bound:
        return Bound(1.0, "one priority is the highest")

    def floor(self, samples: Samples, setting: Setting) -> Bound:
        trained = self.samples(FITTED, Split.TRAIN)
        offset = max(OFFSETS, key=lambda each: _right(trained, each))  # by training samples alone
        return Bound(_right(samples, offset), f"the class with the largest sum of priorities less {offset:g}")


def _right(samples: Samples, offset: float) -> float:
    """How often the class with the largest sum of priorities less an offset is the answer."""
    items = samples.inputs[:, :-1]
    weighted = ((items[..., :1] - np.float32(offset)) * items[..., 2:]).sum(1)
    return float((weighted.argmax(1) == samples.targets[:, 0]).mean())
