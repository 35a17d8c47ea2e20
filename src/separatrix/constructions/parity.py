"""Parity on the cube: the finest pattern that bits can carry, in rational numbers."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import ClassVar

from separatrix.constructions._base import Label, amplitude, amplitude_or_zero, reader_threshold
from separatrix.constructions._exact import ONE, ZERO, Description, ExactConstruction, TokenGroup, Vector, unit_vector
from separatrix.core.parameters import Constraint, natural


class Parity(ExactConstruction):
    """Values are level (D0) or follow the parity of the key's bits (D1).

    n = 2^w tokens, whose keys are all words of w bits, written with two coordinates a bit so that nothing is
    negative. The query is the word 0: a logit is scale times the bits that agree, in units of log n. Every
    token carries b in D0; in D1 it carries b+a where an even number of bits differ, b-a where an odd number
    does. A kernel that is a polynomial of degree below w in the logit cancels parity exactly, whatever its
    coefficients; degree w does not. Softmax passes a tanh(s/2)^w, s = scale log n, which is rational for a
    whole scale.
    """

    name = "parity"
    section = (6, 3, 1)
    provenance = "[ours] docs/theory.md 6.3: on the Boolean cube"
    example: ClassVar[dict[str, object]] = {"n": 64, "m": 12}
    n: int = natural(at_least=2, at_most=4096)
    tau: Fraction = reader_threshold(1)
    scale: Fraction = amplitude(1)
    a: Fraction = amplitude(1)
    b: Fraction = amplitude_or_zero("1/2")
    relations = (
        Constraint(
            ("n",),
            lambda p: p.n & (p.n - 1) == 0,
            lambda p: f"n={p.n} is no power of two; try n={1 << (p.n.bit_length() - 1)}",
        ),
    )

    def describe(self, label: Label) -> Description:
        bits, pattern = self.n.bit_length() - 1, self.a if label else ZERO
        groups = (
            TokenGroup(_one_hot(word, self.scale), (self.b + (-1) ** sum(word) * pattern,))
            for word in product((0, 1), repeat=bits)
        )
        return Description((_one_hot((0,) * bits, ONE),), tuple(groups))


def _one_hot(word: tuple[int, ...], size: Fraction) -> Vector:
    """Return two coordinates per bit: (size, 0) for 0 and (0, size) for 1."""
    return tuple(x for bit in word for x in unit_vector(bit, 2, size))
