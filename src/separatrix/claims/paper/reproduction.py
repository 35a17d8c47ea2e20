"""The reproduction: computes everything that its report shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from rich.progress import Progress

from separatrix.analysis.cards.illustration import Illustration, illustrate
from separatrix.analysis.laws import Scalings
from separatrix.analysis.maps import Map
from separatrix.analysis.weights import Weights, weights
from separatrix.claims import CLAIMS, Claim, Ledger, ledger
from separatrix.claims.paper import figures, separations, sweeps
from separatrix.claims.paper.figures import BASE, MECHANISMS, outcome_at
from separatrix.claims.paper.proofs import ProvedStatements, prove_statements
from separatrix.core.tensors import one_thread
from separatrix.exact.engines import Outcome
from separatrix.mechanisms import MECHANISMS as ZOO
from separatrix.sweeps.plan import Plan
from separatrix.sweeps.store import Address, open_store
from separatrix.sweeps.sweep import find_plan, sweep

RunClaims = Callable[[Callable[[Claim], None]], Ledger]
"""A function that runs the claims and calls its argument with each of them first."""
FAR = 10**18
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Effort:
    """Settings that decide how long a run takes."""

    plan: str = "paper"
    """The plan of the six sweeps."""
    map_side: int = 241
    """Points along each axis of the maps."""
    mechanisms: tuple[str, ...] | None = None
    """The mechanisms of the tables; all by default."""


FULL = Effort()


@dataclass(frozen=True)
class ReproductionData:
    """The ledger, the tables, and the data of each figure."""

    ledger: Ledger
    illustration: Illustration
    """A picture of the base point."""
    near: Mapping[str, Outcome]
    """The outcome at the base point, by mechanism."""
    far: Mapping[str, Outcome]
    """The same with n = FAR."""
    proofs: ProvedStatements
    weights: Weights
    """Weight matrices of linear attention at the base point."""
    growth: Scalings
    answers: Sequence[separations.PointAnswer]
    """The answer of each mechanism on each construction, from which separations follow."""
    sweeps: tuple[sweeps.ParameterSweep, ...]
    phase: figures.PhaseMap
    attention: tuple[figures.AttentionRows, ...]
    margin: tuple[figures.MarginCurve, ...]
    hoeffding: tuple[figures.HoeffdingCurve, ...]
    line: Map


def compute(store: Path, progress: Progress, effort: Effort = FULL, run_claims: RunClaims = ledger) -> ReproductionData:
    """Run the claims, and compute tables, sweeps and figures; the cells of the sweeps go to a store."""
    plan, address = find_plan(effort.plan), Address(str(store), store)
    if store.exists():
        # A damaged store is refused before anything is computed.
        open_store(address, check=True)
    with one_thread():
        with _progress_bar(progress, "claims", len(CLAIMS)) as tell:
            claims = run_claims(lambda claim: tell(claim.name))
        with _progress_bar(progress, "scaling", len(ZOO)) as tell:
            growth = figures.margin_growth(tell, effort.mechanisms)
        with _progress_bar(progress, "comparisons") as tell:
            answers = separations.collect_answers(effort.mechanisms or separations.MECHANISMS, tell)
    illustration, runs = illustrate("spike"), _run_sweeps(progress, plan, address)
    near, far = ({name: outcome_at(name, {**BASE, "n": n}) for name in MECHANISMS} for n in (BASE["n"], FAR))
    rows, margins, bounds = figures.attention_rows(), figures.margin_curves(), figures.hoeffding_curves()
    phase, line = figures.phase_map(effort.map_side), figures.boundary_map(effort.map_side)
    proofs, others = prove_statements(), weights("spike", "linear", BASE)
    return ReproductionData(
        *(claims, illustration, near, far, proofs, others, growth, answers, runs), *(phase, rows, margins, bounds, line)
    )


def _run_sweeps(progress: Progress, plan: Plan, address: Address) -> tuple[sweeps.ParameterSweep, ...]:
    """Compute the cells of the plan that the store lacks, and read the curves from the store."""
    task = progress.add_task("sweeps", total=plan.count)
    result = sweep(plan, address, retry_failed=True, tell=lambda far: progress.update(task, completed=far.finished))
    # A sweep stops in order when interrupted; the reproduction has no figures without it.
    if result.stopped:
        raise KeyboardInterrupt
    return sweeps.read_sweeps(open_store(address), result.number)


@contextmanager
def _progress_bar(progress: Progress, title: str, total: int | None = None) -> Iterator[Tell]:
    """Show a progress bar; yield a function that is called with the name of each item before it starts."""
    task, counter = progress.add_task(title, total=total), count()
    yield lambda name: progress.update(task, completed=next(counter), description=f"{title}: {name}"[:34])
    progress.update(task, completed=total or 1, total=total or 1, description=title)
