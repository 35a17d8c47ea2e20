"""How mechanisms are drawn: the same on the whole page, and told apart without colour."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape
from itertools import product

from separatrix.reports.drawing import LOOKS

MOST = 12
"""Mechanisms in one plot; more are a table."""
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""The colours of Okabe and Ito; their yellow is lost on white."""
DASHES = ("solid", "8px,4px", "3px,3px", "8px,3px,2px,3px", "12px,4px", "2px,6px")
SYMBOLS = ("star", "cross", "triangle-down", "circle", "diamond", "square", "triangle-up")
SHAPES = {
    "circle": '<circle cx="17" cy="7" r="4"/>',
    "square": '<path d="M13.3 3.3h7.4v7.4h-7.4z"/>',
    "diamond": '<path d="M17 2l5 5-5 5-5-5z"/>',
    "triangle-up": '<path d="M17 2.5l4.6 8h-9.2z"/>',
    "triangle-down": '<path d="M17 11.5l4.6-8h-9.2z"/>',
    "cross": '<path d="M15.4 2.6h3.2v2.8h2.8v3.2h-2.8v2.8h-3.2v-2.8h-2.8v-3.2h2.8z"/>',
    "star": '<path d="M17 2l1.4 3.3 3.6.3-2.7 2.3.8 3.5-3.1-1.9-3.1 1.9.8-3.5-2.7-2.3 3.6-.3z"/>',
}


@dataclass(frozen=True)
class Pen:
    """A line and a marker."""

    colour: str
    dash: str
    symbol: str


def pens(mechanisms: Iterable[str]) -> dict[str, Pen]:
    """A pen for each; those that are drawn elsewhere look as they do there."""
    kept = {name: Pen(look.colour, look.dash, look.symbol) for name, look in LOOKS.items()}
    taken = {(pen.colour, pen.dash) for pen in kept.values()}
    free = [
        Pen(colour, dash, SYMBOLS[(i + j) % len(SYMBOLS)])
        for (i, dash), (j, colour) in product(enumerate(DASHES), enumerate(COLOURS))
        if (colour, dash) not in taken
    ]
    free.sort(key=lambda pen: pen.colour in {look.colour for look in LOOKS.values()} and pen.dash == "solid")
    others = [name for name in dict.fromkeys(mechanisms) if name not in kept]
    return {**kept, **{name: free[i % len(free)] for i, name in enumerate(others)}}


def legend(kinds: Mapping[str, set[str]], drawn: Mapping[str, Pen]) -> str:
    """A sample of the line of each mechanism, of its marker, or of both, as P is known."""
    items = "".join(f"<li>{_sample(drawn[name], known)}{escape(name)}</li>" for name, known in kinds.items())
    return f'<ul class="keys">{items}</ul>'


def _sample(pen: Pen, known: set[str]) -> str:
    dashes = "" if pen.dash == "solid" else f' stroke-dasharray="{pen.dash.replace("px", "")}"'
    line = f'<path d="M0 7h34" stroke="{pen.colour}" stroke-width="2.4"{dashes}/>'
    marker = f'<g fill="#fff" stroke="{pen.colour}" stroke-width="1.5">{SHAPES[pen.symbol]}</g>'
    drawn = (line if known != {"sampled"} else "") + (marker if "sampled" in known else "")
    return f'<svg width="34" height="14" aria-hidden="true">{drawn}</svg>'
