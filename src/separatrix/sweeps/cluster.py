"""Workers of a Dask cluster that is there already, on any number of machines."""

from __future__ import annotations

import logging
import pickle
import time
from asyncio import CancelledError
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, replace
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from separatrix.core.errors import one_line
from separatrix.core.parameters import SeparatrixError, UsageError
from separatrix.sweeps.dask_setup import read_address, require_distributed
from separatrix.sweeps.executors import AHEAD, Executor, Finished
from separatrix.sweeps.limited import work_within
from separatrix.sweeps.work import Back, Batch, Work
from separatrix.sweeps.worker import require_same_code, work

if TYPE_CHECKING:
    from distributed import Client, Future

CONNECT = 10.0
"""Seconds to wait for the scheduler, and then for a first worker."""
REFRESH = 1.0
"""Seconds between two looks at how many workers there are."""
SILENCE = 60.0
"""Seconds without an answer after which the scheduler counts as lost."""
DESERTED = 3600.0
"""Seconds without any worker after which nobody is thought to come."""
MOST_PUZZLES = 3
"""Errors that no worker can be blamed for, after which it is given up."""
LOGGERS = ("distributed", "distributed.client", "tornado", "tornado.application")
"""Those that Dask gives a level of their own; what they would say, one line says."""
RESUME = "what was finished is stored: give the same command again when"


@dataclass(frozen=True)
class _Call:
    """Work that is done by unpickling it.

    Schedulers unpickle tasks, and workers do so before anybody hears of an error: a task that named our
    code would load torch into the scheduler, and kill every worker that has no separatrix.
    """

    batch: Batch
    limit: float | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        if self.limit is None:
            return work, self.batch.order
        return work_within, (*self.batch.order, self.limit)


@dataclass(frozen=True)
class _Test:
    """Whether a worker can compute a cell: unpickling it there raises why not."""

    cell: Work

    def __reduce__(self) -> tuple[Any, ...]:
        return require_same_code, (self.cell,)


@dataclass(frozen=True)
class _Task:
    """A batch that is computed, and by which workers it may be; by all, if that is None."""

    future: Future[Back]
    batch: Batch
    workers: frozenset[str] | None


