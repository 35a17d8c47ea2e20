"""The reference point of a construction, its `example`: defaults for parameters that are not given."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from separatrix.constructions._base import Construction
from separatrix.constructions.lengths import admissible
from separatrix.core.parameters import UsageError


def reference_defaults(
    construction_class: type[Construction], values: Mapping[str, object], axes: Collection[str] = ()
) -> dict[str, object]:
    """Return the values of the reference point for the parameters that are in neither `values` nor `axes`.

    The result is empty if all required parameters are given. Without axes, n is the nearest one that the
    given parameters admit.

    >>> from separatrix.constructions.spike import Spike
    >>> reference_defaults(Spike, {"d": 9, "a0": 0, "a1": 1, "b": 1, "c": 1})
    {'n': 1001, 'm': 12}
    """
    names = {*values, *axes}
    if all(name in names for name, field in construction_class.schema.model_fields.items() if field.is_required()):
        return {}
    defaults = {name: value for name, value in construction_class.example.items() if name not in names}
    if "n" in defaults and not axes:
        defaults["n"] = admissible(construction_class, {**defaults, **values})["n"]
    return defaults


def read_with_defaults(
    construction_class: type[Construction], values: Mapping[str, object]
) -> tuple[Construction, dict[str, int | str]]:
    """Return the construction for `name=value` pairs, and its parameters from the reference point.

    >>> from separatrix.constructions.spike import Spike
    >>> read_with_defaults(Spike, {"n": 2000, "a1": "0.9"})[1]
    {'d': 102, 'm': 12, 'a0': '0.01', 'b': '0.2', 'c': '0.1'}
    """
    defaults = reference_defaults(construction_class, values)
    try:
        construction = construction_class.read({**values, **defaults})
    except UsageError as error:
        # The user did not write these values, so the message has to say where they come from.
        faulty = {name: value for name, value in defaults.items() if re.search(rf"\b{name}=", str(error))}
        raise UsageError(f"{error}; {describe_defaults(faulty)}" if faulty else str(error)) from None
    parameters = construction.parameters.as_json()
    return construction, {name: parameters[name] for name in defaults}


def format_defaults_sentence(defaults: Mapping[str, object]) -> str:
    """Return `describe_defaults` as a sentence of its own."""
    text = describe_defaults(defaults)
    return f"{text[0].upper()}{text[1:]}." if text else ""


def describe_defaults(defaults: Mapping[str, object]) -> str:
    """Describe the parameters from the reference point in words; empty if there are none.

    >>> describe_defaults({"d": 102, "m": 12})
    'not given, so taken from the reference point: d=102 m=12'
    """
    values = " ".join(f"{name}={value}" for name, value in defaults.items())
    return f"not given, so taken from the reference point: {values}" if values else ""
