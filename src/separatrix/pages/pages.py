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
from separatrix.core.numbers.json import json_text
from separatrix.core.numbers.printable import visible
from separatrix.core.numbers.spelling import powers_for_people
from separatrix.pages.formulas import formula
from separatrix.pages.verdict_words import COLOURS, INKS, LETTERS, spelled

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
    link: str = ""
    """What a link to it says, where the title is too long."""


def page(template: str, **shown: Any) -> str:
    """A page that is one whole file; `shown` are the variables of its template, and none may be missing."""
    return environment().get_template(template).render(**shown)


def section(name: str, title: str, template: str, link: str = "", **shown: Any) -> Section:
    """A section of a page, from a template of its own."""
    from markupsafe import Markup

    return Section(name, title, Markup(page(template, **shown)), link)


@cache
def environment() -> Environment:
    """The templates of this package, with what they may call."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("separatrix.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        prose=prose,
        statement=statement,
        formula=formula,
        short=short,
        verdict=spelled,
        data=data,
        base64=lambda png: base64.b64encode(png).decode(),
    )
    made.globals.update(version=__version__, asset=asset, plotly=plotly, letters=LETTERS, colours=colours)
    return made


def asset(name: str) -> Markup:
    """A style sheet or a script of ours."""
    from markupsafe import Markup

    return Markup(files("separatrix.pages").joinpath("templates", name).read_text("utf-8"))


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
    """Plain text with x₁, x_k and 2^k set as they are meant, and formulas between dollar signs as MathML.

    >>> str(prose("a₁ < 10⁻³, w_jk > 2^−8"))
    'a<sub>1</sub> &lt; 10<sup>−3</sup>, w<sub>jk</sub> &gt; 2<sup>−8</sup>'
    >>> str(prose("n^−1.08, simplicial:second_window=4"))
    'n<sup>−1.08</sup>, simplicial:second_window=4'
    >>> str(prose("where $c < 1$."))
    'where <math alttext="c &lt; 1"><mi>c</mi><mo>&lt;</mo><mn>1</mn></math>.'
    """
    from markupsafe import Markup

    parts = text.split("$")
    return Markup("").join(formula(each) if place % 2 else _scripts(each) for place, each in enumerate(parts))


def _scripts(text: str) -> Markup:
    """Text with what is written above or below the line there."""
    from markupsafe import Markup

    marked = escape(text)
    marked = re.sub("[₀-₉]+", lambda found: f"<sub>{found[0].translate(PLAIN)}</sub>", marked)
    marked = re.sub("[⁻⁰¹²³⁴-⁹]+", lambda found: f"<sup>{found[0].translate(PLAIN)}</sup>", marked)
    marked = re.sub(r"\b([a-zA-Zα-ω])_([a-z]+)", r"\1<sub>\2</sub>", marked)
    return Markup(re.sub(r"\^([−+]?(?:\d+\.\d+|\w+))", r"<sup>\1</sup>", marked))


GREEK = {"alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "rho": "ρ", "tau": "τ", "phi": "φ"}


def statement(text: str) -> Markup:
    """A statement of the ledger, which is written for terminals, as a page has it.

    >>> str(statement("a1(a1+b+c) >= 1, tau = sqrt(log n), D1, n^{-q gap}, power:beta=4"))
    'a<sub>1</sub>(a<sub>1</sub>+b+c) ≥ 1, τ = √(log n), D1, n<sup>−q gap</sup>, power:beta=4'
    """
    from markupsafe import Markup

    marked = escape(powers_for_people(text).replace(">=", "≥").replace("<=", "≤").replace("sqrt(", "√("))
    marked = re.sub(r"\^\{([^}]*)\}", lambda found: f"<sup>{found[1].replace('-', '−')}</sup>", marked)
    marked = re.sub(r"\^(-?\w+)", lambda found: f"<sup>{found[1].replace('-', '−')}</sup>", marked)
    letters = rf"(?<![:\w])({'|'.join(GREEK)})(?![=a-zA-Z0-9]| rule)"
    marked = re.sub(letters, lambda found: GREEK[found[1]], marked)
    marked = re.sub(r"\b([a-zA-CE-Z])(\d)(?![0-9a-zA-Z])", r"\1<sub>\2</sub>", marked)
    return Markup(re.sub(r"\b([a-zA-Zα-ω])_\{?(\w+(?:/\w+)?)\}?", r"\1<sub>\2</sub>", marked))


def short(text: str | None, most: int = LONGEST) -> str:
    """Text that nobody vouches for, cut where it is endless, with nothing hidden in it."""
    text = "" if text is None else visible(str(text), keep="\n\t")
    return text if len(text) <= most else f"{text[: most - 1]}…"


def colours(word: str) -> str:
    """The colours of a verdict; of a word that is none, those of no answer."""
    known = word if word in COLOURS else "none"
    return f"background:{COLOURS[known]};color:{INKS[known]}"
