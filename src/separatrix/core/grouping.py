"""Grouping of items by a key."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

Item = TypeVar("Item")
Key = TypeVar("Key")


def group_pairs(pairs: Iterable[tuple[Key, Item]]) -> dict[Key, list[Item]]:
    """Return the items of equal keys together, in order of first appearance."""
    groups: dict[Key, list[Item]] = {}
    for key, item in pairs:
        groups.setdefault(key, []).append(item)
    return groups
