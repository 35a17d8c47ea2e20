"""ListOps: the value of nested lists of digits under MAX, MIN, MED and SM."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from separatrix.core.parameters import Constraint, Natural, Parameters, between
from separatrix.training.data.floors import LogisticRegression
from separatrix.training.tasks._base import Bound, Samples, Split, Task, best, commonest_class

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    from separatrix.training.tasks.setting import Setting

DIGITS = 10
OPERATORS: tuple[tuple[str, Callable[[list[int]], int]], ...] = (
    ("MAX", max),
    ("MIN", min),
    ("MED", lambda each: sorted(each)[(len(each) - 1) // 2]),
    ("SM", lambda each: sum(each) % DIGITS),
)
"""What a list may do with its elements; the lower of two middle ones is the median."""
TYPICAL = (9, 0, 4, 5)
"""A value that lists of each operator often have."""
FEWEST_FITTED, MOST_FITTED, FITTED_TOKENS = 1000, 4000, 200_000
"""Training samples to which the shortcut is fitted, and how many tokens they may have."""
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
        "nor the last token says anything. The floor is the best mixture, fitted to training samples, of "
        "rules that evaluate one list at most: the outermost operator on its own digits, where inner lists "
        "are left out or replaced by a typical value or by their first, last, largest or smallest digit; and "
        "on all digits. Evaluating inner lists, even as if they were flat, is part of the task."
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
        shortcut = Bound(
            _fitted(self.parameters).accuracy(one_list_features(samples.inputs), samples.targets[:, 0]),
            "the outermost operator on digits, with inner lists left out or not evaluated: logistic "
            "regression on such values, fitted to training samples",
        )
        return best((shortcut, commonest_class(samples)), 1)


@lru_cache(maxsize=4)
def _fitted(parameters: ListOpsParameters) -> LogisticRegression:
    """The best mixture of rules that evaluate one list at most, by training samples."""
    task, count = (
        ListOps(parameters),
        max(FEWEST_FITTED, min(MOST_FITTED, FITTED_TOKENS // parameters.length)),
    )
    samples, held_out = task.samples(count, Split.TRAIN), task.samples(count // 4, Split.TRAIN, step=1)

    def labelled(part: Samples) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        return one_list_features(part.inputs), part.targets[:, 0]

    return LogisticRegression.fit(labelled(samples), labelled(held_out), DIGITS)


def one_list_features(expressions: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Values of expressions by rules that evaluate one list at most, one-hot for each outermost operator.

    The outermost operator is applied to its own digits, where an inner list is left out, or stands for the
    value that is typical of its operator, or for its first, last, largest or smallest digit; and to all
    digits, as if there were one list. Another feature is the operator of the first inner list.
    """
    rows = np.array([_one_list_values(tokens) for tokens in expressions.tolist()])
    outermost, values = rows[:, :1], rows[:, 1:]
    kinds = DIGITS + 1  # -1 for none
    cells = (outermost * values.shape[1] + np.arange(values.shape[1])) * kinds + values + 1
    features = np.zeros((len(rows), len(OPERATORS) * values.shape[1] * kinds), dtype=np.uint8)
    np.put_along_axis(features, cells, 1, axis=1)
    return features


def _one_list_values(tokens: list[int]) -> list[int]:
    """The outermost operator, and the value of an expression by each rule; -1 where a rule has none."""
    depth, own = 0, list[int]()
    inner, digits = list[list[int]](), list[int]()  # inner: the operator and then all digits of a list
    for token in tokens:
        if token == CLOSE:
            depth -= 1
        elif token >= DIGITS:
            depth += 1
            if depth == 2:
                inner.append([token - DIGITS])
        else:
            digits.append(token)
            (own if depth == 1 else inner[-1]).append(token)
    outermost = tokens[0] - DIGITS
    apply = OPERATORS[outermost][1]
    stand_ins: tuple[list[int], ...] = (
        [],
        [TYPICAL[each[0]] for each in inner],
        [each[1] for each in inner],
        [each[-1] for each in inner],
        [max(each[1:]) for each in inner],
        [min(each[1:]) for each in inner],
    )
    values = [apply([*own, *some]) if own or some else -1 for some in stand_ins]
    return [outermost, *values, apply(digits), inner[0][0] if inner else -1]


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
