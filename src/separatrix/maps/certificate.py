"""A certificate of a boundary: the certificates of both ends of every crossing, in one document."""

from __future__ import annotations

from typing import Any

from separatrix.engines import EngineRefusal
from separatrix.maps.crossings import Boundary, Crossing
from separatrix.parameters import format_exact
from separatrix.verdicts import DELTA, certify
from separatrix.verdicts.certificate import digest

FORMAT = "separatrix boundary certificate"
VERSION = 1


def certify_boundary(found: Boundary) -> dict[str, Any]:
    """What `separatrix check` needs to verify that P passes the level between the ends."""
    if not found.crossings:
        raise EngineRefusal(f"P does not pass {format_exact(found.at)} here, so there is nothing to certify")
    body = {
        "format": FORMAT,
        "version": VERSION,
        "parameter": found.span.name,
        "at": format_exact(found.at),
        "crossings": [_crossing(found, crossing) for crossing in found.crossings],
    }
    return {**body, "sha256": digest(body)}


def _crossing(found: Boundary, crossing: Crossing) -> dict[str, Any]:
    ends = {}
    for name, end in (("lo", crossing.lo), ("hi", crossing.hi)):
        chosen = {found.span.name: end.value}
        ends[name] = certify(found.asked.point(chosen), found.asked.mechanism(chosen), DELTA)[1]
    return {"direction": "up" if crossing.rises else "down", **ends}
