"""Boundaries that are known as formulas in the limit of large n, to be drawn beside what is computed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from separatrix.constructions import Construction
from separatrix.constructions.cross import Cross
from separatrix.constructions.spike import Spike
from separatrix.mechanisms import Mechanism, Power, Softmax

Array = np.ndarray[Any, Any]

SAMPLES = 2001
"""Where a formula is looked at for a change of sign."""
HALVINGS = 80


@dataclass(frozen=True)
class Analytic:
    """A formula for where a mechanism comes to separate as n grows."""

    formula: str
    tag: str
    limit: str
    """In what limit it holds."""
    excess: Callable[[Mapping[str, Any]], Any]
    """Negative below the boundary, positive above; of numbers or arrays of them."""
    parameters: frozenset[str]
    """What it is about: where none of these moves it says nothing of where the boundary lies."""

    def roots(
        self, values: Mapping[str, float], name: str, start: float, stop: float, log: bool
    ) -> list[float]:
        """Where it lies between two values of one parameter; nothing where it does not depend on it."""

        def at(value: Any) -> Any:
            return self.excess({**values, name: value})

        places = np.geomspace(start, stop, SAMPLES) if log else np.linspace(start, stop, SAMPLES)
        above = np.broadcast_to(np.asarray(at(places)) >= 0, places.shape)
        found = []
        for i in np.flatnonzero(above[1:] != above[:-1]):
            low, high = float(places[i]), float(places[i + 1])
            for _ in range(HALVINGS):
                middle = (low + high) / 2
                low, high = (middle, high) if (at(middle) >= 0) == above[i] else (low, middle)
            found.append((low + high) / 2)
        return found


ONES = Analytic(
    "a1(a1+b+c) = 1",
    "[ours]",
    "as n grows",
    lambda p: p["a1"] * (p["a1"] + p["b"] + p["c"]) - 1,
    frozenset({"a1", "b", "c"}),
)
ONES_D0 = Analytic(
    "a0(a0+b+c) = 1",
    "[ours]",
    "as n grows",
    lambda p: p["a0"] * (p["a0"] + p["b"] + p["c"]) - 1,
    frozenset({"a0", "b", "c"}),
)
"""Above it the reader fires on D0 as well."""
IDENTITY = Analytic(
    "a1² + b² = 1",
    "[ours]",
    "as n grows and d outgrows n^(b²)",
    lambda p: p["a1"] ** 2 + p["b"] ** 2 - 1,
    frozenset({"a1", "b"}),
)
CROSS = Analytic(
    "a1·r_Q = 1", "[ours]", "as n grows", lambda p: p["a1"] * p["r_Q"] - 1, frozenset({"a1", "r_Q"})
)
DEGREE = Analytic(
    "beta = log n / log((a1+b+c)/(b+c))",
    "[ours]",
    "to leading order as n grows",
    lambda p: p["beta"] * np.log1p(p["a1"] / (p["b"] + p["c"])) - np.log(p["n"]),
    frozenset({"beta", "n", "a1", "b", "c"}),
)


def analytic(
    kind: type[Construction], mechanism: Mechanism, moving: Collection[str], form: object = "ones"
) -> Analytic | None:
    """The formula for this construction and mechanism, if one is known (theory 3.5, 3.10 and 5).

    One is told only where a parameter that moves is in it.

    >>> softmax = Softmax()
    >>> [getattr(analytic(Spike, softmax, {name}), "formula", None) for name in ("a1", "a0", "m")]
    ['a1(a1+b+c) = 1', 'a0(a0+b+c) = 1', None]
    """
    return next((each for each in _known(kind, mechanism, form) if each.parameters & {*moving}), None)


def _known(kind: type[Construction], mechanism: Mechanism, form: object) -> tuple[Analytic, ...]:
    if isinstance(mechanism, Softmax) and mechanism.parameters.temperature == 1:
        if kind is Spike:
            return (IDENTITY,) if form == "identity" else (ONES, ONES_D0)
        return (CROSS,) if kind is Cross else ()
    if isinstance(mechanism, Power) and kind is Spike and form != "identity":
        return (DEGREE,)
    return ()
