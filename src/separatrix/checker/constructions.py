"""The constructions from their definitions: scores of keys, and pre-activations of neurons.

With scores u and the `value` that each key carries under a sign vector, a row's pre-activation is
`v = sum(u value) / sum(u)`. Scores are positive, so `v > tau` says that `sum(u (value - tau)) > 0`:
a sum of scores with rational factors, and no division. Everything is in units of sqrt(log n), so
a logit of the block constructions is a rational times log n.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from separatrix.checker.kernels import Logit, Term

Signs = tuple[int, int, int]
"""y_1, the sign of the spike's block, y_d."""

ThresholdKey = tuple[int, Signs, str, int]
"""Label, signs, row and the row's own sign."""

TRIPLES: list[Signs] = list(product((1, -1), (1, -1), (1, -1)))


@dataclass(frozen=True)
class QueryLogits:
    """The logits of one kind of query row for the kinds of key.

    `own_block` is for keys in the row's own block, if this differs from the spike's block.
    """

    spike: Logit
    mate: Logit
    ordinary: Logit
    own_block: Logit | None = None


@dataclass(frozen=True)
class SpikeModel:
    """The spike's block and `blocks` others, all of `size` keys; each has a random sign.

    A key carries `a y_1` if it is the spike, `b` times the sign of its block, and `c y_d`.
    """

    blocks: int
    size: int
    a: tuple[Fraction, Fraction]
    b: Fraction
    c: Fraction
    tau: Fraction
    rows: tuple[dict[str, QueryLogits], dict[str, QueryLogits]]

    def increasing(self) -> bool:
        """Whether every score is positive and b too, so that v grows with the number of + blocks."""
        logits = (
            logit
            for rows in self.rows
            for row in rows.values()
            for logit in (row.spike, row.mate, row.ordinary, row.own_block or row.ordinary)
        )
        return self.b > 0 and all(logit.times > 0 and logit.of > 1 for logit in logits)

    def threshold_keys(self) -> Iterator[ThresholdKey]:
        """Yield every row that can fire, for every label and sign triple."""
        for label, signs in product((0, 1), TRIPLES):
            for name, row in self.rows[label].items():
                if name != "mate" or self.size > 1:
                    for own_sign in (0,) if row.own_block is None else (1, -1):
                        yield label, signs, name, own_sign

    def excess(self, key: ThresholdKey, plus: int) -> list[Term]:
        """Return `(v - tau) sum(u)` for `plus` other blocks with the sign +.

        Each kind of key contributes its score times the sum of `value - tau` over its keys.
        """
        label, (y_1, y_block, y_d), name, own_sign = key
        row, a, other_blocks = self.rows[label][name], self.a[label], self.blocks
        common_part = self.c * y_d - self.tau
        terms = [
            (a * y_1 + self.b * y_block + common_part, row.spike),
            ((self.size - 1) * (self.b * y_block + common_part), row.mate),
        ]
        # The row's own block is one of those that `plus` counts, but has a score of its own.
        if row.own_block is not None:
            terms.append((self.size * (self.b * own_sign + common_part), row.own_block))
            other_blocks, plus = other_blocks - 1, plus - (own_sign > 0)
        terms.append((self.size * (self.b * (2 * plus - other_blocks) + other_blocks * common_part), row.ordinary))
        return terms

    def weight_excess(self, label: int, name: str, limit: Fraction) -> list[Term]:
        """Return `(f - limit) sum(u)`, where f is the attention weight of the spike."""
        row = self.rows[label][name]
        own_blocks = 0 if row.own_block is None else 1
        terms = [(1 - limit, row.spike), (-limit * (self.size - 1), row.mate)]
        if row.own_block is not None:
            terms.append((-limit * self.size, row.own_block))
        return [*terms, (-limit * self.size * (self.blocks - own_blocks), row.ordinary)]


