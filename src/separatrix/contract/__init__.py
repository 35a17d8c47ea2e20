"""The contract that every attention mechanism is held to, as plain functions.

A check takes a mechanism and returns, raises `Broken` with the fault, or raises `Skipped` with the reason.
`examine` runs all checks, each after those it rests on. `separatrix.testing` has the same contract as a
pytest class.
"""

from __future__ import annotations

from separatrix.contract._base import CHECKS, Broken, Examination, Skipped, examine, find_root, run, sort_checks

# Each of these modules registers its checks.
from separatrix.contract import numerics, symmetry, causal, counted, recurrence, agreement  # noqa: F401  # isort: skip
from separatrix.contract import calculus, larger, precision, long_precision  # noqa: F401  # isort: skip
from separatrix.contract.trials import sensitivity

sort_checks()

__all__ = ["CHECKS", "Broken", "Examination", "Skipped", "examine", "find_root", "run", "sensitivity"]
