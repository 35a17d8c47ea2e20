"""Plans whose `[[learn]]` tables are run by the protocol: pilots choose rates, and fresh seeds are tested."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from contextlib import closing
from pathlib import Path

from separatrix.analysis.evidence.experiments import Report
from separatrix.analysis.evidence.found import Part
from separatrix.analysis.evidence.protocol import Experiment, learned
from separatrix.analysis.evidence.runs import Laboratory
from separatrix.core.numbers import format_exact
from separatrix.core.parameters import UsageError
from separatrix.sweeps.learn_table import LearnTable
from separatrix.sweeps.plan import Plan
from separatrix.sweeps.progress import Tell
from separatrix.sweeps.store import DEFAULT, Address, open_store
from separatrix.sweeps.sweep import executor_for, plan_named, stop_on_signals
from separatrix.training.tasks import RealTask


def learn_plan(
    plan: str | Path | Plan,
    store: str | Address = DEFAULT,
    *,
    workers: int | None = None,
    scheduler: str | None = None,
    allow: Collection[str] = (),
    device: str | None = None,
    tell: Tell = lambda _: None,
    hear: Callable[[], None] = lambda: None,
    say: Callable[[str], None] = lambda _: None,
) -> Report:
    """Every table of a plan by the protocol, a part for each: `learn_plan("benchmarks")`.

    What the store has is not computed again; at the end it has all of it as one sweep, named as the plan. A
    script that calls this needs `if __name__ == "__main__":`
    around it, since workers import it.

    **Arguments:**

    - `plan`: a TOML file, the name of one that comes with separatrix, or a plan that was read. Each of its
      `[[learn]]` tables says how many `pilots` choose its rates.
    - `store`: where runs are kept: a URL or a file.
    - `workers`, `scheduler`: how many processes here, or the address of a Dask cluster.
    - `allow`: mechanisms of your own, `module:attribute`, that the plan may load.
    - `device`: where training runs are made, as torch names it; no test here is run on any but `cpu`.
    - `tell`, `hear`: called with the progress, and when a signal asks to stop.
    - `say`: called with what begins, pilots or seeds of a table.
    """
    read = plan if isinstance(plan, Plan) else plan_named(str(plan), allow, device)
    asked = experiments(read)
    require_data([each for some in asked.values() for each in some])
    start, parts = time.monotonic(), list[Part]()
    with stop_on_signals(hear) as stop, closing(executor_for(workers, scheduler)) as executor:
        laboratory = Laboratory(open_store(store, create=True, check=True), executor, tell, stop, say)
        for name, some in asked.items():
            found = learned(some, laboratory, f"{read.name}, {name}")
            parts.append(Part(name, some[0].task.title, some[0].task.description, tuple(found)))
        laboratory.gather(read.name, read.text)
    return Report(tuple(parts), (), time.monotonic() - start)


def experiments(plan: Plan) -> dict[str, list[Experiment]]:
    """What each table of a plan asks for, by its name; a UsageError where a table does not say how."""
    found = dict[str, list[Experiment]]()
    for part in plan.parts:
        if not isinstance(part, LearnTable) or not part.stages:
            raise UsageError(
                f"{part.name} of {plan.name} has no pilots to choose its rates; write pilots = 1 there, or "
                f"run the plan as it is: separatrix sweep {plan.name}"
            )
        if len(part.seeds) < 2:
            raise UsageError(f"{part.name} of {plan.name} has one seed; an interval takes two or more")
        found[part.name] = [
            Experiment(
                task=task,
                mechanisms=part.mechanisms,
                setting=setting.model_copy(
                    update={"rates": ",".join(map(format_exact, part.rates(setting)))}
                ),
                seeds=part.seeds,
                pilots=part.keys.pilots,
                device=part.keys.device,
            )
            for task, setting in part.points
        ]
    return found


def require_data(asked: Collection[Experiment]) -> None:
    """Refuse a plan whose data sets are not there, before anything is run."""
    for task in {each.task.name: each.task for each in asked}.values():
        if isinstance(task, RealTask):
            task.splits()
