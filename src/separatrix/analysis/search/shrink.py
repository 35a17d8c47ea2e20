"""Make a finding smaller, step by step, as long as it keeps its property."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from itertools import product
from typing import Any, TypeVar

from separatrix.analysis.search.instance import Entries, Instance, Position, build_description, list_entries
from separatrix.analysis.search.space import ENTRIES

ROUND_COUNTS = tuple(digit * 10**power for power in range(7) for digit in (1, 2, 3, 4, 5))
EntriesPair = tuple[Entries, Entries]
"""The entries of D0 and D1."""
Item = TypeVar("Item")


def shrink(
    item: Item, steps: Callable[[Item], Iterable[Item]], size: Callable[[Item], Any], holds: Callable[[Item], bool]
) -> Item:
    """Take steps to smaller items for which `holds` is true, until no single step leads further."""
    while True:
        limit = size(item)
        smaller = next((step for step in steps(item) if size(step) < limit and holds(step)), None)
        if smaller is None:
            return item
        item = smaller


def shrink_instance(instance: Instance, holds: Callable[[Instance], bool]) -> Instance:
    """Shrink an instance.

    A step drops a token, a query, a coordinate or a feature, negates one, or puts rounder numbers in one
    position.
    """
    return shrink(instance, instance_steps, instance_size, holds)


def instance_size(instance: Instance) -> tuple[int, int, int, int, int]:
    """Return distinct tokens and queries; widths; tokens in all; differing entries; roughness of all."""
    d0, d1 = (list_entries(label) for label in instance.labels)
    groups = instance.d0.groups
    return (
        len(groups) + len(instance.d0.queries),
        len(groups[0].key) + len(groups[0].value),
        sum(group.count for label in instance.labels for group in label.groups),
        sum(d0[position] != d1.get(position) for position in d0),
        sum(roughness(x) for entries in (d0, d1) for position, x in entries.items() if position[0] != "counts"),
    )


def roughness(x: Fraction) -> int:
    """Return 0 for 0, then more for 1, 2, -1, 3 or 1/2, -2, and so on.

    >>> [roughness(Fraction(x)) for x in ("0", "1", "2", "-1", "1/2", "-2")]
    [0, 2, 4, 5, 6, 7]
    """
    return 2 * (abs(x.numerator) + 2 * (x.denominator - 1)) + 3 * (x < 0) if x else 0


def instance_steps(instance: Instance) -> Iterator[Instance]:
    """Yield every instance that is one step away, the boldest steps first."""
    is_mirrored = instance.is_mirrored
    # A mirrored D1 is rebuilt from D0, so that a step does not break the mirror.
    pair = list_entries(instance.d0), list_entries(instance.d0 if is_mirrored else instance.d1)
    for candidate in _pair_steps(pair):
        d0, d1 = map(build_description, candidate)
        yield Instance(d0, type(d1)(d1.queries, d1.groups[::-1]) if is_mirrored else d1)


def _pair_steps(pair: EntriesPair) -> Iterator[EntriesPair]:
    yield from _drop(pair, ("keys", "values", "counts"), 1)
    yield from _drop(pair, ("queries",), 1)
    yield from _drop(pair, ("queries", "keys"), 2)
    yield from _drop(pair, ("values",), 2)
    yield from _negate(pair, ("queries", "keys"))
    yield from _negate(pair, ("values",))
    for position in sorted(pair[0]):
        yield from _round(pair, position)


def _drop(pair: EntriesPair, parts: tuple[str, ...], axis: int) -> Iterator[EntriesPair]:
    """Drop one row (axis 1) or column (axis 2) of some parts, unless it is the only one."""
    indices = {position[axis] for position in pair[0] if position[0] == parts[0]}
    for index in indices if len(indices) > 1 else ():
        d0, d1 = (
            {position: x for position, x in entries.items() if position[0] not in parts or position[axis] != index}
            for entries in pair
        )
        yield d0, d1


def _negate(pair: EntriesPair, parts: tuple[str, ...]) -> Iterator[EntriesPair]:
    """Negate one coordinate everywhere, which does not change any logit."""
    for column in {j for part, _, j in pair[0] if part == parts[0]}:
        d0, d1 = (
            {position: -x if position[0] in parts and position[2] == column else x for position, x in entries.items()}
            for entries in pair
        )
        yield d0, d1


def _round(pair: EntriesPair, position: Position) -> Iterator[EntriesPair]:
    """Put rounder numbers in one position: first the same in both labels, then different ones."""
    before, after = pair[0][position], pair[1][position]
    if position[0] == "counts":
        rounder = [Fraction(count) for count in ROUND_COUNTS if count < max(before, after)]
    else:
        limit = max(roughness(before), roughness(after))
        rounder = sorted((x for x in ENTRIES if roughness(x) < limit), key=roughness)
    choices = [(x, x) for x in rounder]
    if before != after:
        choices += [(x, y) for x, y in product((*rounder, before), (*rounder, after)) if x != y]
    for x, y in choices:
        yield {**pair[0], position: x}, {**pair[1], position: y}
