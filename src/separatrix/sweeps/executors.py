"""Where batches are computed: what every executor does."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from separatrix.sweeps.work import Back, Batch

AHEAD = 2
"""Batches a worker has at once: one it computes, and one that waits for it."""


@dataclass(frozen=True)
class Finished:
    """A batch that came back."""

    batch: Batch
    results: Back | None
    """The results of its first cells, the last perhaps a checkpoint; None where its worker died."""
    late: bool = False
    """Whether its worker was ended since one of its cells took too long."""


class Executor(ABC):
    """Takes batches and gives results back, in any order."""

    def __init__(self, cell_timeout: float | None = None) -> None:
        self.cell_timeout = cell_timeout
        """Seconds that a cell may take; None for as long as it likes."""
        self.notes: list[str] = []
        """What the user should know of the workers, one line each."""
        self._failure: BaseException | None = None
        """Why no more can be computed; raised once all that came back is handed over."""

    @property
    @abstractmethod
    def workers(self) -> int:
        """How many batches are computed at once."""

    @property
    @abstractmethod
    def vacancies(self) -> int:
        """How many more batches it can take without keeping them waiting for long."""

    @property
    @abstractmethod
    def busy(self) -> bool:
        """Whether a batch is still to come back."""

    @abstractmethod
    def submit(self, batch: Batch) -> None:
        """Take a batch."""

    @abstractmethod
    def wait(self, seconds: float) -> list[Finished]:
        """What has come back, after at most so many seconds."""

    @abstractmethod
    def close(self) -> None:
        """Let go of all workers at once; what they were doing is lost."""
