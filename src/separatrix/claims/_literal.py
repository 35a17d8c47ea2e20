"""Theory 1 to 3 written out in loops, for rationals and floats alike: the reference for the checks.

Nothing here uses torch, the mechanisms or the engines, so that no fault is shared with them. Tokens are in
units of sqrt(log n), so logits are in units of log n.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Generic, TypeVar

Scalar = TypeVar("Scalar", Fraction, float)
Rows = Sequence[Sequence[Scalar]]


@dataclass(frozen=True)
class Unit(Generic[Scalar]):
    """One row of an attention unit: u, alpha = <u, 1>, f = u / alpha, and the output c."""

    u: list[Scalar]
    alpha: Scalar
    f: list[Scalar]
    c: list[Scalar]


def weight_matrix(form: str, d: int) -> list[list[int]]:
    """Return X = 11ᵀ in form ones, X = I in form identity."""
    return [[int(form == "ones" or i == j) for j in range(d)] for i in range(d)]


def spike_matrix(n: int, d: int, a: Scalar, b: Scalar, c: Scalar, spike: int = 0) -> list[list[Scalar]]:
    """Return A: a in column 1 of row `spike`, b in the column of each row's block, c in column d."""
    size = n // (d - 2)
    rows = []
    for j in range(n):
        row = [0 * a for _ in range(d)]
        row[1 + j // size] = b
        row[d - 1] = c
        if j == spike:
            row[0] = a
        rows.append(row)
    return rows


def logits(queries: Rows[Scalar], weights: Sequence[Sequence[int]], keys: Rows[Scalar]) -> list[list[Scalar]]:
    """Return A1 X A2ᵀ, entry by entry."""
    scores = []
    for query in queries:
        projection = [_dot(query, column) for column in zip(*weights, strict=True)]
        scores.append([_sum([p * k for p, k in zip(projection, key, strict=True)]) for key in keys])
    return scores


def unit(scores: Sequence[Scalar], kernel: Callable[[Scalar], Scalar], values: Rows[Scalar]) -> Unit[Scalar]:
    """Return u = kernel(score), f = u / <u, 1>, c = A3ᵀ f."""
    u = [kernel(score) for score in scores]
    alpha = _sum(u)
    f = [x / alpha for x in u]
    c = [_sum([weight * x for weight, x in zip(f, column, strict=True)]) for column in zip(*values, strict=True)]
    return Unit(u, alpha, f, c)


def outputs(tokens: list[list[Scalar]], form: str, kernel: Callable[[Scalar], Scalar]) -> list[list[Scalar]]:
    """Return c_j0 of every row of self-attention on `tokens`."""
    return [unit(row, kernel, tokens).c for row in logits(tokens, weight_matrix(form, len(tokens[0])), tokens)]


def sign_vectors(d: int) -> list[tuple[int, ...]]:
    """Return all 2^d sign vectors of length d."""
    return list(product((1, -1), repeat=d))


def peaks(rows: Sequence[Sequence[Scalar]], signs: Sequence[Sequence[int]]) -> list[Scalar]:
    """Return for each sign vector the largest pre-activation <c_j0, y> over the rows."""
    distinct = list(dict.fromkeys(tuple(row) for row in rows))
    return [max(_dot(row, y) for row in distinct) for y in signs]


def network(rows: Sequence[Sequence[float]], signs: Sequence[Sequence[int]], tau: float) -> float:
    """Return F = phi( sum_j0 phi( sum_j1 phi_tau( <c_j0, y_j1> ) ) )."""
    return max(sum(max(sum(max(_dot(row, y) - tau, 0.0) for y in signs), 0.0) for row in rows), 0.0)


def sign_class(y: Sequence[int], block: int) -> tuple[int, int, int, int]:
    """Return (y_1, y_k3, y_d) and P, the number of + among the other block signs; `block` is the spike's."""
    other_signs = [sign for k, sign in enumerate(y[1:-1]) if k != block]
    return y[0], y[1 + block], y[-1], other_signs.count(1)


def _dot(row: Sequence[Scalar], signs: Sequence[int]) -> Scalar:
    return _sum([x * s for x, s in zip(row, signs, strict=True)])


def _sum(numbers: Sequence[Scalar]) -> Scalar:
    # Plain addition, unlike `sum`, which compensates for rounding from Python 3.12 on.
    total = 0 * numbers[0]
    for number in numbers:
        total += number
    return total
