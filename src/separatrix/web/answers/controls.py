"""What a page needs to ask for maps: the parameters that can be moved, and the colours."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace
from typing import Any, get_args

from separatrix.core.numbers import parse_exact
from separatrix.core.numbers.json import json_text
from separatrix.core.parameters import Parameters, UsageError, split_mechanisms
from separatrix.core.parameters.grid import is_number, is_whole
from separatrix.core.parameters.model import format_value, is_absent
from separatrix.exact.verdicts.question import Question, question
from separatrix.mechanisms import MECHANISMS
from separatrix.web.answers._base import Tell, answer

LENGTHS = (10, 10**18)
"""Between which n is dragged."""
WIDEST = 100
"""Up to which other whole numbers are dragged, or up to ten times the usual one."""


@answer
def controls(construction: str, mechanisms: str, quick: bool, tell: Tell) -> bytes:
    """Every parameter that can be moved: the construction's, and those that all the mechanisms have."""
    asked = [question(construction, each, {}, ()) for each in split_mechanisms(mechanisms) or [mechanisms]]
    kind, own = asked[0].kind, asked[0].own_schema
    rows = [
        _control("construction", kind.schema, name, kind.example.get(name))
        for name in kind.schema.model_fields
    ]
    rows += [
        _control("mechanism", own, name, _example(asked[0]).get(name))
        for name in own.model_fields
        if all(each.is_own(name) for each in asked)
    ]
    return json_text(rows, indent=None).encode()


def _example(asked: Question) -> dict[str, object]:
    """What the mechanism is given where an example of it is needed."""
    name = str(asked.source).partition(":")[0]
    return MECHANISMS[name].example if name in MECHANISMS else {}


def _control(owner: str, schema: type[Parameters], name: str, reference: object) -> dict[str, Any]:
    field = schema.model_fields[name]
    default = None if field.is_required() or is_absent(field.default) else format_value(field.default)
    value = default if reference is None else reference
    row = {"name": name, "of": owner, "value": None if value is None else str(value), "kind": "word"}
    if not is_number(schema, name):
        words = ["yes", "no"] if field.annotation is bool else map(str, get_args(field.annotation))
        return {**row, "words": list(words), "span": None}
    whole = is_whole(schema, name)
    usual = _number(value)
    span = _whole_span(schema, name, int(usual)) if whole else _span(schema, name, usual)
    return {**row, "kind": "whole" if whole else "number", "words": [], "span": span}


def _number(value: object) -> Fraction:
    """The usual value as a number; 1 where it is none."""
    try:
        return parse_exact(value)
    except UsageError:
        return Fraction(1)


def _whole_span(schema: type[Parameters], name: str, usual: int) -> dict[str, Any]:
    start, stop = LENGTHS if name == "n" else (1, max(WIDEST, 10 * usual))
    low = next((each for each in range(start, start + 10) if _admits(schema, name, each)), usual)
    high = stop if _admits(schema, name, stop) else max(usual, low + 1)
    return {"low": low, "high": high, "log": True}


def _span(schema: type[Parameters], name: str, usual: Fraction) -> dict[str, Any]:
    """From nothing to twice the usual value, as far as the parameter's own bounds admit."""
    lows = (Fraction(0), Fraction(1, 100), usual)
    highs = (max(Fraction(2), 2 * usual), Fraction(1), usual)
    low, high = (next((end for end in ends if _admits(schema, name, end)), usual) for ends in (lows, highs))
    return {"low": float(low), "high": float(high), "log": False}


def _admits(schema: type[Parameters], name: str, value: Fraction | int) -> bool:
    """Whether what is said of this parameter alone holds for a value."""
    at = SimpleNamespace(**{name: value})
    return all(bool(constraint.holds(at)) for constraint in schema.constraints if constraint.names == (name,))
