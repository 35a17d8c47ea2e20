"""The contract that every attention mechanism is held to, as plain functions.

A check takes a mechanism and returns, raises `Broken` with what is wrong, or raises `Skipped` with
the reason; `examine` runs them all, each after those it rests on. `separatrix.testing` has the same
contract as a pytest class.
"""

from __future__ import annotations

from separatrix.contract._base import (
    CHECKS,
    RESTS_ON,
    Broken,
    Check,
    Examination,
    Skipped,
    ended_in,
    examine,
    not_called,
    put_in_order,
    root_of,
    run,
)

from separatrix.contract import numerics, symmetry, causal, recurrence, agreement, counted, calculus  # isort: skip
from separatrix.contract import decoding, larger, dropped, precision, long_precision  # isort: skip
from separatrix.contract.inputs import sensitivity

put_in_order()

__all__ = [
    "CHECKS",
    "RESTS_ON",
    "Broken",
    "Check",
    "Examination",
    "Skipped",
    "agreement",
    "calculus",
    "causal",
    "counted",
    "decoding",
    "dropped",
    "ended_in",
    "examine",
    "larger",
    "long_precision",
    "not_called",
    "numerics",
    "precision",
    "recurrence",
    "root_of",
    "run",
    "sensitivity",
    "symmetry",
]
