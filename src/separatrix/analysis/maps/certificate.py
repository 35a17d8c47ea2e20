"""A certificate of a boundary: what is fixed, what moves, and a certificate of each end of a crossing."""

from __future__ import annotations

from typing import Any

from separatrix.analysis.maps.bisection import LevelReading
from separatrix.analysis.maps.crossings import Boundary, Crossing
from separatrix.core.numbers import format_exact, parse_integer
from separatrix.exact.engines import EngineRefusal
from separatrix.exact.verdicts import DELTA, certify
from separatrix.exact.verdicts.certificate import digest, spelled_parameters

FORMAT = "separatrix boundary certificate"
VERSION = 2


def certify_boundary(found: Boundary) -> dict[str, Any]:
    """What `separatrix check` needs to verify that P passes the level between the ends."""
    level = format_exact(found.at)
    if not found.crossings:
        touched = f" ({found.plateaus[0].describe(found.span.name, level)})" if found.plateaus else ""
        raise EngineRefusal(f"P does not pass {level} here{touched}, so there is nothing to certify")
    body = {
        "format": FORMAT,
        "version": VERSION,
        **_asked(found),
        "parameter": found.span.name,
        "at": level,
        "crossings": [_crossing(found, crossing) for crossing in found.crossings],
    }
    return {**body, "sha256": digest(body)}


def _asked(found: Boundary) -> dict[str, Any]:
    """What was asked, without the moving parameter: n before it is moved, no tau where c + 0.1 is meant."""
    name, asked = found.span.name, found.asked
    chosen = {name: found.crossings[0].lo.value}
    point, mechanism = asked.point(chosen), asked.mechanism(chosen)
    given = {
        parameter: getattr(point.parameters, parameter) for parameter in type(point.parameters).model_fields
    }
    if "n" in asked.fixed:
        given["n"] = parse_integer(asked.fixed["n"], "n")
    settings = {"name": mechanism.name, **spelled_parameters(mechanism.parameters.filled())}
    parts = {"mechanism": settings, "parameters": spelled_parameters(given)}
    return {
        "construction": point.name,
        **{part: {k: v for k, v in values.items() if k != name} for part, values in parts.items()},
    }


def _crossing(found: Boundary, crossing: Crossing) -> dict[str, Any]:
    return {
        "direction": "up" if crossing.rises else "down",
        "lo": _end(found, crossing.lo),
        "hi": _end(found, crossing.hi),
    }


def _end(found: Boundary, end: LevelReading) -> dict[str, Any]:
    """The certificate of one end, where P is not the level itself."""
    chosen = {found.span.name: end.value}
    return certify(found.asked.point(chosen), found.asked.mechanism(chosen), DELTA)[1]
