"""The progress of a sweep."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

from separatrix.core.result import Result, Row
from separatrix.sweeps.work import ReferenceDefaults


@dataclass(repr=False)
class Progress(Result):
    """The number of cells of a sweep by their state; `results` has their content."""

    kind: ClassVar[str] = "sweep"

    total: int
    sweep: str = ""
    """The name of the plan."""
    number: int = 0
    """The number of the sweep in its store."""
    store: str = ""
    """The address of the store, without passwords."""
    kept: int = 0
    """Cells that were in the store already."""
    shared: int = 0
    """Cells that another sweep computed and stored in the meantime."""
    twice: int = 0
    """Cells that were computed in this run already, because another part names them too."""
    done: int = 0
    refused: int = 0
    failed: int = 0
    failed_before: int = 0
    """Cells that are stored as failed and were not tried again."""
    lost: int = 0
    """Batches whose worker died."""
    elsewhere: int = 0
    """Cells that another sweep is computing now."""
    notes: list[str] = field(default_factory=list)
    """Messages for the user, one line each."""
    stopped: bool = False
    """Whether the user stopped it before its end."""
    taken: ReferenceDefaults = field(default_factory=dict)
    """By part and construction, the parameters that the plan leaves out, at the reference point."""

    @property
    def finished(self) -> int:
        """The number of cells that need nothing more."""
        stored = self.kept + self.shared + self.twice + self.failed_before
        return stored + self.done + self.refused + self.failed

    @property
    def summary(self) -> str:
        """The number of stored cells, and of those that need attention."""
        counts = {"refused": self.refused, "failed": self.failed + self.failed_before}
        problems = "".join(f", {count:,} {word}" for word, count in counts.items() if count)
        end = ", stopped" if self.stopped else ""
        return f"{self.sweep}: {self.finished:,} of {self.total:,} cells are stored{problems}{end}"

    def rows(self) -> list[Row]:
        """One row with all counts."""
        document = self.as_json()
        return [{name: value for name, value in document.items() if name not in ("notes", "taken")}]


Tell = Callable[[Progress], None]
