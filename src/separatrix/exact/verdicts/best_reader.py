"""The best possible reader under Gaussian noise, for one output row and for all rows together.

With independent noise N(0, sd²) on every output that is read, the rows of D0 and of D1 are two normal
distributions with the same covariance, whose means are `distance` apart. If both labels are equally likely
and the reader knows everything but the label, the best rule is right with probability exactly
`Phi(distance/(2 sd))`; the total variation between the two distributions is `2 Phi(distance/(2 sd)) - 1`.
Any other reader, and any that does not know the position of the special token, is right at most that often.
Without noise, the values of an L-Lipschitz reader differ by at most `L distance` (theory 3.11).

What is said of one row does not hold for all: a mechanism that changes each of n rows by 1/n changes all of
them together by 1/sqrt(n).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from flint import arb, ctx

from separatrix.constructions import Construction
from separatrix.core.documents import Document, Hidden, shown
from separatrix.core.errors import UsageError
from separatrix.core.numbers import parse_exact
from separatrix.core.numbers.logforms import rational
from separatrix.core.numbers.spelling import for_people
from separatrix.exact.outputs._base import Outputs
from separatrix.exact.outputs.growth_laws import GrowthLaw, distance_laws
from separatrix.mechanisms import Mechanism

PRECISION = 128
"""Bits for the square root and the normal distribution; differences are computed before."""
NONE_FOUND = "no difference found in float64"
MIN_NOISE, MAX_NOISE = Fraction(1, 10**9), 10**9


@dataclass(frozen=True)
class ReaderLimit(Document):
    """The limit of every reader of some rows."""

    rows: int
    """The number of rows that are read."""
    square: Hidden[Fraction]
    noise: Hidden[Fraction | None]
    law: GrowthLaw | None
    """Bounds of the distance for every larger n, if some are proved."""

    @shown
    def distance(self) -> float:
        """The Euclidean distance of D0 and D1, in units of the margin: the gap of a reader is at most this
        times its Lipschitz constant."""
        with ctx.workprec(PRECISION):
            return float(arb(rational(self.square)).sqrt())

    @shown
    def accuracy(self) -> float | None:
        """The probability that the best reader is right, Phi(distance/(2 sd)); null without a noise."""
        # 1/2 + TV/2 loses nothing: both terms are positive.
        return None if self.total_variation is None else 0.5 + self.total_variation / 2

    @shown
    def total_variation(self) -> float | None:
        """The total variation distance of the noisy outputs, 2 accuracy - 1; null without a noise."""
        if self.noise is None:
            return None
        with ctx.workprec(PRECISION):
            return float((arb(rational(self.square / (8 * self.noise**2))).sqrt()).erf())


@dataclass(frozen=True)
class BestReader(Document):
    """The limit of every reader, whatever it computes, that knows the position of the special token."""

    noise: Fraction | None
    """The standard deviation of Gaussian noise on every output that is read, in units of the margin."""
    one_row: ReaderLimit
    """For readers of a single row: the one in which D0 and D1 differ most."""
    all_rows: ReaderLimit
    """For readers of all rows."""
    evidence: str
    """How the distances are known."""
    is_proved: Hidden[bool]
    """Whether the distances are proved, and not computed in float64."""

    @property
    def finds_none(self) -> bool:
        """Whether float64 shows no difference, which does not prove that there is none."""
        return self.one_row.square == 0 and not self.is_proved

    @property
    def sentence(self) -> str:
        """The limits in words, each with the rows it is about."""
        one, every = self.one_row, self.all_rows
        rows = f"{every.rows:,}" if every.rows < 10**9 else for_people(every.rows)
        if self.finds_none:
            return f"{NONE_FOUND[0].upper()}{NONE_FOUND[1:]} between the outputs of D0 and D1."
        if self.noise is None:
            total = "" if every.rows == 1 else f", of all {rows} rows by {for_people(every.distance)}"
            return f"The outputs of D0 and D1 differ by {for_people(one.distance)} in one row{total}."
        noise = for_people(float(self.noise))
        is_near_chance = one.accuracy is not None and one.accuracy <= 0.5 + NEAR_CHANCE
        remark = ", near chance for one row" if is_near_chance else ""
        total = "" if every.rows == 1 else f"; of all {rows} rows, {_probability(every)}"
        return (
            f"With noise of sd {noise} on every output, the best possible reader of one row has accuracy "
            f"{_probability(one)}{remark}{total}."
        )


NEAR_CHANCE = 0.01
"""An accuracy that exceeds 1/2 by at most this is called near chance."""


def _probability(limit: ReaderLimit) -> str:
    assert limit.accuracy is not None
    assert limit.total_variation is not None
    if 0 < limit.total_variation < 1e-4:
        return f"1/2 + {for_people(limit.total_variation / 2, 4)}"
    return for_people(limit.accuracy)


def best_reader(
    construction: Construction, mechanism: Mechanism, outputs: Outputs, noise: Fraction | None
) -> BestReader | None:
    """Return the limits of every reader of these outputs; None if D0 and D1 have different numbers of rows."""
    differences = outputs.row_differences
    if not differences:
        return None
    equal = outputs.proves and outputs.has_equal_rows
    largest = Fraction(0) if equal else max(difference.square for difference in differences)
    total = sum((difference.rows * difference.square for difference in differences), Fraction(0))
    one_law, all_law = distance_laws(construction, mechanism) if outputs.proves else (None, None)
    row_count = sum(difference.rows for difference in differences)
    return BestReader(
        noise,
        ReaderLimit(1, largest, noise, one_law),
        ReaderLimit(row_count, Fraction(0) if equal else total, noise, all_law),
        outputs.evidence,
        outputs.proves,
    )


def parse_noise(value: object) -> Fraction:
    """Parse the standard deviation of noise, in units of the margin."""
    noise = parse_exact(value, "noise")
    if not MIN_NOISE <= noise <= MAX_NOISE:
        raise UsageError(f"noise={value} is out of range; it must be 1e-9 to 1e9")
    return noise
