"""Modular arithmetic: the value of an expression so far, asked beyond the trained length."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from separatrix.core.parameters import Constraint, Flag, Natural, between
from separatrix.training.tasks._base import Bound, Samples, Split, commonest_class
from separatrix.training.tasks._lengths import Lengths, LengthTask

if TYPE_CHECKING:
    from numpy.random import Generator

    from separatrix.training.tasks.setting import Setting

PLUS, MINUS, TIMES = range(3)


class ModularParameters(Lengths):
    """How many digits there are to train with and to test with, the modulus, and whether there is a *."""

    owner = "modular"
    trained: Natural = 12
    tested: Natural = 36
    modulus: Natural = 3
    times: Flag = False
    constraints: ClassVar[tuple[Constraint, ...]] = (
        *Lengths.constraints,
        between("modulus", 2, 97),
        Constraint(
            ("modulus",),
            lambda p: all(p.modulus % i for i in range(2, p.modulus)),
            lambda p: f"modulus={p.modulus} must be a prime number: then all values are equally likely",
        ),
    )


class Modular(LengthTask):
    """`d op d op d …` with + and -, or * too: say at each digit the value of the expression so far."""

    name = "modular"
    title = "Say the value of a sum modulo 3 (or 5, with products), beyond the trained length."
    provenance = "[rec] arXiv 2411.12537 (without brackets), asked at every digit and with other lengths"
    description = (
        "Digits below `modulus` with + or - between them, and with times=yes also *, which binds closer. At "
        "each digit the answer is the value of all up to it, modulo `modulus`. Factors after * are not 0, so "
        "that with a prime modulus every value is equally likely given all but the first digit: there is no "
        "shortcut. The defaults are easier than the source, which has modulus=5 times=yes. Models train on "
        "`trained` digits; samples to validate and test with have `tested`, and there only the "
        "digits beyond the trained length are asked."
    )
    schema = ModularParameters
    example: ClassVar[dict[str, object]] = {"trained": 8, "tested": 20}
    setting: ClassVar[dict[str, object]] = {
        "heads": 4,
        "conv": 3,
        "validation": 256,
        "tests": 1000,
        "rates": "0.003,0.01,0.03",
    }
    parameters: ModularParameters

    @property
    def vocabulary(self) -> int:
        return self.parameters.modulus + 3

    @property
    def outputs(self) -> int:
        return self.parameters.modulus

    @property
    def bits(self) -> float:
        return self.parameters.trained * math.log2(self.parameters.modulus)

    def draw(self, count: int, split: Split, chance: Generator) -> Samples:
        p = self.parameters
        digits, m = p.length(split), p.modulus
        signs = chance.integers(3 if p.times else 2, size=(count, digits))
        signs[:, 0] = PLUS
        numbers = chance.integers(m, size=(count, digits))
        factors = chance.integers(1, m, size=(count, digits))
        numbers = np.where(signs == TIMES, factors, numbers)
        inputs = np.empty((count, 2 * digits), dtype=np.int64)
        inputs[:, 0::2], inputs[:, 1::2] = m + signs, numbers
        first = p.first_asked(split)
        places = np.tile(2 * np.arange(first, digits), (count, 1))
        return Samples(inputs[:, 1:], places, values(signs, numbers, m)[:, first:])

    def ceiling(self, samples: Samples) -> Bound:
        return Bound(1.0, "the expression says it")

    def floor(self, samples: Samples, setting: Setting) -> Bound:
        return commonest_class(samples)


def values(
    signs: np.ndarray[tuple[int, int], np.dtype[np.int64]],
    numbers: np.ndarray[tuple[int, int], np.dtype[np.int64]],
    modulus: int,
) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """The value after each number: what is added up, and the product that is still growing.

    >>> values(np.array([[PLUS, MINUS, TIMES, PLUS]]), np.array([[2, 3, 4, 1]]), 5).tolist()
    [[2, 4, 0, 1]]
    """
    total, product = np.zeros_like(numbers[:, 0]), np.zeros_like(numbers[:, 0])
    found = np.empty_like(numbers)
    for i, (sign, number) in enumerate(zip(signs.T, numbers.T, strict=True)):
        times = sign == TIMES
        total = np.where(times, total, (total + product) % modulus)
        product = np.where(times, product * number, np.where(sign == MINUS, -number, number)) % modulus
        found[:, i] = (total + product) % modulus
    return found
