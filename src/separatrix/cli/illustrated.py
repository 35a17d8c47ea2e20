"""The picture of a construction in characters, for `list constructions NAME`."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from separatrix.cli.terminal import console

if TYPE_CHECKING:
    from separatrix.analysis.cards.illustration import Illustration
    from separatrix.analysis.cards.token_rows import TokenRow

MAX_WIDTH = 80
STRIP_WIDTH = 40
"""Characters of the line along which neurons are counted."""


def show(picture: Illustration) -> None:
    """Print D0 beside D1, the attention that tokens get, and neurons along a line with the threshold."""
    out = console()
    out.print(f"\n{picture.finding}", style="bold", markup=False)
    for lines in (_token_lines(picture), _weight_lines(picture), _neuron_lines(picture)):
        out.print("\n".join(["", *lines]), markup=False, soft_wrap=True)


def _token_lines(picture: Illustration) -> list[str]:
    """Return the two tables, side by side where there is room, with differences in brackets."""
    d0, d1 = (_token_table(picture, label, rows) for label, rows in enumerate(picture.tokens))
    difference = picture.difference
    note = f"In brackets: {difference}." if picture.differences else f"{difference.capitalize()}."
    width = max(map(len, d0)) + 3
    if width + max(map(len, d1)) > MAX_WIDTH or len(d0) != len(d1):
        return [*d0, "", *d1, note]
    return [*(f"{a:<{width}}{b}".rstrip() for a, b in zip(d0, d1, strict=True)), note]


def _token_table(picture: Illustration, label: int, rows: Sequence[TokenRow]) -> list[str]:
    from separatrix.pages.illustration import headings, short_number

    lines = [[f"D{label} token", *(f" {heading} " for heading in headings(picture))]]
    for row in rows:
        texts = ["…" if math.isnan(value) else short_number(value) for value in row.cells]
        cells = [f"[{text}]" if changed else f" {text} " for text, changed in zip(texts, row.changed, strict=True)]
        lines.append([row.tokens, *(cells or [" ⋮ " for _ in picture.columns])])
    return _align(lines, gap=0)


def _weight_lines(picture: Illustration) -> list[str]:
    """Return the weights that the first query gives to each row, in D0 and in D1, with a bar for D1."""
    from separatrix.pages.illustration import short_name, short_number

    width = 12 if len(picture.mechanisms) == 2 else 4
    lines = [
        ["attention on", *(f"{short_name(panel.mechanism):>7}" for panel in picture.mechanisms)],
        ["token", *(f"{'D0':>7}  {'D1':>7}" for _ in picture.mechanisms)],
    ]
    for index, (d0, d1) in enumerate(zip(*picture.tokens, strict=True)):
        cells = []
        for panel in picture.mechanisms:
            weights = [label_weights[0] for label_weights in panel.weights]
            bar = "█" * round(width * max(weights[1][index], 0) / max(map(max, weights)))
            numbers = "  ".join(f"{short_number(row_weights[index]):>7}" for row_weights in weights)
            cells.append(f"{numbers} {bar:{width}}")
        lines.append([d1.tokens if d0.tokens == d1.tokens else f"{d0.tokens}, {d1.tokens}", *cells])
    return _align(lines)


def _neuron_lines(picture: Illustration) -> list[str]:
    """Return a line for each mechanism and label that counts neurons left and right of the threshold."""
    from separatrix.pages.illustration import short_name, short_number

    threshold = picture.threshold
    readings = [x for panel in picture.mechanisms for label in panel.readings for x in label]
    low, high = min(*readings, threshold), max(*readings, threshold)
    split = round((threshold - low) / (high - low) * (STRIP_WIDTH - 2)) + 1
    ends = f"{short_number(low)}{short_number(high):>{STRIP_WIDTH + 1 - len(short_number(low))}}"
    lines = [["neurons that read", ends, ""]]
    for panel in picture.mechanisms:
        for label, values in enumerate(panel.readings):
            below = _histogram([x for x in values if x <= threshold], low, threshold, split)
            above = _histogram([x for x in values if x > threshold], threshold, high, STRIP_WIDTH - split)
            count = f"{panel.fire_counts[label]} of {len(values)} fire"
            lines.append([f"{short_name(panel.mechanism)}, D{label}", f"{below}|{above}", count])
    unit = f" in {picture.unit}" if picture.unit else ""
    legend = f"Digits count neurons (* more than 9), | is the threshold, {short_number(threshold)}{unit}."
    return [*_align(lines), legend, "One draw of the reader's signs, with seed 0."]


def _histogram(readings: list[float], low: float, high: float, width: int) -> str:
    """Count the readings between two numbers in as many bins as there are characters."""
    step = (high - low) / width or 1.0
    counts = Counter(min(max(int((x - low) / step), 0), width - 1) for x in readings)
    return "".join("·123456789*"[min(counts[index], 10)] for index in range(width))


def _align(lines: list[list[str]], gap: int = 1) -> list[str]:
    """Pad the cells of each column to the widest one."""
    widths = [max(map(len, column)) + gap for column in zip(*lines, strict=True)]
    return ["".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]
