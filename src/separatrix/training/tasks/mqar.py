"""Multi-query associative recall: pairs of keys and values, and then every key is asked."""

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


class RecallParameters(Parameters):
    """How many pairs there are, of how many keys and values."""

    owner = "mqar"
    pairs: Natural = 16
    keys: Natural = 32
    values: Natural = 32
    constraints: ClassVar[tuple[Constraint, ...]] = (
        between("keys", 2, 4096),
        between("values", 2, 4096),
        between("pairs", 2, 1024),
        Constraint(
            ("pairs", "keys"),
            lambda p: p.pairs <= p.keys,
            lambda p: f"pairs={p.pairs} is more than keys={p.keys}: every key has one value",
        ),
    )


class Recall(Task):
    """`k1 v1 k2 v2 … kp vp`, then the p keys in random order: say the value of each."""

    name = "mqar"
    title = "Recall the value of every key after reading p pairs of keys and values."
    provenance = "[rec] arXiv 2312.04927, in the compact form where all keys are asked at the end"
    description = (
        "p pairs: a key, each at most once, and a value, drawn independently. Then all p keys follow in "
        "random order, 3p tokens in all, and at each of them the answer is its value; nothing else is asked. "
        "A shortcut that looks like partial learning says the commonest value in context. One layer without "
        "convolution or places knows the keys and the values but not which belong together, and can do no "
        "better than that; a convolution lets a key see its neighbour, and then one layer is enough."
    )
    schema = RecallParameters
    example: ClassVar[dict[str, object]] = {"pairs": 8}
    setting: ClassVar[dict[str, object]] = {
        "conv": 3,
        "rates": "0.002,0.005,0.015",
        "validation": 256,
        "tests": 2000,
    }
    parameters: RecallParameters

    @property
    def vocabulary(self) -> int:
        return self.parameters.keys + self.parameters.values

    @property
    def outputs(self) -> int:
        return self.parameters.values

    @property
    def bits(self) -> float:
        p = self.parameters
        return math.log2(math.perm(p.keys, p.pairs) * p.values**p.pairs * math.factorial(p.pairs))

    def draw(self, count: int, split: Split, chance: Generator) -> Samples:
        p = self.parameters
        keys = chance.permuted(np.tile(np.arange(p.keys), (count, 1)), axis=1)[:, : p.pairs]
        values = chance.integers(p.values, size=(count, p.pairs))
        order = chance.permuted(np.tile(np.arange(p.pairs), (count, 1)), axis=1)
        context = np.stack([keys, p.keys + values], axis=-1).reshape(count, -1)
        inputs = np.concatenate([context, np.take_along_axis(keys, order, axis=1)], axis=1)
        places = np.tile(np.arange(2 * p.pairs, 3 * p.pairs), (count, 1))
        return Samples(inputs, places, np.take_along_axis(values, order, axis=1))

    def ceiling(self, samples: Samples) -> Bound:
        return Bound(1.0, "every key has one value in context")

    def floor(self, samples: Samples, setting: Setting) -> Bound:
        most = [np.bincount(row).max() for row in samples.targets]
        score = float(np.mean(most) / self.parameters.pairs)
        how = "always the value that is commonest in context"
        return Bound(score, how, sampled=True, universal=True)

    def proved_ceiling(self, mechanism: Mechanism, setting: Setting) -> ProvedCeiling | None:
        if not (mechanism.permutation_equivariant and one_layer_without_places(setting)):
            return None
        return ProvedCeiling(
            commonest_share(self.parameters.pairs, self.parameters.values),
            "one layer without convolution or places, of a mechanism that does not see the order, "
            "whatever reads it",
            "docs/theory.md 9.3: every way to pair the keys with the values is equally likely",
        )
