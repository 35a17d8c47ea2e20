"""Grids of cells that survive: planned, computed once, kept, and gone on with after any stop."""

from separatrix.sweeps.estimate import Estimate, estimate
from separatrix.sweeps.plan import Plan, load_plan, read_plan
from separatrix.sweeps.plan_file import PlanError
from separatrix.sweeps.progress import Progress
from separatrix.sweeps.run import run
from separatrix.sweeps.sweep import executor_for, find_plan, shipped_plans, sweep

__all__ = [
    "Estimate",
    "Plan",
    "PlanError",
    "Progress",
    "estimate",
    "executor_for",
    "find_plan",
    "load_plan",
    "read_plan",
    "run",
    "shipped_plans",
    "sweep",
]
