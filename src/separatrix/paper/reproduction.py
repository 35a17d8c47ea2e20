"""Everything that the report of the reproduction is made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from rich.progress import Progress

from separatrix.claims import CLAIMS, Claim, Ledger, ledger
from separatrix.laws.scaling_result import ScalingRow
from separatrix.maps import Map
from separatrix.mechanisms import MECHANISMS as ZOO
from separatrix.paper import attention, growth, hoeffding, line, margin, phase, separations, sweeps
from separatrix.paper.base import BASE, MECHANISMS, outcome_at
from separatrix.paper.effort import FULL, Effort
from separatrix.store import Address, open_store
from separatrix.sweeps import Plan, executor_for, find_plan
from separatrix.tensors import one_thread

Examine = Callable[[Callable[[Claim], None]], Ledger]
"""What runs the claims, telling of each before it runs."""
FAR = 10**18


@dataclass(frozen=True)
class Facts:
    """The numbers the text quotes, all of them from the run."""

    distinguish: Mapping[str, float]
    """At the base point, by mechanism."""
    margin: Mapping[str, float]
    far: int
    """A large n."""
    far_margin: Mapping[str, float]
    """The margin there."""


@dataclass(frozen=True)
class Computed:
    """The ledger, the tables, and the data of each figure."""

    ledger: Ledger
    facts: Facts
    growth: Sequence[ScalingRow]
    answers: Sequence[separations.Answer]
    """What each mechanism makes of each construction; from it, who beats whom."""
    sweeps: tuple[sweeps.Sweep, ...]
    phase: phase.PhaseMap
    attention: tuple[attention.Rows, ...]
    margin: tuple[margin.MarginCurve, ...]
    hoeffding: tuple[hoeffding.Looseness, ...]
    line: Map


def compute(store: Path, progress: Progress, effort: Effort = FULL, examine: Examine = ledger) -> Computed:
    """Run the claims, the tables, the sweeps and what the figures show; the sweeps' cells go to a store."""
    plan, address = find_plan(effort.plan), Address(str(store), store)
    if store.exists():
        open_store(address, check=True)  # refused before anything is computed
    with one_thread():
        found = _run_claims(progress, examine)
        grown, answered = _run_growth(progress), _run_separations(progress)
    return Computed(
        found,
        _facts(),
        grown,
        answered,
        _run_sweeps(progress, plan, address),
        phase.compute(effort),
        attention.compute(),
        margin.compute(effort),
        hoeffding.compute(effort),
        line.compute(effort),
    )


def _run_claims(progress: Progress, examine: Examine) -> Ledger:
    task = progress.add_task("claims", total=len(CLAIMS))
    begun = count()

    def tell(claim: Claim) -> None:
        progress.update(task, completed=next(begun), description=f"claim {claim.name}"[:34])

    found = examine(tell)
    progress.update(task, completed=len(CLAIMS), description="claims")
    return found


def _run_sweeps(progress: Progress, plan: Plan, address: Address) -> tuple[sweeps.Sweep, ...]:
    task = progress.add_task("sweeps", total=plan.count)
    with closing(executor_for(None, None)) as executor:
        store = open_store(address, create=True, check=True)
        return sweeps.compute(
            plan, store, executor, lambda far: progress.update(task, completed=far.finished)
        )


def _run_growth(progress: Progress) -> list[ScalingRow]:
    task = progress.add_task("scaling", total=len(ZOO))
    found = growth.compute(lambda _: progress.advance(task))
    progress.update(task, completed=len(ZOO))
    return found


def _run_separations(progress: Progress) -> list[separations.Answer]:
    task = progress.add_task("who beats whom", total=None)
    found = separations.answers(tell=lambda name: progress.update(task, description=f"beats: {name}"[:34]))
    progress.update(task, total=1, completed=1, description="who beats whom")
    return found


def _facts() -> Facts:
    near = {name: outcome_at(name, BASE) for name in MECHANISMS}
    far = {name: outcome_at(name, {**BASE, "n": FAR}) for name in MECHANISMS}
    return Facts(
        distinguish={name: outcome.distinguish for name, outcome in near.items()},
        margin={name: outcome.margin for name, outcome in near.items()},
        far=FAR,
        far_margin={name: outcome.margin for name, outcome in far.items()},
    )
