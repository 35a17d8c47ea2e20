"""The picture of a construction: D0 beside D1, what attention gives the tokens, which neurons fire."""

from __future__ import annotations

import math
import textwrap
from collections import Counter
from typing import TYPE_CHECKING, Any, cast

from separatrix.analysis.cards.illustration import NAMES, Illustration, MechanismPicture, illustrate
from separatrix.core.numbers.spelling import for_people
from separatrix.pages.drawing import FAINT, INK, looks, saved, static_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CHANGED = "#b33c00"
SHADE = "#0072B2"
PLACES = 44
"""Neurons whose readings fall into the same of so many places are piled up, at most so many high."""
TALLEST = 5


def draw(found: Illustration) -> Figure:
    """Tokens above, attention and neurons below."""
    from matplotlib.figure import Figure, SubFigure

    with static_style():
        tall = max(map(len, found.tokens))
        strips = 2 * len(found.mechanisms)
        heights = (0.55 + 0.2 * tall, 0.75 + max(0.26 * tall, 0.34 * strips))
        figure = Figure(figsize=(7.2, 0.75 + sum(heights)))
        above, below = cast(tuple[SubFigure, ...], figure.subfigures(2, 1, height_ratios=heights))
        left, right = cast(tuple[SubFigure, ...], below.subfigures(1, 2))
        said = textwrap.fill(f"{found.construction}: {found.finding}", 76)
        figure.suptitle(said, x=0.012, ha="left", weight="bold", size=10)
        _head(above, f"1  {found.title}")
        for label, axes in enumerate(above.subplots(1, 2)):
            _draw_tokens(axes, found, label)
        _head(left, "2  What attention gives the tokens (outlined: D0, filled: D1)")
        panels = left.subplots(1, len(found.mechanisms), sharey=True, squeeze=False)[0]
        for axes, shown in zip(panels, found.mechanisms, strict=True):
            _draw_weights(axes, found, shown)
        _head(right, f"3  The reader's {len(_readings(found)[0])} neurons, with one draw of signs")
        _draw_neurons(right.subplots(), found)
        return figure


def _head(part: Any, text: str) -> None:
    part.suptitle(text, x=0.015, ha="left", size=8.5, color=INK)


def _draw_tokens(axes: Axes, found: Illustration, label: int) -> None:
    """The numbers of every token, shaded by their size; those that differ are framed."""
    from matplotlib.patches import Rectangle

    rows, logit = found.tokens[label], found.columns[0] == "logit"
    largest = [_largest(found, [0]) if logit else 0.0, _largest(found, range(int(logit), len(found.columns)))]
    for y, row in enumerate(rows):
        if not row.cells:
            axes.text(0.5, y + 0.5, "⋮", ha="center", va="center", color=FAINT)
        for x, (value, changed) in enumerate(zip(row.cells, row.changed, strict=True)):
            if math.isnan(value):
                axes.text(x + 0.5, y + 0.5, "⋯", ha="center", va="center", color=FAINT)
                continue
            share = abs(value) / (largest[0 if logit and x == 0 else 1] or 1)
            axes.add_patch(
                Rectangle((x, y), 1, 1, facecolor=SHADE, alpha=0.45 * math.sqrt(share), edgecolor="none")
            )
            ink: dict[str, Any] = {"color": FAINT} if value == 0 else {"weight": "bold"} if changed else {}
            text = number(value)
            axes.text(
                x + 0.5, y + 0.5, text, ha="center", va="center", size=7.5 if len(text) < 6 else 6, **ink
            )
    for y, row in enumerate(rows):
        for x in (x for x, changed in enumerate(row.changed) if changed):
            axes.add_patch(Rectangle((x, y), 1, 1, fill=False, edgecolor=CHANGED, lw=1.8, zorder=3))
    if logit:
        axes.axvline(1, color=FAINT, lw=0.8)
    axes.set_xlim(0, max(len(found.columns), 2))
    axes.set_ylim(len(rows), 0)
    axes.set_title(f"D{label}" + (f" (marked: {found.difference})" if label else ""), pad=14)
    axes.set_xticks([x + 0.5 for x in range(len(found.columns))], headings(found))
    axes.xaxis.tick_top()
    _name_tokens(axes, [row.tokens for row in rows])
    for name, row in zip(axes.get_yticklabels(), rows, strict=True):
        if not found.differences and row.cells:
            name.set(color=CHANGED, weight="bold")


def _name_tokens(axes: Axes, names: list[str]) -> None:
    axes.set_yticks([y + 0.5 for y in range(len(names))], names)
    axes.set_ylabel("token", color=FAINT)
    axes.tick_params(length=0)
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)


