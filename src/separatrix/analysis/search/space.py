"""The instances that are tried: small tokens in round numbers, and one edit between D0 and D1."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from separatrix.analysis.search.instance import Instance
from separatrix.constructions import Description, TokenGroup

Suggest = Callable[[str, int, int], int]
"""A whole number between two others, by name."""
ExactVector = tuple[Fraction, ...]

MOST_TOKENS, MOST_WIDTH = 6, 3
QUERIES = (1, 1, 1, 2, 3)
"""How many queries there may be; most questions are about one."""
ENTRIES = tuple(Fraction(x) for x in ("-2", "-1", "-1/2", "0", "1/2", "1", "2", "3", "4"))
FEW = (1, 2, 3, 4)
MANY = (1, 1, 100, 1000, 10**6)
"""How many tokens a row may stand for: where Y is to be equal, and where it is to be drowned."""
TIMES = (2, 3, 10)
LOUDER = tuple(Fraction(x) for x in ("1/2", "2", "4"))
"""What counts and queries are multiplied by."""
EDITS = {
    "counts": "counts",
    "loudness": "queries",
    "queries": "queries",
    "keys": "keys",
    "values": "values",
    "order": "order",
}
"""What D1 changes, and the part it belongs to: one or all counts, a query multiplied, one of the vectors."""


def draw(suggest: Suggest, edit: str, counts: tuple[int, ...]) -> Instance:
    """An instance; every choice is a suggestion, so that a sampler can learn which are good."""
    width, features = suggest("width", 1, MOST_WIDTH), suggest("features", 1, MOST_WIDTH)
    asked = QUERIES[suggest("queries", 0, len(QUERIES) - 1)]
    queries = tuple(_vector(suggest, f"query {i}", width) for i in range(asked))
    kinds = tuple(
        TokenGroup(
            _vector(suggest, f"key {i}", width),
            _vector(suggest, f"value {i}", features),
            counts[suggest(f"count {i}", 0, len(counts) - 1)],
        )
        for i in range(suggest("tokens", 1, MOST_TOKENS))
    )
    d0 = Description(queries, kinds)
    return Instance(d0, _edited(suggest, edit, d0))


def _vector(suggest: Suggest, name: str, width: int) -> ExactVector:
    return tuple(ENTRIES[suggest(f"{name},{j}", 0, len(ENTRIES) - 1)] for j in range(width))


def _edited(suggest: Suggest, edit: str, d0: Description) -> Description:
    queries, kinds = list(d0.queries), list(d0.groups)
    if edit == "order":
        return Description(d0.queries, d0.groups[::-1])
    if edit in ("queries", "loudness"):
        i = suggest("edited query", 0, max(QUERIES) - 1) % len(queries)
        if edit == "loudness":
            factor = LOUDER[suggest("louder", 0, len(LOUDER) - 1)]
            queries[i] = tuple(factor * Fraction(x) for x in queries[i])
        else:
            queries[i] = _changed(suggest, queries[i])
        return Description(tuple(queries), d0.groups)
    if edit == "counts":
        i, times = suggest("edited count", 0, MOST_TOKENS), TIMES[suggest("times", 0, len(TIMES) - 1)]
        chosen = range(len(kinds)) if i == MOST_TOKENS else [i % len(kinds)]
        for one in chosen:
            kinds[one] = TokenGroup(kinds[one].key, kinds[one].value, times * kinds[one].count)
        return Description(d0.queries, tuple(kinds))
    i = suggest("edited token", 0, MOST_TOKENS - 1) % len(kinds)
    key, value, count = kinds[i].key, kinds[i].value, kinds[i].count
    if edit == "keys":
        kinds[i] = TokenGroup(_changed(suggest, key), value, count)
    else:
        kinds[i] = TokenGroup(key, _changed(suggest, value), count)
    return Description(d0.queries, tuple(kinds))


def _changed(suggest: Suggest, vector: tuple[Fraction | float, ...]) -> ExactVector:
    """One entry replaced, or the whole multiplied."""
    place = suggest("edited entry", 0, MOST_WIDTH) % (len(vector) + 1)
    to = ENTRIES[suggest("edited to", 0, len(ENTRIES) - 1)]
    exact = [Fraction(x) for x in vector]
    if place == len(vector):
        return tuple(to * x for x in exact)
    return tuple(to if j == place else x for j, x in enumerate(exact))
