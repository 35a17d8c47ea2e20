"""Small pieces of the page: prose, commands, samples of lines."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape

from separatrix.reports.commands import Command
from separatrix.reports.drawing import Key

PLAIN = str.maketrans("₀₁₂₃₄₅₆₇₈₉⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789−0123456789")

SHAPES = {
    "": "",
    "circle": '<circle cx="17" cy="7" r="4" fill="#fff" stroke="{0}" stroke-width="1.6"/>',
    "square": '<rect x="13.5" y="3.5" width="7" height="7" fill="#fff" stroke="{0}" stroke-width="1.6"/>',
    "dot": '<circle cx="17" cy="7" r="2.4" fill="{0}"/>',
    "x": '<path d="M13 3l8 8M21 3l-8 8" stroke="{0}" stroke-width="2.2"/>',
}


@dataclass(frozen=True)
class Section:
    """A part of the page that is no figure."""

    name: str
    """The name it is linked to by."""
    title: str
    body: str
    """Markup."""


def prose(text: str) -> str:
    """Plain text as markup, with x₁, x_k and 2^k set as they are meant.

    >>> prose("a₁ < 10⁻³, w_jk > 2^−8")
    'a<sub>1</sub> &lt; 10<sup>−3</sup>, w<sub>jk</sub> &gt; 2<sup>−8</sup>'
    """
    marked = escape(text)
    marked = re.sub("[₀-₉]+", lambda found: f"<sub>{found[0].translate(PLAIN)}</sub>", marked)
    marked = re.sub("[⁻⁰¹²³⁴-⁹]+", lambda found: f"<sup>{found[0].translate(PLAIN)}</sup>", marked)
    marked = re.sub(r"_([a-z]+)", r"<sub>\1</sub>", marked)
    return re.sub(r"\^(−?\w+)", r"<sup>\1</sup>", marked)


def command_line(command: Command) -> str:
    """A command, and what it prints."""
    return (
        f'<p class="command"><code>{escape(command.line)}</code> '
        f'<span class="prints">→ {prose(command.prints)}</span></p>'
    )


def legend(keys: tuple[Key, ...]) -> str:
    """The legend of a figure."""
    return (
        '<ul class="keys">' + "".join(f"<li>{_sample(key)}{prose(key.label)}</li>" for key in keys) + "</ul>"
    )


def _sample(key: Key) -> str:
    """A short piece of the line, with its marker."""
    dashes = "" if key.dash == "solid" else f' stroke-dasharray="{key.dash.replace("px", "")}"'
    line = f'<path d="M0 7h34" stroke="{key.colour}" stroke-width="{key.width}"{dashes}/>'
    shape = SHAPES[key.symbol].format(key.colour)
    return f'<svg width="34" height="14" aria-hidden="true">{"" if key.dash == "none" else line}{shape}</svg>'
