"""Making an instance smaller, one step at a time, for as long as it stays what it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product

from separatrix.analysis.search.instance import Instance, Place, Sheet, described, sheet
from separatrix.analysis.search.space import ENTRIES

ROUND_COUNTS = tuple(digit * 10**power for power in range(7) for digit in (1, 2, 3, 4, 5))
Pair = tuple[Sheet, Sheet]
Size = tuple[int, int, int, int, int]


def shrunk(instance: Instance, holds: Callable[[Instance], bool]) -> Instance:
    """The smallest instance that steps lead to: `holds` of it, but of none a single step away.

    A step drops a token, a query, a coordinate or a feature, negates one, or puts rounder numbers in
    one place.
    """
    found = instance
    while True:
        limit = size(found)
        step = next((each for each in steps(found) if size(each) < limit and holds(each)), None)
        if step is None:
            return found
        found = step


def size(instance: Instance) -> Size:
    """Distinct tokens, queries and widths; tokens in all; how many numbers differ; how rough all are."""
    one, other = (sheet(label) for label in instance.labels)
    tokens = [sum(kind.count for kind in label.groups) for label in instance.labels]
    d0 = instance.d0
    return (
        len(d0.groups) + len(d0.queries),
        len(d0.groups[0].key) + len(d0.groups[0].value),
        sum(tokens),
        sum(one[place] != other.get(place) for place in one),
        sum(roughness(x) for part in (one, other) for place, x in part.items() if place[0] != "counts"),
    )


def roughness(x: Fraction) -> int:
    """0 for 0, then 1, 2, -1, 3 or 1/2, -2, and so on.

    >>> [roughness(Fraction(x)) for x in ("0", "1", "2", "-1", "1/2", "-2")]
    [0, 2, 4, 5, 6, 7]
    """
    return 2 * (abs(x.numerator) + 2 * (x.denominator - 1)) + 3 * (x < 0) if x else 0


def steps(instance: Instance) -> Iterator[Instance]:
    """Every instance that is one step away, the boldest steps first."""
    mirrored = instance.mirrored
    d1 = instance.d0 if mirrored else instance.d1
    pair = sheet(instance.d0), sheet(d1)
    for candidate in _pairs(pair):
        d0, d1 = (described(numbers) for numbers in candidate)
        yield Instance(d0, type(d1)(d1.queries, d1.groups[::-1]) if mirrored else d1)


def _pairs(pair: Pair) -> Iterator[Pair]:
    yield from _without_rows(pair, ("keys", "values", "counts"))
    yield from _without_rows(pair, ("queries",))
    yield from _without_columns(pair, ("queries", "keys"))
    yield from _without_columns(pair, ("values",))
    yield from _other_sign(pair, ("queries", "keys"))
    yield from _other_sign(pair, ("values",))
    for place in sorted(pair[0]):
        yield from _rounder(pair, place)


def _without_rows(pair: Pair, parts: tuple[str, ...]) -> Iterator[Pair]:
    rows = {i for part, i, _ in pair[0] if part == parts[0]}
    for gone in rows if len(rows) > 1 else ():
        yield _kept(pair, lambda place, gone=gone: place[0] not in parts or place[1] != gone)  # type: ignore[misc]


def _without_columns(pair: Pair, parts: tuple[str, ...]) -> Iterator[Pair]:
    columns = {j for part, _, j in pair[0] if part == parts[0]}
    for gone in columns if len(columns) > 1 else ():
        yield _kept(pair, lambda place, gone=gone: place[0] not in parts or place[2] != gone)  # type: ignore[misc]


def _other_sign(pair: Pair, parts: tuple[str, ...]) -> Iterator[Pair]:
    """One coordinate negated everywhere, which leaves every logit as it is."""
    for column in {j for part, _, j in pair[0] if part == parts[0]}:
        one, other = (
            {place: -x if place[0] in parts and place[2] == column else x for place, x in numbers.items()}
            for numbers in pair
        )
        yield one, other


def _kept(pair: Pair, keep: Callable[[Place], bool]) -> Pair:
    one, other = ({place: x for place, x in numbers.items() if keep(place)} for numbers in pair)
    return one, other


def _rounder(pair: Pair, place: Place) -> Iterator[Pair]:
    """Other numbers at one place: the same in both labels where they were the same, or come to be."""
    one, other = pair[0][place], pair[1][place]
    choices = _choices(place, one, other)
    for x in choices:
        yield _put(pair, place, x, x)
    if one != other:
        for x, y in product((*choices, one), (*choices, other)):
            if x != y:
                yield _put(pair, place, x, y)


def _choices(place: Place, *now: Fraction) -> list[Fraction]:
    if place[0] == "counts":
        return [Fraction(count) for count in ROUND_COUNTS if count < max(now)]
    return sorted((x for x in ENTRIES if roughness(x) < max(map(roughness, now))), key=roughness)


def _put(pair: Pair, place: Place, x: Fraction, y: Fraction) -> Pair:
    return {**pair[0], place: x}, {**pair[1], place: y}
