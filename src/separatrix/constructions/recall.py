"""Associative recall: the value that goes with a key, among many pairs."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, ClassVar

from separatrix.constructions._base import Label
from separatrix.constructions._blocks import amplitude
from separatrix.constructions._exact import (
    ONE,
    ZERO,
    Description,
    ExactConstruction,
    ExactParameters,
    Kind,
    Vector,
    unit_vector,
)
from separatrix.core.parameters import Constraint, Exact, Natural, between

MOST_DIGITS = 12


def fewest_digits(n: int, width: int) -> int | None:
    """With how many digits n keys fit into so many coordinates, if they do.

    >>> fewest_digits(32, 32), fewest_digits(33, 32), fewest_digits(300, 32), fewest_digits(10**6, 32)
    (1, 2, 4, None)
    """
    fitting = (g for g in range(1, MOST_DIGITS + 1) if width % g == 0 and n <= (width // g) ** g)
    return next(fitting, None)


def _each(holds: Callable[[int, int], bool], *columns: Any) -> Any:
    """A condition on numbers, for numbers or columns of them."""
    import numpy as np

    return np.vectorize(holds, otypes=[bool])(*columns)


class RecallParameters(ExactParameters):
    """n pairs, whose keys are written with so many digits in so many coordinates."""

    owner = "recall"
    width: Natural = 32
    digits: Natural | None = None
    scale: Exact = Fraction(4)
    constraints: ClassVar[tuple[Constraint, ...]] = (
        *ExactParameters.constraints,
        between("n", 2, 4096),
        between("width", 2, 256),
        between("digits", 1, MOST_DIGITS),
        amplitude("scale"),
        Constraint(
            ("width", "digits"),
            lambda p: p.width % p.digits == 0,
            lambda p: f"width={p.width} does not divide into digits={p.digits} equal parts",
        ),
        Constraint(
            ("n", "width", "digits"),
            lambda p: p.n <= (p.width // p.digits) ** p.digits,
            lambda p: (
                f"width={p.width} with digits={p.digits} has room for {(p.width // p.digits) ** p.digits} "
                f"keys, not n={p.n}; raise width or digits"
            ),
        ),
        Constraint(
            ("n", "width"),
            lambda p: _each(lambda n, width: fewest_digits(n, width) is not None, p.n, p.width),
            lambda p: f"width={p.width} has no room for n={p.n} keys of any number of digits; raise width",
        ),
    )


class Recall(ExactConstruction):
    """n key-value pairs, of which the first is asked for."""

    name = "recall"
    title = "The value that goes with the asked key is 0 (D0) or 1 (D1), among n pairs."
    section = (6, 10)
    provenance = "[ours] docs/theory.md 6.10: associative recall with fixed weights"
    description = (
        "n pairs of a key and a value. A key is the number of its pair, written with `digits` digits (the "
        "fewest with which n keys fit, unless given), each as a unit vector of width/digits coordinates: "
        "with one digit keys are orthogonal and `width` of them fit, with more (width/digits)^digits fit "
        "and overlap. The query is the asked key, and a logit is scale times the share of digits that "
        "agree, in units of log n. The asked pair carries 0 in D0 and 1 in D1, all others 1. Softmax "
        "recalls it while scale/digits is large enough; a mechanism whose state is linear in the keys "
        "recalls it while they are orthogonal. Past `width` pairs the keys written here overlap with the "
        "asked one and it is not heard; other keys might leave that one alone."
    )
    schema = RecallParameters
    example: ClassVar[dict[str, object]] = {"n": 64, "m": 12}
    parameters: RecallParameters

    @property
    def digits(self) -> int:
        """How many digits a key is written with."""
        given = self.parameters.digits
        return given or fewest_digits(self.n, self.parameters.width) or 1

    def describe(self, label: Label) -> Description:
        p = self.parameters
        query = self._written(0, Fraction(1, self.digits))
        asked = Kind(self._written(0, p.scale), (ONE if label else ZERO,))
        others = (Kind(self._written(pair, p.scale), (ONE,)) for pair in range(1, self.n))
        return Description((query,), (asked, *others))

    def _written(self, pair: int, size: Fraction) -> Vector:
        """The digits of `pair`, each as a unit vector, times `size`."""
        base, written = self.parameters.width // self.digits, []
        for _ in range(self.digits):
            pair, digit = divmod(pair, base)
            written += [size if x else ZERO for x in unit_vector(digit, base)]
        return tuple(written)
