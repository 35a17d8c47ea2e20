"""How far a sweep is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, cast

from separatrix.core.result import Result, Row

if TYPE_CHECKING:
    from separatrix.core.schemas import storage as documents


@dataclass(repr=False)
class Progress(Result):
    """How far a sweep is; what its cells found, `results` has."""

    kind: ClassVar[str] = "sweep"

    total: int
    sweep: int = 0
    """Its number in the store."""
    kept: int = 0
    """Cells that were in the store already."""
    shared: int = 0
    """Cells that another sweep computed and stored while this one ran."""
    twice: int = 0
    """Cells that were computed in this run already, since another part names them too."""
    done: int = 0
    refused: int = 0
    failed: int = 0
    failed_before: int = 0
    """Cells that are stored as failed and were not tried again."""
    lost: int = 0
    """Batches whose worker died."""
    elsewhere: int = 0
    """Cells that another sweep is computing just now."""
    notes: list[str] = field(default_factory=list)
    """What the user should know of the workers, one line each."""
    stopped: bool = False
    """Whether the user stopped it before its end."""
    plan: str = ""
    """The name of what is run."""
    store: str = ""
    """Where its cells are, without passwords."""

    @property
    def finished(self) -> int:
        """Cells that need nothing more."""
        stored = self.kept + self.shared + self.twice + self.failed_before
        return stored + self.done + self.refused + self.failed

    @property
    def summary(self) -> str:
        """How many cells are stored, and which of them need a look."""
        counts = {"refused": self.refused, "failed": self.failed + self.failed_before}
        but = "".join(f", {count:,} {word}" for word, count in counts.items() if count)
        end = ", stopped" if self.stopped else ""
        return f"{self.plan}: {self.finished:,} of {self.total:,} cells are stored{but}{end}"

    def rows(self) -> list[Row]:
        """One row: how many cells came out how."""
        return [{name: value for name, value in self.as_json().items() if name != "notes"}]

    def as_json(self) -> documents.Sweep:
        """What `separatrix sweep --json` prints."""
        own = ("sweep", "plan", "store")
        counted = {name: value for name, value in vars(self).items() if name not in own}
        return cast(
            "documents.Sweep", {"sweep": self.plan, "number": self.sweep, "store": self.store, **counted}
        )


Tell = Callable[[Progress], None]
