"""Symbolic sums of rational multiples of logarithms, so that rational results stay rational.

Every logit of the constructions is such a sum: `q log n`, `log(3/2)`, `4 log n - log(3/2)`; a plain number is
a multiple of log e. The exponential `n^q` is rational if n is a perfect power of the right degree, and the
ratio of two multiples of one logarithm is rational, too. Only the remaining cases need balls.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from flint import arb, fmpq, fmpz

MOST_BITS = 1 << 17
"""Powers with more bits than this are enclosed in a ball."""
MOST_DEGREE = 64
"""Perfect powers are recognised up to this degree."""

E = fmpq(0)
"""Stands for the base e, which is not rational. Its logarithm is 1."""

Flint = fmpq | arb
"""An exact rational, or a ball that contains the number."""


def format_fraction(value: Fraction) -> str:
    """Return `p/q` of any length; Python itself refuses to print integers with more than 4300 digits."""
    return str(rational(value))


def rational(value: Fraction | int) -> fmpq:
    """Convert to a flint rational."""
    return fmpq(value.numerator, value.denominator)


def sign(value: fmpq) -> int:
    """Return the sign of a rational.

    >>> sign(fmpq(-1, 3)), sign(fmpq(0))
    (-1, 0)
    """
    return (value > 0) - (value < 0)


def floor_of(value: Flint) -> int:
    """Return the floor of a rational, or of the middle of a ball.

    >>> floor_of(fmpq(-1, 3)), floor_of(arb(2.5))
    (-1, 2)
    """
    if isinstance(value, fmpq):
        return int(value.floor())
    floor = value.mid().floor().unique_fmpz()
    assert floor is not None  # the middle of a finite ball is an exact number
    return int(floor)


def power(base: fmpq, exponent: fmpq) -> Flint:
    """Return base ** exponent for a positive base: rational if possible, otherwise a ball.

    >>> power(fmpq(16), fmpq(1, 4)), power(fmpq(4, 9), fmpq(-3, 2))
    (2, 27/8)
    """
    degree = int(exponent.q)
    # For numerator and denominator in lowest terms, the quotient has a rational root only if both have one.
    top, bottom = _root(base.p, degree), _root(base.q, degree)
    if top is None or bottom is None or _bits(top, bottom) * abs(exponent.p) > MOST_BITS:
        return arb(base) ** arb(exponent)
    return fmpq(top, bottom) ** int(exponent.p)


def _bits(*values: fmpz) -> int:
    return max(int(value.bit_length()) for value in values)


def _root(value: fmpz, degree: int) -> fmpz | None:
    """Return the exact root of a positive integer, or None."""
    if value == 1 or degree == 1:
        return value
    if degree >= _bits(value):  # 1 < value < 2^degree, so the root lies strictly between 1 and 2
        return None
    root = value.root(degree)
    return root if root**degree == value else None


class LogForm:
    """A sum of coefficient * log(base) over positive rational bases."""

    __slots__ = ("terms",)

    def __init__(self, terms: Mapping[fmpq, fmpq]) -> None:
        self.terms = {base: weight for base, weight in terms.items() if weight != 0}

    @classmethod
    def log(cls, base: fmpq) -> LogForm:
        """Return the logarithm of a positive rational; for a perfect power as a multiple of its root's.

        >>> LogForm.log(fmpq(16)).over(LogForm.log(fmpq(8)))
        4/3
        """
        # Powers of one number must share a base: only then does `over` see that their quotient is rational.
        if base.q == 1:
            for degree in range(min(_bits(base.p), MOST_DEGREE), 1, -1):
                root = _root(base.p, degree)
                if root is not None:
                    return cls({fmpq(root): fmpq(degree)})
        return cls({base: fmpq(1)})

    @classmethod
    def constant(cls, value: fmpq) -> LogForm:
        """Return the log form of a plain number.

        >>> LogForm.constant(fmpq(3)).over(LogForm.constant(fmpq(2)))
        3/2
        """
        return cls({E: value})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LogForm) and self.terms == other.terms

    def __hash__(self) -> int:
        return hash(frozenset(self.terms.items()))

    def __add__(self, addend: LogForm) -> LogForm:
        bases = {**self.terms, **addend.terms}
        zero = fmpq(0)
        return LogForm({base: self.terms.get(base, zero) + addend.terms.get(base, zero) for base in bases})

    def __sub__(self, subtrahend: LogForm) -> LogForm:
        return self + fmpq(-1) * subtrahend

    def __rmul__(self, factor: fmpq) -> LogForm:
        return LogForm({base: factor * weight for base, weight in self.terms.items()})

    def is_zero(self) -> bool:
        """Whether the sum is empty."""
        return not self.terms

    def exp(self) -> Flint:
        """Return the product of base ** coefficient."""
        product: Flint = fmpq(1)
        for base, weight in self.terms.items():
            product = product * (arb(weight).exp() if base == E else power(base, weight))
        return product

    def ball(self) -> arb:
        """Return a ball around the sum, at the working precision."""
        logs = (arb(weight) * (1 if base == E else arb(base).log()) for base, weight in self.terms.items())
        return sum(logs, arb(0))

    def over(self, other: LogForm) -> Flint:
        """Return the quotient of two sums: rational if both are multiples of one logarithm.

        >>> log_n = LogForm.log(fmpq(1000))
        >>> (fmpq(3) * log_n).over(fmpq(2) * log_n)
        3/2
        """
        if self.is_zero():
            return fmpq(0)
        if len(self.terms) == 1 and self.terms.keys() == other.terms.keys():
            (base,) = self.terms
            return self.terms[base] / other.terms[base]
        return self.ball() / other.ball()
