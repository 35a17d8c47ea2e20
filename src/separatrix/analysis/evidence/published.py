"""Published numbers of trained models (`published.toml`), and their comparison with ours by one rule."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from pathlib import Path
from typing import ClassVar

from separatrix.analysis.evidence import exact_statements
from separatrix.core.documents import Document, Hidden, shown
from separatrix.core.parameters import require_known
from separatrix.core.result import Result, Row

FIGURE_ACCURACY = 0.025
"""The error of a number that was read off a figure."""
ROUNDING = 1e-12
_DOCUMENT = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
RULE: str = _DOCUMENT["rule"]


@dataclass(frozen=True)
class PublishedNumber(Document):
    """A published number, and the way it is measured here; `published.toml` explains the fields."""

    name: str
    source: str
    states: str
    published: float | None = None
    """None if the source states no number."""
    accuracy: float = 0.0
    """The error of the number as it is stated."""
    learn: Hidden[str] = ""
    length: Hidden[int | None] = None
    above_chance: Hidden[bool] = False
    best_of: Hidden[int | None] = None
    compute: Hidden[Callable[[], float] | None] = None
    computes: Hidden[str] = ""
    rounding: Hidden[float] = 0.0
    not_measured: Hidden[str] = ""
    differs: Hidden[str] = ""
    other: Hidden[str] = ""
    cpu_seconds: float = 0


def read_printed(digits: str) -> tuple[float, float]:
    """Return a printed decimal number or percentage, and its error: half of the last digit.

    >>> read_printed("0.02"), read_printed("98.6%")
    ((0.02, 0.005), (0.986, 0.0005))
    """
    number, unit = Fraction(digits.rstrip("%")), Fraction(1, 100 if digits.endswith("%") else 1)
    decimals = len(digits.rstrip("%").partition(".")[2])
    return float(number * unit), float(unit / 10**decimals / 2)


def _read_entries() -> Iterator[PublishedNumber]:
    for group in _DOCUMENT["group"]:
        for entry in group.pop("entry"):
            # What a group says holds for its entries, unless they say otherwise.
            values = {**group, **entry}
            if "printed" in values:
                values["published"], values["accuracy"] = read_printed(values.pop("printed"))
            elif "figure" in values:
                values["published"], values["accuracy"] = values.pop("figure"), FIGURE_ACCURACY
            elif "exact" in values:
                values["published"] = float(Fraction(values.pop("exact")))
            if "compute" in values:
                values["compute"] = getattr(exact_statements, values["compute"])
            yield PublishedNumber(**values)


PUBLISHED = tuple(_read_entries())


def published_named(names: Sequence[str]) -> tuple[PublishedNumber, ...]:
    """Return the entries of these names, or all without any."""
    entries = {entry.name: entry for entry in PUBLISHED}
    for name in names:
        require_known("published number", name, entries)
    return tuple(entries[name] for name in dict.fromkeys(names)) or PUBLISHED


class Agreement(Enum):
    """The result of a comparison with a published number."""

    AGREES = "agrees"
    DIFFERS = "differs"
    OTHER = "other setting"
    NONE = "not computed"


@dataclass(frozen=True)
class OurNumber:
    """A number that was measured or computed here."""

    value: float
    interval: tuple[float, float] | None = None
    seeds: tuple[float, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ReproducedNumber(PublishedNumber):
    """A published number beside ours."""

    ours: float | None
    interval: tuple[float, float] | None
    seeds: tuple[float, ...]
    verdict: Agreement
    why: str
    """The reason for the verdict."""
    command: str | None
    """The command that measures it by itself."""
    measured_by: str | None
    """The experiment as a command, or a description of the computation; None if nothing was measured."""

    @shown
    def differs_in(self) -> str | None:
        """Other differences between the question of the source and ours."""
        return self.differs or None


@dataclass(frozen=True, repr=False)
class ReproductionLedger(Result):
    """Published numbers, measured again."""

    kind: ClassVar[str] = "published"
    entries: tuple[ReproducedNumber, ...]

    @shown
    def rule(self) -> str:
        """The rule of the verdicts."""
        return RULE

    @shown
    def counts(self) -> Mapping[str, int]:
        """The number of entries with each verdict."""
        counts = Counter(entry.verdict for entry in self.entries)
        return {agreement.value: counts[agreement] for agreement in Agreement}

    @property
    def summary(self) -> str:
        """The number of entries with each verdict that occurs."""
        counts = ", ".join(f"{count} {word}" for word, count in self.counts.items() if count)
        return f"{len(self.entries)} published numbers: {counts}"

    def rows(self) -> list[Row]:
        """Return one row for each number."""
        return [
            {name: value for name, value in entry.as_json().items() if name not in ("interval", "seeds")}
            for entry in self.entries
        ]


def judge_agreement(entry: PublishedNumber, ours: OurNumber | None, changes: str = "") -> tuple[Agreement, str]:
    """Return the verdict by `RULE`, and the reason; `changed` parameters make the question another one."""
    if ours is None or entry.published is None:
        return Agreement.NONE, entry.not_measured or "every run failed"
    if entry.other or changes:
        return Agreement.OTHER, "; ".join(filter(None, (changes, entry.other)))
    low, high = ours.interval or (ours.value, ours.value)
    distance = max(low - entry.published, entry.published - high)
    if entry.compute is not None:
        if distance <= entry.accuracy + entry.rounding + ROUNDING:
            return Agreement.AGREES, "it is the same but for rounding" if distance > 0 else "it is the same"
        return Agreement.DIFFERS, f"it is {distance:.2g} from ours; {entry.differs}".strip("; ")
    if distance <= 0:
        return Agreement.AGREES, "it lies in our interval"
    if distance <= entry.accuracy + ROUNDING:
        return Agreement.AGREES, f"it is {distance:.2g} from ours, and may itself be off by {entry.accuracy:g}"
    return Agreement.DIFFERS, f"it is {distance:.2g} from our interval; {entry.differs}".strip("; ")


def build_reproduction(
    entry: PublishedNumber,
    ours: OurNumber | None,
    errors: Sequence[str],
    parameters: Mapping[str, object],
    changes: str,
) -> ReproducedNumber:
    """Put a published number beside ours; `errors` are those of failed runs."""
    verdict, reason = judge_agreement(entry, ours, changes and f"asked with {changes}")
    if errors:
        reason = errors[0] if ours is None else f"{reason}; {len(errors)} failed: {errors[0]}"
    words = "".join(f" {name}={value}" for name, value in parameters.items())
    return ReproducedNumber(
        **vars(entry),
        ours=None if ours is None else ours.value,
        interval=None if ours is None else ours.interval,
        seeds=() if ours is None else ours.seeds,
        verdict=verdict,
        why=reason,
        command=None if entry.not_measured else f"separatrix learn --published {entry.name}{words}",
        measured_by=describe_measurement(entry, parameters),
    )


def describe_measurement(entry: PublishedNumber, parameters: Mapping[str, object] | None = None) -> str | None:
    """Return the experiment as a command with these parameters, or a description of the computation."""
    if not entry.learn:
        return entry.computes or None
    task, mechanism, *words = entry.learn.split()
    values = dict(word.split("=", 1) for word in words) | {**(parameters or {})}
    return " ".join(("separatrix learn", task, mechanism, *(f"{name}={value}" for name, value in values.items())))
