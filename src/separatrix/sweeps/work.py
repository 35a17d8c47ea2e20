"""Work items: anything that a sweep can run and a store can keep.

A kind of work is a class of plain data that knows how to compute its result. Verdicts are one kind
(`verdict_cells`), training runs another (`training_runs`). Plans, executors and the store use only this
interface.
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
from separatrix.sweeps.store import Answer, CellResult, CellStatus, Checkpoint, Environment
from separatrix.sweeps.store.rows import utc_now
from separatrix.sweeps.store.schema import VERDICT
from separatrix.sweeps.store.selection import RESERVED

IDENTITY_VERSION = 1
"""To be changed with the way in which identities are made."""
Checkpoints = Mapping[str, Checkpoint]
"""Checkpoints by the identity of the work."""
BatchResults = list[CellResult | Checkpoint]
"""The results of the first items of a batch; a checkpoint of unfinished work comes last."""
ReferenceDefaults = dict[str, dict[str, dict[str, str]]]
"""By part and construction, parameters that a plan leaves out, with the values of the reference point."""


class WorkItem(ABC):
    """One piece of work: a frozen dataclass with everything that determines its result."""

    kind: ClassVar[str]
    """The name of the kind in the store."""
    threads: ClassVar[int] = 1
    """Threads of torch with which a worker computes it."""
    turn_seconds: ClassVar[float] = 2.0
    """Seconds after which a worker returns a batch, finished or not, so that no worker falls behind."""
    has_checkpoints: ClassVar[bool] = False
    """Whether it yields checkpoints, from which it continues elsewhere and after a stop."""
    code: str
    """The version of the code for which it was planned."""

    @abstractmethod
    def identity(self) -> Sequence[Any]:
        """Return what determines the result beside the code, as plain data."""

    @abstractmethod
    def columns(self) -> dict[str, Any]:
        """Return the columns of the store that describe the work; `parameters` are texts by name."""

    @property
    @abstractmethod
    def cost_key(self) -> tuple[str, ...]:
        """The same for items that are expected to cost the same and may go to a worker together."""

    @abstractmethod
    def current_code(self) -> str:
        """Return the version of the code with which this process would compute it."""

    @abstractmethod
    def compute(self, checkpoint: bytes | None) -> Iterator[bytes | Answer]:
        """Yield any number of checkpoints, and then the answer."""

    @property
    def length(self) -> float:
        """The number of tokens, at least 2, which the computing time may depend on."""
        try:
            return max(2.0, float(self.columns()["parameters"].get("n") or 2))
        except (OverflowError, ValueError):
            return 2.0

    def estimate_share(self, checkpoint: bytes) -> float:
        """Return the share of the work that a checkpoint has behind it, up to 1; 0 if it is unknown."""
        return 0.0

    @cached_property
    def id(self) -> str:
        """The identity: the same for the same work in any plan, on any machine."""
        content = (IDENTITY_VERSION, self.kind, self.identity(), self.code)
        text = json.dumps(content, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def row(self) -> dict[str, Any]:
        """Return the columns of the store that are known before there is a result."""
        return {"kind": self.kind, "code": self.code, **self.columns()}

    @classmethod
    def run(
        cls, items: Sequence[Any], environment: Environment, checkpoints: Checkpoints | None = None
    ) -> Iterator[BatchResults]:
        """Yield the results of items with one cost key, in order, some at a time.

        An error of one item is its result, and does not affect the others.
        """
        checkpoints_by_id = checkpoints or {}
        for item in items:
            yield from ([result] for result in run_item(item, environment, checkpoints_by_id.get(item.id)))


def run_item(
    item: WorkItem, environment: Environment, checkpoint: Checkpoint | None
) -> Iterator[CellResult | Checkpoint]:
    """Compute one item, from a checkpoint or from the beginning."""
    before, start = 0.0 if checkpoint is None else checkpoint.seconds, time.perf_counter()
    try:
        for output in item.compute(None if checkpoint is None else checkpoint.data):
            seconds = before + time.perf_counter() - start
            if isinstance(output, Answer):
                reserved_names = sorted(output.findings.keys() & RESERVED)
                if item.kind != VERDICT and reserved_names:
                    raise ValueError(f"{', '.join(reserved_names)}: the store has other columns of this name")
                yield make_result(output, seconds, environment)
                return
            yield Checkpoint(output, seconds)
        raise RuntimeError("it ended without an answer")
    except SeparatrixError as error:
        message = str(error)
    except (Exception, SystemExit) as error:  # a user's mechanism may raise anything
        message = f"{type(error).__name__}: {one_line(error)}"
    failure = Answer(status=CellStatus.FAILED, message=message)
    yield make_result(failure, before + time.perf_counter() - start, environment)


def make_result(answer: Answer, seconds: float, environment: Environment) -> CellResult:
    """Return an answer with its cost and origin."""
    return CellResult(seconds=seconds, finished=utc_now(), environment=environment, **vars(answer))


class WorkPlan(Protocol):
    """What a sweep runs: a `Plan`, or a `WorkList` of a program."""

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
        """The most threads of torch with which a worker computes an item."""

    @property
    def reference_defaults(self) -> ReferenceDefaults: ...
    def __iter__(self) -> Iterator[tuple[str, WorkItem]]:
        """Yield every item with the name of its part."""


@dataclass(frozen=True)
class WorkList:
    """Work items of a program, each with the name of its part."""

    name: str
    items: tuple[tuple[str, WorkItem], ...]
    text: str = "made by a program"
    reference_defaults: ReferenceDefaults = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The same for the same work and the same versions of the code."""
        text = "\0".join((self.name, *(f"{part} {item.id}" for part, item in self.items)))
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    @property
    def count(self) -> int:
        """The number of items; one in two parts counts twice."""
        return len(self.items)

    @property
    def threads(self) -> int:
        """The most threads of torch with which a worker computes an item."""
        return max((item.threads for _, item in self.items), default=1)

    def __iter__(self) -> Iterator[tuple[str, WorkItem]]:
        return iter(self.items)


@dataclass(frozen=True)
class WorkBatch:
    """Items of one cost key that go to a worker together."""

    items: tuple[WorkItem, ...]
    deaths: int = 0
    """The number of workers that died while they computed it."""
    checkpoints: Checkpoints = field(default_factory=dict)

    @property
    def arguments(self) -> tuple[tuple[WorkItem, ...], float, Checkpoints]:
        """The arguments of `worker.work`: the items, the seconds for them, and their checkpoints."""
        return self.items, self.items[0].turn_seconds, self.checkpoints
