"""The search space: small tokens in round numbers, and one edit between D0 and D1."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from separatrix.analysis.search.instance import Instance
from separatrix.constructions import Description, TokenGroup

Suggest = Callable[[str, int, int], int]
"""Chooses a whole number between two others, for a name."""

MAX_TOKENS, MAX_WIDTH = 6, 3
QUERY_COUNTS = (1, 1, 1, 2, 3)
"""Numbers of queries; most questions are about one."""
ENTRIES = tuple(Fraction(x) for x in ("-2", "-1", "-1/2", "0", "1/2", "1", "2", "3", "4"))
FEW = (1, 2, 3, 4)
MANY = (1, 1, 100, 1000, 10**6)
"""Numbers of equal tokens: few if Y is to be equal, many if Y's difference is to be drowned."""
COUNT_FACTORS = (2, 3, 10)
QUERY_FACTORS = tuple(Fraction(x) for x in ("1/2", "2", "4"))
EDITS = {
    "counts": "counts",
    "loudness": "queries",
    "queries": "queries",
    "keys": "keys",
    "values": "values",
    "order": "order",
}
"""The edits of D1 with the part they change: one or all counts, a query multiplied, one of the vectors."""


def draw(suggest: Suggest, edit: str, counts: tuple[int, ...]) -> Instance:
    """Draw an instance; every choice is a suggestion, so that a sampler can learn which are good."""
    width, features = suggest("width", 1, MAX_WIDTH), suggest("features", 1, MAX_WIDTH)
    query_count = _choose(suggest, "queries", QUERY_COUNTS)
    queries = tuple(_draw_vector(suggest, f"query {i}", width) for i in range(query_count))
    groups = []
    for i in range(suggest("tokens", 1, MAX_TOKENS)):
        key, value = _draw_vector(suggest, f"key {i}", width), _draw_vector(suggest, f"value {i}", features)
        groups.append(TokenGroup(key, value, _choose(suggest, f"count {i}", counts)))
    d0 = Description(queries, tuple(groups))
    return Instance(d0, _apply_edit(suggest, edit, d0))


def _choose(suggest: Suggest, name: str, options: Sequence[Any]) -> Any:
    return options[suggest(name, 0, len(options) - 1)]


def _draw_vector(suggest: Suggest, name: str, width: int) -> tuple[Fraction, ...]:
    return tuple(_choose(suggest, f"{name},{j}", ENTRIES) for j in range(width))


def _apply_edit(suggest: Suggest, edit: str, d0: Description) -> Description:
    queries, groups = list(d0.queries), list(d0.groups)
    if edit == "order":
        groups.reverse()
    elif edit == "loudness":
        i = suggest("edited query", 0, max(QUERY_COUNTS) - 1) % len(queries)
        factor = _choose(suggest, "louder", QUERY_FACTORS)
        queries[i] = tuple(factor * Fraction(x) for x in queries[i])
    elif edit == "queries":
        i = suggest("edited query", 0, max(QUERY_COUNTS) - 1) % len(queries)
        queries[i] = _change_vector(suggest, queries[i])
    elif edit == "counts":
        i, times = suggest("edited count", 0, MAX_TOKENS), _choose(suggest, "times", COUNT_FACTORS)
        for j in range(len(groups)) if i == MAX_TOKENS else [i % len(groups)]:
            groups[j] = replace(groups[j], count=times * groups[j].count)
    else:
        # The range does not depend on other choices, so that the sampler sees one distribution for each name.
        i = suggest("edited token", 0, MAX_TOKENS - 1) % len(groups)
        part = "key" if edit == "keys" else "value"
        change: dict[str, Any] = {part: _change_vector(suggest, getattr(groups[i], part))}
        groups[i] = replace(groups[i], **change)
    return Description(tuple(queries), tuple(groups))


def _change_vector(suggest: Suggest, vector: Sequence[Fraction | float]) -> tuple[Fraction, ...]:
    """Replace one entry, or multiply the whole vector."""
    index = suggest("edited entry", 0, MAX_WIDTH) % (len(vector) + 1)
    number = _choose(suggest, "edited to", ENTRIES)
    if index == len(vector):
        return tuple(number * Fraction(x) for x in vector)
    return tuple(number if j == index else Fraction(x) for j, x in enumerate(vector))
