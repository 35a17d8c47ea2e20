"""Claims: statements with their provenance and an executable check that can fail."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np

from separatrix.checker import check_document
from separatrix.claims._evidence import COMPUTED, EVIDENCE
from separatrix.constructions import Label
from separatrix.core.documents import Document, Hidden, Inlined, shown
from separatrix.core.numbers import format_exact
from separatrix.core.numbers.json import json_file
from separatrix.core.result import Result, Row
from separatrix.exact import verdicts

Array = np.ndarray[Any, Any]
Setting = dict[str, Any]
"""Parameters by name: integers, and decimals as text."""
BASE: Setting = {"a0": "0.01", "a1": "1.2", "b": "0.2", "c": "0.1", "d": 102, "m": 12}
"""The parameters of the reference numbers."""
LABELS: tuple[Label, ...] = (0, 1)
DELTA = float(verdicts.DELTA)
"""P >= 1 - DELTA distinguishes, P <= DELTA is blind."""

Provenance = Literal["paper", "rec", "ours"]
"""[paper] stated in the paper's summary; [rec] reconstructed; [ours] a result of this project."""
SECTIONS = {
    "1": "Attention units",
    "2": "The reader",
    "3": "The spike construction",
    "4": "The plain case",
    "5": "Cross-attention",
    "6": "Further separations",
    "7": "Open questions of the summary",
}
"""The titles of the sections of docs/theory.md that have claims."""


class ClaimStatus(Enum):
    """The result of a check."""

    HOLDS = "holds"
    ONLY_WHERE = "holds only where"
    FAILS = "fails"


@dataclass(frozen=True, init=False)
class Point(Document):
    """One parameter point at which a claim was tried, fit for JSON: exact decimals as text, and no NaN."""

    parameters: Mapping[str, int | str]
    holds: bool
    measured: Mapping[str, int | str | float]

    def __init__(self, parameters: Mapping[str, object], holds: object, **measurements: object) -> None:
        texts = {name: _to_parameter(value) for name, value in parameters.items()}
        numbers = {name: _to_measurement(value) for name, value in measurements.items()}
        self.__dict__.update(parameters=texts, holds=bool(holds), measured=numbers)


def _to_parameter(value: object) -> int | str:
    if isinstance(value, Fraction | float):
        return format_exact(Fraction(str(value)))
    if not isinstance(value, int | np.integer):
        return str(value)
    digits = str(value)
    significant = digits.rstrip("0")
    # JSON readers keep integers below 2^53; larger ones are exact text.
    return int(value) if value < 2**53 else f"{significant}e{len(digits) - len(significant)}"


def _to_measurement(value: object) -> int | str | float:
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating | np.ndarray) and math.isfinite(value):
        return float(value)
    return str(value)


class Quantity(list[float]):
    """The values of a measured quantity at some points."""

    @property
    def min(self) -> float:
        """The smallest value; NaN if nothing was measured."""
        return min(self, default=math.nan)

    @property
    def max(self) -> float:
        """The largest value; NaN if nothing was measured."""
        return max(self, default=math.nan)


@dataclass(frozen=True)
class Finding(Document):
    """The status of a claim and the evidence for it."""

    status: ClaimStatus
    summary: str
    """One line: the comparison that was made, and its result."""
    slack: str
    """How far the claim is from failing, or how loose a bound is, with its number."""
    points: tuple[Point, ...]
    where: str = ""
    """For `holds only where`: the condition, in words."""
    certificates: Hidden[tuple[dict[str, Any], ...]] = ()
    """The certificates of what is proved for every n; each is verified by the checker and is one of the points."""