def _largest(found: Illustration, columns: Any) -> float:
    sizes = (abs(row.cells[x]) for rows in found.tokens for row in rows if row.cells for x in columns)
    return max((size for size in sizes if not math.isnan(size)), default=0.0)


def _draw_weights(axes: Axes, found: Illustration, picture: MechanismPicture) -> None:
    """What the first query gives each row of tokens together: D0 outlined, D1 filled."""
    colour = looks(_names(found))[picture.mechanism].colour
    rows, given = found.tokens, [weights[0] for weights in picture.weights]
    most = max(map(max, given))
    for y, pair in enumerate(zip(*given, strict=True)):
        for weight, shift, face in zip(pair, (0.27, 0.73), ("none", colour), strict=True):
            axes.barh(y + shift, weight, 0.38, facecolor=face, edgecolor=colour, lw=0.9)
            axes.text(max(weight, 0) + 0.04 * most, y + shift, number(weight), va="center", size=6.5)
    axes.set_ylim(max(len(rows[0]), 3), 0)
    axes.set_xlim(0, 1.42 * most)
    names = [
        a.tokens if a.tokens == b.tokens else f"{a.tokens}\n{b.tokens}" for a, b in zip(*rows, strict=True)
    ]
    _name_tokens(axes, names)
    if axes is not axes.figure.axes[0]:
        axes.set_ylabel("")
    axes.set_xticks([])
    axes.set_title(short_name(picture.mechanism).replace(" ", "\n"), color=colour)


def _draw_neurons(axes: Axes, found: Illustration) -> None:
    """A strip for each mechanism and dataset: every neuron by what it reads, filled where it fires."""
    known = looks(_names(found))
    everything = [x for each in _readings(found) for x in each]
    low, high = min(*everything, found.threshold), max(*everything, found.threshold)
    step = (high - low) / PLACES or 1.0
    strips = [(picture, label) for picture in found.mechanisms for label in (0, 1)]
    axes.axvspan(found.threshold, high + 0.4 * (high - low), color="#f0f0f0", zorder=0)
    axes.axvline(found.threshold, color=INK, lw=1)
    for y, (picture, label) in enumerate(strips):
        colour, stacked = known[picture.mechanism].colour, Counter[int]()
        for reading in sorted(picture.readings[label]):
            place = round((reading - low) / step)
            pile, height = divmod(stacked[place], TALLEST)
            stacked[place] += 1
            fires = reading > found.threshold
            side = 1 if fires else -1  # of the threshold, which no neuron may seem to pass
            x = side * max(side * (low + (place + side * pile) * step), side * found.threshold + 0.6 * step)
            face = colour if fires else "white"
            axes.plot(x, y + 0.3 - 0.6 * height / TALLEST, "o", ms=3.6, mfc=face, mec=colour, mew=0.9)
        count = picture.fire_counts[label]
        weight = "bold" if count else "normal"
        axes.text(high + 0.06 * (high - low), y, f"{count} fire", size=7.5, va="center", weight=weight)
    axes.set_ylim(len(strips) - 0.5, -0.8)
    axes.set_xlim(low - 0.06 * (high - low), high + 0.34 * (high - low))
    axes.set_yticks(range(len(strips)), [f"{short_name(x.mechanism)}, D{label}" for x, label in strips])
    unit = f", in {found.unit}" if found.unit else ""
    axes.set_xlabel(f"what a neuron reads{unit}; it fires above {number(found.threshold)}")
    axes.grid(visible=False)
    axes.tick_params(axis="y", length=0)


def _readings(found: Illustration) -> list[tuple[float, ...]]:
    return [readings for picture in found.mechanisms for readings in picture.readings]


def _names(found: Illustration) -> list[str]:
    return [picture.mechanism for picture in found.mechanisms]


def headings(found: Illustration) -> list[str]:
    """The columns as people read them: one feature that tokens carry is their value."""
    return ["logit", "value"] if found.columns == ("logit", "1") else list(found.columns)


def short_name(mechanism: str) -> str:
    """A mechanism where there is little room."""
    return NAMES.get(mechanism, mechanism).removesuffix(" attention")


def number(x: float) -> str:
    """A number of a picture, in few characters.

    >>> number(0.996), number(0), number(33.75), number(7.5e-24), number(999)
    ('0.996', '0', '33.8', '<10⁻⁶', '999')
    """
    if 0 < abs(x) < 1e-6:
        return "<10⁻⁶"
    return for_people(x, 1 if abs(x) < 0.01 else 2 if abs(x) < 0.1 else 3).replace("-", "−")


def picture(construction: str, kind: str) -> bytes:
    """The picture of the construction called so, as PNG, PDF or SVG."""
    return saved(draw(illustrate(construction)), kind)
