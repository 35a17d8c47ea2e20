"""What a sweep can run: work of any kind, each a class of plain data that says how it is computed.

Verdicts are one kind (`verdict_cells`). Everything else in this room knows only what stands here.
"""

from __future__ import annotations

import hashlib
import json
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Protocol

from separatrix.core.errors import SeparatrixError, one_line
from separatrix.sweeps.store import Answer, Checkpoint, Environment, Result, Status
from separatrix.sweeps.store.rows import now
from separatrix.sweeps.store.schema import VERDICT
from separatrix.sweeps.store.selection import TAKEN

IDENTITY = 2
"""Changed if ever the way changes in which an identity is made."""
Checkpoints = Mapping[str, Checkpoint]
"""From which work goes on, by identity."""
Back = list[Result | Checkpoint]
"""What a worker hands back of a batch; a checkpoint comes last, of work that is not finished."""


class Work(ABC):
    """One piece of work; a frozen dataclass that says everything that determines its result."""

    kind: ClassVar[str]
    """The name of the kind in the store."""
    threads: ClassVar[int] = 1
    """Threads of torch that a worker computes it with."""
    turn: ClassVar[float] = 2.0
    """Seconds after which a worker hands a batch back, finished or not, so that nothing straggles."""
    resumes: ClassVar[bool] = False
    """Whether it gives checkpoints, from which it goes on elsewhere and after a stop."""
    code: str
    """The version of the code that it was planned with."""

    @abstractmethod
    def identity(self) -> Sequence[Any]:
        """What determines the result beside the code, as plain data."""

    @abstractmethod
    def columns(self) -> dict[str, Any]:
        """What was asked, by the columns of the store; texts by name under `parameters`."""

    @property
    @abstractmethod
    def cost_key(self) -> tuple[str, ...]:
        """The same for work that is thought to cost alike, and that a worker may be given together."""

    @abstractmethod
    def code_here(self) -> str:
        """The version of the code that this process would compute it with."""

    @abstractmethod
    def compute(self, checkpoint: bytes | None) -> Iterator[bytes | Answer]:
        """Any number of checkpoints, from each of which it could go on, and then the answer."""

    def share_done(self, checkpoint: bytes) -> float:
        """How much of it lies behind a checkpoint, up to 1; 0 where that is not known."""
        return 0.0

    @cached_property
    def id(self) -> str:
        """The same for the same work, whatever the plan, the machine or the day."""
        whole = (IDENTITY, self.kind, self.identity(), self.code)
        spelled = json.dumps(whole, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(spelled.encode()).hexdigest()[:32]

    def asked(self) -> dict[str, Any]:
        """The row of the store, as far as it is known before there is a result."""
        return {"kind": self.kind, "code": self.code, **self.columns()}

    @classmethod
    def run(
        cls, works: Sequence[Any], here: Environment, checkpoints: Checkpoints | None = None
    ) -> Iterator[Back]:
        """The results of work with one cost key, in order, some at a time.

        Whatever one raises is its result: it never keeps the others from theirs.
        """
        known = checkpoints or {}
        for work in works:
            yield from ([each] for each in attempt(work, here, known.get(work.id)))


def attempt(work: Work, here: Environment, checkpoint: Checkpoint | None) -> Iterator[Result | Checkpoint]:
    """One piece of work, from a checkpoint or from the beginning."""
    before, start = 0.0 if checkpoint is None else checkpoint.seconds, time.perf_counter()
    try:
        for found in work.compute(None if checkpoint is None else checkpoint.data):
            seconds = before + time.perf_counter() - start
            if isinstance(found, Answer):
                if work.kind != VERDICT and (taken := sorted(found.found.keys() & TAKEN)):
                    raise ValueError(f"{', '.join(taken)}: the store has other columns of this name")
                yield result(found, seconds, here)
                return
            yield Checkpoint(found, seconds)
        raise RuntimeError("it ended without an answer")
    except SeparatrixError as error:
        message = str(error)
    except (Exception, SystemExit) as error:  # whatever a stranger's mechanism raises
        message = f"{type(error).__name__}: {one_line(error)}"
    failed = Answer(status=Status.FAILED, message=message)
    yield result(failed, before + time.perf_counter() - start, here)


def result(answer: Answer, seconds: float, here: Environment) -> Result:
    """An answer as it is stored."""
    return Result(seconds=seconds, finished=now(), environment=here, **vars(answer))


class Planned(Protocol):
    """What a sweep is told to run, as a plan tells it."""

    @property
    def name(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def key(self) -> str:
        """The same for the same text and the same versions of the code."""

    @property
    def count(self) -> int: ...
    @property
    def threads(self) -> int:
        """The most threads of torch that a worker computes a piece of it with."""

    def __iter__(self) -> Iterator[tuple[str, Work]]:
        """Every piece of work, with the name of the part that it belongs to."""


@dataclass(frozen=True)
class WorkList:
    """Work that a program wants done, as `run` and `sweep` take it: each with the name of its part."""

    name: str
    works: tuple[tuple[str, Work], ...]
    text: str = "made by a program"

    @property
    def key(self) -> str:
        """The same for the same work and the same versions of the code."""
        spelled = "\0".join((self.name, *(f"{part} {work.id}" for part, work in self.works)))
        return hashlib.sha256(spelled.encode()).hexdigest()[:32]

    @property
    def count(self) -> int:
        """How many there are; one that is named twice counts twice."""
        return len(self.works)

    @property
    def threads(self) -> int:
        """The most threads of torch that a worker computes one of them with."""
        return max((work.threads for _, work in self.works), default=1)

    def __iter__(self) -> Iterator[tuple[str, Work]]:
        return iter(self.works)


@dataclass(frozen=True)
class Batch:
    """Work of one cost key that goes to a worker together."""

    cells: tuple[Work, ...]
    losses: int = 0
    """How often a worker died over it."""
    checkpoints: Checkpoints = field(default_factory=dict)

    @property
    def order(self) -> tuple[tuple[Work, ...], float, Checkpoints]:
        """What a worker is told: the work, for how many seconds, and from where it goes on."""
        return self.cells, self.cells[0].turn, self.checkpoints
