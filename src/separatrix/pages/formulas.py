"""Formulas as MathML, which browsers typeset themselves.

A formula is written as in a terminal: `a_1(a_1 + b + c) = 1`, `{4m}/δ`, `sqrt(log n)`, `Σ_j V_j^2`. Braces
group and are not shown; `/` makes a fraction of its neighbours; words in quotes are upright.
"""

from __future__ import annotations

import re
from collections import deque

from markupsafe import Markup, escape

TOKEN = re.compile(r"\s*('[^']*'|\d+(?:[.,]\d+)*|[^\W\d_]+|\S)")
CLOSES = {"(": ")", "[": "]", "{": "}"}
FUNCTIONS = {"log", "exp", "max", "min"}


def formula(text: str) -> Markup:
    """Return a formula as an inline element.

    >>> print(formula("a_1^2 <= 4/δ").partition(">")[2])
    <msubsup><mi>a</mi><mn>1</mn><mn>2</mn></msubsup><mo>≤</mo><mfrac><mn>4</mn><mi>δ</mi></mfrac></math>
    >>> print(formula("sqrt(2)"))
    <math alttext="sqrt(2)"><msqrt><mrow><mn>2</mn></mrow></msqrt></math>
    """
    tokens = deque(TOKEN.findall(text.replace("<=", "≤").replace(">=", "≥").replace("-", "−")))
    return Markup(f'<math alttext="{escape(text)}">{_row(tokens, "")}</math>')


def _row(tokens: deque[str], end: str) -> str:
    """Read up to the closing token, and that token, too."""
    parts: list[str] = []
    while tokens and tokens[0] != end:
        parts.append(_quotient(tokens))
    if tokens:
        tokens.popleft()
    return "".join(parts)


def _quotient(tokens: deque[str]) -> str:
    term = _term(tokens)
    while tokens and tokens[0] == "/":
        tokens.popleft()
        term = f"<mfrac>{term}{_term(tokens)}</mfrac>"
    return term


def _term(tokens: deque[str]) -> str:
    """Read an atom with its subscript and superscript."""
    base, scripts = _atom(tokens), dict[str, str]()
    while tokens and tokens[0] in "_^" and tokens[0] not in scripts:
        position = tokens.popleft()
        scripts[position] = _atom(tokens)
    if not scripts:
        return base
    tag = {"_": "msub", "^": "msup"}[next(iter(scripts))] if len(scripts) == 1 else "msubsup"
    return f"<{tag}>{base}{scripts.get('_', '')}{scripts.get('^', '')}</{tag}>"


def _atom(tokens: deque[str]) -> str:
    token = tokens.popleft() if tokens else ""
    if token in CLOSES:
        inside = _row(tokens, CLOSES[token])
        if token == "{":
            return f"<mrow>{inside}</mrow>"
        # Browsers stretch all brackets; only those around a fraction should grow.
        fixed_height = "" if "<mfrac>" in inside else ' stretchy="false"'
        return f"<mrow><mo{fixed_height}>{token}</mo>{inside}<mo{fixed_height}>{CLOSES[token]}</mo></mrow>"
    if token == "sqrt":
        tokens.popleft()  # the opening bracket, which the root sign replaces
        return f"<msqrt><mrow>{_row(tokens, ')')}</mrow></msqrt>"
    if token.startswith("'"):
        return f"<mtext>{escape(token.strip(chr(39)))}</mtext>"
    if token[:1].isdigit() or token in "½∞":
        return f"<mn>{token}</mn>"
    if token in FUNCTIONS:
        space = "" if tokens and tokens[0] == "(" else '<mspace width="0.17em"/>'
        return f'<mi mathvariant="normal">{token}</mi>{space}'
    if token.isalpha() and token != "Σ":
        return "".join(f"<mi>{letter}</mi>" for letter in token)
    return f"<mo>{escape(token)}</mo>" if token else ""
