"""Which of k: the spike with more than two classes."""

from __future__ import annotations

from fractions import Fraction

from separatrix.constructions._base import GROWING_SPIKE, Label, amplitude, amplitude_or_zero
from separatrix.constructions._exact import ONE, ZERO, Description, ExactConstruction, TokenGroup, unit_vector
from separatrix.core.parameters import natural


class Spikes(ExactConstruction):
    """One token is large in one of k columns: which?

    One of n tokens is the spike: its key is a1 in the column of its class and a0 in the k-1 other columns,
    and it carries 1. The others have b in every column and carry 0. There is a query for each class, the unit
    vector of its column, and logits are in units of log n. All rows share the reader's signs. D0 is the k-1
    rows of the wrong classes and D1 the row of the right one, so F(D0)=0 and F(D1)>0 says that exactly the
    right class fires: that is what `distinguishes` means here. By symmetry it does not matter which class is
    the right one.
    """

    name = "spikes"
    section = (7, 4)
    provenance = "[ours] docs/theory.md 7.4: past two classes"
    special = "the spike"
    k: int = natural(4, at_least=2, at_most=256)
    a0: Fraction = amplitude_or_zero("1/100")
    a1: Fraction = amplitude(2)
    b: Fraction = amplitude("1/5")
    relations = (GROWING_SPIKE,)

    def describe(self, label: Label) -> Description:
        classes = range(1) if label else range(1, self.k)
        spike = TokenGroup((self.a1, *[self.a0] * (self.k - 1)), (ONE,))
        return Description(
            tuple(unit_vector(class_, self.k) for class_ in classes),
            (spike, TokenGroup((self.b,) * self.k, (ZERO,), self.n - 1)),
        )
