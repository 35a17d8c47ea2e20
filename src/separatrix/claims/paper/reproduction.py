"""Everything that the report of the reproduction is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from rich.progress import Progress

from separatrix.analysis.cards.illustration import Illustration, illustrate
from separatrix.analysis.laws.scaling_result import ScalingRow
from separatrix.analysis.maps import Map
from separatrix.claims import CLAIMS, Claim, Ledger, ledger
from separatrix.claims.paper import attention, growth, hoeffding, line, margin, phase, separations, sweeps
from separatrix.claims.paper.base import BASE, MECHANISMS, outcome_at
from separatrix.core.tensors import one_thread
from separatrix.exact.engines import Outcome
from separatrix.mechanisms import MECHANISMS as ZOO
from separatrix.sweeps.plan import Plan
from separatrix.sweeps.store import Address, open_store
from separatrix.sweeps.sweep import find_plan, sweep

Examine = Callable[[Callable[[Claim], None]], Ledger]
"""What runs the claims, telling of each before it runs."""
FAR = 10**18


@dataclass(frozen=True)
class Effort:
    """What decides how long a run takes."""

    plan: str = "paper"
    """The plan of the six sweeps."""
    map_side: int = 241
    """Points along each axis of the maps."""
    mechanisms: tuple[str, ...] | None = None
    """Those that are compared in tables; all without any."""


FULL = Effort()


@dataclass(frozen=True)
class Computed:
    """The ledger, the tables, and the data of each figure."""

    ledger: Ledger
    illustration: Illustration
    """The base point as one looks at it."""
    near: Mapping[str, Outcome]
    """At the base point, by mechanism."""
    far: Mapping[str, Outcome]
    """The same with n = FAR."""
    growth: Sequence[ScalingRow]
    answers: Sequence[separations.PointAnswer]
    """What each mechanism makes of each construction; from it, who beats whom."""
    sweeps: tuple[sweeps.ParameterSweep, ...]
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
        with _shown(progress, "claims", len(CLAIMS)) as tell:
            found = examine(lambda claim: tell(claim.name))
        with _shown(progress, "scaling", len(ZOO)) as tell:
            grown = growth.compute(tell, effort.mechanisms)
        with _shown(progress, "who beats whom") as tell:
            answered = separations.answers(effort.mechanisms or separations.MECHANISMS, tell)
    return Computed(
        found,
        illustrate("spike"),
        {name: outcome_at(name, BASE) for name in MECHANISMS},
        {name: outcome_at(name, {**BASE, "n": FAR}) for name in MECHANISMS},
        grown,
        answered,
        _run_sweeps(progress, plan, address),
        phase.compute(effort.map_side),
        attention.compute(),
        margin.compute(),
        hoeffding.compute(),
        line.compute(effort.map_side),
    )


def _run_sweeps(progress: Progress, plan: Plan, address: Address) -> tuple[sweeps.ParameterSweep, ...]:
    """Compute what the store does not hold of the plan, and read the curves from what it then holds."""
    task = progress.add_task("sweeps", total=plan.count)
    done = sweep(
        plan, address, retry_failed=True, tell=lambda far: progress.update(task, completed=far.finished)
    )
    if done.stopped:
        raise KeyboardInterrupt
    return sweeps.stored(open_store(address), done.sweep)


@contextmanager
def _shown(progress: Progress, what: str, total: int | None = None) -> Iterator[Callable[[str], None]]:
    """A bar that is told the name of each thing before it is begun."""
    task, begun = progress.add_task(what, total=total), count()
    yield lambda name: progress.update(task, completed=next(begun), description=f"{what}: {name}"[:34])
    progress.update(task, completed=total or 1, total=total or 1, description=what)
