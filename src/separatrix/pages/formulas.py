"""Formulas as MathML, which browsers typeset without any help: the one place where they are made.

A formula is written as in a terminal: `a_1(a_1 + b + c) = 1`, `{4m}/δ`, `sqrt(log n)`, `Σ_j V_j^2`. Braces
group and are not shown; `/` is a fraction of what stands next to it; words in quotes are upright.
"""

from __future__ import annotations

import re
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markupsafe import Markup

TOKEN = re.compile(r"\s*('[^']*'|\d+(?:[.,]\d+)*|[^\W\d_]+|\S)")
CLOSES = {"(": ")", "[": "]", "{": "}"}
FUNCTIONS = {"log", "exp", "max", "min"}


def formula(text: str) -> Markup:
    """A formula in the line of a text.

    >>> print(formula("a_1^2 <= 4/δ").partition(">")[2])
    <msubsup><mi>a</mi><mn>1</mn><mn>2</mn></msubsup><mo>≤</mo><mfrac><mn>4</mn><mi>δ</mi></mfrac></math>
    >>> print(formula("sqrt(2)"))
    <math alttext="sqrt(2)"><msqrt><mrow><mn>2</mn></mrow></msqrt></math>
    """
    from markupsafe import Markup, escape

    rest = deque(TOKEN.findall(text.replace("<=", "≤").replace(">=", "≥").replace("-", "−")))
    return Markup(f'<math alttext="{escape(text)}">{_row(rest, "")}</math>')


def _row(rest: deque[str], end: str) -> str:
    """What stands up to the closing token, which is taken too."""
    made: list[str] = []
    while rest and rest[0] != end:
        made.append(_quotient(rest))
    if rest:
        rest.popleft()
    return "".join(made)


def _quotient(rest: deque[str]) -> str:
    over = _scripted(rest)
    while rest and rest[0] == "/":
        rest.popleft()
        over = f"<mfrac>{over}{_scripted(rest)}</mfrac>"
    return over


def _scripted(rest: deque[str]) -> str:
    """Something with what is written below and above it."""
    base, scripts = _atom(rest), dict[str, str]()
    while rest and rest[0] in "_^" and rest[0] not in scripts:
        where = rest.popleft()
        scripts[where] = _atom(rest)
    if not scripts:
        return base
    tag = {"_": "msub", "^": "msup"}[next(iter(scripts))] if len(scripts) == 1 else "msubsup"
    return f"<{tag}>{base}{''.join(scripts[each] for each in '_^' if each in scripts)}</{tag}>"


def _atom(rest: deque[str]) -> str:
    from markupsafe import escape

    token = rest.popleft() if rest else ""
    if token in CLOSES:
        inside = _row(rest, CLOSES[token])
        if token == "{":
            return f"<mrow>{inside}</mrow>"
        tall = "" if "<mfrac>" in inside else ' stretchy="false"'
        return f"<mrow><mo{tall}>{token}</mo>{inside}<mo{tall}>{CLOSES[token]}</mo></mrow>"
    if token == "sqrt":
        rest.popleft()
        return f"<msqrt><mrow>{_row(rest, ')')}</mrow></msqrt>"
    if token.startswith("'"):
        return f"<mtext>{escape(token.strip(chr(39)))}</mtext>"
    if token[:1].isdigit() or token in "½∞":
        return f"<mn>{token}</mn>"
    if token in FUNCTIONS:
        space = "" if rest and rest[0] == "(" else '<mspace width="0.17em"/>'
        return f'<mi mathvariant="normal">{token}</mi>{space}'
    if token.isalpha() and token != "Σ":
        return "".join(f"<mi>{letter}</mi>" for letter in token)
    return _sign(token)


def _sign(token: str) -> str:
    from markupsafe import escape

    return f"<mo>{escape(token)}</mo>" if token else ""
