"""Workers of a Dask cluster that is there already, on any number of machines."""

from __future__ import annotations

import logging
import time
from collections import deque
from contextlib import suppress
from dataclasses import replace
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from separatrix.parameters import SeparatrixError, UsageError
from separatrix.store import Result
from separatrix.sweeps.addresses import read_address, require_distributed, settings
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

Back = list[Result] | BaseException


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
        if self._suspects or self._alone:
            return 0
        return AHEAD * self.workers - len(self._flying)

    @property
    def busy(self) -> bool:
        return bool(self._flying or self._suspects)

    def submit(self, batch: Batch) -> None:
        if batch.losses:
            self._suspects.append(batch)
            self._try_suspect()
        else:
            self._send(batch)

    def wait(self, seconds: float) -> list[Finished]:
        self._try_suspect()
        self._look()
        found: list[Finished] = []
        with suppress(Empty):
            found += self._take(*self._back.get(timeout=seconds))
            while True:
                found += self._take(*self._back.get_nowait())
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
            if time.monotonic() > end:
                raise UsageError(
                    f"the Dask scheduler at {self._address} has no workers; start some on every machine "
                    f"with: separatrix worker {self._address}"
                )
            time.sleep(REFRESH / 2)

    def _look(self) -> None:
        """See how many slots there are, now and then."""
        if self._client.status != "running":
            raise self._lost()
        now = time.monotonic()
        if now - self._looked < REFRESH:
            return
        try:
            threads = self._client.sync(self._client.scheduler.ncores, callback_timeout=SILENCE)
        except Exception:  # whatever it is, there was no answer
            raise self._lost() from None
        self._slots, self._looked = sum(threads.values()), now
        self._seen = now if self._slots else self._seen
        if now - self._seen > DESERTED:
            raise SeparatrixError(
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
            future = self._client.submit(partial(work, batch.cells, SLICE), key=key, pure=False)
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
        except BaseException as error:  # also CancelledError, which is no Exception
            back = error
        self._back.put((future.key, back))

    def _take(self, key: str, back: Back) -> list[Finished]:
        """What a task brought; nothing if it has to be sent again."""
        if self._client.status != "running":
            raise self._lost()
        future, batch = self._flying.pop(key)
        alone, self._alone = self._alone, False
        if isinstance(back, list):
            return [Finished(batch, back)]
        if future.status == "cancelled":  # by another user of the cluster, or a restart of it
            self.submit(batch)
            return []
        if future.status != "error":
            return [Finished(batch, None)]
        return [Finished(self._killed(batch, back, alone), None)]

    def _killed(self, batch: Batch, error: Any, alone: bool) -> Batch:
        """The batch if its workers died; any other error of a task is that of the whole cluster."""
        from distributed import KilledWorker

        if isinstance(error, SeparatrixError):
            raise error
        if isinstance(error, KilledWorker):
            return replace(batch, losses=batch.losses + error.allowed_failures) if alone else batch
        if isinstance(error, ImportError | AttributeError):
            raise SeparatrixError(
                f"the cluster at {self._address} cannot load what it is to compute ({error}); install the "
                "same version of separatrix where its scheduler and its workers run"
            ) from None
        raise SeparatrixError(
            f"a worker of {self._address} failed: {type(error).__name__}: {error}; {RESUME} it is mended"
        ) from None

    def _quiet(self, quiet: bool) -> None:
        for name, level in self._levels.items():
            logging.getLogger(name).setLevel(logging.CRITICAL if quiet else level)
