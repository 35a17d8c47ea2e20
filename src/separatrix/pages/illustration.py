"""The picture of a construction: D0 beside D1, the attention of the first query, the neurons that fire."""

from __future__ import annotations

import math
import textwrap
from collections import Counter
from collections.abc import Sequence
from typing import Any, cast

from separatrix.analysis.cards.illustration import NAMES, Illustration, MechanismPicture, illustrate
from separatrix.core.numbers.spelling import for_people
from separatrix.pages.looks import BLUE, FAINT, INK, PRINTED, choose_looks, print_colour
from separatrix.pages.paper import Axes, Figure, hide_frame, new_figure, paper_style, save_figure

CHANGED_COLOUR = "#b33c00"
BINS, MAX_STACK = 44, 5
"""Neurons in the same of this many bins are stacked, at most this many high."""
_INK, _FAINT = PRINTED[INK], PRINTED[FAINT]


def draw(illustration: Illustration) -> Figure:
    """Return the picture: tokens above, attention and neurons below."""
    with paper_style():
        rows = max(map(len, illustration.tokens))
        strips = 2 * len(illustration.mechanisms)
        heights = (0.55 + 0.2 * rows, 0.75 + max(0.26 * rows, 0.34 * strips))
        figure = new_figure(7.2, 0.75 + sum(heights))
        above, below = cast(Any, figure.subfigures(2, 1, height_ratios=heights))
        left, right = below.subfigures(1, 2)
        title = textwrap.fill(f"{illustration.construction}: {illustration.finding}", 76)
        figure.suptitle(title, x=0.012, ha="left", weight="bold", size=10)
        _add_heading(above, f"1  {illustration.title}")
        for label, axes in enumerate(above.subplots(1, 2)):
            _draw_tokens(axes, illustration, label)
        _add_heading(left, "2  Attention weights of the tokens (outlined: D0, filled: D1)")
        panels = left.subplots(1, len(illustration.mechanisms), sharey=True, squeeze=False)[0]
        for axes, picture in zip(panels, illustration.mechanisms, strict=True):
            _draw_weights(axes, illustration, picture)
        neurons = len(_all_readings(illustration)[0])
        _add_heading(right, f"3  The reader's {neurons} neurons, with one draw of signs")
        _draw_neurons(right.subplots(), illustration)
        return figure


def _add_heading(part: Any, text: str) -> None:
    part.suptitle(text, x=0.015, ha="left", size=8.5, color=_INK)


def _draw_tokens(axes: Axes, illustration: Illustration, label: int) -> None:
    """Draw the numbers of every token, shaded by their size; those that differ are framed."""
    from matplotlib.patches import Rectangle

    rows = illustration.tokens[label]
    # Logits, where there are any, are in the first column and have a scale of their own.
    has_logits = illustration.columns[0] == "logit"
    logits, values = (
        _largest(illustration, columns)
        for columns in ([0] if has_logits else [], range(int(has_logits), len(illustration.columns)))
    )
    for y, row in enumerate(rows):
        if not row.cells:
            axes.text(0.5, y + 0.5, "⋮", ha="center", va="center", color=_FAINT)
        for x, (value, is_changed) in enumerate(zip(row.cells, row.changed, strict=True)):
            if math.isnan(value):
                axes.text(x + 0.5, y + 0.5, "⋯", ha="center", va="center", color=_FAINT)
                continue
            share = abs(value) / ((logits if has_logits and x == 0 else values) or 1)
            # The root keeps small numbers visible beside large ones.
            alpha = 0.45 * math.sqrt(share)
            axes.add_patch(Rectangle((x, y), 1, 1, facecolor=BLUE, alpha=alpha, edgecolor="none"))
            style: dict[str, Any] = {"color": _FAINT} if value == 0 else {"weight": "bold"} if is_changed else {}
            text = short_number(value)
            size = 7.5 if len(text) < 6 else 6
            axes.text(x + 0.5, y + 0.5, text, ha="center", va="center", size=size, **style)
    for y, row in enumerate(rows):
        for x in (x for x, is_changed in enumerate(row.changed) if is_changed):
            axes.add_patch(Rectangle((x, y), 1, 1, fill=False, edgecolor=CHANGED_COLOUR, lw=1.8, zorder=3))
    if has_logits:
        axes.axvline(1, color=_FAINT, lw=0.8)
    axes.set_xlim(0, max(len(illustration.columns), 2))
    axes.set_ylim(len(rows), 0)
    remark = f" (marked: {illustration.difference})" if label else ""
    axes.set_title(f"D{label}{remark}", pad=14)
    axes.set_xticks([x + 0.5 for x in range(len(illustration.columns))], headings(illustration))
    axes.xaxis.tick_top()
    _name_tokens(axes, [row.tokens for row in rows])
    for name, row in zip(axes.get_yticklabels(), rows, strict=True):
        if not illustration.differences and row.cells:
            name.set(color=CHANGED_COLOUR, weight="bold")


def _name_tokens(axes: Axes, names: list[str]) -> None:
    axes.set_yticks([y + 0.5 for y in range(len(names))], names)
    axes.set_ylabel("token", color=_FAINT)
    hide_frame(axes)


