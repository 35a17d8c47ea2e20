"""One table of cases, run through every engine, the command line and the report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from separatrix.constructions import Construction, construction_named
from separatrix.mechanisms import Mechanism, mechanism_named

GOLDEN: list[dict[str, Any]] = json.loads((Path(__file__).parents[1] / "data" / "golden_spike.json").read_text())
"""Exact reference values; `beta` is the degree of power and the order of taylor."""

BASE = {"n": 1000, "d": 102, "m": 12, "a0": "0.01", "a1": "1.2", "b": "0.2", "c": "0.1"}

SMALL: dict[str, dict[str, object]] = {
    "injectivity": {"n": 12, "m": 3},
    "duplication": {"n": 7, "m": 3, "r1": 3},
    "routing": {"n": 8, "m": 3},
    "parity": {"n": 8, "m": 3},
    "dispersion": {"n": 12, "m": 3},
    "critical": {"n": 12, "m": 3},
    "averaging": {"n": 12, "m": 3, "q": 2},
    "regression": {"n": 12, "m": 3},
    "recall": {"n": 9, "m": 3, "width": 6, "digits": 2},
    "majority": {"n": 12, "m": 3, "groups": 3, "noise": "0.7"},
    "spikes": {"n": 12, "m": 3, "k": 3},
    "level": {"n": 12, "m": 3},
}
"""A point of every enumerated construction that literal tokens can follow."""

POINT = [f"{name}={value}" for name, value in BASE.items()]


def spike(**changes: object) -> Construction:
    """The usual point, with changes."""
    return construction_named("spike").read({**BASE, **changes})


def golden_point(case: dict[str, Any]) -> Construction:
    """The construction of a golden case."""
    return spike(**{name: case[name] for name in (*BASE, "form")})


def golden_mechanism(case: dict[str, Any]) -> Mechanism:
    """The mechanism of a golden case."""
    return mechanism_named(golden_spelling(case))


def golden_spelling(case: dict[str, Any]) -> str:
    """The mechanism as it is written on the command line."""
    degree = {"power": "power:beta={}", "taylor": "taylor:order={}"}
    name = case["mechanism"]
    return degree[name].format(case["beta"]) if name in degree else str(name)


def golden_id(case: dict[str, Any]) -> str:
    """A readable name for a golden case."""
    return f"{golden_spelling(case)}-{case['form']}-n{case['n']}-d{case['d']}"