@dataclass(frozen=True)
class Token:
    """A row of A: the spike's column, b in the column of its block, c in the last."""

    first: Fraction
    block: int
    b: Fraction
    c: Fraction

    @property
    def total(self) -> Fraction:
        """The row sum, which determines the scores for X = 11ᵀ."""
        return self.first + self.b + self.c

    def dot(self, key: Token) -> Fraction:
        """Return the inner product, for X = I."""
        block_product = self.b * key.b if self.block == key.block else 0
        return self.first * key.first + block_product + self.c * key.c


def spike(
    n: int, d: int, a: tuple[Fraction, Fraction], b: Fraction, c: Fraction, tau: Fraction, form: str
) -> SpikeModel:
    """Return self-attention of A with X = 11ᵀ or X = I."""

    def rows(first: Fraction) -> dict[str, QueryLogits]:
        top, mate = Token(first, 0, b, c), Token(Fraction(0), 0, b, c)
        own_block, other_block = Token(Fraction(0), 1, b, c), Token(Fraction(0), 2, b, c)

        def row(query: Token, own_token: Token | None = None) -> QueryLogits:
            def logit(key: Token) -> Logit:
                product = query.total * key.total if form == "ones" else query.dot(key)
                return Logit(product, Fraction(n))

            return QueryLogits(
                logit(top), logit(mate), logit(other_block), None if own_token is None else logit(own_token)
            )

        # With X = 11ᵀ a logit depends on row sums only, and these are equal in all rows but the spike's.
        if form == "ones":
            return {"spike": row(top), "rest": row(mate)}
        return {"spike": row(top), "mate": row(mate), "other": row(own_block, own_token=own_block)}

    return SpikeModel(d - 3, n // (d - 2), a, b, c, tau, (rows(a[0]), rows(a[1])))


def cross(
    n: int, d: int, a: tuple[Fraction, Fraction], b: Fraction, c: Fraction, tau: Fraction, r_Q: Fraction
) -> SpikeModel:
    """Return attention of queries with row sum r_Q to the keys of `spike`, with X = 11ᵀ."""

    def rows(first: Fraction) -> dict[str, QueryLogits]:
        spike_logit, ordinary = (Logit(r_Q * Token(x, 0, b, c).total, Fraction(n)) for x in (first, Fraction(0)))
        return {"query": QueryLogits(spike_logit, ordinary, ordinary)}

    return SpikeModel(d - 3, n // (d - 2), a, b, c, tau, (rows(a[0]), rows(a[1])))


def plain(n: int, peak: Fraction, base: Fraction, tau: Fraction) -> SpikeModel:
    """Return n tokens that carry only their sign, with score log base; one has peak log n in D1.

    A block is one token. If base is a power of n's root, both are logarithms of that root.
    """
    root = _primitive_root(n)
    ordinary = _logarithm(base, root)
    spike_logit = Logit(peak * _logarithm(Fraction(n), root).times, Fraction(root))
    zero = Fraction(0)
    rows = (
        {"query": QueryLogits(ordinary, ordinary, ordinary)},
        {"query": QueryLogits(spike_logit, ordinary, ordinary)},
    )
    return SpikeModel(n - 1, 1, (zero, zero), Fraction(1), zero, tau, rows)


def _primitive_root(n: int) -> int:
    """Return the least integer of which n > 1 is a power."""
    # The highest degree has the least root. A rounded float power is only a candidate: it is verified.
    for degree in range(n.bit_length() - 1, 1, -1):
        root: int = round(n ** (1 / degree))
        if root**degree == n:
            return root
    return n


def _logarithm(value: Fraction, root: int) -> Logit:
    """Return log(value), as a multiple of log(root) if it is an integer multiple."""
    remainder, times = value, 0
    while remainder.denominator == 1 and remainder.numerator % root == 0:
        remainder, times = remainder / root, times + 1
    return Logit(Fraction(times), Fraction(root)) if remainder == 1 else Logit(Fraction(1), value)
