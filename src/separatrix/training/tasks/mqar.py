"""Multi-query associative recall: pairs of keys and values, then a query for every key."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from separatrix.core.parameters import Constraint, natural
from separatrix.training.tasks._base import Bound, Samples, Split, Task
from separatrix.training.tasks._proofs import ORDER_BLIND_MODELS, expected_majority_share
from separatrix.training.tasks.setting import MANY_ANSWERS


class RecallTask(Task):
    """Recall the value of every key after reading p pairs of keys and values.

    p pairs of a key, each at most once, and a value, drawn independently. Then all p keys follow in random
    order, 3p tokens in total, and the answer at each of them is its value; no other position is scored. A
    shortcut that looks like partial learning returns the most frequent value in context. One layer without
    convolution or positional encoding knows the keys and the values but not their pairing, and cannot do
    better; with a convolution a key sees its neighbour, and one layer suffices.
    """

    name = "mqar"
    provenance = "[rec] arXiv 2312.04927, in the compact form with all queries at the end"
    reason = "every key has one value in context"
    pairs: int = natural(16, at_least=2, at_most=1024)
    keys: int = natural(32, at_least=2, at_most=4096)
    values: int = natural(32, at_least=2, at_most=4096)
    relations = (
        Constraint(
            ("pairs", "keys"),
            lambda p: p.pairs <= p.keys,
            lambda p: f"pairs={p.pairs} is more than keys={p.keys}: every key has one value",
        ),
    )
    example: ClassVar[dict[str, object]] = {"pairs": 8}
    setting = MANY_ANSWERS | {"conv": 3, "rates": "0.002,0.005,0.015"}
    proved_for = ORDER_BLIND_MODELS
    proof = "docs/theory.md 9.3: every pairing of the keys with the values is equally likely"

    @property
    def vocabulary(self) -> int:
        return self.keys + self.values

    @property
    def outputs(self) -> int:
        return self.values

    @property
    def bits(self) -> float:
        pairs = self.pairs
        return math.log2(math.perm(self.keys, pairs) * self.values**pairs * math.factorial(pairs))

    def draw(self, count: int, split: Split, rng: np.random.Generator) -> Samples:
        pairs = self.pairs
        keys = rng.permuted(np.tile(np.arange(self.keys), (count, 1)), axis=1)[:, :pairs]
        values = rng.integers(self.values, size=(count, pairs))
        order = rng.permuted(np.tile(np.arange(pairs), (count, 1)), axis=1)
        context = np.stack([keys, self.keys + values], axis=-1).reshape(count, -1)
        inputs = np.concatenate([context, np.take_along_axis(keys, order, axis=1)], axis=1)
        positions = np.tile(np.arange(2 * pairs, 3 * pairs), (count, 1))
        return Samples(inputs, positions, np.take_along_axis(values, order, axis=1))

    def floor(self, samples: Samples) -> Bound:
        score = float(np.mean([np.bincount(row).max() for row in samples.targets]) / self.pairs)
        return Bound(score, "always the most frequent value in context", sampled=True, universal=True)

    def proved_score(self) -> float:
        return expected_majority_share(self.pairs, self.values)
