"""The reproduction of the paper: its computations and its result, without the pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from separatrix.claims._base import Ledger
from separatrix.core.documents import Document, Hidden, shown


@dataclass(frozen=True)
class Reproduction(Document):
    """The files that a reproduction wrote, and whether every claim holds."""

    out: Path
    ledger: Hidden[Ledger]
    files: tuple[str, ...]
    seconds: float

    @shown
    def report(self) -> Path:
        """The page to open."""
        return self.out / "report.html"

    @shown
    def holds(self) -> bool:
        """Whether no claim fails."""
        return self.ledger.holds

    @shown
    def claims(self) -> Mapping[str, int]:
        """The number of claims of each status."""
        return Counter(entry.finding.status.value for entry in self.ledger.entries)
