"""Parity: is the number of ones so far odd? Scored beyond the trained length."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from separatrix.training.tasks._base import Samples, Split
from separatrix.training.tasks._lengths import LengthTask, length
from separatrix.training.tasks.setting import MANY_ANSWERS


class ParityTask(LengthTask):
    """Decide whether the number of ones so far is odd, beyond the trained length.

    Independent bits; the answer at each bit is the parity of all bits up to it. Models are trained on
    `trained` bits; validation and test samples have `tested` bits, of which only those beyond the trained
    length are scored. Given all bits but one, both answers are equally likely: there is no shortcut. A state
    whose transitions have only positive eigenvalues cannot track parity at every length in finite precision;
    a delta rule with beta up to 2 can.
    """

    name = "parity"
    provenance = "[rec] arXiv 2411.12537, scored at every bit and with other lengths"
    reason = "the bits determine it"
    trained: int = length(24)
    tested: int = length(96)
    example: ClassVar[dict[str, object]] = {"trained": 12, "tested": 40}
    setting = MANY_ANSWERS | {"rates": "0.003,0.01,0.03", "tests": 1000}
    vocabulary = outputs = 2

    @property
    def bits(self) -> float:
        return self.trained

    def draw(self, count: int, split: Split, rng: np.random.Generator) -> Samples:
        n, first = self.length_in(split), self.first_scored(split)
        inputs = rng.integers(2, size=(count, n))
        return Samples(inputs, np.tile(np.arange(first, n), (count, 1)), (inputs.cumsum(1) % 2)[:, first:])
