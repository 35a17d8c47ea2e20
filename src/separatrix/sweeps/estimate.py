"""Before a sweep: how many cells there are, how many are stored, and about how long the rest will take."""

from __future__ import annotations

import heapq
import time
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np

from separatrix.store import Result, Status, Store
from separatrix.sweeps.backlog import LOOKED_UP
from separatrix.sweeps.batches import Kind
from separatrix.sweeps.cell import Cell
from separatrix.sweeps.executors import Executor
from separatrix.sweeps.plan import Plan
from separatrix.sweeps.work import Batch

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
    """What lies before a sweep."""

    total: int
    different: int
    """Cells that two parts name count once."""
    stored: int
    missing: int
    seconds: float
    """For what is missing, on all workers."""
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


@dataclass
class _Kinds:
    """The missing cells of each kind: how many, and a fair sample, those with the smallest identities."""

    counts: Counter[Kind] = field(default_factory=Counter)
    samples: dict[Kind, list[tuple[int, str, Cell]]] = field(default_factory=dict)

    def add(self, cell: Cell) -> None:
        self.counts[cell.kind] += 1
        sample = self.samples.setdefault(cell.kind, [])
        entry = (-int(cell.id[:16], 16), cell.id, cell)
        if len(sample) < TRIED:
            heapq.heappush(sample, entry)
        elif entry > sample[0]:
            heapq.heapreplace(sample, entry)


def estimate(
    plan: Plan,
    store: Store | None,
    executor: Executor,
    workers: int,
    retry_failed: bool = False,
    budget: float = 10.0,
) -> Estimate:
    """Go through the plan, and try some cells of unknown cost for at most about `budget` seconds."""
    kinds, everything, lacking, stored = _Kinds(), array("Q"), array("Q"), 0
    cells = (cell for _, cell in plan)
    while some := list(islice(cells, LOOKED_UP)):
        there = {} if store is None else store.finished([cell.id for cell in some])
        for cell in some:
            everything.append(int(cell.id[:16], 16))
            status = there.get(cell.id)
            if status is None or (retry_failed and status is Status.FAILED):
                lacking.append(everything[-1])
                kinds.add(cell)
            else:
                stored += 1
    different, missing = _different(everything), _different(lacking)
    recorded = {} if store is None else store.seconds_by_kind()
    known = {kind: recorded[kind] for kind in kinds.counts if kind in recorded}
    tried = _tried([kind for kind in kinds.counts if kind not in known], kinds, executor, budget)
    cost = {**known, **tried}
    mean = sum(cost.values()) / len(cost) if cost else 0.0
    work = sum(count * cost.get(kind, mean) for kind, count in kinds.counts.items())
    work *= missing / max(len(lacking), 1)
    seconds = (START + work / workers + OVERHEAD * missing) if missing else 0.0
    return Estimate(
        *(plan.count, different, stored, missing, seconds, workers),
        *(len(known), len(tried), len(kinds.counts) - len(cost)),
    )


def _tried(unknown: Iterable[Kind], kinds: _Kinds, executor: Executor, budget: float) -> dict[Kind, float]:
    """Mean seconds of the kinds that were tried before the time was over; the shortest inputs come first."""
    samples = {kind: sorted((cell for _, _, cell in kinds.samples[kind]), key=_length) for kind in unknown}
    waiting = [Batch(tuple(sample)) for sample in samples.values()]
    found: dict[Kind, float] = {}
    end = time.monotonic() + START + budget
    while (waiting or executor.busy) and time.monotonic() < end:
        while waiting and executor.vacancies > 0:
            executor.submit(waiting.pop())
        for each in executor.wait(0.2):
            if each.results:
                found[each.batch.cells[0].kind] = _mean_cost(each.batch.cells, each.results)
    return found


def _mean_cost(cells: Sequence[Cell], results: Sequence[Result]) -> float:
    """Mean seconds of all the cells, of which the first have results.

    On literal tokens time grows as a power of n, which is fitted to what was seen, and followed beyond.
    """
    seconds = [result.seconds for result in results]
    if results[-1].engine != "dense" or len(results) == len(cells):
        return sum(seconds) / len(seconds)
    n = np.log([_length(cell) for cell in cells])
    seen, cost = n[: len(results)], np.log(np.maximum(seconds, 1e-6))
    power = float(np.clip(np.polyfit(seen, cost, 1)[0], 0, 2)) if np.ptp(seen) > 0 else LIKELY
    last = float(cost[seen == seen[-1]].mean())
    return (sum(seconds) + float(np.exp(last + power * (n[len(results) :] - seen[-1])).sum())) / len(cells)


def _length(cell: Cell) -> int:
    return max(2, int(cell.parameters.get("n", "2")))


def _different(identities: array[int]) -> int:
    return int(np.unique(np.frombuffer(identities, dtype=np.uint64)).size)
