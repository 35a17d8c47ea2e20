"""Parity on the cube: the finest pattern that bits can carry, in rational numbers."""

from __future__ import annotations

from itertools import product
from typing import ClassVar

from separatrix.constructions._base import Label
from separatrix.constructions._blocks import amplitude
from separatrix.constructions._exact import (
    HALF,
    ONE,
    ZERO,
    Description,
    ExactConstruction,
    ExactParameters,
    Kind,
    Vector,
)
from separatrix.core.parameters import Constraint, Exact, between


class ParityParameters(ExactParameters):
    """n = 2^bits words, what an agreeing bit is worth, the level b and the pattern a."""

    owner = "parity"
    tau: Exact = ONE
    scale: Exact = ONE
    a: Exact = ONE
    b: Exact = HALF
    constraints: ClassVar[tuple[Constraint, ...]] = (
        *ExactParameters.constraints,
        between("n", 2, 4096),
        Constraint(
            ("n",),
            lambda p: p.n & (p.n - 1) == 0,
            lambda p: f"n={p.n} is no power of two; try n={1 << (p.n.bit_length() - 1)}",
        ),
        amplitude("scale"),
        amplitude("a"),
        between("b", 0, 10**6),
    )


class Parity(ExactConstruction):
    """The keys are all words of log2 n bits; D1's values follow the parity of the word."""

    name = "parity"
    title = "Values are level (D0) or follow the parity of the key's bits (D1)."
    section = (6, 3, 1)
    provenance = "[ours] docs/theory.md 6.3: on the Boolean cube"
    description = (
        "n = 2^w tokens, whose keys are all words of w bits, written with two coordinates a bit so that "
        "nothing is negative. The query is the word 0: a logit is scale times the bits that agree, in units "
        "of log n. Every token carries b in D0; in D1 it carries b+a where an even number of bits differ, "
        "b-a where an odd number does. A kernel that is a polynomial of degree below w in the logit cancels "
        "parity exactly, whatever its coefficients; degree w does not. Softmax passes a tanh(s/2)^w, s = "
        "scale log n, which is rational for a whole scale."
    )
    schema = ParityParameters
    example: ClassVar[dict[str, object]] = {"n": 64, "m": 12}
    parameters: ParityParameters

    def describe(self, label: Label) -> Description:
        p, bits = self.parameters, self.n.bit_length() - 1
        pattern = p.a if label else ZERO
        kinds = (
            Kind(_one_hot(word, p.scale), (p.b + (-1) ** sum(word) * pattern,))
            for word in product((0, 1), repeat=bits)
        )
        return Description((_one_hot((0,) * bits, ONE),), tuple(kinds))


def _one_hot(word: tuple[int, ...], size: Exact) -> Vector:
    """Two coordinates a bit: (size, 0) for 0 and (0, size) for 1."""
    return tuple(size if bit == side else ZERO for bit in word for side in (0, 1))
