"""Formulas for the boundary in the limit of large n, to be shown next to computed boundaries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from typing import Any

import numpy as np

from separatrix.constructions import Construction
from separatrix.constructions.cross import Cross
from separatrix.constructions.spike import Spike
from separatrix.core.documents import Document, Hidden, Inlined
from separatrix.core.parameters.ranges import Span
from separatrix.mechanisms import Mechanism, Power, Softmax

Array = np.ndarray[Any, Any]

ROOT_SAMPLES = 2001
"""Points at which the sign of a formula is evaluated before its roots are refined."""
BISECTIONS = 128
"""Enough for a root 2**-75 times as large as the bracket that it lies in."""


@dataclass(frozen=True, eq=False)
class BoundaryFormula(Document):
    """A formula for the parameters at which a mechanism begins to separate D0 from D1."""

    formula: str
    limit: str
    """The limit in which the formula holds."""
    excess: Hidden[Callable[[Mapping[str, Any]], Any]]
    """Negative below the boundary and positive above; for numbers or arrays."""
    parameters: Hidden[Set[str]]
    """The parameters in the formula; it says nothing about the boundary in another parameter."""
    tag: str = "[ours]"
    """The origin of the formula."""

    def solve(self, values: Mapping[str, float], span: Span) -> FormulaRoots:
        """Find the values of one parameter within a range at which the formula holds."""

        def excess(value: Any) -> Any:
            return self.excess({**values, span.name: value})

        spacing = np.geomspace if span.log else np.linspace
        grid = spacing(float(span.start), float(span.stop), ROOT_SAMPLES)
        above = np.broadcast_to(np.asarray(excess(grid)) >= 0, grid.shape)
        changes = np.flatnonzero(above[1:] != above[:-1])
        # Bisection of all brackets at once: scipy.optimize would take most of the time of a boundary to load.
        lower, upper, rises = grid[changes], grid[changes + 1], above[changes + 1]
        for _ in range(BISECTIONS):
            middle = (lower + upper) / 2
            is_past = (np.asarray(excess(middle)) >= 0) == rises
            lower, upper = np.where(is_past, lower, middle), np.where(is_past, middle, upper)
        return FormulaRoots(self, tuple(map(float, upper)))


@dataclass(frozen=True)
class FormulaRoots(Document):
    """A formula for the boundary, and the values of the searched parameter at which it holds."""

    formula: Inlined[BoundaryFormula]
    values: tuple[float, ...]


GROWING = "as n grows, for large d and m"
"""With few sign vectors or blocks, P may not cross the level at all, or elsewhere: docs/proofs.md, The boundary."""
ONES = BoundaryFormula("a1(a1+b+c) = 1", GROWING, lambda p: p["a1"] * (p["a1"] + p["b"] + p["c"]) - 1, {"a1", "b", "c"})
ONES_D0 = BoundaryFormula(
    "a0(a0+b+c) = 1", GROWING, lambda p: p["a0"] * (p["a0"] + p["b"] + p["c"]) - 1, {"a0", "b", "c"}
)
"""Above it the reader fires on D0 as well."""
IDENTITY = BoundaryFormula(
    "a1² + b² = 1",
    "as n grows and d outgrows n^(b²), for large m",
    lambda p: p["a1"] ** 2 + p["b"] ** 2 - 1,
    {"a1", "b"},
)
CROSS = BoundaryFormula("a1·r_Q = 1", GROWING, lambda p: p["a1"] * p["r_Q"] - 1, {"a1", "r_Q"})
DEGREE = BoundaryFormula(
    "beta = log n / log((a1+b+c)/(b+c))",
    "to leading order as n grows",
    lambda p: p["beta"] * np.log1p(p["a1"] / (p["b"] + p["c"])) - np.log(p["n"]),
    {"beta", "n", "a1", "b", "c"},
)


def find_formula(
    kind: type[Construction], mechanism: Mechanism, names: Set[str], form: object = "ones"
) -> BoundaryFormula | None:
    """Return the formula for a construction and mechanism, if it contains one of the varied parameters.

    The formulas are those of sections 3.5, 3.10 and 5 of the theory.

    >>> softmax = Softmax()
    >>> [getattr(find_formula(Spike, softmax, {name}), "formula", None) for name in ("a1", "a0", "m")]
    ['a1(a1+b+c) = 1', 'a0(a0+b+c) = 1', None]
    """
    return next((formula for formula in _formulas_for(kind, mechanism, form) if formula.parameters & names), None)


def _formulas_for(kind: type[Construction], mechanism: Mechanism, form: object) -> tuple[BoundaryFormula, ...]:
    if isinstance(mechanism, Softmax) and mechanism.parameters.temperature == 1:
        if kind is Spike:
            return (IDENTITY,) if form == "identity" else (ONES, ONES_D0)
        return (CROSS,) if kind is Cross else ()
    if isinstance(mechanism, Power) and kind is Spike and form != "identity":
        return (DEGREE,)
    return ()
