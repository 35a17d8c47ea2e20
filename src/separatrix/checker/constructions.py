"""The constructions from their definitions: scores of keys, and pre-activations of neurons.

With scores u and the `value` that each key carries under a sign vector, a row's pre-activation is
`v = sum(u value) / sum(u)`. Scores are positive, so `v > tau` says that `sum(u (value - tau)) > 0`:
a sum of scores with rational factors, and no division. Everything is in units of sqrt(log n), so
a logit of the block constructions is a rational times log n.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from separatrix.checker.document import require
from separatrix.checker.kernels import Kernel, Logit, Term

Signs = tuple[int, int, int]
"""y_1, the sign of the spike's block, y_d."""

ThresholdKey = tuple[int, Signs, str, int]
"""Label, signs, row and the row's own sign."""

Pair = tuple[Fraction, Fraction]
"""The spike's amplitude in D0 and in D1."""

MOST_BLOCKS = 200_000
"""The maximum number of block signs, besides the spike's, in a certificate."""

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
    a: Pair
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

    def has_equal_rows(self, lemma: str, _: Kernel) -> bool:
        """Whether D0 and D1 have the same tokens, which the lemma `proportions` covers; no other applies."""
        return lemma == "proportions" and self.rows[0] == self.rows[1] and self.a[0] == self.a[1]

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


Rows = dict[str, QueryLogits]


def spike(n: int, d: int, a0: Fraction, a1: Fraction, b: Fraction, c: Fraction, tau: Fraction, form: str) -> SpikeModel:
    """n tokens of width d in d-2 equal blocks, attending to each other; one of them has the first coordinate a0 in D0
    and a1 in D1; b marks a token's block, c is shared by all; scores are {scores}. All in units of sqrt(log n)."""

    def rows(first: Fraction) -> Rows:
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

    return _blocks(n, d, (a0, a1), b, c, tau, rows)


def cross(
    n: int, d: int, a0: Fraction, a1: Fraction, b: Fraction, c: Fraction, tau: Fraction, r_Q: Fraction
) -> SpikeModel:
    """n tokens of width d in d-2 equal blocks as keys and values; one of them has the first coordinate a0 in D0 and a1
    in D1; b marks a token's block, c is shared by all; every query has the row sum r_Q; scores are products of row
    sums. All in units of sqrt(log n)."""
    return _blocks(n, d, (a0, a1), b, c, tau, lambda a: {"query": _query(n, r_Q * (a + b + c), r_Q * (b + c))})


def location(
    n: int, d: int, a0: Fraction, a1: Fraction, b: Fraction, c: Fraction, tau: Fraction, gap: Fraction
) -> SpikeModel:
    """n tokens of width d in d-2 equal blocks; one of them has the logit 1+gap and the first coordinate a0 in D0 and a1
    in D1, the others have the logit 1; b marks a token's block, c is shared by all. Logits are in units of log n,
    coordinates in units of sqrt(log n)."""
    return _blocks(n, d, (a0, a1), b, c, tau, lambda _: {"query": _query(n, 1 + gap, Fraction(1))})


def _query(n: int, spike_logit: Fraction, ordinary: Fraction) -> QueryLogits:
    """Return a row with one logit for the spike and one for all other tokens."""
    rest = Logit(ordinary, Fraction(n))
    return QueryLogits(Logit(spike_logit, Fraction(n)), rest, rest)


def _blocks(
    n: int, d: int, a: Pair, b: Fraction, c: Fraction, tau: Fraction, rows: Callable[[Fraction], Rows]
) -> SpikeModel:
    """Return n tokens in d-2 blocks, where `rows` gives the rows for an amplitude of the spike."""
    require(n >= 3, "n is less than 3")
    require(n % (d - 2) == 0, "n is not a multiple of d-2")
    return SpikeModel(d - 3, n // (d - 2), a, b, c, tau, (rows(a[0]), rows(a[1])))


def plain(n: int, peak: Fraction, base: Fraction, spread: Fraction, tau: Fraction) -> SpikeModel:
    """n tokens that carry a sign each, all with the score log(base) in D0; in D1 one of them has the score
    peak * log n."""
    # A block is one token. If base is a power of n's root, both are logarithms of that root.
    require(3 <= n <= MOST_BLOCKS + 1, f"n is not between 3 and {MOST_BLOCKS + 1}")
    require(spread == 0, "spread is not 0, and only equal scores have a closed form")
    require(base > 1, "base is not more than 1")
    root = _primitive_root(n)
    ordinary = _logarithm(base, root)
    spiked = Logit(peak * _logarithm(Fraction(n), root).times, Fraction(root))
    zero = Fraction(0)
    rows = {"query": QueryLogits(ordinary, ordinary, ordinary)}, {"query": QueryLogits(spiked, ordinary, ordinary)}
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
