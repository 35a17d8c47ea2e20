"""Before a sweep: how many cells there are, how many are stored, and about how long the rest will take."""

from __future__ import annotations

import time
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from random import Random
from typing import Any

import numpy as np

from separatrix.exact.engines import ENGINES
from separatrix.sweeps.backlog import LOOKED_UP
from separatrix.sweeps.batches import CostKey
from separatrix.sweeps.executors import Executor
from separatrix.sweeps.store import Checkpoint, Result, Status, Store
from separatrix.sweeps.work import Batch, Planned, Work

TRIED = 64
"""Cells of a kind that are tried at most."""
START = 4.0
"""Seconds until workers have begun."""
LIKELY = 1.5
"""The power of n by which time grows where only one n was seen: between linear and quadratic attention."""
OVERHEAD = 2e-4
"""Seconds for planning and keeping a cell, generously."""


@dataclass(frozen=True)
class Estimate:
    """How many cells a sweep will compute, and how long that may take."""

    total: int
    different: int
    """Cells that two parts name count once."""
    stored: int
    missing: int
    seconds: float
    """The time for what is missing, on all workers."""
    workers: int
    known: int
    """Kinds of cells whose cost is known from the store."""
    tried: int
    """Kinds of cells of which some were computed just now."""
    guessed: int
    """Kinds of cells whose cost is taken to be like that of the others."""

    def as_json(self) -> dict[str, Any]:
        """What `separatrix sweep --dry-run --json` prints."""
        return {
            "cells": self.total,
            **{name: getattr(self, name) for name in ("different", "stored", "missing", "workers")},
            "seconds": self.seconds,
            "seconds_from": {name: getattr(self, name) for name in ("known", "tried", "guessed")},
        }


def estimate(
    plan: Planned,
    store: Store | None,
    executor: Executor,
    workers: int,
    retry_failed: bool = False,
    budget: float = 10.0,
) -> Estimate:
    """How much a plan has left to compute; cells of unknown cost are tried for about `budget` seconds."""
    counts, samples, chance = Counter[CostKey](), defaultdict[CostKey, list[Work]](list), Random(0)
    everything, lacking, stored = array("Q"), array("Q"), 0
    cells = (cell for _, cell in plan)
    while some := list(islice(cells, LOOKED_UP)):
        there = {} if store is None else store.finished([cell.id for cell in some])
        for cell in some:
            everything.append(int(cell.id[:16], 16))
            status = there.get(cell.id)
            if status is None or (retry_failed and status is Status.FAILED):
                lacking.append(everything[-1])
                counts[cell.cost_key] += 1
                sample = samples[cell.cost_key]
                if len(sample) < TRIED:
                    sample.append(cell)
                elif (place := chance.randrange(counts[cell.cost_key])) < TRIED:
                    sample[place] = cell
            else:
                stored += 1
    different, missing = _different(everything), _different(lacking)
    recorded = {} if store is None else store.mean_seconds()
    known = {kind: recorded[kind] for kind in counts if kind in recorded}
    tried = _tried([samples[kind] for kind in counts if kind not in known], executor, budget)
    cost = {**known, **tried}
    mean = sum(cost.values()) / len(cost) if cost else 0.0
    work = sum(count * cost.get(kind, mean) for kind, count in counts.items())
    work *= missing / max(len(lacking), 1)
    seconds = (START + work / workers + OVERHEAD * missing) if missing else 0.0
    return Estimate(
        *(plan.count, different, stored, missing, seconds, workers),
        *(len(known), len(tried), len(counts) - len(cost)),
    )


def _tried(samples: Iterable[list[Work]], executor: Executor, budget: float) -> dict[CostKey, float]:
    """Mean seconds of the kinds that were tried before the time was over; the shortest inputs come first."""
    waiting = [Batch(tuple(sorted(sample, key=_length))) for sample in samples]
    found: dict[CostKey, float] = {}
    end = time.monotonic() + START + budget
    while (waiting or executor.busy) and time.monotonic() < end:
        while waiting and executor.vacancies > 0:
            executor.submit(waiting.pop())
        for each in executor.wait(0.2):
            cells, back = each.batch.cells, each.results or []
            results = [one for one in back if isinstance(one, Result)]
            if results:
                found[cells[0].cost_key] = _mean_cost(cells, results)
            for begun in back[:1]:
                share = cells[0].share_done(begun.data) if isinstance(begun, Checkpoint) else 0.0
                if share > 0:
                    found[cells[0].cost_key] = begun.seconds / share
    return found


def _mean_cost(cells: Sequence[Work], results: Sequence[Result]) -> float:
    """Mean seconds of all the cells, of which the first have results.

    On literal tokens time grows as a power of n, the slope of what was seen.
    """
    seconds, n = [max(result.seconds, 1e-6) for result in results], np.array([*map(_length, cells)])
    seen = len(seconds)
    engine = ENGINES.get(str(results[-1].found.get("engine")))
    if engine is None or not engine.literal:
        return sum(seconds) / seen
    slope = np.polyfit(np.log(n[:seen]), np.log(seconds), 1)[0] if n[0] < n[seen - 1] else LIKELY
    beyond = seconds[-1] * (n[seen:] / n[seen - 1]) ** np.clip(slope, 0, 2)
    return float(sum(seconds) + beyond.sum()) / len(cells)


def _length(cell: Work) -> float:
    return max(2.0, cell.columns().get("n") or 2.0)


def _different(identities: array[int]) -> int:
    return int(np.unique(np.frombuffer(identities, dtype=np.uint64)).size)
