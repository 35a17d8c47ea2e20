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

from separatrix.contract._base import one_line
from separatrix.parameters import SeparatrixError, UsageError
from separatrix.parameters.schedulers import read_address, require_distributed, settings
from separatrix.store import Result
from separatrix.sweeps.cell import Cell
from separatrix.sweeps.executors import SLICE, Executor, Finished
from separatrix.sweeps.work import Batch, work

if TYPE_CHECKING:
    from distributed import Client, Future

__all__ = ["DaskExecutor", "settings"]

AHEAD = 2
"""Batches for each slot: one that is computed, and one that waits for it."""
CONNECT = 10.0
"""Seconds to wait for the scheduler, and then for a first worker."""
REFRESH = 1.0
"""Seconds between two looks at how many workers there are."""
SILENCE = 60.0
"""Seconds without an answer after which the scheduler counts as lost."""
DESERTED = 3600.0
"""Seconds without any worker after which nobody is thought to come."""
LOGGERS = ("distributed", "distributed.client", "tornado", "tornado.application")
"""Those that Dask gives a level of their own; what they would say, one line says."""
RESUME = "what was finished is stored: give the same command again when"

Back = list[Result] | Exception


@dataclass(frozen=True)
class _Call:
    """Work that is done by unpickling it.

    Schedulers unpickle tasks, and workers do so before anybody hears of an error: a task that named our
    code would load torch into the scheduler, and kill every worker that has no separatrix.
    """

    cells: tuple[Cell, ...]

    def __reduce__(self) -> tuple[Any, ...]:
        return work, (self.cells, SLICE)


class DaskExecutor(Executor):
    """Batches as tasks of Dask, which starts those of a dead worker again elsewhere.

    After some deaths it gives up on all the tasks that the worker had, so that the guilty one is not
    known: a batch that was lost once is tried alone.
    """

    def __init__(self, address: str) -> None:
        require_distributed()
        self._address = read_address(address)
        self._levels = {name: logging.getLogger(name).level for name in LOGGERS}
        self._flying: dict[str, tuple[Future[list[Result]], Batch]] = {}
        self._suspects: deque[Batch] = deque()
        self._alone = False
        """Whether what is flying is a suspect."""
        self._back: SimpleQueue[tuple[str, Back]] = SimpleQueue()
        self._failure: SeparatrixError | None = None
        """Why no more can be computed; told once all that came back is handed over."""
        self._slots, self._looked, self._seen = 0, 0.0, time.monotonic()
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
        return self._slots

    @property
    def vacancies(self) -> int:
        room = max(AHEAD * self.workers, 1) - len(self._flying)
        return 0 if self._suspects or self._alone or self._failure else room

    @property
    def busy(self) -> bool:
        return bool(self._flying or self._suspects or self._failure)

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
        self._slots, self._looked = sum(threads.values()), now
        self._seen = now if self._slots else self._seen
        if now - self._seen > DESERTED:
            self._failure = SeparatrixError(
                f"the Dask cluster at {self._address} has had no workers for an hour; {RESUME} it has some"
            )

    def _lost(self) -> SeparatrixError:
        return SeparatrixError(f"the Dask scheduler at {self._address} is lost; {RESUME} it is back")

    def _try_suspect(self) -> None:
        if self._suspects and not self._flying:
            self._send(self._suspects.popleft())
            self._alone = True

    def _send(self, batch: Batch) -> None:
        key = f"separatrix-{uuid4().hex}"
        try:
            future = self._client.submit(pickle.loads, pickle.dumps(_Call(batch.cells)), key=key, pure=False)
        except Exception:
            if self._client.status != "running":
                raise self._lost() from None
            raise
        self._flying[key] = future, batch
        self._client.loop.add_callback(self._fetch, future)

    async def _fetch(self, future: Future[list[Result]]) -> None:
        """Put what becomes of a task into the queue; runs in the client's thread."""
        back: Back
        try:
            back = await self._client.gather(future, asynchronous=True)
        except CancelledError as error:
            back = RuntimeError(str(error))
        except Exception as error:
            back = error
        self._back.put((future.key, back))

    def _take(self, key: str, back: Back) -> list[Finished]:
        """What a task brought; nothing if it has to be sent again, or if nothing more can be computed."""
        from distributed import KilledWorker

        future, batch = self._flying.pop(key)
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
            self._failure = self._failure or self._refusal(back)
        return []

    def _refusal(self, error: Exception) -> SeparatrixError:
        """The one line for what no cell can be blamed for."""
        if isinstance(error, SeparatrixError):
            return error
        what = f"a worker of the cluster at {self._address}"
        if isinstance(error, ImportError | AttributeError):
            return SeparatrixError(
                f"{what} cannot load what it is to compute ({one_line(error)}); install the same version of "
                "separatrix where the workers run"
            )
        return SeparatrixError(f"{what} failed: {type(error).__name__}: {one_line(error)}")

    def _quiet(self, quiet: bool) -> None:
        for name, level in self._levels.items():
            logging.getLogger(name).setLevel(logging.CRITICAL if quiet else level)
