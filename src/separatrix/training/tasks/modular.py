"""Modular arithmetic: the value of an expression so far, beyond the trained length."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from separatrix.core.parameters import Constraint, flag, natural
from separatrix.training.tasks._base import Samples, Split
from separatrix.training.tasks._lengths import LengthTask, length
from separatrix.training.tasks.setting import MANY_ANSWERS

PLUS, MINUS, TIMES = range(3)


class ModularTask(LengthTask):
    """Return the value of a sum modulo 3 (or 5, with products), beyond the trained length.

    Digits below `modulus` with + or - between them, and with times=yes also *, which binds closer. At each
    digit the answer is the value of the expression up to it, modulo `modulus`. Factors after * are not 0, so
    that with a prime modulus every value is equally likely given all but the first digit: there is no
    shortcut. The defaults are easier than the source, which has modulus=5 times=yes. Models are trained on
    `trained` digits; validation and test samples have `tested` digits, of which only those beyond the trained
    length are scored.
    """

    name = "modular"
    provenance = "[rec] arXiv 2411.12537 (without brackets), scored at every digit and with other lengths"
    reason = "the expression determines it"
    trained: int = length(12)
    tested: int = length(36)
    modulus: int = natural(3, at_least=2, at_most=97)
    times: bool = flag(False)
    relations = (
        *LengthTask.relations,
        Constraint(
            ("modulus",),
            lambda p: all(p.modulus % i for i in range(2, p.modulus)),
            lambda p: f"modulus={p.modulus} must be a prime number: then all values are equally likely",
        ),
    )
    example: ClassVar[dict[str, object]] = {"trained": 8, "tested": 20}
    setting = MANY_ANSWERS | {"heads": 4, "conv": 3, "rates": "0.003,0.01,0.03", "tests": 1000}

    @property
    def vocabulary(self) -> int:
        return self.modulus + 3

    @property
    def outputs(self) -> int:
        return self.modulus

    @property
    def bits(self) -> float:
        return self.trained * math.log2(self.modulus)

    def draw(self, count: int, split: Split, rng: np.random.Generator) -> Samples:
        m, digits, first = self.modulus, self.length_in(split), self.first_scored(split)
        signs = rng.integers(3 if self.times else 2, size=(count, digits))
        signs[:, 0] = PLUS
        numbers = rng.integers(m, size=(count, digits))
        factors = rng.integers(1, m, size=(count, digits))
        numbers = np.where(signs == TIMES, factors, numbers)
        inputs = np.empty((count, 2 * digits), dtype=np.int64)
        inputs[:, 0::2], inputs[:, 1::2] = m + signs, numbers
        positions = np.tile(2 * np.arange(first, digits), (count, 1))
        return Samples(inputs[:, 1:], positions, evaluate(signs, numbers, m)[:, first:])


def evaluate(signs: NDArray[np.int64], numbers: NDArray[np.int64], modulus: int) -> NDArray[np.int64]:
    """Return the value after each number, from the sum of finished terms and the product that is open.

    >>> evaluate(np.array([[PLUS, MINUS, TIMES, PLUS]]), np.array([[2, 3, 4, 1]]), 5).tolist()
    [[2, 4, 0, 1]]
    """
    total, product = np.zeros_like(numbers[:, 0]), np.zeros_like(numbers[:, 0])
    values = np.empty_like(numbers)
    for i, (sign, number) in enumerate(zip(signs.T, numbers.T, strict=True)):
        # A product stays open until the next sign, since later factors belong to it.
        times = sign == TIMES
        total = np.where(times, total, (total + product) % modulus)
        product = np.where(times, product * number, np.where(sign == MINUS, -number, number)) % modulus
        values[:, i] = (total + product) % modulus
    return values
