"""The constructions from their definitions: who scores whom, and what a neuron then receives.

With scores u and what each key carries under a sign vector, `value`, a row's pre-activation is
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
class Row:
    """The logits of one kind of query row on the kinds of key.

    `own` is for keys in the row's own block, where that is not the spike's and makes a difference.
    """

    spike: Logit
    mate: Logit
    ordinary: Logit
    own: Logit | None = None


@dataclass(frozen=True)
class Model:
    """The spike's block and `blocks` others, all of `size` keys; each has a random sign.

    A key carries `a y_1` if it is the spike, `b` times the sign of its block, and `c y_d`.
    """

    blocks: int
    size: int
    a: tuple[Fraction, Fraction]
    b: Fraction
    c: Fraction
    tau: Fraction
    rows: tuple[dict[str, Row], dict[str, Row]]

    def increasing(self) -> bool:
        """Whether every score is positive and b too, so that v grows with the number of + blocks."""
        logits = (
            logit
            for rows in self.rows
            for row in rows.values()
            for logit in (row.spike, row.mate, row.ordinary, row.own or row.ordinary)
        )
        return self.b > 0 and all(logit.times > 0 and logit.of > 1 for logit in logits)

    def threshold_keys(self) -> Iterator[ThresholdKey]:
        """Every row that can fire, for every label and sign triple."""
        for label, signs in product((0, 1), TRIPLES):
            for name, row in self.rows[label].items():
                if name != "mate" or self.size > 1:
                    for own_sign in (0,) if row.own is None else (1, -1):
                        yield label, signs, name, own_sign

    def excess(self, key: ThresholdKey, plus: int) -> list[Term]:
        """`(v - tau) sum(u)` when `plus` of the other blocks have the sign +.

        Each kind of key gives its score, times the sum over its keys of `value - tau`.
        """
        label, (y_1, y_block, y_d), name, own_sign = key
        row, a, others = self.rows[label][name], self.a[label], self.blocks
        alike = self.c * y_d - self.tau
        terms = [
            (a * y_1 + self.b * y_block + alike, row.spike),
            ((self.size - 1) * (self.b * y_block + alike), row.mate),
        ]
        if row.own is not None:
            terms.append((self.size * (self.b * own_sign + alike), row.own))
            others, plus = others - 1, plus - (own_sign > 0)
        terms.append((self.size * (self.b * (2 * plus - others) + others * alike), row.ordinary))
        return terms

    def weight_excess(self, label: int, name: str, bound: Fraction) -> list[Term]:
        """`(f - bound) sum(u)`, f being the row's weight on the spike."""
        row = self.rows[label][name]
        own = 0 if row.own is None else 1
        terms = [(1 - bound, row.spike), (-bound * (self.size - 1), row.mate)]
        if row.own is not None:
            terms.append((-bound * self.size, row.own))
        return [*terms, (-bound * self.size * (self.blocks - own), row.ordinary)]


@dataclass(frozen=True)
class Token:
    """A row of A: the spike's column, b in the column of its block, c in the last."""

    first: Fraction
    block: int
    b: Fraction
    c: Fraction

    @property
    def total(self) -> Fraction:
        """The row sum, which is all that X = 11ᵀ sees."""
        return self.first + self.b + self.c

    def dot(self, other: Token) -> Fraction:
        """The inner product, for X = I."""
        same = self.b * other.b if self.block == other.block else 0
        return self.first * other.first + same + self.c * other.c


def spike(
    n: int, d: int, a: tuple[Fraction, Fraction], b: Fraction, c: Fraction, tau: Fraction, form: str
) -> Model:
    """Self-attention of A with itself through X = 11ᵀ or X = I."""

    def rows(first: Fraction) -> dict[str, Row]:
        top, mate = Token(first, 0, b, c), Token(Fraction(0), 0, b, c)
        here, elsewhere = Token(Fraction(0), 1, b, c), Token(Fraction(0), 2, b, c)

        def row(query: Token, own: Token | None = None) -> Row:
            def logit(key: Token) -> Logit:
                product = query.total * key.total if form == "ones" else query.dot(key)
                return Logit(product, Fraction(n))

            return Row(logit(top), logit(mate), logit(elsewhere), None if own is None else logit(own))

        if form == "ones":
            return {"spike": row(top), "rest": row(mate)}
        return {"spike": row(top), "mate": row(mate), "other": row(here, own=here)}

    return Model(d - 3, n // (d - 2), a, b, c, tau, (rows(a[0]), rows(a[1])))


def cross(
    n: int, d: int, a: tuple[Fraction, Fraction], b: Fraction, c: Fraction, tau: Fraction, r_Q: Fraction
) -> Model:
    """Queries whose rows sum to r_Q, on the keys of `spike`, through X = 11ᵀ."""

    def rows(first: Fraction) -> dict[str, Row]:
        spiked, ordinary = (Logit(r_Q * Token(x, 0, b, c).total, Fraction(n)) for x in (first, Fraction(0)))
        return {"query": Row(spiked, ordinary, ordinary)}

    return Model(d - 3, n // (d - 2), a, b, c, tau, (rows(a[0]), rows(a[1])))


def plain(n: int, peak: Fraction, base: Fraction, tau: Fraction) -> Model:
    """n tokens that carry their sign alone: scores log base each, one of them peak log n in D1.

    A block is one token. Where base is a power of n's root, both are logarithms of that root.
    """
    root = _primitive_root(n)
    ordinary = _logarithm(base, root)
    spiked = Logit(peak * _logarithm(Fraction(n), root).times, Fraction(root))
    zero = Fraction(0)
    rows = ({"query": Row(ordinary, ordinary, ordinary)}, {"query": Row(spiked, ordinary, ordinary)})
    return Model(n - 1, 1, (zero, zero), Fraction(1), zero, tau, rows)


def _primitive_root(n: int) -> int:
    """The least integer of which n > 1 is a power."""
    for degree in range(n.bit_length() - 1, 1, -1):
        root: int = round(n ** (1 / degree))
        if root**degree == n:
            return root
    return n


def _logarithm(value: Fraction, root: int) -> Logit:
    """log(value), as a multiple of log(root) if it is a whole one."""
    rest, times = value, 0
    while rest.denominator == 1 and rest.numerator % root == 0:
        rest, times = rest / root, times + 1
    return Logit(Fraction(times), Fraction(root)) if rest == 1 else Logit(Fraction(1), value)
