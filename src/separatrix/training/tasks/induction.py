"""Induction: the symbol that followed the earlier occurrence of the last symbol."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from separatrix.core.parameters import natural
from separatrix.training.tasks._base import Bound, Samples, Split, Task
from separatrix.training.tasks._proofs import ORDER_BLIND_MODELS, expected_majority_share


class InductionTask(Task):
    """Return the symbol that followed the earlier occurrence of the last symbol.

    n tokens. The last symbol occurs once more at a random earlier position, and the answer is the symbol that
    follows it there; all others are drawn independently from the other symbols. A shortcut returns the most
    frequent symbol in context; one layer without convolution or positional encoding cannot do better. With a
    convolution one layer suffices (a key that knows the previous token); without one, two layers and
    positional information are needed.
    """

    name = "induction"
    provenance = "[rec] induction heads, arXiv 2209.11895"
    reason = "the last symbol occurs once before"
    n: int = natural(32, at_least=4, at_most=4096)
    symbols: int = natural(16, at_least=3, at_most=1024)
    example: ClassVar[dict[str, object]] = {"n": 16}
    setting: ClassVar[dict[str, object]] = {"conv": 3, "rates": "0.002,0.005,0.015"}
    proved_for = ORDER_BLIND_MODELS
    proof = "docs/theory.md 9.3: every order of the tokens before the last is equally likely"

    @property
    def vocabulary(self) -> int:
        return self.symbols

    @property
    def outputs(self) -> int:
        return self.symbols

    @property
    def bits(self) -> float:
        return math.log2(self.symbols * (self.n - 2)) + (self.n - 2) * math.log2(self.symbols - 1)

    def draw(self, count: int, split: Split, rng: np.random.Generator) -> Samples:
        n, symbols, row = self.n, self.symbols, np.arange(count)
        query = rng.integers(symbols, size=count)
        offsets = rng.integers(symbols - 1, size=(count, n))
        inputs = (query[:, None] + 1 + offsets) % symbols  # any symbol but the query
        position = rng.integers(n - 2, size=count)
        inputs[row, position] = inputs[:, -1] = query
        return Samples(inputs, np.full((count, 1), n - 1), inputs[row, position + 1, None])

    def floor(self, samples: Samples) -> Bound:
        counts = (samples.inputs[:, :, None] == np.arange(self.symbols)).sum(1)
        counts[np.arange(len(counts)), samples.inputs[:, -1]] = 0
        score = float((counts.argmax(1) == samples.targets[:, 0]).mean())
        return Bound(score, "the most frequent other symbol in context", sampled=True, universal=True)

    def proved_score(self) -> float:
        return expected_majority_share(self.n - 2, self.symbols - 1)
