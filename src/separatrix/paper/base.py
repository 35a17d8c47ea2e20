"""The point that the reproduction turns on."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from separatrix.engines import Outcome
from separatrix.verdicts import verdict

Parameter = int | str | Fraction

BASE: Mapping[str, Parameter] = {
    "n": 1000,
    "d": 102,
    "m": 12,
    "a0": "0.01",
    "a1": "1.2",
    "b": "0.2",
    "c": "0.1",
}
"""Where softmax distinguishes and linear is blind; the sweeps leave it in one parameter at a time."""

MECHANISMS = ("softmax", "linear")


def outcome_at(mechanism: str, parameters: Mapping[str, Any]) -> Outcome:
    """What `separatrix verdict spike …` says at a point."""
    return verdict("spike", mechanism, **parameters).outcome
