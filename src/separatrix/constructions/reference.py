"""The reference point of a construction, its `example`: what a question leaves out is taken from there."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from separatrix.constructions._base import Construction
from separatrix.constructions.lengths import admissible
from separatrix.core.parameters import UsageError


def taken(
    kind: type[Construction], given: Mapping[str, object], varied: Collection[str] = ()
) -> dict[str, object]:
    """The parameters of the reference point that complete those given and those that are varied.

    Nothing is taken where everything that has no default was given. An n that is taken is moved to the
    nearest one that what was given admits.

    >>> from separatrix.constructions.spike import Spike
    >>> taken(Spike, {"d": 9, "a0": 0, "a1": 1, "b": 1, "c": 1})
    {'n': 1001, 'm': 12}
    """
    known = {*given, *varied}
    if all(name in known for name, field in kind.schema.model_fields.items() if field.is_required()):
        return {}
    missing = {name: value for name, value in kind.example.items() if name not in known}
    if "n" in missing and not varied:
        missing["n"] = admissible(kind, {**missing, **given})["n"]
    return missing


def read_completed(
    kind: type[Construction], given: Mapping[str, object]
) -> tuple[Construction, dict[str, int | str]]:
    """The construction from `name=value` pairs, and those of its parameters that were taken.

    >>> from separatrix.constructions.spike import Spike
    >>> read_completed(Spike, {"n": 2000, "a1": "0.9"})[1]
    {'d': 102, 'm': 12, 'a0': '0.01', 'b': '0.2', 'c': '0.1'}
    """
    missing = taken(kind, given)
    try:
        made = kind.read({**given, **missing})
    except UsageError as error:
        named = {name: value for name, value in missing.items() if re.search(rf"\b{name}=", str(error))}
        raise UsageError(f"{error}; {told(named)}" if named else str(error)) from None
    shown = made.parameters.shown()
    return made, {name: shown[name] for name in missing}


def sentence(missing: Mapping[str, object]) -> str:
    """As `told`, as a sentence of its own."""
    said = told(missing)
    return f"{said[0].upper()}{said[1:]}." if said else ""


def told(missing: Mapping[str, object]) -> str:
    """What was taken, in words; empty where nothing was.

    >>> told({"d": 102, "m": 12})
    'not given, so taken from the reference point: d=102 m=12'
    """
    values = " ".join(f"{name}={value}" for name, value in missing.items())
    return f"not given, so taken from the reference point: {values}" if values else ""
