"""Pages from templates: everything is escaped but what is made here, and nothing is fetched from anywhere."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from separatrix import __version__
from separatrix.numbers.json import json_text
from separatrix.numbers.printable import visible
from separatrix.reports.verdict_words import COLOURS, INKS, LETTERS

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

LONGEST = 400
"""Characters of a message or a name that are shown."""
PLAIN = str.maketrans("₀₁₂₃₄₅₆₇₈₉⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789−0123456789")


@dataclass(frozen=True)
class Section:
    """A part of a page with a heading of its own."""

    name: str
    """The name it is linked to by."""
    title: str
    body: Markup


def page(template: str, **shown: Any) -> str:
    """A page that is one whole file; `shown` are the variables of its template, and none may be missing."""
    return environment().get_template(template).render(**shown)


def section(name: str, title: str, template: str, **shown: Any) -> Section:
    """A section of a page, from a template of its own."""
    from markupsafe import Markup

    return Section(name, title, Markup(page(template, **shown)))


@cache
def environment() -> Environment:
    """The templates of this package, with what they may call."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("separatrix.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        prose=prose, short=short, data=data, base64=lambda png: base64.b64encode(png).decode()
    )
    made.globals.update(version=__version__, asset=asset, plotly=plotly, letters=LETTERS, colours=colours)
    return made


def asset(name: str) -> Markup:
    """A style sheet or a script of ours."""
    from markupsafe import Markup

    return Markup(files("separatrix.reports").joinpath("templates", name).read_text("utf-8"))


def plotly() -> Markup:
    """The library that draws the plots."""
    from markupsafe import Markup
    from plotly.offline import get_plotlyjs

    return Markup(get_plotlyjs())


def data(value: Any) -> Markup:
    """A plotly figure, or anything JSON has, for a script to read."""
    from markupsafe import Markup

    text = str(value.to_json()) if hasattr(value, "to_json") else json_text(value, indent=None)
    return Markup(text.replace("<", "\\u003c"))


def prose(text: str) -> Markup:
    """Plain text with x₁, x_k and 2^k set as they are meant.

    >>> str(prose("a₁ < 10⁻³, w_jk > 2^−8"))
    'a<sub>1</sub> &lt; 10<sup>−3</sup>, w<sub>jk</sub> &gt; 2<sup>−8</sup>'
    """
    from markupsafe import Markup

    marked = escape(text)
    marked = re.sub("[₀-₉]+", lambda found: f"<sub>{found[0].translate(PLAIN)}</sub>", marked)
    marked = re.sub("[⁻⁰¹²³⁴-⁹]+", lambda found: f"<sup>{found[0].translate(PLAIN)}</sup>", marked)
    marked = re.sub(r"_([a-z]+)", r"<sub>\1</sub>", marked)
    return Markup(re.sub(r"\^(−?\w+)", r"<sup>\1</sup>", marked))


def short(text: str | None, most: int = LONGEST) -> str:
    """Text that nobody vouches for, cut where it is endless, with nothing hidden in it."""
    text = "" if text is None else visible(str(text), keep="\n\t")
    return text if len(text) <= most else f"{text[: most - 1]}…"


def colours(word: str) -> str:
    """The colours of a verdict; of a word that is none, those of no answer."""
    known = word if word in COLOURS else "none"
    return f"background:{COLOURS[known]};color:{INKS[known]}"
