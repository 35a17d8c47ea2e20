"""Colours, lines and symbols: the same for a mechanism in every page and every picture."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any
from zlib import crc32

INK, FAINT = "ink", "faint"
"""Colours that follow the colour scheme of a page; `PRINTED` has their values on paper."""
PRINTED = {INK: "#222222", FAINT: "#767676"}

SYMBOLS = {
    "circle": ("M13 7a4 4 0 1 0 8 0a4 4 0 1 0-8 0", "o"),
    "square": ("M13.3 3.3h7.4v7.4h-7.4z", "s"),
    "diamond": ("M17 2l5 5-5 5-5-5z", "D"),
    "triangle-up": ("M17 2.5l4.6 8h-9.2z", "^"),
    "triangle-down": ("M17 11.5l4.6-8h-9.2z", "v"),
    "cross": ("M15.4 2.6h3.2v2.8h2.8v3.2h-2.8v2.8h-3.2v-2.8h-2.8v-3.2h2.8z", "P"),
    "star": ("M17 2l1.4 3.3 3.6.3-2.7 2.3.8 3.5-3.1-1.9-3.1 1.9.8-3.5-2.7-2.3 3.6-.3z", "*"),
    "dot": ("M15.4 7a1.6 1.6 0 1 0 3.2 0a1.6 1.6 0 1 0-3.2 0", "."),
    "x": ("M13 3l8 8M21 3l-8 8", "x"),
    "bar": ("M17 0v14", "|"),
}
"""Each symbol as an SVG path around (17, 7), for pages, and as a marker of matplotlib."""


@dataclass(frozen=True)
class Look:
    """How a line or a group of points is drawn, and its entry in the legend."""

    label: str
    colour: str
    dash: tuple[float, ...] = ()
    """Lengths of strokes and gaps in pixels; empty for a solid line."""
    symbol: str = ""
    width: float = 2.4
    has_line: bool = True
    is_filled: bool = False
    """Whether symbols are filled."""

    @property
    def path(self) -> str:
        """The symbol as an SVG path; empty where there is none."""
        return SYMBOLS[self.symbol][0] if self.symbol else ""

    @property
    def css_colour(self) -> str:
        """The colour in a style sheet."""
        return css_colour(self.colour)

    def paper_style(self) -> dict[str, Any]:
        """Return the arguments of matplotlib's `plot` that draw this look."""
        dash: Any = (0, tuple(0.5 * part for part in self.dash)) if self.dash else "-"
        color = print_colour(self.colour)
        return {
            "color": color,
            "linestyle": dash if self.has_line else "",
            "linewidth": 0.75 * self.width,
            "marker": SYMBOLS[self.symbol][1] if self.symbol else "",
            "markersize": 4,
            "markerfacecolor": color if self.is_filled else "white",
        }


def css_colour(colour: str) -> str:
    """Return a colour as style sheets write it."""
    return f"var(--{colour})" if colour in PRINTED else colour


def print_colour(colour: str) -> str:
    """Return a colour as it is printed on white paper."""
    return PRINTED.get(colour, colour)


BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY = (*("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"),)
COLOURS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, INK)
"""The palette of Okabe and Ito, without its yellow, which is too faint on white."""
DASHES: tuple[tuple[float, ...], ...] = ((), (8, 4), (3, 3), (8, 3, 2, 3), (12, 4), (2, 6))
LOOKS: Mapping[str, Look] = {
    "softmax": Look("softmax", BLUE, symbol="circle"),
    "linear": Look("linear", VERMILION, (8, 4), "square"),
    "power:beta=4": Look("power, β = 4", GREEN, (8, 3, 2, 3), "triangle-up"),
    "taylor:order=2": Look("Taylor, order 2", PURPLE, (3, 3), "diamond"),
}
_SHAPES = ("star", "cross", "triangle-down", "circle", "diamond", "square", "triangle-up")


def choose_looks(mechanisms: Iterable[str]) -> dict[str, Look]:
    """Return a look for each mechanism; they differ without colour, too.

    A mechanism looks the same in every picture: its look is a hash of its name, unless another mechanism in
    the same picture has that look.
    """
    paper_looks = {(look.colour, look.dash) for look in LOOKS.values()}
    free = [
        # The shape moves on with each dash, so that lines of one colour differ in their symbols, too.
        (colour, dash, _SHAPES[(i + j) % len(_SHAPES)])
        for (i, dash), (j, colour) in product(enumerate(DASHES), enumerate(COLOURS))
        if (colour, dash) not in paper_looks
    ]
    # Solid lines in the colours of the paper's mechanisms come last, as those are mostly solid, too.
    known_colours = {look.colour for look in LOOKS.values()}
    free.sort(key=lambda look: look[0] in known_colours and not look[1])
    looks = {name: replace(look, label=name) for name, look in LOOKS.items()}
    occupied: set[int] = set()
    for name in dict.fromkeys(mechanisms):
        if name in looks:
            continue
        # CRC32 and not `hash`, which differs from process to process.
        start = crc32(name.encode())
        places = [(start + step) % len(free) for step in range(len(free))]
        place = next((place for place in places if place not in occupied), places[0])
        occupied.add(place)
        looks[name] = Look(name, *free[place])
    return looks
