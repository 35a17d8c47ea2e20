"""Workers of an existing Dask cluster, on any number of machines."""

from __future__ import annotations

import logging
import multiprocessing
import pickle
import threading
import time
from asyncio import CancelledError
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from separatrix.core.errors import one_line
from separatrix.core.parameters import SeparatrixError, UsageError
from separatrix.sweeps.dask_setup import read_address, require_distributed
from separatrix.sweeps.executors import BATCHES_PER_WORKER, BatchOutcome, Executor, LocalExecutor
from separatrix.sweeps.work import BatchResults, WorkBatch
from separatrix.sweeps.worker import work

if TYPE_CHECKING:
    from distributed import Client, Future

CONNECT_TIMEOUT = 10.0
"""Seconds to wait for the scheduler, and then for a first worker."""
REFRESH_SECONDS = 1.0
"""Seconds between two looks at the number of workers."""
SILENCE_TIMEOUT = 60.0
"""Seconds without an answer after which the scheduler counts as lost."""
EMPTY_TIMEOUT = 3600.0
"""Seconds without any worker after which the sweep is given up."""
LOGGERS = ("distributed", "distributed.client", "tornado", "tornado.application")
"""Loggers that are silenced, because one line of ours replaces their messages."""
RESUME = "finished results are stored: repeat the command when"


TaskOutcome = BatchResults | BatchOutcome | Exception


@dataclass(frozen=True)
class _DeferredCall:
    """A call of a function, made when it is unpickled.

    Schedulers unpickle tasks, and workers do so before an error can be reported. A task that named our
    functions would load torch into the scheduler, and kill every worker without separatrix. So the task is
    `pickle.loads`.
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...]

    def __reduce__(self) -> tuple[Any, ...]:
        return self.function, self.arguments


class DaskExecutor(Executor):
    """Batches as tasks of Dask, which repeats those of a dead worker elsewhere.

    After some deaths Dask gives up on all tasks that the worker had, so the cause among them is unknown. A
    batch that was lost once is therefore tried alone. A worker with other code, or without a module, ends the
    sweep: it would fail again and again.
    """

    def __init__(self, address: str, cell_timeout: float | None = None) -> None:
        super().__init__(cell_timeout)
        require_distributed()
        self._address = read_address(address)
        self._tasks: dict[str, tuple[Future[Any], WorkBatch]] = {}
        """The batches that are being computed."""
        self._suspects: deque[WorkBatch] = deque()
        """Batches that were lost, and are tried alone."""
        self._is_alone = False
        """Whether the only task is a suspect."""
        self._queue: SimpleQueue[tuple[str, TaskOutcome]] = SimpleQueue()
        self._slots = 0
        """The number of batches that all workers compute at once."""
        self._last_look, self._last_worker = 0.0, time.monotonic()
        self._levels = {name: logging.getLogger(name).level for name in LOGGERS}
        self._set_quiet(True)
        try:
            self._client = self._connect()
        except BaseException:
            self._set_quiet(False)
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
        room = max(BATCHES_PER_WORKER * self.workers, 1) - len(self._tasks)
        return 0 if self._suspects or self._is_alone or self._failure else room

    @property
    def is_busy(self) -> bool:
        return bool(self._tasks or self._suspects or self._failure)

    def submit(self, batch: WorkBatch) -> None:
        if batch.deaths:
            self._suspects.append(batch)
            self._try_suspect()
        else:
            self._send(batch)

    def wait(self, seconds: float) -> list[BatchOutcome]:
        self._look()
        outcomes: list[BatchOutcome] = []
        with suppress(Empty):
            outcomes += self._process(*self._queue.get(timeout=0 if self._failure else seconds))
            while True:
                outcomes += self._process(*self._queue.get_nowait())
        if self._failure and not outcomes:
            raise self._failure
        self._try_suspect()
        return outcomes

    def close(self) -> None:
        self._tasks.clear()
        self._suspects.clear()
        with suppress(Exception):  # the scheduler may be gone; the client is closed anyway
            self._client.close(timeout=CONNECT_TIMEOUT)
        self._set_quiet(False)

    def _connect(self) -> Client:
        from distributed import Client, Security

        if self._address.startswith("tls:") and not Security().get_connection_args("client")["ssl_context"]:
            raise UsageError(f"{self._address} needs certificates: set distributed.comm.tls in Dask's configuration")
        try:
            return Client(self._address, timeout=CONNECT_TIMEOUT, set_as_default=False)
        except OSError:
            raise UsageError(f"no Dask scheduler responds at {self._address}; start one with: dask scheduler") from None
        except ImportError as error:
            raise UsageError(f"the Dask scheduler at {self._address} does not fit: {error}") from None

    def _require_workers(self) -> None:
        end = time.monotonic() + CONNECT_TIMEOUT
        while self.workers == 0:
            if self._failure:
                raise self._failure
            if time.monotonic() > end:
                raise UsageError(
                    f"the Dask scheduler at {self._address} has no workers; start some on every machine "
                    f"with: separatrix worker {self._address}"
                )
            time.sleep(REFRESH_SECONDS / 2)

    def _look(self) -> None:
        """Update the slots from time to time, and check that the cluster still exists."""
        now = time.monotonic()
        is_recent = self._client.status == "running" and now - self._last_look < REFRESH_SECONDS
        if self._failure or is_recent:
            return
        try:
            slots = self._client.sync(self._client.scheduler.ncores, callback_timeout=SILENCE_TIMEOUT)
        except Exception:  # any error means that there was no answer
            self._failure = self._make_lost_error()
            return
        self._slots, self._last_look = sum(slots.values()), now
        if self._slots:
            self._last_worker = now
        if now - self._last_worker > EMPTY_TIMEOUT:
            self._failure = SeparatrixError(
                f"the Dask cluster at {self._address} has had no workers for an hour; {RESUME} it has some"
            )

    def _make_lost_error(self) -> SeparatrixError:
        return SeparatrixError(f"the Dask scheduler at {self._address} is lost; {RESUME} it is back")

    def _try_suspect(self) -> None:
        if self._suspects and not self._tasks:
            self._send(self._suspects.popleft())
            self._is_alone = True

    def _send(self, batch: WorkBatch) -> None:
        # A new key for each attempt: Dask answers a key that it knows with the earlier result.
        key = f"separatrix-{uuid4().hex}"
        call = _DeferredCall(work, batch.arguments)
        if self.cell_timeout is not None:
            call = _DeferredCall(work_within, (batch, self.cell_timeout))
        try:
            future = self._client.submit(pickle.loads, pickle.dumps(call), key=key, pure=False)
        except Exception:
            if self._client.status != "running":
                raise self._make_lost_error() from None
            raise
        self._tasks[key] = future, batch
        self._client.loop.add_callback(self._fetch, future)

    async def _fetch(self, future: Future[Any]) -> None:
        """Put the outcome of a task into the queue; runs in the client's thread."""
        outcome: TaskOutcome
        try:
            outcome = await self._client.gather(future, asynchronous=True)
        except CancelledError as error:
            outcome = RuntimeError(str(error))
        except Exception as error:
            outcome = error
        self._queue.put((future.key, outcome))

    def _process(self, key: str, outcome: TaskOutcome) -> list[BatchOutcome]:
        """The outcome of a task; empty if it is sent again, or if nothing more can be computed."""
        from distributed import KilledWorker

        future, batch = self._tasks.pop(key)
        was_alone, self._is_alone = self._is_alone, False
        if isinstance(outcome, list):
            return [BatchOutcome(batch, outcome)]
        if isinstance(outcome, BatchOutcome):
            return [outcome]
        if self._client.status != "running":
            self._failure = self._failure or self._make_lost_error()
        elif future.status == "cancelled":  # by another user of the cluster, or by its restart
            self.submit(batch)
        elif future.status != "error":
            return [BatchOutcome(batch, None)]
        elif isinstance(outcome, KilledWorker):
            # The run counts one death for each loss; Dask repeated the task after all others.
            deaths = outcome.allowed_failures if was_alone else 0
            return [BatchOutcome(replace(batch, deaths=batch.deaths + deaths), None)]
        else:
            self._failure = self._failure or _as_failure(outcome)
        return []

    def _set_quiet(self, is_quiet: bool) -> None:
        for name, level in self._levels.items():
            logging.getLogger(name).setLevel(logging.CRITICAL if is_quiet else level)