class DaskExecutor(Executor):
    """Batches as tasks of Dask, which starts those of a dead worker again elsewhere.

    After some deaths it gives up on all the tasks that the worker had, so that the guilty one is not
    known: a batch that was lost once is tried alone. Workers that cannot compute what others can, since
    their code is another or lacks a module, are left out.
    """

    def __init__(self, address: str, cell_timeout: float | None = None) -> None:
        super().__init__(cell_timeout)
        require_distributed()
        self._address = read_address(address)
        self._levels = {name: logging.getLogger(name).level for name in LOGGERS}
        self._flying: dict[str, _Task] = {}
        self._stranded: deque[Batch] = deque()
        """Batches that wait for a worker that is not left out."""
        self._unfit: set[str] = set()
        """The addresses of workers that are left out."""
        self._puzzles = 0
        """How often a task failed that every worker could compute."""
        self._suspects: deque[Batch] = deque()
        self._alone = False
        """Whether what is flying is a suspect."""
        self._back: SimpleQueue[tuple[str, Back | Exception]] = SimpleQueue()
        self._slots: dict[str, int] = {}
        """How many batches each worker computes at once, by its address."""
        self._looked, self._seen = 0.0, time.monotonic()
        self._quiet(True)
        try:
            self._client = self._connected()
        except BaseException:
            self._quiet(False)
            raise
        try:
            self._require_workers()
        except BaseException:
            self.close()
            raise

    @property
    def workers(self) -> int:
        self._look()
        return sum(self._slots[each] for each in self._fit)

    @property
    def _fit(self) -> list[str]:
        return [slot for slot in self._slots if slot not in self._unfit]

    @property
    def vacancies(self) -> int:
        room = max(AHEAD * self.workers, 1) - len(self._flying) - len(self._stranded)
        return 0 if self._suspects or self._alone or self._failure else room

    @property
    def busy(self) -> bool:
        return bool(self._flying or self._suspects or self._stranded or self._failure)

    def submit(self, batch: Batch) -> None:
        if batch.losses:
            self._suspects.append(batch)
            self._try_suspect()
        else:
            self._send(batch)

    def wait(self, seconds: float) -> list[Finished]:
        self._look()
        found: list[Finished] = []
        with suppress(Empty):
            found += self._take(*self._back.get(timeout=0 if self._failure else seconds))
            while True:
                found += self._take(*self._back.get_nowait())
        if self._failure and not found:
            raise self._failure
        self._try_suspect()
        return found

    def close(self) -> None:
        self._flying.clear()
        self._suspects.clear()
        self._stranded.clear()
        with suppress(Exception):  # the scheduler may be gone; the client is closed all the same
            self._client.close(timeout=CONNECT)
        self._quiet(False)

    def _connected(self) -> Client:
        from distributed import Client, Security

        if self._address.startswith("tls:") and not Security().get_connection_args("client")["ssl_context"]:
            raise UsageError(
                f"{self._address} wants certificates: set distributed.comm.tls in Dask's configuration"
            )
        try:
            return Client(self._address, timeout=CONNECT, set_as_default=False)
        except OSError:
            raise UsageError(
                f"no Dask scheduler answers at {self._address}; start one with: dask scheduler"
            ) from None
        except ImportError as error:
            raise UsageError(f"the Dask scheduler at {self._address} does not fit: {error}") from None

    def _require_workers(self) -> None:
        end = time.monotonic() + CONNECT
        while self.workers == 0:
            if self._failure:
                raise self._failure
            if time.monotonic() > end:
                raise UsageError(
                    f"the Dask scheduler at {self._address} has no workers; start some on every machine "
                    f"with: separatrix worker {self._address}"
                )
            time.sleep(REFRESH / 2)

    def _look(self) -> None:
        """See how many slots there are, now and then, and whether there is a cluster at all."""
        now = time.monotonic()
        if self._failure or (self._client.status == "running" and now - self._looked < REFRESH):
            return
        try:
            threads = self._client.sync(self._client.scheduler.ncores, callback_timeout=SILENCE)
        except Exception:  # whatever it is, there was no answer
            self._failure = self._lost()
            return
        self._slots, self._looked = dict(threads), now
        self._seen = now if self._fit else self._seen
        if now - self._seen > DESERTED:
            self._failure = SeparatrixError(
                f"the Dask cluster at {self._address} has had no workers for an hour; {RESUME} it has some"
            )
        self._send_stranded()

    def _lost(self) -> SeparatrixError:
        return SeparatrixError(f"the Dask scheduler at {self._address} is lost; {RESUME} it is back")

    def _try_suspect(self) -> None:
        if self._suspects and not self._flying:
            self._send(self._suspects.popleft())
            self._alone = True

    def _send_stranded(self) -> None:
        """Send elsewhere what waits for workers that are gone."""
        for key, task in list(self._flying.items()):
            if task.workers is not None and not self._slots.keys() & task.workers:
                del self._flying[key]
                self._stranded.append(task.batch)
        while self._stranded and self._fit:
            self._send(self._stranded.popleft())

    def _send(self, batch: Batch) -> None:
        if self._unfit and not self._fit:
            self._stranded.append(batch)
            return
        key, fit = f"separatrix-{uuid4().hex}", self._fit if self._unfit else None
        call = pickle.dumps(_Call(batch, self.cell_timeout))
        try:
            future = self._client.submit(pickle.loads, call, key=key, pure=False, workers=fit)
        except Exception:
            if self._client.status != "running":
                raise self._lost() from None
            raise
        self._flying[key] = _Task(future, batch, None if fit is None else frozenset(fit))
        self._client.loop.add_callback(self._fetch, future)

    async def _fetch(self, future: Future[Back]) -> None:
        """Put what becomes of a task into the queue; runs in the client's thread."""
        back: Back | Exception
        try:
            back = await self._client.gather(future, asynchronous=True)
        except CancelledError as error:
            back = RuntimeError(str(error))
        except Exception as error:
            back = error
        self._back.put((future.key, back))

    def _take(self, key: str, back: Back | Exception) -> list[Finished]:
        """What a task brought; nothing if it has to be sent again, or if nothing more can be computed."""
        from distributed import KilledWorker

        task = self._flying.pop(key, None)
        if task is None:  # it was sent to workers that are gone, and again to others
            return []
        future, batch = task.future, task.batch
        alone, self._alone = self._alone, False
        if isinstance(back, list):
            return [Finished(batch, back)]
        if self._client.status != "running":
            self._failure = self._failure or self._lost()
        elif future.status == "cancelled":  # by another user of the cluster, or a restart of it
            self.submit(batch)
        elif future.status != "error":
            return [Finished(batch, None)]
        elif isinstance(back, KilledWorker):
            deaths = back.allowed_failures if alone else 0  # but for the last, which the coordinator counts
            return [Finished(replace(batch, losses=batch.losses + deaths), None)]
        else:
            self._judge(batch, back)
        return []

    def _judge(self, batch: Batch, error: Exception) -> None:
        """No cell is to blame: leave out the workers that such an error comes from, and send it again."""
        found = self._complaints(batch.cells[0])
        for address in sorted(found.keys() - self._unfit):
            self.notes.append(f"the worker {address} is left out: {_reason(found[address])}")
        self._unfit |= found.keys()
        self._puzzles += not found
        if self._puzzles > MOST_PUZZLES or (found and not self._fit):
            self._failure = self._failure or self._refusal(error)
        else:
            self.submit(batch)

    def _complaints(self, cell: Work) -> dict[str, Exception]:
        """Why workers cannot compute a cell, by their addresses."""
        self._looked = 0.0
        self._look()
        if self._failure:
            return {}
        try:
            answers = self._client.sync(
                self._client._run,
                pickle.loads,
                pickle.dumps(_Test(cell)),
                workers=list(self._slots),
                on_error="return",
                callback_timeout=SILENCE,
            )
        except Exception:  # whatever it is, there was no answer
            self._failure = self._lost()
            return {}
        asked = {each: why for each, why in answers.items() if not isinstance(why, OSError)}  # it is gone
        return {each: why for each, why in asked.items() if isinstance(why, Exception)}

    def _refusal(self, error: Exception) -> SeparatrixError:
        """The one line for what no cell can be blamed for."""
        if isinstance(error, SeparatrixError):
            return error
        return SeparatrixError(f"no worker of the cluster at {self._address} is of use: {_reason(error)}")

    def _quiet(self, quiet: bool) -> None:
        for name, level in self._levels.items():
            logging.getLogger(name).setLevel(logging.CRITICAL if quiet else level)


def _reason(error: Exception) -> str:
    """Why a worker cannot compute what others can."""
    if isinstance(error, SeparatrixError):
        return str(error)
    if isinstance(error, ImportError | AttributeError):
        return (
            f"it cannot load what it is to compute ({one_line(error)}); install the same version of "
            "separatrix where the workers run"
        )
    return f"{type(error).__name__}: {one_line(error)}"
