"""The reference point of a construction, its `example`: defaults for parameters that are not given."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from separatrix.constructions._base import Construction
from separatrix.constructions.lengths import admissible
from separatrix.core.parameters import UsageError


def reference_defaults(
    kind: type[Construction], values: Mapping[str, object], axes: Collection[str] = ()
) -> dict[str, object]:
    """Return the values of the reference point for the parameters that are in neither `values` nor `axes`.

    The result is empty if all required parameters are given. Without axes, n is the nearest one that the
    given parameters admit.

    >>> from separatrix.constructions.spike import Spike
    >>> reference_defaults(Spike, {"d": 9, "a0": 0, "a1": 1, "b": 1, "c": 1})
    {'n': 1001, 'm': 12}
    """
    names = {*values, *axes}
    if all(name in names for name, field in kind.schema.model_fields.items() if field.is_required()):
        return {}
    missing = {name: value for name, value in kind.example.items() if name not in names}
    if "n" in missing and not axes:
        missing["n"] = admissible(kind, {**missing, **values})["n"]
    return missing


def read_completed(kind: type[Construction], values: Mapping[str, object]) -> tuple[Construction, dict[str, int | str]]:
    """Return the construction for `name=value` pairs, and its parameters from the reference point.

    >>> from separatrix.constructions.spike import Spike
    >>> read_completed(Spike, {"n": 2000, "a1": "0.9"})[1]
    {'d': 102, 'm': 12, 'a0': '0.01', 'b': '0.2', 'c': '0.1'}
    """
    missing = reference_defaults(kind, values)
    try:
        construction = kind.read({**values, **missing})
    except UsageError as error:
        # The user did not write these values, so the message has to say where they come from.
        faulty = {name: value for name, value in missing.items() if re.search(rf"\b{name}=", str(error))}
        raise UsageError(f"{error}; {describe_defaults(faulty)}" if faulty else str(error)) from None
    parameters = construction.parameters.as_json()
    return construction, {name: parameters[name] for name in missing}


def defaults_sentence(missing: Mapping[str, object]) -> str:
    """Return `describe_defaults` as a sentence of its own."""
    text = describe_defaults(missing)
    return f"{text[0].upper()}{text[1:]}." if text else ""


def describe_defaults(missing: Mapping[str, object]) -> str:
    """Describe the parameters from the reference point in words; empty if there are none.

    >>> describe_defaults({"d": 102, "m": 12})
    'not given, so taken from the reference point: d=102 m=12'
    """
    values = " ".join(f"{name}={value}" for name, value in missing.items())
    return f"not given, so taken from the reference point: {values}" if values else ""
