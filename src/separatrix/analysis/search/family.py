"""What an instance resembles, by how D1 differs from D0."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from separatrix.analysis.search.instance import Instance
from separatrix.core.numbers import format_exact

CROWD = 10
"""Tokens that are this many times as many as the others are a crowd."""


def recognised(instance: Instance) -> tuple[str, str]:
    """The name of the family and a sentence about it."""
    parts = instance.differs_in
    if parts == ("order",):
        return "order", "the same tokens in reverse"
    if parts == ("counts",):
        return _counts(instance)
    if parts == ("queries",):
        return _queries(instance)
    if parts in (("keys",), ("values",)):
        return _tokens(instance, "key" if parts == ("keys",) else "value")
    return "mixed", f"{' and '.join(parts)} differ"


def _counts(instance: Instance) -> tuple[str, str]:
    pairs = zip(instance.d0.groups, instance.d1.groups, strict=True)
    ratios = {Fraction(other.count, one.count) for one, other in pairs}
    if len(ratios) == 1:
        return "duplication", f"only counts differ, each {format_exact(ratios.pop())} times as large in D1"
    return "recount", "only counts differ, and not all by one factor"


def _queries(instance: Instance) -> tuple[str, str]:
    factor = loudness(instance)
    if factor is None:
        return "another query", "only queries differ"
    return "collinear queries", f"D1's query is {format_exact(factor)} × D0's"


def loudness(instance: Instance) -> Fraction | None:
    """What every query that differs is multiplied by, where there is one such number."""
    pairs = zip(instance.d0.queries, instance.d1.queries, strict=True)
    factors = {_factor(one, other) for one, other in pairs if one != other}
    return factors.pop() if len(factors) == 1 else None


def _tokens(instance: Instance, part: str) -> tuple[str, str]:
    pairs = zip(instance.d0.groups, instance.d1.groups, strict=True)
    changed = [(one, other) for one, other in pairs if one != other]
    few = sum(one.count for one, _ in changed)
    rest = sum(kind.count for kind in instance.d0.groups) - few
    if rest >= CROWD * few:
        return "spike", f"the {part} of {few} {'token' if few == 1 else 'tokens'} differs, beside {rest:,}"
    if few >= CROWD * rest > 0:
        return "spike", f"the {part} of a crowd of {few:,} differs, beside {rest}"
    factors = {_factor(one.key, other.key) for one, other in changed}
    if part == "key" and len(factors) == 1 and (factor := factors.pop()):
        return "collinear keys", f"D1's key is {format_exact(factor)} × D0's"
    return f"another {part}", f"only {part}s differ"


def _factor(one: Sequence[Fraction | float], other: Sequence[Fraction | float]) -> Fraction | None:
    """What `one` is multiplied by to give `other`, unless there is no such number or it is 0."""
    pairs = [(Fraction(x), Fraction(y)) for x, y in zip(one, other, strict=True)]
    ratios = {y / x for x, y in pairs if x != 0}
    appears = any(y != 0 for x, y in pairs if x == 0)
    return ratios.pop() if len(ratios) == 1 and not appears and 0 not in ratios else None
