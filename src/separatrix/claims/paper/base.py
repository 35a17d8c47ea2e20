"""The point that the reproduction turns on."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, cast

from separatrix.constructions.spike import Spike
from separatrix.exact.engines import Outcome
from separatrix.exact.verdicts import verdict

Parameter = int | str | Fraction

BASE = cast(Mapping[str, Parameter], Spike.example)
"""Where softmax distinguishes and linear is blind; the sweeps leave it in one parameter at a time."""

MECHANISMS = ("softmax", "linear")


def outcome_at(mechanism: str, parameters: Mapping[str, Any]) -> Outcome:
    """What `separatrix verdict spike …` says at a point."""
    return verdict("spike", mechanism, **parameters).outcome
