"""ListOps: the value of nested lists of digits under MAX, MIN, MED and SM."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from separatrix.parameters import Constraint, Natural, Parameters, between
from separatrix.tasks._base import Bound, Samples, Split, Task, commonest_class

if TYPE_CHECKING:
    from numpy.random import Generator

    from separatrix.tasks.setting import Setting

DIGITS = 10
OPERATORS: tuple[tuple[str, Callable[[list[int]], int]], ...] = (
    ("MAX", max),
    ("MIN", min),
    ("MED", lambda each: sorted(each)[(len(each) - 1) // 2]),
    ("SM", lambda each: sum(each) % DIGITS),
)
"""What a list may do with its elements; the lower of two middle ones is the median."""
CLOSE = DIGITS + len(OPERATORS)
SHORTEST = 4
"""Tokens of a list: an operator, two elements, and the bracket."""


class ListOpsParameters(Parameters):
    """How many tokens an expression has, and how many lists may stand within each other."""

    owner = "listops"
    length: Natural = 24
    nesting: Natural = 3
    constraints: ClassVar[tuple[Constraint, ...]] = (between("length", 6, 512), between("nesting", 1, 12))


class ListOps(Task):
    """`[MAX 2 9 [MIN 4 7] 0]`: an expression, always of the same length, whose last token says its value."""

    name = "listops"
    title = "Say the value of nested lists of digits under MAX, MIN, MED and SM."
    provenance = "[rec] arXiv 1804.06028, with a generator of our own"
    description = (
        "Expressions of `length` tokens: a list is an operator, two or more elements and a bracket; an "
        "element is a digit or a list, at most `nesting` lists deep. MAX, MIN, MED (the lower median) and SM "
        "(the sum modulo 10). They are drawn until every value is equally likely, so neither the length "
        "nor the last token says anything. The floor is the best of three shortcuts for each outermost "
        "operator: its commonest value, its value of all digits as if there were one list, and that of the "
        "digits that stand in the outermost list, without the lists between them."
    )
    schema = ListOpsParameters
    example: ClassVar[dict[str, object]] = {"length": 16}
    setting: ClassVar[dict[str, object]] = {
        "depth": 2,
        "heads": 4,
        "mlp": 2,
        "rope": 10000,
        "steps": 300,
        "rates": "0.001,0.003",
        "validation": 512,
        "tests": 2000,
    }
    parameters: ListOpsParameters

    @property
    def vocabulary(self) -> int:
        return CLOSE + 1

    @property
    def outputs(self) -> int:
        return DIGITS

    @property
    def bits(self) -> float:
        return 0

    def draw(self, count: int, split: Split, chance: Generator) -> Samples:
        p = self.parameters
        wanted = chance.integers(DIGITS, size=count)
        numbers, waiting = _numbers(chance), [deque[list[int]]() for _ in range(DIGITS)]
        inputs = np.empty((count, p.length), dtype=np.int64)
        for row, value in enumerate(wanted):
            while not waiting[value]:
                tokens: list[int] = []
                waiting[_write(tokens, p.length, p.nesting, numbers)].append(tokens)
            inputs[row] = waiting[value].popleft()
        return Samples(inputs, np.full((count, 1), p.length - 1), wanted[:, None])

    def ceiling(self, samples: Samples) -> Bound:
        return Bound(1.0, "the expression says it")

    def floor(self, samples: Samples, setting: Setting) -> Bound:
        outermost, right = samples.inputs[:, 0] - DIGITS, 0.0
        digits = samples.inputs < DIGITS
        deep = ((samples.inputs >= DIGITS) & (samples.inputs < CLOSE)).cumsum(1)
        own = digits & (deep - (samples.inputs == CLOSE).cumsum(1) == 1)
        for which, (_, value) in enumerate(OPERATORS):
            same = samples.chosen(rows := np.flatnonzero(outermost == which))
            if len(same):
                shares = [commonest_class(same).score]
                for read in (digits[rows], own[rows]):
                    said = [
                        value(row[there].tolist()) if there.any() else -1
                        for row, there in zip(same.inputs, read, strict=True)
                    ]
                    shares.append(float((np.array(said) == same.targets[:, 0]).mean()))
                right += max(shares) * len(same) / len(samples)
        return Bound(right, "the outermost operator on its own digits, or all, or its commonest value")


def _numbers(chance: Generator) -> Iterator[int]:
    """Numbers below 2^30, as many as are asked for."""
    while True:
        yield from chance.integers(1 << 30, size=4096).tolist()


def _write(tokens: list[int], length: int, nesting: int, numbers: Iterator[int]) -> int:
    """Write a list of so many tokens at the end of others, and return its value."""
    which = next(numbers) % len(OPERATORS)
    tokens.append(DIGITS + which)
    found, left = list[int](), length - 2
    while left:
        longest = left if found else left - 1
        if nesting > 1 and longest >= SHORTEST and next(numbers) % 2:
            inside = SHORTEST + next(numbers) % (longest - SHORTEST + 1)
            found.append(_write(tokens, inside, nesting - 1, numbers))
            left -= inside
        else:
            found.append(next(numbers) % DIGITS)
            tokens.append(found[-1])
            left -= 1
    tokens.append(CLOSE)
    return OPERATORS[which][1](found)