class Points(list[Point]):
    """The points at which a check was tried; `points.error` has the values that they measured as `error`.

    >>> points = Points([Point({"n": 10}, True, error=1e-9), Point({"n": 20}, True, error=2e-9)])
    >>> points.error.max
    2e-09
    """

    def __init__(self, points: Iterable[Point] = ()) -> None:
        super().__init__(points)
        self.certificates: list[dict[str, Any]] = []

    def __getattr__(self, name: str) -> Quantity:
        if name.startswith("_"):
            raise AttributeError(name)
        return self.values(name)

    def values(self, *names: str) -> Quantity:
        """Return the measurements with these names that are numbers; infinity and NaN are kept as texts."""
        values = (point.measured.get(name) for point in self for name in names)
        return Quantity(float(value) for value in values if isinstance(value, int | float))

    def add(self, parameters: Mapping[str, object], holds: object, **measurements: object) -> None:
        """Append a point fit for JSON."""
        self.append(Point(parameters, holds, **measurements))

    def verify(self, certificate: dict[str, Any], holds: object = True, **measurements: object) -> None:
        """Append a certificate as a point, which holds if the independent checker accepts it, and `holds` is true."""
        report = check_document(json.loads(json_file(certificate)))
        mechanism = ":".join(map(str, certificate["mechanism"].values()))
        numbers = certificate["parameters"] if "parameters" in certificate else certificate["ranges"]
        parameters = {"mechanism": mechanism, **numbers, "from": certificate["from"]}
        self.certificates.append(certificate)
        self.add(parameters, report.holds and holds, verified=report.verified, **measurements)

    def conclude(self, summary: str, slack: str) -> Finding:
        """Return the finding: the claim holds if there are points and all of them hold."""
        bad = sum(not point.holds for point in self)
        if bad or not self:
            summary = f"{bad} of {len(self)} points fail: {summary}"
        status = ClaimStatus.FAILS if bad or not self else ClaimStatus.HOLDS
        return Finding(status, summary, slack, tuple(self), certificates=tuple(self.certificates))

    def conclude_where(self, outside: Sequence[Point], condition: str, summary: str, slack: str) -> Finding:
        """Conclude for these points, which satisfy a condition; `outside` shows whether it is needed."""
        inside = self.conclude(summary, slack)
        is_needed = inside.status is ClaimStatus.HOLDS and not all(point.holds for point in outside)
        status, applied_condition = (ClaimStatus.ONLY_WHERE, condition) if is_needed else (inside.status, "")
        points = (*self, *outside)
        return Finding(status, inside.summary, slack, points, applied_condition, inside.certificates)


@dataclass(frozen=True)
class Claim(Document):
    """A statement of the paper, or ours, as an executable check."""

    name: str
    place: str
    """The section of docs/theory.md that states it, for example "3.1"."""
    provenance: Provenance
    statement: str
    evidence: str
    """How it is known; of statements about growing n, whether they are proved, extrapolated or sampled."""
    check: Hidden[Callable[[], Finding]]

    @shown
    def section(self) -> str:
        """The main section of docs/theory.md, for example "3"."""
        return self.place.partition(".")[0]

    @property
    def order(self) -> tuple[int, ...]:
        """The sort key of the ledger: 3.10 comes after 3.9."""
        return tuple(map(int, self.place.split(".")))


def claim(name: str, place: str, provenance: Provenance) -> Callable[[Callable[[], Finding]], Claim]:
    """Turn a check into a claim of the ledger; the first paragraph of its docstring is the statement.

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

    def register(check: Callable[[], Finding]) -> Claim:
        statement, *_ = (check.__doc__ or "").split("\n\n")
        return Claim(name, place, provenance, " ".join(statement.split()), EVIDENCE.get(name, COMPUTED), check)

    return register


@dataclass(frozen=True)
class Entry(Document):
    """A claim and the result of its check."""

    claim: Inlined[Claim]
    finding: Inlined[Finding]
    seconds: float


VERBS = {
    ClaimStatus.HOLDS: ("holds", "hold"),
    ClaimStatus.ONLY_WHERE: ("holds with a condition", "hold with a condition"),
    ClaimStatus.FAILS: ("fails", "fail"),
}
"""The verb for one statement, and for several."""


def count_statuses(entries: Sequence[Entry]) -> str:
    """Return how many statements hold, hold with a condition, and fail, in words."""
    statuses = [entry.finding.status for entry in entries]
    counts = {status: statuses.count(status) for status in ClaimStatus}
    parts = [f"{count} {VERBS[status][count > 1]}" for status, count in counts.items() if count]
    return ", ".join(parts) or "none were run"


@dataclass(frozen=True, repr=False)
class Ledger(Result):
    """The table of claims."""

    kind: ClassVar[str] = "ledger"
    columns: ClassVar[tuple[str, ...]] = ("name", "provenance", "status", "where", "slack", "statement", "evidence")
    items: ClassVar[tuple[str, Any] | None] = ("entries", Entry)
    entries: tuple[Entry, ...]

    @property
    def holds(self) -> bool:
        """Whether no claim fails."""
        return all(entry.finding.status is not ClaimStatus.FAILS for entry in self.entries)

    @property
    def summary(self) -> str:
        """How many claims have which status."""
        return f"{len(self.entries)} claims: {count_statuses(self.entries)}"

    def rows(self) -> list[Row]:
        """Return one row for each claim."""
        return [{name: row[name] for name in self.columns} for row in self.as_json()]
