"""Estimates before a sweep: the number of cells, how many are stored, and the time for the others."""

from __future__ import annotations

import time
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from random import Random

import numpy as np

from separatrix.core.documents import Document
from separatrix.exact.engines import ENGINES
from separatrix.sweeps.backlog import LOOKUP_SIZE, CostKey
from separatrix.sweeps.executors import Executor
from separatrix.sweeps.store import CellResult, CellStatus, Checkpoint, Store
from separatrix.sweeps.work import ReferenceDefaults, WorkBatch, WorkItem, WorkPlan

MAX_TRIED = 64
"""Cells of a cost key that are tried."""
START_SECONDS = 4.0
"""Seconds until workers have begun."""
DEFAULT_EXPONENT = 1.5
"""The power of n by which time grows if only one n was seen: between linear and quadratic attention."""
OVERHEAD_SECONDS = 2e-4
"""Seconds for planning and storing a cell, rounded up."""


@dataclass(frozen=True)
class CostBasis(Document):
    """The number of cost keys by the source of their cost."""

    known: int
    """From cells in the store."""
    tried: int
    """From cells that were computed for the estimate."""
    guessed: int
    """The mean of the others."""


@dataclass(frozen=True)
class Estimate(Document):
    """The number of cells that a sweep would compute, and the time for them."""

    sweep: str
    """The name of the plan."""
    store: str
    cells: int
    different: int
    """Cells in two parts count once."""
    stored: int
    missing: int
    workers: int
    seconds: float
    """The time for the missing cells on all workers."""
    seconds_from: CostBasis
    taken: ReferenceDefaults
    """By part and construction, the parameters that the plan leaves out, at the reference point."""


def estimate(
    plan: WorkPlan,
    store: Store | None,
    executor: Executor,
    location: str = "",
    retry_failed: bool = False,
    budget: float = 10.0,
) -> Estimate:
    """Estimate the rest of a plan; cells of unknown cost are tried for about `budget` seconds."""
    counts, samples, random = Counter[CostKey](), defaultdict[CostKey, list[WorkItem]](list), Random(0)
    # Eight bytes of each identity: a plan may have ten million cells. The fixed seed of the samples lets a
    # repeated estimate try the same cells.
    identities, missing_identities, stored_count = array("Q"), array("Q"), 0
    items = (item for _, item in plan)
    while chunk := list(islice(items, LOOKUP_SIZE)):
        statuses = {} if store is None else store.find_statuses([item.id for item in chunk])
        for item in chunk:
            identities.append(int(item.id[:16], 16))
            status = statuses.get(item.id)
            if status is None or (retry_failed and status is CellStatus.FAILED):
                missing_identities.append(identities[-1])
                _add_sample(item, counts, samples[item.cost_key], random)
            else:
                stored_count += 1
    missing = _count_distinct(missing_identities)
    stored_costs = {} if store is None else store.mean_seconds()
    known_costs = {key: stored_costs[key] for key in counts if key in stored_costs}
    tried_costs = _try_cells([samples[key] for key in counts if key not in known_costs], executor, budget)
    cost = {**known_costs, **tried_costs}
    mean = sum(cost.values()) / len(cost) if cost else 0.0
    work = sum(count * cost.get(key, mean) for key, count in counts.items())
    work *= missing / max(len(missing_identities), 1)
    seconds = START_SECONDS + work / executor.workers + OVERHEAD_SECONDS * missing if missing else 0.0
    return Estimate(
        sweep=plan.name,
        store=location,
        cells=plan.count,
        different=_count_distinct(identities),
        stored=stored_count,
        missing=missing,
        workers=executor.workers,
        seconds=seconds,
        seconds_from=CostBasis(len(known_costs), len(tried_costs), len(counts) - len(cost)),
        taken=plan.reference_defaults,
    )


def _add_sample(item: WorkItem, counts: Counter[CostKey], sample: list[WorkItem], random: Random) -> None:
    """Keep a uniform sample of the items of each cost key (reservoir sampling)."""
    counts[item.cost_key] += 1
    if len(sample) < MAX_TRIED:
        sample.append(item)
    elif (position := random.randrange(counts[item.cost_key])) < MAX_TRIED:
        sample[position] = item


def _try_cells(samples: Iterable[list[WorkItem]], executor: Executor, budget: float) -> dict[CostKey, float]:
    """Mean seconds by cost key, for those that were tried in time; the shortest inputs come first."""
    waiting = [WorkBatch(tuple(sorted(sample, key=lambda item: item.length))) for sample in samples]
    costs: dict[CostKey, float] = {}
    end = time.monotonic() + START_SECONDS + budget
    while (waiting or executor.is_busy) and time.monotonic() < end:
        while waiting and executor.vacancies > 0:
            executor.submit(waiting.pop())
        for outcome in executor.wait(0.2):
            items, outputs = outcome.batch.items, outcome.results or []
            results = [output for output in outputs if isinstance(output, CellResult)]
            if results:
                costs[items[0].cost_key] = _mean_cost(items, results)
            elif outputs and isinstance(outputs[0], Checkpoint):
                share = items[0].estimate_share(outputs[0].data)
                if share > 0:
                    costs[items[0].cost_key] = outputs[0].seconds / share
    return costs


def _mean_cost(items: Sequence[WorkItem], results: Sequence[CellResult]) -> float:
    """Mean seconds of all items, the first of which have results.

    On literal tokens, time grows as a power of n, which is fitted.
    """
    seconds, n = [max(result.seconds, 1e-6) for result in results], np.array([item.length for item in items])
    count = len(seconds)
    engine = ENGINES.get(str(results[-1].findings.get("engine")))
    if engine is None or not engine.literal:
        return sum(seconds) / count
    exponent = DEFAULT_EXPONENT
    if n[0] < n[count - 1]:
        exponent = np.polyfit(np.log(n[:count]), np.log(seconds), 1)[0]
    other_seconds = seconds[-1] * (n[count:] / n[count - 1]) ** np.clip(exponent, 0, 2)
    return float(sum(seconds) + other_seconds.sum()) / len(items)


def _count_distinct(identities: array[int]) -> int:
    return int(np.unique(np.frombuffer(identities, dtype=np.uint64)).size)
