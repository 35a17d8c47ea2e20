"""The picture of a construction in characters, for `list constructions NAME`."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

from separatrix.cli.terminal import console

if TYPE_CHECKING:
    from separatrix.analysis.cards.illustration import Dataset, Illustration

WIDE = 80
STRIP = 40
"""Characters along which neurons are laid out."""
LABELS = (0, 1)


def show(found: Illustration) -> None:
    """D0 beside D1, what attention gives the tokens, and neurons along a line with the threshold in it."""
    out = console()
    out.print(f"\n{found.finding}", style="bold", markup=False)
    for part in (_tokens(found), _weights(found), _neurons(found)):
        out.print("\n".join(["", *part]), markup=False, soft_wrap=True)


def _tokens(found: Illustration) -> list[str]:
    """The two tables, side by side where there is room, with what differs in brackets."""
    left, right = (_table(found, dataset) for dataset in found.datasets)
    said = f"In brackets: {found.difference}." if found.differences else f"{found.difference.capitalize()}."
    beside = max(map(len, left)) + 3
    if beside + max(map(len, right)) > WIDE or len(left) != len(right):
        return [*left, "", *right, said]
    return [*(f"{a:<{beside}}{b}".rstrip() for a, b in zip(left, right, strict=True)), said]


def _table(found: Illustration, dataset: Dataset) -> list[str]:
    from separatrix.pages.illustration import headings, number

    rows = [[f"D{dataset.label} token", *(f" {heading} " for heading in headings(found))]]
    for row in dataset.rows:
        cells = [
            " … " if math.isnan(value) else f"[{number(value)}]" if changed else f" {number(value)} "
            for value, changed in zip(row.cells, row.changed, strict=True)
        ]
        rows.append([row.tokens, *(cells or [" ⋮ " for _ in found.columns])])
    return _aligned(rows, gap=0)


def _weights(found: Illustration) -> list[str]:
    """What the first query gives each row of tokens together, in D0 and in D1, with a bar for D1."""
    from separatrix.pages.illustration import number, short_name

    bar = 12 if len(found.mechanisms) == 2 else 4
    rows = [
        ["attention on", *(f"{short_name(name):>7}" for name in found.mechanisms)],
        ["token", *(f"{'D0':>7}  {'D1':>7}" for _ in found.mechanisms)],
    ]
    given = [dataset.weights for dataset in found.datasets]
    for place, pair in enumerate(zip(*(dataset.rows for dataset in found.datasets), strict=True)):
        tokens = pair[1].tokens if pair[0].tokens == pair[1].tokens else f"{pair[0].tokens}, {pair[1].tokens}"
        cells = []
        for name in found.mechanisms:
            most = max(max(each[name]) for each in given)
            filled = round(bar * max(given[1][name][place], 0) / most)
            both = "  ".join(f"{number(each[name][place]):>7}" for each in given)
            cells.append(f"{both} {'█' * filled}{' ' * (bar - filled)}")
        rows.append([tokens, *cells])
    return _aligned(rows)


def _neurons(found: Illustration) -> list[str]:
    """A line for each mechanism and dataset: how many neurons read what, left and right of the threshold."""
    from separatrix.pages.illustration import number, short_name

    read = [x for dataset in found.datasets for readings in dataset.readings.values() for x in readings]
    low, high = min(*read, found.threshold), max(*read, found.threshold)
    at = round((found.threshold - low) / (high - low) * (STRIP - 2)) + 1
    rows = [["neurons that read", f"{number(low)}{number(high):>{STRIP + 1 - len(number(low))}}", ""]]
    for name in found.mechanisms:
        for label in LABELS:
            readings = found.datasets[label].readings[name]
            below = _counted([x for x in readings if x <= found.threshold], low, found.threshold, at)
            above = _counted([x for x in readings if x > found.threshold], found.threshold, high, STRIP - at)
            fired = sum(x > found.threshold for x in readings)
            rows.append(
                [f"{short_name(name)}, D{label}", f"{below}|{above}", f"{fired} of {len(readings)} fire"]
            )
    unit = f" in {found.unit}" if found.unit else ""
    threshold = f"Digits count neurons (* more than 9), | is the threshold, {number(found.threshold)}{unit}."
    return [*_aligned(rows), threshold, "One draw of the reader's signs, with seed 0."]


def _counted(readings: list[float], low: float, high: float, wide: int) -> str:
    """Readings between two numbers along so many characters: how many there are at each."""
    step = (high - low) / wide or 1.0
    counts = Counter(min(max(int((x - low) / step), 0), wide - 1) for x in readings)
    return "".join("·123456789*"[min(counts[place], 10)] for place in range(wide))


def _aligned(rows: list[list[str]], gap: int = 1) -> list[str]:
    """Columns as wide as their widest cell."""
    wide = [max(map(len, column)) + gap for column in zip(*rows, strict=True)]
    return ["".join(f"{cell:<{size}}" for cell, size in zip(row, wide, strict=True)).rstrip() for row in rows]
