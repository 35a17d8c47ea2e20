"""Associative recall: the value that goes with a key, among many pairs."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from separatrix.constructions._base import Label, amplitude
from separatrix.constructions._exact import ONE, ZERO, Description, ExactConstruction, TokenGroup, Vector, unit_vector
from separatrix.core.parameters import Constraint, natural

MAX_KEY_DIGITS = 12


def fewest_digits(n: int, width: int) -> int | None:
    """Return the fewest digits with which n keys fit into `width` coordinates, if any number does.

    >>> fewest_digits(32, 32), fewest_digits(33, 32), fewest_digits(300, 32), fewest_digits(10**6, 32)
    (1, 2, 4, None)
    """
    return next((g for g in range(1, MAX_KEY_DIGITS + 1) if width % g == 0 and n <= (width // g) ** g), None)


def _keys_fit(p: Any) -> Any:
    # On a grid the parameters are columns; np.vectorize takes them as well as numbers.
    return np.vectorize(lambda n, width: fewest_digits(n, width) is not None, otypes=[bool])(p.n, p.width)


class Recall(ExactConstruction):
    """The value that goes with the queried key is 0 (D0) or 1 (D1), among n pairs.

    n pairs of a key and a value. A key is the number of its pair, written with `digits` digits (the fewest
    with which n keys fit, unless given), each as a unit vector of width/digits coordinates: with one digit
    keys are orthogonal and `width` of them fit, with more (width/digits)^digits fit and overlap. The query is
    one of the keys, and a logit is scale times the share of digits that agree, in units of log n. The queried
    pair carries 0 in D0 and 1 in D1, all others 1. Softmax recalls it while scale/digits is large enough; a
    mechanism whose state is linear in the keys recalls it while they are orthogonal. Past `width` pairs the
    keys written here overlap with the queried one and it is lost; other keys might leave that one alone.
    """

    name = "recall"
    section = (6, 10)
    provenance = "[ours] docs/theory.md 6.10: associative recall with fixed weights"
    example: ClassVar[dict[str, object]] = {"n": 64, "m": 12}
    n: int = natural(at_least=2, at_most=4096)
    width: int = natural(32, at_least=2, at_most=256)
    digits: int | None = natural(None, at_least=1, at_most=MAX_KEY_DIGITS)
    scale: Fraction = amplitude(4)
    relations = (
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
            _keys_fit,
            lambda p: f"width={p.width} has no room for n={p.n} keys of any number of digits; raise width",
        ),
    )

    @property
    def key_digits(self) -> int:
        """The number of digits of a key: `digits`, or the fewest with which the keys fit."""
        return self.digits or fewest_digits(self.n, self.width) or 1

    def describe(self, label: Label) -> Description:
        query = self._key(0, Fraction(1, self.key_digits))
        queried_pair = TokenGroup(self._key(0, self.scale), (ONE if label else ZERO,))
        other_pairs = (TokenGroup(self._key(pair, self.scale), (ONE,)) for pair in range(1, self.n))
        return Description((query,), (queried_pair, *other_pairs))

    def _key(self, pair: int, size: Fraction) -> Vector:
        """Return the digits of `pair`, each as a unit vector, times `size`."""
        base, key = self.width // self.key_digits, list[Fraction | float]()
        for _ in range(self.key_digits):
            pair, digit = divmod(pair, base)
            key += unit_vector(digit, base, size)
        return tuple(key)
