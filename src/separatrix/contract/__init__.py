"""The contract that every attention mechanism is held to, as plain functions.

A check takes a mechanism and returns, raises `Broken` with what is wrong, or raises `Skipped` with
the reason; `examine` runs them all. `separatrix.testing` has the same contract as a pytest class.
"""

from __future__ import annotations

from separatrix.contract._base import CHECKS, Broken, Check, Examination, Skipped, examine, run

from separatrix.contract import agreement, calculus, causal, numerics, recurrence, symmetry  # isort: skip
from separatrix.contract.inputs import sensitivity

__all__ = [
    "CHECKS",
    "Broken",
    "Check",
    "Examination",
    "Skipped",
    "agreement",
    "calculus",
    "causal",
    "examine",
    "numerics",
    "recurrence",
    "run",
    "sensitivity",
    "symmetry",
]
