"""Scores of linear attention on the spike for weight matrices X that are symmetric in the blocks.

If X does not change when blocks change places, the score of a query and a key depends only on their first
coordinates q_1 and k_1 (a for the spike, 0 for other tokens) and on whether their blocks are the same:

    score = other + query q_1 + key k_1 + pair q_1 k_1 + block [same block].

Every choice of the five numbers is the score of some X: `other/c²` at (d, d), `query/c` at (1, d), `key/c` at
(d, 1), `pair` at (1, 1) and `block/b²` on the diagonal of the blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

from separatrix.constructions import Label
from separatrix.constructions.spike import Spike


@dataclass(frozen=True)
class SpikePoint:
    """The exact parameters of the spike construction that attention and its reader depend on."""

    n: int
    d: int
    m: int
    a: tuple[Fraction, Fraction]
    """a0 and a1."""
    b: Fraction
    c: Fraction
    tau: Fraction

    @classmethod
    def of(cls, construction: Spike) -> Self:
        """Return the parameters of a construction."""
        values = construction.parameters.complete_values()
        a = values["a0"], values["a1"]
        return cls(values["n"], values["d"], values["m"], a, values["b"], values["c"], values["tau"])

    @property
    def r(self) -> Fraction:
        """The row sum of a token without the spike, b + c."""
        return self.b + self.c

    @property
    def row_sums(self) -> tuple[Fraction, Fraction]:
        """The row sum of the spike's token, a + b + c, in D0 and D1."""
        return self.a[0] + self.r, self.a[1] + self.r

    @property
    def block_size(self) -> int:
        """t, the tokens in a block."""
        return self.n // (self.d - 2)


@dataclass(frozen=True)
class RowScores:
    """The scores of one kind of query: of the spike, of the others of its block, of its own block, of the rest."""

    name: str
    count: int
    """The number of queries of this kind."""
    spike: Fraction
    mate: Fraction
    own: Fraction
    """Of the query's own block, if it is not the spike's; else that of the rest."""
    other: Fraction
    has_own_block: bool = False
    """Whether the query's own block is another one than the spike's."""

    def least(self, point: SpikePoint) -> Fraction:
        """Return the least score of a key."""
        scores = [self.spike, *([self.mate] if point.block_size > 1 else [])]
        scores += [self.own] if self.has_own_block else []
        has_rest = point.d - 3 > int(self.has_own_block)
        return min([*scores, *([self.other] if has_rest else [])])

    def total(self, point: SpikePoint) -> Fraction:
        """Return the sum of all scores, the normaliser."""
        t, blocks = point.block_size, point.d - 3
        return self.spike + (t - 1) * self.mate + t * (self.own + (blocks - 1) * self.other)

    def absolute_total(self, point: SpikePoint) -> Fraction:
        """Return the sum of the absolute values of all scores."""
        t, blocks = point.block_size, point.d - 3
        return abs(self.spike) + (t - 1) * abs(self.mate) + t * (abs(self.own) + (blocks - 1) * abs(self.other))


@dataclass(frozen=True)
class BlockScores:
    """A weight matrix that is symmetric in the blocks, by the five numbers that scores depend on."""

    other: Fraction
    query: Fraction = Fraction(0)
    key: Fraction = Fraction(0)
    pair: Fraction = Fraction(0)
    block: Fraction = Fraction(0)

    @classmethod
    def diagonal_plus_ones(cls, point: SpikePoint, alpha: Fraction, beta: Fraction) -> Self:
        """Return the scores of X = alpha I + beta 11ᵀ."""
        r = point.r
        return cls(alpha * point.c**2 + beta * r**2, beta * r, beta * r, alpha + beta, alpha * point.b**2)

    def rows(self, point: SpikePoint, label: Label) -> Iterator[RowScores]:
        """Yield the kinds of queries of a label with their scores."""
        a, t, n = point.a[label], point.block_size, point.n
        base = self.other + self.query * a
        loud = base + (self.key + self.pair * a) * a + self.block
        yield RowScores("spike", 1, loud, base + self.block, base, base)
        plain, spike = self.other, self.other + self.key * a
        if t > 1:
            yield RowScores("mate", t - 1, spike + self.block, plain + self.block, plain, plain)
        yield RowScores("other", n - t, spike, plain, plain + self.block, plain, has_own_block=True)
