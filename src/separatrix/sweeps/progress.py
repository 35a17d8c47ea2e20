"""How far a sweep is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Progress:
    """How far a sweep is."""

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

    @property
    def finished(self) -> int:
        """Cells that need nothing more."""
        stored = self.kept + self.shared + self.twice + self.failed_before
        return stored + self.done + self.refused + self.failed


Tell = Callable[[Progress], None]
