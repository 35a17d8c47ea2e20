"""A pair of small token sets, D0 and D1, in exact numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby
from typing import Any

from separatrix.constructions import Description, TokenGroup
from separatrix.core.numbers import format_exact, parse_exact
from separatrix.core.parameters import UsageError

Place = tuple[str, int, int]
"""Where a number stands: queries, keys, values or counts, then its row and column."""
Sheet = dict[Place, Fraction]
"""Every number of one label, by place."""

LARGEST = Fraction(10) ** 12
MOST_NUMBERS = 10_000
"""What a file may hold, so that a slip does not exhaust memory."""


@dataclass(frozen=True)
class Instance:
    """What is to be told apart: one set of tokens and queries, and another."""

    d0: Description
    d1: Description

    @property
    def labels(self) -> tuple[Description, Description]:
        """D0 and D1."""
        return self.d0, self.d1

    @property
    def mirrored(self) -> bool:
        """Whether D1 lists the tokens of D0 backwards, and that is a difference."""
        backwards = self.d0.groups[::-1]
        return self.d0.queries == self.d1.queries and self.d1.groups == backwards != self.d0.groups

    @property
    def differs_in(self) -> tuple[str, ...]:
        """The parts in which D0 and D1 differ: queries, keys, values, counts; or their order."""
        if self.mirrored:
            return ("order",)
        one, other = sheet(self.d0), sheet(self.d1)
        parts = {place[0]: None for place in (*one, *other) if one.get(place) != other.get(place)}
        return tuple(parts)

    def as_json(self) -> dict[str, Any]:
        """Both labels, every number spelled exactly."""
        return {"d0": _spelled(self.d0), "d1": _spelled(self.d1)}


def sheet(description: Description) -> Sheet:
    """Every number of a label, by place.

    >>> one = Description(((Fraction(1),),), (TokenGroup((Fraction(2),), (Fraction(3),), 4),))
    >>> [(*place, int(x)) for place, x in sheet(one).items()]
    [('queries', 0, 0, 1), ('keys', 0, 0, 2), ('values', 0, 0, 3), ('counts', 0, 0, 4)]
    """
    rows = {
        "queries": description.queries,
        "keys": [kind.key for kind in description.groups],
        "values": [kind.value for kind in description.groups],
        "counts": [(kind.count,) for kind in description.groups],
    }
    return {
        (part, i, j): Fraction(x)
        for part, vectors in rows.items()
        for i, vector in enumerate(vectors)
        for j, x in enumerate(vector)
    }


def described(numbers: Mapping[Place, Fraction]) -> Description:
    """The label that a sheet holds; rows and columns that are left out close up."""
    rows: dict[str, list[tuple[Fraction, ...]]] = {"queries": [], "keys": [], "values": [], "counts": []}
    for (part, _), places in groupby(sorted(numbers), key=lambda place: place[:2]):
        rows[part].append(tuple(numbers[place] for place in places))
    kinds = zip(rows["keys"], rows["values"], rows["counts"], strict=True)
    return Description(
        tuple(rows["queries"]), tuple(TokenGroup(key, value, int(count[0])) for key, value, count in kinds)
    )


def _spelled(description: Description) -> dict[str, Any]:
    return {
        "queries": [[format_exact(Fraction(x)) for x in query] for query in description.queries],
        "tokens": [
            {
                "key": [format_exact(Fraction(x)) for x in kind.key],
                "value": [format_exact(Fraction(x)) for x in kind.value],
                "count": kind.count,
            }
            for kind in description.groups
        ],
    }


def read_instance(data: Any) -> Instance:
    """The instance that `as_json` wrote, or a UsageError that says what is wrong with it."""
    if not isinstance(data, dict) or data.keys() != {"d0", "d1"}:
        raise UsageError("an instance has exactly d0 and d1")
    instance = Instance(_read_label(data["d0"], "d0"), _read_label(data["d1"], "d1"))
    for part in ("queries", "keys", "values"):
        widths = {len(row) for label in instance.labels for row in _vectors(label, part)}
        if len(widths) != 1 or 0 in widths:
            raise UsageError(f"the {part} of an instance need one common width")
    if len(instance.d0.queries) != len(instance.d1.queries):
        raise UsageError("d0 and d1 need as many queries as each other: outputs are compared row by row")
    if len(instance.d0.queries[0]) != len(instance.d0.groups[0].key):
        raise UsageError("queries and keys need one common width")
    return instance


def _vectors(label: Description, part: str) -> list[Any]:
    if part == "queries":
        return list(label.queries)
    return [kind.key if part == "keys" else kind.value for kind in label.groups]


def _read_label(data: Any, name: str) -> Description:
    if not isinstance(data, dict) or data.keys() != {"queries", "tokens"}:
        raise UsageError(f"{name} has exactly queries and tokens")
    queries = tuple(_read_vector(row, f"{name} queries") for row in _read_list(data["queries"], name))
    return Description(queries, tuple(_read_kind(token, name) for token in _read_list(data["tokens"], name)))


def _read_kind(data: Any, name: str) -> TokenGroup:
    if not isinstance(data, dict) or data.keys() != {"key", "value", "count"}:
        raise UsageError(f"a token of {name} has exactly key, value and count")
    count = data["count"]
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= LARGEST:
        raise UsageError(f"a count of {name} is not a whole number from 1 to 1e12")
    key, value = (_read_vector(data[part], f"{name} {part}") for part in ("key", "value"))
    return TokenGroup(key, value, count)


def _read_vector(data: Any, name: str) -> tuple[Fraction, ...]:
    numbers = tuple(parse_exact(x, name) for x in _read_list(data, name))
    for x in numbers:
        if abs(x) > LARGEST or x.denominator > LARGEST:
            raise UsageError(f"{name}={format_exact(x)[:20]} is out of range; numbers go to 1e12")
    return numbers


def _read_list(data: Any, name: str) -> list[Any]:
    if not isinstance(data, list) or not 1 <= len(data) <= MOST_NUMBERS:
        raise UsageError(f"{name} is not a list of 1 to {MOST_NUMBERS} entries")
    return data
