"""ListOps: the value of nested lists of digits under MAX, MIN, MED and SM."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from separatrix.core.parameters import natural
from separatrix.training.data.floors import LogisticRegression
from separatrix.training.tasks._base import Bound, Samples, Split, Task, best_bound, majority_floor
from separatrix.training.tasks.setting import SMALL_TRANSFORMER

DIGITS = 10
OPERATORS: tuple[tuple[str, Callable[[list[int]], int]], ...] = (
    ("MAX", max),
    ("MIN", min),
    ("MED", lambda values: sorted(values)[(len(values) - 1) // 2]),
    ("SM", lambda values: sum(values) % DIGITS),
)
"""The operators of a list; the median is the lower of two middle elements."""
TYPICAL_VALUES = (9, 0, 4, 5)
"""A frequent value of lists under each operator."""
MIN_FIT_SAMPLES, MAX_FIT_SAMPLES, MAX_FIT_TOKENS = 1000, 4000, 200_000
"""Limits of the training samples that the shortcut is fitted to."""
CLOSE = DIGITS + len(OPERATORS)
MIN_LIST_TOKENS = 4
"""An operator, two elements, and the bracket."""


class ListOpsTask(Task):
    """Return the value of nested lists of digits under MAX, MIN, MED and SM.

    Expressions of `length` tokens: a list is an operator, two or more elements and a bracket; an element is a
    digit or a list, at most `nesting` lists deep. MAX, MIN, MED (the lower median) and SM (the sum modulo
    10). Expressions are drawn such that every value is equally likely, so neither the length nor the last
    token is informative. The floor is the best mixture, fitted to training samples, of rules that evaluate at
    most one list: the outermost operator on its own digits, with inner lists left out or replaced by a
    typical value or by their first, last, largest or smallest digit; and on all digits. Evaluating inner
    lists, even as if they were flat, is part of the task.
    """

    name = "listops"
    provenance = "[rec] arXiv 1804.06028, with a generator of our own"
    reason = "the expression determines it"
    length: int = natural(24, at_least=6, at_most=512)
    nesting: int = natural(3, at_least=1, at_most=12)
    example: ClassVar[dict[str, object]] = {"length": 16}
    setting = SMALL_TRANSFORMER | {"steps": 300, "rates": "0.001,0.003", "validation": 512, "tests": 2000}
    vocabulary, outputs = CLOSE + 1, DIGITS
    # The number of expressions has no simple formula; 0 makes every split be decided by digests.
    bits = 0

    def draw(self, count: int, split: Split, rng: np.random.Generator) -> Samples:
        targets = rng.integers(DIGITS, size=count)
        numbers, queues = _draw_numbers(rng), [deque[list[int]]() for _ in range(DIGITS)]
        inputs = np.empty((count, self.length), dtype=np.int64)
        for row, value in enumerate(targets):
            # Expressions of other values wait in their queues until a sample needs them.
            while not queues[value]:
                tokens: list[int] = []
                queues[_write_list(tokens, self.length, self.nesting, numbers)].append(tokens)
            inputs[row] = queues[value].popleft()
        return Samples(inputs, np.full((count, 1), self.length - 1), targets[:, None])

    def floor(self, samples: Samples) -> Bound:
        shortcut = Bound(
            _fit_shortcut(self).accuracy(*_regression_data(samples)),
            "the outermost operator on digits, with inner lists left out or not evaluated: logistic "
            "regression on such values, fitted to training samples",
        )
        return best_bound((shortcut, majority_floor(samples)))


@lru_cache(maxsize=4)
def _fit_shortcut(task: ListOpsTask) -> LogisticRegression:
    """Fit the best mixture of rules that evaluate at most one list to training samples."""
    count = max(MIN_FIT_SAMPLES, min(MAX_FIT_SAMPLES, MAX_FIT_TOKENS // task.length))
    samples, validation = task.samples(count, Split.TRAIN), task.samples(count // 4, Split.TRAIN, step=1)
    return LogisticRegression.fit(_regression_data(samples), _regression_data(validation), DIGITS)


def _regression_data(samples: Samples) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    return one_list_features(samples.inputs), samples.targets[:, 0]


def one_list_features(expressions: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Return the values of rules that evaluate at most one list, one-hot for each outermost operator.

    The outermost operator is applied to its own digits, where an inner list is left out, or replaced by the
    typical value of its operator, or by its first, last, largest or smallest digit; and to all digits, as if
    there were one list. The operator of the first inner list is another feature.
    """
    rows = np.array([_one_list_values(tokens) for tokens in expressions.tolist()])
    outermost, values = rows[:, :1], rows[:, 1:]
    kinds = DIGITS + 1  # -1 for none
    cells = (outermost * values.shape[1] + np.arange(values.shape[1])) * kinds + values + 1
    features = np.zeros((len(rows), len(OPERATORS) * values.shape[1] * kinds), dtype=np.uint8)
    np.put_along_axis(features, cells, 1, axis=1)
    return features


def _one_list_values(tokens: list[int]) -> list[int]:
    """Return the outermost operator, and the value by each rule; -1 if a rule has no value."""
    depth, outer_digits, digits = 0, list[int](), list[int]()
    inner = list[list[int]]()  # of each inner list the operator, then all its digits
    for token in tokens:
        if token == CLOSE:
            depth -= 1
        elif token >= DIGITS:
            depth += 1
            if depth == 2:
                inner.append([token - DIGITS])
        else:
            digits.append(token)
            (outer_digits if depth == 1 else inner[-1]).append(token)
    outermost = tokens[0] - DIGITS
    apply = OPERATORS[outermost][1]
    stand_ins: tuple[list[int], ...] = (
        [],
        [TYPICAL_VALUES[operator] for operator, *_ in inner],
        [first for _, first, *_ in inner],
        [words[-1] for words in inner],
        [max(words[1:]) for words in inner],
        [min(words[1:]) for words in inner],
    )
    values = [apply([*outer_digits, *more]) if outer_digits or more else -1 for more in stand_ins]
    return [outermost, *values, apply(digits), inner[0][0] if inner else -1]


def _draw_numbers(rng: np.random.Generator) -> Iterator[int]:
    """Yield random numbers below 2^30, drawn in blocks because single draws are slow."""
    while True:
        yield from rng.integers(1 << 30, size=4096).tolist()


def _write_list(tokens: list[int], length: int, nesting: int, numbers: Iterator[int]) -> int:
    """Append a list of `length` tokens, and return its value."""
    operator = next(numbers) % len(OPERATORS)
    tokens.append(DIGITS + operator)
    values, remaining = list[int](), length - 2
    while remaining:
        longest = remaining if values else remaining - 1  # a list has at least two elements
        if nesting > 1 and longest >= MIN_LIST_TOKENS and next(numbers) % 2:
            inner_length = MIN_LIST_TOKENS + next(numbers) % (longest - MIN_LIST_TOKENS + 1)
            values.append(_write_list(tokens, inner_length, nesting - 1, numbers))
            remaining -= inner_length
        else:
            values.append(next(numbers) % DIGITS)
            tokens.append(values[-1])
            remaining -= 1
    tokens.append(CLOSE)
    return OPERATORS[operator][1](values)
