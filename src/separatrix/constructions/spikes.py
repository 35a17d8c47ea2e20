"""Which of k: the spike past two classes."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

from separatrix.constructions._base import Label
from separatrix.constructions._blocks import GROWING_SPIKE, amplitude
from separatrix.constructions._exact import (
    ONE,
    ZERO,
    Description,
    ExactConstruction,
    ExactParameters,
    Kind,
    unit_vector,
)
from separatrix.core.parameters import Constraint, Exact, Natural, between


class SpikesParameters(ExactParameters):
    """k classes; the spike is a1 in the column of its class, a0 in the others; b is ordinary."""

    owner = "spikes"
    k: Natural = 4
    a0: Exact = Fraction(1, 100)
    a1: Exact = Fraction(2)
    b: Exact = Fraction(1, 5)
    constraints: ClassVar[tuple[Constraint, ...]] = (
        *ExactParameters.constraints,
        between("k", 2, 256),
        between("a0", 0, 10**6),
        amplitude("a1"),
        amplitude("b"),
        GROWING_SPIKE,
    )


class Spikes(ExactConstruction):
    """D0 is every wrong class's row, D1 the right one's: to tell them apart is to name the class."""

    name = "spikes"
    title = "One token is large in one of k columns: which?"
    section = (7, 4)
    provenance = "[ours] docs/theory.md 7.4: past two classes"
    description = (
        "One of n tokens is the spike: its key is a1 in the column of its class and a0 in the k-1 other "
        "columns, and it carries 1. The others have b in every column and carry 0. There is a query for "
        "each class, the unit vector of its column, and logits are in units of log n. All rows share the "
        "reader's signs. D0 is the k-1 rows of the wrong classes and D1 the row of the right one, so "
        "F(D0)=0 and F(D1)>0 says that exactly the right class fires: that is what `distinguishes` means "
        "here. By symmetry it does not matter which class is the right one."
    )
    schema = SpikesParameters
    example: ClassVar[dict[str, object]] = {"n": 1000, "m": 12}
    special = "the spike"
    parameters: SpikesParameters

    def describe(self, label: Label) -> Description:
        p = self.parameters
        classes = range(1) if label else range(1, p.k)
        key = tuple(p.a1 if x else p.a0 for x in unit_vector(0, p.k))
        return Description(
            tuple(unit_vector(class_, p.k) for class_ in classes),
            (Kind(key, (ONE,)), Kind((p.b,) * p.k, (ZERO,), self.n - 1)),
        )
