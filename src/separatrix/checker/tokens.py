"""Constructions of a few distinct tokens, from their definitions: firing sign vectors, and equal rows.

A definition returns the tokens that a query sees: logit, value and number; `check` prints its docstring. Tokens of one
logit have one weight, whatever the kernel, so a row is given by the number of tokens at each logit and the sum of their
values. With scores u, a neuron of signs y fires on it if `sum(u <y, sums>) / sum(u number) > tau`. Parameters are such
that no score is negative and one is positive, so this is the sign of a sum of scores with rational factors.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import comb
from operator import mul, sub
from typing import Any

from separatrix.checker.document import require
from separatrix.checker.kernels import E, Kernel, Logit, PowerKernel, sign
from separatrix.checker.probability import Triple

Tokens = list[tuple[Fraction, tuple[Fraction | int, ...], int]]

Row = tuple[tuple[Fraction, tuple[Fraction, ...]], ...]
"""Logits in descending order, each with the number of its tokens and the sum of their values."""

MOST_WORK = 1 << 21
"""The maximum number of sign vectors times the length of all parameters, which takes seconds to verify."""
MOST_KEYS = 4096
"""The maximum n of constructions whose keys differ."""
PLAIN_LOGITS = ("duplication", "dispersion", "regression")


def injectivity(label: int, n: int, query: Fraction, factor: Fraction, gap: Fraction) -> Tokens:
    """n tokens; one has key 1+gap and value 1, the others key 1 and value 0; the query is `query` in D0 and factor
    times that in D1. Logits are in units of log n."""
    query *= factor**label
    return [(query * (1 + gap), (1,), 1), (query, (0,), n - 1)]


def duplication(label: int, n: int, r0: int, r1: int) -> Tokens:
    """n tokens, each of them r0 times in D0 and r1 times in D1; one has logit 2/n and value 2, the others logit 1/n and
    value 1."""
    copies = (r0, r1)[label]
    return [(Fraction(2, n), (2,), copies), (Fraction(1, n), (1,), (n - 1) * copies)]


def parity(label: int, n: int, scale: Fraction, a: Fraction, b: Fraction) -> Tokens:
    """n = 2^w tokens, one for each word of w bits; its logit is scale times the number of zeros in units of log n; its
    value is b in D0, and in D1 b+a for an even number of ones and b-a for an odd number."""
    bits = n.bit_length() - 1
    require(n == 1 << bits and n <= MOST_KEYS, f"n is not a power of two up to {MOST_KEYS}")
    return [(scale * (bits - ones), (b + label * (-1) ** ones * a,), comb(bits, ones)) for ones in range(bits + 1)]


def dispersion(label: int, n: int, gap: Fraction, a0: Fraction, a1: Fraction) -> Tokens:
    """n tokens; one has logit 1+gap and the value a0 in D0 and a1 in D1, the others logit 1 and value 0."""
    return [(1 + gap, ((a0, a1)[label],), 1), (Fraction(1), (0,), n - 1)]


def critical(label: int, n: int, gamma: Fraction, rho: Fraction, a0: Fraction, a1: Fraction) -> Tokens:
    """n tokens; one has logit gamma and the value a0 in D0 and a1 in D1, the others logit gamma rho and value 0. Logits
    are in units of log n."""
    return [(gamma, ((a0, a1)[label],), 1), (gamma * rho, (0,), n - 1)]


def averaging(label: int, n: int, q: int, gap: Fraction) -> Tokens:
    """n tokens, of which q are queried: these have logit 1+gap, the others 1, in units of log n. In D1 the queried ones
    have value 1, in D0 q others; all other values are 0."""
    require(n >= 2 * q, "n is less than 2q")
    ones = 0 if label else q
    return [(1 + gap, (label,), q), (Fraction(1), (1,), ones), (Fraction(1), (0,), n - q - ones)]


def regression(label: int, n: int, width: int, a0: Fraction, a1: Fraction) -> Tokens:
    """n examples of a linear function: n/width keys on each axis of R^width, of length width/n, with the value a0 in D0
    and a1 in D1; the query is (1, ..., 1), so that every logit is width/n."""
    require(n % width == 0, "n is not a multiple of width")
    return [(Fraction(width, n), ((a0, a1)[label],), n)]


def recall(label: int, n: int, scale: Fraction, width: int, digits: int | None) -> Tokens:
    """n pairs, whose keys are the numbers from 0 to n-1 in `digits` digits (if not given: the fewest, up to 12, that
    divide width and suffice) to the base width/digits. The query is 0; a logit is scale times the share of digits that
    agree, in units of log n. The value is 1, and in D0 that of key 0 is 0."""
    require(n <= MOST_KEYS, f"n is more than {MOST_KEYS}")
    fitting = [g for g in range(1, 13) if width % g == 0 and n <= (width // g) ** g and digits in (None, g)]
    require(bool(fitting), "digits do not divide width, exceed 12, or leave no room for n keys")
    base, count = width // fitting[0], fitting[0]
    others = Counter(sum(key // base**i % base == 0 for i in range(count)) for key in range(1, n))
    return [(scale, (label,), 1), *((scale * zeros / count, (1,), number) for zeros, number in others.items())]


def majority(label: int, n: int, a0: Fraction, a1: Fraction, noise: Fraction, groups: int, gap: Fraction) -> Tokens:
    """n tokens; one has logit 1+gap and value 0; the others have logit 1 and the value a0 in D0 and a1 in D1, and fall
    into `groups` groups as equal as possible; each carries noise in a further feature, that of its group. Logits are in
    units of log n."""
    tokens: Tokens = [(1 + gap, (0,) * (groups + 1), 1)]
    for group in range(groups):
        value = ((a0, a1)[label], *(noise if i == group else 0 for i in range(groups)))
        tokens.append((Fraction(1), value, (n - 2 - group) // groups + 1))
    return tokens


def spikes(label: int, n: int, k: int, a0: Fraction, a1: Fraction, b: Fraction) -> Tokens:
    """n tokens; the key of one is a1 in the column of its class and a0 in the k-1 others, and its value is 1; the keys
    of the others are b in every column, and their value is 0. A query for a class sees its column, in units of log n.
    D1 is the row of the right class, D0 has the rows of the k-1 wrong ones."""
    return [((a0, a1)[label], (1,), 1), (b, (0,), n - 1)]


def level(label: int, n: int, a0: Fraction, a1: Fraction, levels: int, at: int, gap: Fraction) -> Tokens:
    """n tokens; one has logit 1+gap, the others logit 1 and value 0. Of `levels` evenly spaced values from a0 to a1,
    counted from 0, that one has number `at` in D0 and the next in D1. Logits are in units of log n."""
    require(at < levels - 1, "at is more than levels-2")
    return [(1 + gap, (a0 + (a1 - a0) * Fraction(at + label, levels - 1),), 1), (Fraction(1), (0,), n - 1)]


_ALL: tuple[Callable[..., Tokens], ...] = (
    *(injectivity, duplication, parity, dispersion, critical, averaging, regression, recall, majority, spikes, level),
)
TOKENS = {define.__name__: define for define in _ALL}

LEMMAS = {
    "proportions": "D0 and D1 have equal shares of tokens and equal mean values at every logit",
    "homogeneity": "scores are powers, and shares and mean values are equal at every logit divided by the largest",
    "cancellation": "D0 and D1 have equal logits, and score times difference of shares and of values adds up to zero",
}
"""Conditions under which attention returns equal rows for D0 and D1 (docs/certificates.md has the proofs)."""


@dataclass(frozen=True)
class TokenModel:
    """The row of D0 and that of D1, which all queries of a label share."""

    of: Fraction
    """n if logits are in units of log n, else E."""
    tau: Fraction
    rows: tuple[Row, Row]
    blocks: int
    """The number of sign vectors, which bounds the work as blocks do in other constructions."""

    def neuron(self, kernel: Kernel) -> Triple | None:
        """Return the probabilities of one neuron; None if a sign is undecided."""
        counts = [0, 0, 0]
        for signs in product((1, -1), repeat=self.blocks.bit_length() - 1):
            sums = [[sum(map(mul, x, signs), -self.tau * number) for _, (number, *x) in row] for row in self.rows]
            sides = [self._sign(kernel, label, sums[label]) for label in (0, 1)]
            if None in sides:
                return None
            d0, d1 = (side == 1 for side in sides)
            counts = [x + y for x, y in zip(counts, (d0, d1, d1 and not d0), strict=True)]
        p0, p1, only = (Fraction(count, self.blocks) for count in counts)
        return p0, p1, only

    def has_equal_rows(self, lemma: str, kernel: Kernel) -> bool:
        """Whether the lemma shows that D0 and D1 have equal rows."""
        d0, d1 = (_normal_form(row, lemma) for row in self.rows)
        if lemma != "cancellation":
            return d0 == d1 and (lemma == "proportions" or isinstance(kernel, PowerKernel))
        differences = [list(map(sub, y, x)) for (_, x), (_, y) in zip(d0, d1, strict=False)]
        has_same_logits = [logit for logit, _ in d0] == [logit for logit, _ in d1]
        return has_same_logits and all(self._sign(kernel, 0, column) == 0 for column in zip(*differences, strict=True))

    def _sign(self, kernel: Kernel, label: int, factors: Iterable[Fraction]) -> int | None:
        """Return the sign of the sum of factor times score over the logits of a row."""
        terms = [(x, Logit(logit, self.of)) for x, (logit, _) in zip(factors, self.rows[label], strict=True)]
        # The powers of 0 are 0.
        return sign(kernel, [term for term in terms if term[1].times > 0 or not isinstance(kernel, PowerKernel)])


def _normal_form(row: Row, lemma: str) -> Row:
    """Return shares for numbers, mean values for sums, and logits as the lemma compares them."""
    total, top = sum(sums[0] for _, sums in row), row[0][0]
    # Tokens of a single logit have equal weights whatever it is.
    unit = top if lemma == "homogeneity" or len(row) == 1 else Fraction(1)
    return tuple((logit / unit, tuple(x / total for x in sums)) for logit, sums in row)


def token_model(construction: str, n: int, tau: Fraction, **others: Any) -> TokenModel:
    """Return the rows of a construction: its tokens with those of one logit added up."""
    rows = []
    for label in (0, 1):
        levels: dict[Fraction, tuple[Fraction, ...]] = {}
        for logit, value, number in TOKENS[construction](label, n, **others):
            zeros = (Fraction(0),) * (1 + len(value))
            sums = zip(levels.get(logit, zeros), (1, *value), strict=True)
            levels |= {logit: tuple(x + number * y for x, y in sums)} if number else {}
        rows.append(tuple(sorted(levels.items(), reverse=True)))
    of = E if construction in PLAIN_LOGITS else Fraction(n)
    return TokenModel(of, tau, (rows[0], rows[1]), 1 << (len(zeros) - 1))
