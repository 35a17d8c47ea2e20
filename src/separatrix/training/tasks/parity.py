"""Parity: is the number of ones so far odd? Asked beyond the trained length."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from separatrix.core.parameters import Natural
from separatrix.training.tasks._base import Bound, Samples, Split, commonest_class
from separatrix.training.tasks._lengths import Lengths, LengthTask

if TYPE_CHECKING:
    from numpy.random import Generator

    from separatrix.training.tasks.setting import Setting


class ParityParameters(Lengths):
    """How many bits there are to train with, and to test with."""

    owner = "parity"
    trained: Natural = 24
    tested: Natural = 96


class Parity(LengthTask):
    """Random bits: say at each whether the number of ones so far is odd."""

    name = "parity"
    title = "Say whether the number of ones so far is odd, beyond the trained length."
    provenance = "[rec] arXiv 2411.12537, asked at every bit and with other lengths"
    description = (
        "Independent bits, and at each of them the answer is the parity of all up to it. Models train on "
        "`trained` bits; samples to validate and test with have `tested`, and there only the bits beyond the "
        "trained length are asked. Given all bits but one, either answer is equally likely: there is no "
        "shortcut. A state whose transitions have positive eigenvalues alone cannot follow it at every "
        "length in finite precision; a delta rule with beta up to 2 can."
    )
    schema = ParityParameters
    example: ClassVar[dict[str, object]] = {"trained": 12, "tested": 40}
    setting: ClassVar[dict[str, object]] = {"validation": 256, "tests": 1000, "rates": "0.003,0.01,0.03"}
    parameters: ParityParameters

    @property
    def vocabulary(self) -> int:
        return 2

    @property
    def outputs(self) -> int:
        return 2

    @property
    def bits(self) -> float:
        return self.parameters.trained

    def draw(self, count: int, split: Split, chance: Generator) -> Samples:
        n, first = self.parameters.length(split), self.parameters.first_asked(split)
        inputs = chance.integers(2, size=(count, n))
        return Samples(inputs, np.tile(np.arange(first, n), (count, 1)), (inputs.cumsum(1) % 2)[:, first:])

    def ceiling(self, samples: Samples) -> Bound:
        return Bound(1.0, "the bits say it")

    def floor(self, samples: Samples, setting: Setting) -> Bound:
        return commonest_class(samples)
