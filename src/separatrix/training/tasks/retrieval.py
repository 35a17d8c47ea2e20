"""Retrieval of the maximum: the class of the item with the highest priority, beyond the trained length."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from separatrix.core.parameters import natural
from separatrix.training.tasks._base import Bound, Samples, Split
from separatrix.training.tasks._lengths import LengthTask
from separatrix.training.tasks.setting import WITHOUT_NORMS

FIT_SAMPLES = 4000
"""Training samples on which the offset of the shortcut is chosen."""
OFFSETS = tuple(tenths / 10 for tenths in range(10))


class RetrievalTask(LengthTask):
    """Return the class of the item with the highest priority, among more items than in training.

    Items with a priority, uniform between 0 and 1, and one of `classes` classes; the last token carries only
    a mark, and answers with the class of the item with the highest priority. Models are trained on `trained`
    items and tested on `tested`: the more items, the closer the highest two, and with bounded logits softmax
    spreads its weight over all of them. A shortcut returns the class with the largest sum of priorities minus
    an offset, which is chosen on training samples.
    """

    name = "retrieval"
    provenance = "[rec] max retrieval, arXiv 2410.01104, with a fixed number of training items"
    reason = "one priority is the highest"
    classes: int = natural(10, at_least=2, at_most=256)
    example: ClassVar[dict[str, object]] = {"trained": 8, "tested": 24}
    setting = WITHOUT_NORMS | {"batch": 64, "rates": "0.003,0.01,0.03", "tests": 4000}

    @property
    def features(self) -> int:
        return self.classes + 2

    @property
    def outputs(self) -> int:
        return self.classes

    def draw(self, count: int, split: Split, rng: np.random.Generator) -> Samples:
        n, classes = self.length_in(split), self.classes
        priorities = rng.random((count, n), dtype=np.float32)
        labels = rng.integers(classes, size=(count, n))
        inputs = np.zeros((count, n + 1, classes + 2), dtype=np.float32)
        inputs[:, :n, 0], inputs[:, :n, 2:], inputs[:, n, 1] = priorities, np.eye(classes)[labels], 1
        targets = labels[np.arange(count), priorities.argmax(1)]
        return Samples(inputs, np.full((count, 1), n), targets[:, None])

    def floor(self, samples: Samples) -> Bound:
        # On training samples: test samples must not select the shortcut that they are scored with.
        train = self.samples(FIT_SAMPLES, Split.TRAIN)
        offset = max(OFFSETS, key=lambda offset: _accuracy(train, offset))
        basis = f"the class with the largest sum of priorities minus {offset:g}"
        return Bound(_accuracy(samples, offset), basis)


def _accuracy(samples: Samples, offset: float) -> float:
    """Return how often the class with the largest sum of priorities minus an offset is the answer."""
    items = samples.inputs[:, :-1]
    sums = ((items[..., :1] - np.float32(offset)) * items[..., 2:]).sum(1)
    return float((sums.argmax(1) == samples.targets[:, 0]).mean())
