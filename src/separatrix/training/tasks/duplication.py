"""Duplication: does every symbol of a multiset occur once, or twice?"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from separatrix.core.parameters import flag, natural
from separatrix.training.tasks._base import Samples, Split, Task
from separatrix.training.tasks._proofs import PROPORTIONAL_MODELS
from separatrix.training.tasks.setting import WITHOUT_NORMS


class DuplicationTask(Task):
    """Decide whether the symbols of a multiset occur once, or all of them twice.

    A multiset of symbols in random order, or every one of them twice; the last token answers which of the two
    it is. Weights that depend on proportions only (softmax, and scores divided by their sum) give the same
    output for both, so one layer without positional encoding is at chance with any reader; attention that
    sums its values returns twice as much. With first=yes a separate token comes first and is never doubled:
    its share reveals the answer, and every mechanism can solve the task. A norm after attention would hide
    the sum, so there is none by default.
    """

    name = "duplication"
    provenance = "[ours] docs/theory.md 9.4"
    reason = "the number of tokens determines it"
    items: int = natural(16, at_least=2, at_most=1024)
    symbols: int = natural(16, at_least=2, at_most=1024)
    first: bool = flag(False)
    example: ClassVar[dict[str, object]] = {"items": 8}
    setting = WITHOUT_NORMS | {"steps": 300, "rates": "0.003,0.01,0.03"}
    asks_length = True
    outputs = 2
    proved_for = PROPORTIONAL_MODELS
    proof = "docs/theory.md 9.4: the last token gets the same output from a multiset once and twice"

    @property
    def vocabulary(self) -> int:
        return self.symbols + 1

    @property
    def bits(self) -> float:
        return math.log2(math.comb(self.symbols + self.items - 1, self.items))

    def draw(self, count: int, split: Split, rng: np.random.Generator) -> Samples:
        # Samples come in pairs, the same multiset once and twice with the same last symbol: a model that cannot
        # distinguish them is correct in exactly half of them.
        pairs = (count + 1) // 2
        once = rng.integers(self.symbols, size=(pairs, self.items))
        twice = np.concatenate([rng.permuted(np.tile(once, 2)[:, :-1], axis=1), once[:, -1:]], axis=1)
        # Padding comes first, so that the last position answers in both samples of a pair.
        padding = np.zeros_like(once)
        inputs = np.stack([np.concatenate([padding, once], axis=1), twice], axis=1)
        present = np.ones_like(inputs, dtype=np.bool_)
        present[:, 0, : self.items] = False
        inputs, present = (array.reshape(2 * pairs, -1)[:count] for array in (inputs, present))
        if self.first:
            inputs = np.pad(inputs, ((0, 0), (1, 0)), constant_values=self.symbols)
            present = np.pad(present, ((0, 0), (1, 0)), constant_values=True)
        positions = np.full((count, 1), inputs.shape[1] - 1)
        targets = np.tile(np.array([0, 1]), pairs)[:count, None]
        multisets = np.sort(np.repeat(once, 2, axis=0)[:count])
        return Samples(inputs, positions, targets, present, {"multiset": multisets})

    def split_keys(self, samples: Samples) -> NDArray[Any]:
        """Return the multisets, so that both samples of a pair belong to the same split."""
        return samples.latents["multiset"]

    def proved_score(self) -> float | None:
        return None if self.first else 0.5
