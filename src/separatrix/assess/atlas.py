"""Every mechanism on every construction."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from separatrix.assess.standing import POINTS, Standing, standings
from separatrix.mechanisms import Mechanism, examples

COLUMNS = (
    *("family", "mechanism", "construction", "verdict", "distinguish", "low", "high", "engine"),
    *("margin", "margin_exponent", "blind_from_n"),
)


@dataclass(frozen=True)
class Region:
    """One mechanism and its standing on every construction, or why it has none."""

    mechanism: Mechanism
    standings: tuple[Standing, ...]


@dataclass(frozen=True)
class Atlas:
    """The whole table."""

    regions: tuple[Region, ...]

    @property
    def constructions(self) -> tuple[str, ...]:
        """The columns."""
        return tuple(POINTS)

    def rows(self) -> list[dict[str, Any]]:
        """One row for each mechanism and construction."""
        return [_row(region.mechanism, standing) for region in self.regions for standing in region.standings]

    def as_json(self) -> list[dict[str, Any]]:
        """What `separatrix atlas --json` prints."""
        return self.rows()

    def as_csv(self) -> str:
        """The rows as CSV."""
        text = io.StringIO()
        writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.rows())
        return text.getvalue()


def atlas(
    mechanisms: Sequence[Mechanism] | None = None, tell: Callable[[Mechanism], None] = lambda _: None
) -> Atlas:
    """Assess every mechanism; `tell` hears of each before it starts."""
    regions = []
    for mechanism in examples() if mechanisms is None else mechanisms:
        tell(mechanism)
        regions.append(Region(mechanism, tuple(standings(mechanism))))
    return Atlas(tuple(regions))


def _row(mechanism: Mechanism, standing: Standing) -> dict[str, Any]:
    outcome, growth = standing.verdict.outcome, standing.growth
    return {
        "family": mechanism.family,
        "mechanism": mechanism.spelled,
        "construction": standing.name,
        "verdict": standing.verdict.word,
        "distinguish": outcome.distinguish,
        "low": outcome.interval[0],
        "high": outcome.interval[1],
        "engine": outcome.engine,
        "margin": outcome.margin,
        "margin_exponent": None if growth is None else growth.exponent,
        "blind_from_n": standing.blind_from,
    }
