"""Sweeps that are killed at random moments and gone on with; run as a program of its own.

Everything is imported once; each sweep then runs in a fork of this process, with real worker processes,
and is ended by kill -9. What the workers computed is in a log, so that it is seen what was computed twice.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from separatrix.sweeps import executors
from separatrix.sweeps.plan import read_plan
from separatrix.sweeps.run import run
from separatrix.sweeps.store import Store, frame, open_store
from separatrix.sweeps.verdict_cells import VerdictCell
from separatrix.sweeps.work import BatchResults, Checkpoints
from separatrix.sweeps.worker import work
from sweep_tools import HEAD

PLAN = (
    HEAD
    + """
[[sweep]]
name = "cheap"
engine = "closed"
parameters = { a1 = "0.5:1.5:12", n = "1e2:1e9:12:log" }
[[sweep]]
name = "dear"
parameters = { a1 = "0.5:1.5:5", n = "1e2:1e9:5:log" }
"""
)
WORKERS = 2
SAME = ("id", "verdict", "distinguish", "low", "high", "fire_d0", "fire_d1", "margin", "bits", "p0", "p1", "q")
LOG = Path("computed.log")
READ = read_plan(PLAN)


def logged(cells: Sequence[VerdictCell], seconds: float, checkpoints: Checkpoints) -> BatchResults:
    """As `work`; what was computed is written down, one line a batch."""
    results = work(cells, seconds, checkpoints)
    line = json.dumps([cell.id for cell in cells[: len(results)]]) + "\n"
    with LOG.open("a") as log:
        log.write(line)
    return results


def sweep(url: str) -> None:
    executor = executors.LocalExecutor(WORKERS, multiprocessing.get_context("fork"))
    run(READ, open_store(url, create=True, check=True), executor)
    executor.close()


def forked(url: str) -> int:
    child = os.fork()
    if child == 0:
        try:
            sweep(url)
            os._exit(0)
        except BaseException as error:
            os.write(2, f"{type(error).__name__}: {error}\n".encode())
            os._exit(1)
    return child


def killed_after(child: int, seconds: float) -> bool:
    """Whether it was killed; False if it ended by itself before that."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            if status:
                raise SystemExit("a sweep failed")
            return False
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return True


def kept(store: Store) -> list[tuple[object, ...]]:
    return sorted(frame(store).select(SAME).rows())


def lost_batches(before: int, url: str) -> int:
    """Batches that were computed since line `before` of the log and did not reach the store."""
    batches = [json.loads(line) for line in LOG.read_text().splitlines()[before:] if line.endswith("]")]
    if not Path(url.removeprefix("sqlite:///")).exists():
        return len(batches)
    stored = open_store(url).find_statuses([cell for batch in batches for cell in batch])
    return sum(any(cell not in stored for cell in batch) for batch in batches)


def main(kills: int, seed: int) -> None:
    executors.work = logged  # type: ignore[attr-defined]
    rng, done, stores, most_lost = random.Random(seed), 0, 0, 0
    LOG.touch()
    start = time.monotonic()
    assert not killed_after(forked("sqlite:///whole.db"), 600)
    whole, expected = time.monotonic() - start, kept(open_store("sqlite:///whole.db"))
    assert len(expected) == len({cell.id for _, cell in READ})
    while done < kills:
        stores += 1
        url, finished, tries = f"sqlite:///killed{stores}.db", False, 0
        while not finished:
            before = len(LOG.read_text().splitlines())
            tries += 1
            limit = rng.uniform(0, 0.6 * whole) if done < kills else 600
            finished = not killed_after(forked(url), limit)
            done += not finished
            time.sleep(0.05)  # the workers notice that they are alone
            most_lost = max(most_lost, lost_batches(before, url))
        found = kept(open_store(url, check=True))
        assert len(found) == len({row[0] for row in found}), "a cell is there twice"
        assert found == expected, "values differ from those of a sweep that was not killed"
    sys.stdout.write(json.dumps({"kills": done, "stores": stores, "lost": most_lost}) + "\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