def _largest(illustration: Illustration, columns: Any) -> float:
    sizes = (abs(row.cells[x]) for rows in illustration.tokens for row in rows if row.cells for x in columns)
    return max((size for size in sizes if not math.isnan(size)), default=0.0)


def _draw_weights(axes: Axes, illustration: Illustration, picture: MechanismPicture) -> None:
    """Draw the weight that the first query gives each row of tokens together: D0 outlined, D1 filled."""
    colour = print_colour(choose_looks(_names(illustration))[picture.mechanism].colour)
    rows, weights = illustration.tokens, [label_weights[0] for label_weights in picture.weights]
    most = max(map(max, weights))
    for y, pair in enumerate(zip(*weights, strict=True)):
        for weight, shift, face in zip(pair, (0.27, 0.73), ("none", colour), strict=True):
            axes.barh(y + shift, weight, 0.38, facecolor=face, edgecolor=colour, lw=0.9)
            axes.text(max(weight, 0) + 0.04 * most, y + shift, short_number(weight), va="center", size=6.5)
    # At least three rows, so that the bars of two tokens do not fill the panel.
    axes.set_ylim(max(len(rows[0]), 3), 0)
    axes.set_xlim(0, 1.42 * most)
    names = [a.tokens if a.tokens == b.tokens else f"{a.tokens}\n{b.tokens}" for a, b in zip(*rows, strict=True)]
    _name_tokens(axes, names)
    if axes is not axes.figure.axes[0]:
        axes.set_ylabel("")
    axes.set_xticks([])
    axes.set_title(short_name(picture.mechanism).replace(" ", "\n"), color=colour)


def _draw_neurons(axes: Axes, illustration: Illustration) -> None:
    """Draw a strip for each mechanism and dataset: every neuron at its reading, filled where it fires."""
    looks, threshold = choose_looks(_names(illustration)), illustration.threshold
    readings = [reading for neurons in _all_readings(illustration) for reading in neurons]
    low, high = min(*readings, threshold), max(*readings, threshold)
    step = (high - low) / BINS or 1.0
    strips = [(picture, label) for picture in illustration.mechanisms for label in (0, 1)]
    axes.axvspan(threshold, high + 0.4 * (high - low), color="#f0f0f0", zorder=0)
    axes.axvline(threshold, color=_INK, lw=1)
    for y, (picture, label) in enumerate(strips):
        colour, stacks = print_colour(looks[picture.mechanism].colour), Counter[int]()
        for reading in sorted(picture.readings[label]):
            place = round((reading - low) / step)
            column, height = divmod(stacks[place], MAX_STACK)
            stacks[place] += 1
            fires = reading > threshold
            side = 1 if fires else -1  # a full stack grows sideways, but never across the threshold
            x = side * max(side * (low + (place + side * column) * step), side * threshold + 0.6 * step)
            face = colour if fires else "white"
            axes.plot(x, y + 0.3 - 0.6 * height / MAX_STACK, "o", ms=3.6, mfc=face, mec=colour, mew=0.9)
        count = picture.fire_counts[label]
        weight = "bold" if count else "normal"
        axes.text(high + 0.06 * (high - low), y, f"{count} fire", size=7.5, va="center", weight=weight)
    axes.set_ylim(len(strips) - 0.5, -0.8)
    axes.set_xlim(low - 0.06 * (high - low), high + 0.34 * (high - low))
    axes.set_yticks(range(len(strips)), [f"{short_name(picture.mechanism)}, D{label}" for picture, label in strips])
    unit = f", in {illustration.unit}" if illustration.unit else ""
    axes.set_xlabel(f"reading of a neuron{unit}; it fires above {short_number(threshold)}")
    axes.grid(visible=False)
    axes.tick_params(axis="y", length=0)


def _all_readings(illustration: Illustration) -> list[Sequence[float]]:
    return [readings for picture in illustration.mechanisms for readings in picture.readings]


def _names(illustration: Illustration) -> list[str]:
    return [picture.mechanism for picture in illustration.mechanisms]


def headings(illustration: Illustration) -> list[str]:
    """Return the names of the columns; a single feature of tokens is called their value."""
    columns = illustration.columns
    return ["logit", "value"] if columns == ("logit", "1") else list(columns)


def short_name(mechanism: str) -> str:
    """Return the name of a mechanism for narrow places."""
    return NAMES.get(mechanism, mechanism).removesuffix(" attention")


def short_number(x: float) -> str:
    """Return a number in few characters.

    >>> [short_number(x) for x in (0.996, 0, 33.75, 7.5e-24, 999)]
    ['0.996', '0', '33.8', '<10⁻⁶', '999']
    """
    if 0 < abs(x) < 1e-6:
        return "<10⁻⁶"
    return for_people(x, 1 if abs(x) < 0.01 else 2 if abs(x) < 0.1 else 3).replace("-", "−")


def render_illustration(construction: str, kind: str) -> bytes:
    """Return the picture of a construction as PNG, PDF or SVG."""
    return save_figure(draw(illustrate(construction)), kind)
