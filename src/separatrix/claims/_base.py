"""What a claim is: a statement with its provenance and a check that can fail."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, ClassVar, Literal

from separatrix.core.result import Result, Row

if TYPE_CHECKING:
    from separatrix.core.schemas import evidence as documents

Provenance = Literal["paper", "rec", "ours"]
"""[paper] stated in the paper's summary; [rec] reconstructed; [ours] a result of this project."""


class ClaimStatus(Enum):
    """How a check came out."""

    HOLDS = "holds"
    ONLY_WHERE = "holds only where"
    FAILS = "fails"


@dataclass(frozen=True)
class Point:
    """One parameter point that was tried."""

    parameters: Mapping[str, int | str]
    holds: bool
    measured: Mapping[str, float | int | str]


@dataclass(frozen=True)
class Finding:
    """What a check found."""

    status: ClaimStatus
    summary: str
    """One line: what was compared and how it came out."""
    slack: str
    """How far from failing, or how loose a bound is, with its number."""
    points: tuple[Point, ...]
    where: str = ""
    """For `holds only where`: the condition, in words."""


@dataclass(frozen=True)
class Claim:
    """A statement of the paper, or ours, as an executable check."""

    name: str
    place: str
    """Where in docs/theory.md it stands, for example "3.1"."""
    provenance: Provenance
    statement: str
    check: Callable[[], Finding]

    @property
    def section(self) -> str:
        """The section of docs/theory.md, for example "3"."""
        return self.place.partition(".")[0]

    @property
    def order(self) -> tuple[int, ...]:
        """What the ledger sorts by: 3.10 comes after 3.9."""
        return tuple(map(int, self.place.split(".")))


def claim(name: str, place: str, provenance: Provenance) -> Callable[[Callable[[], Finding]], Claim]:
    """Make a check a claim of the ledger; the first paragraph of its docstring is the statement.

    >>> @claim("blind", "3.4", "ours")
    ... def check() -> Finding:
    ...     \"""Linear attention is blind
    ...     at n = 1000.
    ...
    ...     How it is checked.
    ...     \"""
    >>> check.statement
    'Linear attention is blind at n = 1000.'
    """

    def made(check: Callable[[], Finding]) -> Claim:
        statement, *_ = (check.__doc__ or "").split("\n\n")
        return Claim(name, place, provenance, " ".join(statement.split()), check)

    return made


@dataclass(frozen=True)
class Entry:
    """A claim and what its check found."""

    claim: Claim
    finding: Finding
    seconds: float

    def as_json(self) -> documents.ClaimEntry:
        """What `separatrix claim NAME --json` prints, and `ledger.json` holds of it."""
        claim, finding = self.claim, self.finding
        return {
            "name": claim.name,
            "section": claim.section,
            "place": claim.place,
            "provenance": claim.provenance,
            "statement": claim.statement,
            "status": finding.status.value,
            "where": finding.where,
            "summary": finding.summary,
            "slack": finding.slack,
            "seconds": round(self.seconds, 3),
            "points": [
                {"parameters": dict(p.parameters), "holds": p.holds, "measured": dict(p.measured)}
                for p in finding.points
            ],
        }


VERBS = {
    ClaimStatus.HOLDS: ("holds", "hold"),
    ClaimStatus.ONLY_WHERE: ("holds with a condition", "hold with a condition"),
    ClaimStatus.FAILS: ("fails", "fail"),
}
"""Of one statement, and of several."""


def came_out(entries: Sequence[Entry]) -> str:
    """How many statements hold, hold with a condition, and fail."""
    statuses = [entry.finding.status for entry in entries]
    counts = {status: statuses.count(status) for status in ClaimStatus}
    said = ", ".join(f"{count} {VERBS[status][count > 1]}" for status, count in counts.items() if count)
    return said or "none were run"


@dataclass(frozen=True, repr=False)
class Ledger(Result):
    """The table of claims."""

    kind: ClassVar[str] = "ledger"
    entries: tuple[Entry, ...]

    @property
    def holds(self) -> bool:
        """Whether no claim fails."""
        return all(entry.finding.status is not ClaimStatus.FAILS for entry in self.entries)

    @property
    def summary(self) -> str:
        """How many claims came out how."""
        return f"{len(self.entries)} claims: {came_out(self.entries)}"

    def rows(self) -> list[Row]:
        """One row for each claim."""
        return [
            {
                "name": entry.claim.name,
                "provenance": entry.claim.provenance,
                "status": entry.finding.status.value,
                "where": entry.finding.where,
                "slack": entry.finding.slack,
                "statement": entry.claim.statement,
            }
            for entry in self.entries
        ]

    def as_json(self) -> list[documents.ClaimEntry]:
        """What `ledger.json` holds."""
        return [entry.as_json() for entry in self.entries]
