"""Pages from templates. Everything is escaped except what is made here, and nothing is fetched."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from separatrix import __version__
from separatrix.core.numbers.json import json_text
from separatrix.core.numbers.printable import visible
from separatrix.core.numbers.spelling import powers_for_people
from separatrix.pages import bundle
from separatrix.pages.formulas import formula
from separatrix.pages.verdict_words import COLOURS, INKS, LETTERS, MARKS_LEGEND, MEANINGS, verdict_name

if TYPE_CHECKING:
    from jinja2 import Environment

MAX_TEXT = 400
"""Characters of a message or a name from outside that are shown."""
PLAIN = str.maketrans("₀₁₂₃₄₅₆₇₈₉⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789−0123456789")
SHEETS = {"map": ("figures.css",), "chart": ("figures.css", "vendor/uplot.css"), "bars": ("figures.css",)}
"""Style sheets of the explorer that figures of a kind need, beside the page's own."""


@dataclass(frozen=True)
class Section:
    """A part of a page with a heading."""

    name: str
    """The name that links lead to."""
    title: str
    body: Markup
    link: str = ""
    """The text of links to it, where the title is too long."""


def render_page(template: str, kinds: Iterable[str] = (), /, **variables: Any) -> str:
    """Return a page that is one file.

    `kinds` are those of its figures, whose JavaScript is inlined: `map`, `chart`, `bars` or `atlas`.
    `variables` are those of the template; none may be missing.
    """
    kinds = sorted(set(kinds))
    script = bundle.script(*(f"page-{kind}.js" for kind in kinds)) if kinds else ""
    sheets = dict.fromkeys(sheet for kind in kinds for sheet in SHEETS.get(kind, ("figures.css",)))
    own_sheet = files("separatrix.pages").joinpath("templates", "style.css").read_text("utf-8")
    style = own_sheet + "".join(bundle.read_static(sheet) for sheet in sheets)
    return render_template(
        template,
        script=Markup(script),
        style=Markup(style),
        # The hash allows this one script: a text from outside that became markup could not run.
        script_policy=Markup(bundle.script_hash(script) if script else "'none'"),
        **variables,
    )


def render_section(name: str, title: str, template: str, link: str = "", **variables: Any) -> Section:
    """Return a section of a page, from a template of its own."""
    return Section(name, title, Markup(render_template(template, **variables)), link)


def render_template(template: str, **variables: Any) -> str:
    """Return the text of a template."""
    return environment().get_template(template).render(**variables)


@cache
def environment() -> Environment:
    """Return the templates of this package with their filters."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    templates = Environment(
        loader=PackageLoader("separatrix.pages"),
        autoescape=True,
        # A misspelt variable in a template is an error, not an empty text.
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters.update(
        prose=typeset_prose,
        statement=typeset_statement,
        formula=formula,
        short=shorten_text,
        verdict=verdict_name,
        data=embed_json,
        base64=lambda png: base64.b64encode(png).decode(),
    )
    templates.globals.update(
        version=__version__, letters=LETTERS, meanings=MEANINGS, marks=MARKS_LEGEND, colours=verdict_style
    )
    return templates


def embed_json(figure: Any) -> Markup:
    """Return the JSON of a figure for a script element, which a tag in it cannot end."""
    return Markup(json_text(figure.as_json(), indent=None).replace("<", "\\u003c"))


def typeset_prose(text: str) -> Markup:
    """Return plain text with x₁, x_k and 2^k typeset, and formulas between dollar signs as MathML.

    >>> str(typeset_prose("a₁ < 10⁻³, w_jk > 2^−8"))
    'a<sub>1</sub> &lt; 10<sup>−3</sup>, w<sub>jk</sub> &gt; 2<sup>−8</sup>'
    >>> str(typeset_prose("n^−1.08, simplicial:second_window=4"))
    'n<sup>−1.08</sup>, simplicial:second_window=4'
    >>> str(typeset_prose("where $c < 1$."))
    'where <math alttext="c &lt; 1"><mi>c</mi><mo>&lt;</mo><mn>1</mn></math>.'
    """
    parts = text.split("$")
    return Markup("").join(formula(part) if i % 2 else _typeset_scripts(part) for i, part in enumerate(parts))


def _typeset_scripts(text: str) -> Markup:
    markup = escape(text)
    markup = re.sub("[₀-₉]+", lambda match: f"<sub>{match[0].translate(PLAIN)}</sub>", markup)
    markup = re.sub("[⁻⁰¹²³⁴-⁹]+", lambda match: f"<sup>{match[0].translate(PLAIN)}</sup>", markup)
    markup = re.sub(r"\b([a-zA-Zα-ω])_([a-z]+)", r"\1<sub>\2</sub>", markup)
    return Markup(re.sub(r"\^([−+]?(?:\d+\.\d+|\w+))", r"<sup>\1</sup>", markup))


GREEK = {"alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "rho": "ρ", "tau": "τ", "phi": "φ"}


def typeset_statement(text: str) -> Markup:
    """Return a statement of the ledger, which is written for terminals, typeset for a page.

    >>> str(typeset_statement("a1(a1+b+c) >= 1, tau = sqrt(log n), D1, n^{-q gap}, power:beta=4"))
    'a<sub>1</sub>(a<sub>1</sub>+b+c) ≥ 1, τ = √(log n), D1, n<sup>−q gap</sup>, power:beta=4'
    """
    markup = escape(powers_for_people(text).replace(">=", "≥").replace("<=", "≤").replace("sqrt(", "√("))
    markup = re.sub(r"\^\{([^}]*)\}", lambda match: f"<sup>{match[1].replace('-', '−')}</sup>", markup)
    markup = re.sub(r"\^(-?\w+)", lambda match: f"<sup>{match[1].replace('-', '−')}</sup>", markup)
    # Neither in names of parameters (`power:beta=4`) and longer words, nor in the delta rule, a name.
    letters = rf"(?<![:\w])({'|'.join(GREEK)})(?![=a-zA-Z0-9]| rule)"
    markup = re.sub(letters, lambda match: GREEK[match[1]], markup)
    # D0 and D1 are names of datasets, not a variable with an index.
    markup = re.sub(r"\b([a-zA-CE-Z])(\d)(?![0-9a-zA-Z])", r"\1<sub>\2</sub>", markup)
    return Markup(re.sub(r"\b([a-zA-Zα-ω])_\{?(\w+(?:/\w+)?)\}?", r"\1<sub>\2</sub>", markup))


def shorten_text(text: str | None, most: int = MAX_TEXT) -> str:
    """Return text from outside with hidden characters made visible, cut where it is long."""
    text = "" if text is None else visible(str(text), keep="\n\t")
    return text if len(text) <= most else f"{text[: most - 1]}…"


def verdict_style(word: str) -> str:
    """Return the colours of a verdict; of an unknown word, those of a missing answer."""
    verdict = word if word in COLOURS else "none"
    return f"background:{COLOURS[verdict]};color:{INKS[verdict]}"
