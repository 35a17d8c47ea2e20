"""Induction: what came after the last symbol when it was there before?"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from separatrix.core.parameters import Constraint, Natural, Parameters, between
from separatrix.training.tasks._base import Bound, ProvedCeiling, Samples, Split, Task
from separatrix.training.tasks._proofs import commonest_share, one_layer_without_places

if TYPE_CHECKING:
    from numpy.random import Generator

    from separatrix.mechanisms import Mechanism
    from separatrix.training.tasks.setting import Setting


class InductionParameters(Parameters):
    """How many tokens there are, of how many symbols."""

    owner = "induction"
    n: Natural = 32
    symbols: Natural = 16
    constraints: ClassVar[tuple[Constraint, ...]] = (between("n", 4, 4096), between("symbols", 3, 1024))


class Induction(Task):
    """Random symbols, of which the last was there once before: say the one that followed it."""

    name = "induction"
    title = "Say the symbol that followed the last one where it was before."
    provenance = "[rec] induction heads, arXiv 2209.11895"
    description = (
        "n tokens. The last symbol is there once more, anywhere before, and the answer is the symbol that "
        "follows it there; all others are drawn independently among the other symbols. A shortcut says the "
        "commonest symbol in context; one layer without convolution or places can do no better. With a "
        "convolution one layer is enough (a key that knows the token before), without one it takes two and "
        "something that tells places apart."
    )
    schema = InductionParameters
    example: ClassVar[dict[str, object]] = {"n": 16}
    setting: ClassVar[dict[str, object]] = {"conv": 3, "rates": "0.002,0.005,0.015"}
    parameters: InductionParameters

    @property
    def vocabulary(self) -> int:
        return self.parameters.symbols

    @property
    def outputs(self) -> int:
        return self.parameters.symbols

    @property
    def bits(self) -> float:
        p = self.parameters
        return math.log2(p.symbols * (p.n - 2)) + (p.n - 2) * math.log2(p.symbols - 1)

    def draw(self, count: int, split: Split, chance: Generator) -> Samples:
        n, symbols, row = self.parameters.n, self.parameters.symbols, np.arange(count)
        asked = chance.integers(symbols, size=count)
        others = chance.integers(symbols - 1, size=(count, n))
        inputs = (asked[:, None] + 1 + others) % symbols
        place = chance.integers(n - 2, size=count)
        inputs[row, place] = inputs[:, -1] = asked
        return Samples(inputs, np.full((count, 1), n - 1), inputs[row, place + 1, None])

    def ceiling(self, samples: Samples) -> Bound:
        return Bound(1.0, "the last symbol is there once before")

    def floor(self, samples: Samples, setting: Setting) -> Bound:
        counts = (samples.inputs[:, :, None] == np.arange(self.parameters.symbols)).sum(1)
        counts[np.arange(len(counts)), samples.inputs[:, -1]] = 0
        right = counts.argmax(1) == samples.targets[:, 0]
        how = "the commonest other symbol in context"
        return Bound(float(right.mean()), how, sampled=True, universal=True)

    def proved_ceiling(self, mechanism: Mechanism, setting: Setting) -> ProvedCeiling | None:
        if not (mechanism.permutation_equivariant and one_layer_without_places(setting)):
            return None
        return ProvedCeiling(
            commonest_share(self.parameters.n - 2, self.parameters.symbols - 1),
            "one layer without convolution or places, of a mechanism that does not see the order, "
            "whatever reads it",
            "docs/theory.md 9.3: every order of the tokens before the last is equally likely",
        )
