"""What can be moved on a map: parameters with their ranges, and the axes of the first map."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import SimpleNamespace
from typing import Literal, get_args

from separatrix.constructions import construction_named
from separatrix.core.documents import Document
from separatrix.core.numbers import parse_exact
from separatrix.core.parameters import Parameters, UsageError, split_mechanisms
from separatrix.core.parameters.grid import is_number, is_whole
from separatrix.core.parameters.model import format_value, is_absent
from separatrix.exact.verdicts.question import Question, question
from separatrix.mechanisms import MECHANISMS
from separatrix.web.endpoints._base import ConstructionName, MechanismNames, endpoint

MIN_LENGTH, MAX_LENGTH = 10, 10**18
"""The range of the slider for n."""
MAX_WHOLE = 100
"""The end of the slider for other whole numbers, unless ten times the usual value is more."""
LENGTHS = "1000:1e9:200:log"
FIRST_AXES: Mapping[str, Mapping[str, str]] = {
    "spike": {"a1": "0.6:2.4:200", "n": LENGTHS},
    "plain": {"peak": "2.0:8.0:200", "n": LENGTHS},
    "cross": {"a1": "0.6:2.4:200", "n": LENGTHS},
    "injectivity": {"query": "0.375:1.5:200", "n": LENGTHS},
    "duplication": {"r0": "1:100:200:log", "n": LENGTHS},
    "routing": {"scale": "7.5:30.0:200", "n": "8:4096:200:log"},
    "parity": {"scale": "0.5:2.0:200", "n": ",".join(str(2**i) for i in range(2, 13))},
    "dispersion": {"a1": "0.5:2.0:200", "n": LENGTHS},
    "critical": {"a1": "0.5:2.0:200", "n": LENGTHS},
    "averaging": {"gap": "1.0:4.0:200", "n": LENGTHS},
    "location": {"a1": "0.5:2.0:200", "n": LENGTHS},
    "regression": {"a1": "0.5:2.0:200", "n": LENGTHS},
    "recall": {"scale": "2.0:8.0:200", "n": "8:4096:200:log"},
    "majority": {"a1": "0.5:2.0:200", "n": LENGTHS},
    "spikes": {"a1": "1.0:4.0:200", "n": LENGTHS},
    "level": {"a1": "0.5:2.0:200", "n": LENGTHS},
    # Its tokens have no groups, so the cost grows with n.
    "rough": {"a1": "0.6:2.4:200", "n": "100:1000:200:log"},
}
"""The axes of the first map of each construction, on which every cell is a valid point."""


@dataclass(frozen=True)
class SliderRange(Document):
    """The ends of a slider; the parameter may also be typed, with values outside of it."""

    low: float
    high: float
    log: bool


@dataclass(frozen=True)
class Control(Document):
    """A parameter that can be moved."""

    name: str
    of: Literal["construction", "mechanism"]
    kind: Literal["whole", "number", "word"]
    value: str | None
    """At the reference point, or the default; null where it follows from others."""
    words: list[str]
    """The allowed words, if it is no number."""
    span: SliderRange | None


@dataclass(frozen=True)
class FirstAxis(Document):
    """An axis of the map that is shown first."""

    name: str
    range: str
    """As typed."""


@endpoint("/controls/{construction}/{mechanisms:path}", list[Control])
def list_controls(construction: ConstructionName, mechanisms: MechanismNames) -> list[Control]:
    """The construction's parameters, and those that all the mechanisms have."""
    questions = [question(construction, name, {}, ()) for name in split_mechanisms(mechanisms) or [mechanisms]]
    first = questions[0]
    kind, mechanism_schema = first.kind, first.own_schema
    controls = [
        _make_control("construction", kind.schema, name, kind.example.get(name)) for name in kind.schema.model_fields
    ]
    controls += [
        _make_control("mechanism", mechanism_schema, name, _example_of(first).get(name))
        for name in mechanism_schema.model_fields
        if all(other.is_own(name) for other in questions)
    ]
    return controls


@endpoint("/axes/{construction}", list[FirstAxis])
def choose_first_axes(construction: ConstructionName) -> list[FirstAxis]:
    """Two axes around a construction's reference point, on which every cell is a valid point."""
    name = construction_named(construction).name
    if name not in FIRST_AXES:
        raise UsageError(f"{name} has no first map; name two axes")
    return [FirstAxis(parameter, text) for parameter, text in FIRST_AXES[name].items()]


def _example_of(first: Question) -> dict[str, object]:
    """Return the parameters of the example of a mechanism; a user's own has none."""
    name = str(first.source).partition(":")[0]
    return MECHANISMS[name].example if name in MECHANISMS else {}


def _make_control(
    owner: Literal["construction", "mechanism"], schema: type[Parameters], name: str, reference: object
) -> Control:
    field = schema.model_fields[name]
    default = None if field.is_required() or is_absent(field.default) else format_value(field.default)
    value = default if reference is None else reference
    text = None if value is None else str(value)
    if not is_number(schema, name):
        words = ["yes", "no"] if field.annotation is bool else [*map(str, get_args(field.annotation))]
        return Control(name, owner, "word", text, words, None)
    usual = _parse_number(value)
    if is_whole(schema, name):
        return Control(name, owner, "whole", text, [], _whole_range(schema, name, int(usual)))
    return Control(name, owner, "number", text, [], _number_range(schema, name, usual))


def _parse_number(value: object) -> Fraction:
    """Return the usual value as a number; 1 if it is none."""
    try:
        return parse_exact(value)
    except UsageError:
        return Fraction(1)


def _whole_range(schema: type[Parameters], name: str, usual: int) -> SliderRange:
    start, stop = (MIN_LENGTH, MAX_LENGTH) if name == "n" else (1, max(MAX_WHOLE, 10 * usual))
    low = next((value for value in range(start, start + 10) if _admits(schema, name, value)), usual)
    high = stop if _admits(schema, name, stop) else max(usual, low + 1)
    return SliderRange(low, high, log=True)


def _number_range(schema: type[Parameters], name: str, usual: Fraction) -> SliderRange:
    """Return the range from zero to twice the usual value, as far as the parameter's own limits admit."""
    lows = (Fraction(0), Fraction(1, 100), usual)
    highs = (max(Fraction(2), 2 * usual), Fraction(1), usual)
    low, high = (next((end for end in ends if _admits(schema, name, end)), usual) for ends in (lows, highs))
    return SliderRange(float(low), float(high), log=False)


def _admits(schema: type[Parameters], name: str, value: Fraction | int) -> bool:
    """Whether a value meets the constraints on this parameter alone.

    Constraints that relate it to others are left out: those may be moved as well.
    """
    point = SimpleNamespace(**{name: value})
    constraints = [constraint for constraint in schema.constraints if constraint.names == (name,)]
    return all(bool(constraint.holds(point)) for constraint in constraints)
