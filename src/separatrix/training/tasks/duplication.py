"""Duplication: is every token there once, or twice?"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from separatrix.core.parameters import Constraint, Flag, Natural, Parameters, between
from separatrix.training.tasks._base import Bound, ProvedCeiling, Samples, Split, Task, commonest_class
from separatrix.training.tasks._proofs import one_layer_without_places, proportional

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    from separatrix.mechanisms import Mechanism
    from separatrix.training.tasks.setting import Setting


class DuplicationParameters(Parameters):
    """How many symbols a multiset has, of how many, and whether a token of its own comes first."""

    owner = "duplication"
    items: Natural = 16
    symbols: Natural = 16
    first: Flag = False
    constraints: ClassVar[tuple[Constraint, ...]] = (between("items", 2, 1024), between("symbols", 2, 1024))


class Duplication(Task):
    """A multiset of symbols in random order, or the same with every symbol twice: which of them is it?

    Samples come in pairs, the same multiset once and twice with the same symbol at the end: what cannot tell
    them apart is right in exactly half of them.
    """

    name = "duplication"
    title = "Say whether the symbols of a multiset are there once, or all of them twice."
    provenance = "[ours] docs/theory.md 9.4"
    description = (
        "A multiset of symbols in random order, or every one of them twice, and the last token answers which "
        "it is. Weights that depend on proportions alone (softmax, and scores divided by their sum) return "
        "the same for both, so one layer without places is at chance, whatever reads it; attention that adds "
        "up what it sees returns twice as much. With first=yes a token of its own comes first, never "
        "doubled: its share says which it is, and everybody can solve it. A norm of what attention returns "
        "would hide the sum, so there is none unless asked for."
    )
    schema = DuplicationParameters
    example: ClassVar[dict[str, object]] = {"items": 8}
    setting: ClassVar[dict[str, object]] = {
        "width": 32,
        "norm": "no",
        "out_norm": "no",
        "steps": 300,
        "rates": "0.003,0.01,0.03",
    }
    asks_length = True
    parameters: DuplicationParameters

    @property
    def vocabulary(self) -> int:
        return self.parameters.symbols + 1

    @property
    def outputs(self) -> int:
        return 2

    @property
    def bits(self) -> float:
        p = self.parameters
        return math.log2(math.comb(p.symbols + p.items - 1, p.items))

    def draw(self, count: int, split: Split, chance: Generator) -> Samples:
        p, pairs = self.parameters, (count + 1) // 2
        once = chance.integers(p.symbols, size=(pairs, p.items))
        twice = np.concatenate([chance.permuted(np.tile(once, 2)[:, :-1], axis=1), once[:, -1:]], axis=1)
        absent = np.zeros_like(once)
        inputs = np.stack([np.concatenate([absent, once], axis=1), twice], axis=1)
        present = np.ones_like(inputs, dtype=np.bool_)
        present[:, 0, : p.items] = False
        inputs, present = (each.reshape(2 * pairs, -1)[:count] for each in (inputs, present))
        if p.first:
            inputs = np.pad(inputs, ((0, 0), (1, 0)), constant_values=p.symbols)
            present = np.pad(present, ((0, 0), (1, 0)), constant_values=True)
        places = np.full((count, 1), inputs.shape[1] - 1)
        targets = np.tile(np.array([0, 1]), pairs)[:count, None]
        return Samples(
            inputs, places, targets, present, {"multiset": np.sort(np.repeat(once, 2, axis=0)[:count])}
        )

    def origin(self, samples: Samples) -> NDArray[Any]:
        """The multiset: both of a pair are of one split."""
        return samples.hidden["multiset"]

    def ceiling(self, samples: Samples) -> Bound:
        return Bound(1.0, "the number of tokens says it")

    def floor(self, samples: Samples, setting: Setting) -> Bound:
        return commonest_class(samples)

    def proved_ceiling(self, mechanism: Mechanism, setting: Setting) -> ProvedCeiling | None:
        if self.parameters.first or not (proportional(mechanism) and one_layer_without_places(setting)):
            return None
        return ProvedCeiling(
            0.5,
            "one layer without convolution, places or first token, of a mechanism whose weights depend on "
            "proportions alone, whatever reads it",
            "docs/theory.md 9.4: the last token gets the same from a multiset once and twice",
        )