def _as_failure(error: Exception) -> SeparatrixError:
    """The reason why a worker cannot compute a batch."""
    if isinstance(error, SeparatrixError):
        return error
    reason = f"{type(error).__name__}: {one_line(error)}"
    if isinstance(error, ImportError | AttributeError):
        reason = f"it cannot load the code ({one_line(error)}); install the same packages where the workers run"
    return SeparatrixError(f"a worker of the cluster cannot be used: {reason}; {RESUME} it is corrected")


_thread = threading.local()
"""Holds the executor of each thread of a worker."""


def work_within(batch: WorkBatch, limit: float) -> BatchOutcome:
    """Compute a batch on a worker of the cluster, in a process that is ended if an item exceeds the limit."""
    executor: LocalExecutor | None = getattr(_thread, "executor", None)
    if executor is None or executor.cell_timeout != limit:
        # Python allows no children to the workers of Dask, since they are daemons: these end with their
        # parents and would leave children behind. Ours watch their parent, and end with it as well.
        multiprocessing.current_process()._config["daemon"] = False  # type: ignore[attr-defined]
        executor = _thread.executor = LocalExecutor(1, cell_timeout=limit)
    try:
        executor.submit(batch)
        while not (outcomes := executor.wait(1.0)):
            pass
    except BaseException:
        executor.close()
        _thread.executor = None
        raise
    return outcomes[0]
