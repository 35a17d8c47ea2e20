"""What of a store is not as it was stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, TypeVar

from sqlalchemy.exc import DBAPIError

from separatrix.sweeps.store.errors import DAMAGED, meaning

T = TypeVar("T")
SINGLE = {
    "cells": "cell",
    "sweeps": "sweep",
    "environments": "environment",
    "members": "member of a sweep",
    "files": "file",
    "counts": "table of counts",
}
MANY = {"members": "members of sweeps"}


class Damage:
    """How many rows are altered, and how many are lost, by table; nothing where all is well."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.altered: Counter[str] = Counter()
        """Rows whose seal is broken, or that no sweep made."""
        self.lost: Counter[str] = Counter()
        """Rows that were counted when they were stored, and are not found."""

    def __bool__(self) -> bool:
        return bool(+self.altered or +self.lost)

    @property
    def words(self) -> str:
        """`3 cells are altered, 12 members of sweeps are lost`."""
        said = [
            f"1 {SINGLE[what]} is {how}" if count == 1 else f"{count:,} {MANY.get(what, what)} are {how}"
            for how, counts in (("altered", self.altered), ("lost", self.lost))
            for what in SINGLE
            if (count := counts[what]) > 0
        ]
        return ", ".join(said)

    @property
    def warning(self) -> str:
        """One line for the user."""
        return (
            f"the store {self.where} is damaged: {self.words}; the rest is used. separatrix store check says "
            "more, separatrix store repair saves what is intact"
        )

    def as_json(self) -> dict[str, Any]:
        """`{"altered": {"cells": 3}, "lost": {}}`."""
        return {"altered": dict(+self.altered), "lost": dict(+self.lost)}


def is_damage(error: Exception) -> bool:
    """Whether a database complains of what it read, not of the way to it."""
    said = error.orig if isinstance(error, DBAPIError) else error
    return isinstance(error, UnicodeDecodeError) or meaning(str(said)) == DAMAGED


def read_around(read: Callable[[int, int], list[T]], first: int, last: int) -> tuple[list[T], list[int]]:
    """What can be read from `first` to `last`, halving what cannot; and the places where nothing can."""
    try:
        return read(first, last), []
    except (DBAPIError, UnicodeDecodeError) as error:
        if not is_damage(error):
            raise
    if first == last:
        return [], [first]
    middle = (first + last) // 2
    rows, holes = read_around(read, first, middle)
    more, further = read_around(read, middle + 1, last)
    return rows + more, holes + further
