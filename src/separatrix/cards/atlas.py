"""Every mechanism on every construction."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import active_children, get_context
from typing import Any

import torch

from separatrix.cards.standing import Standing, Unanswered, points, standing
from separatrix.mechanisms import Mechanism, examples
from separatrix.startup import safe_path, signals_held_back

COLUMNS = (
    *("family", "mechanism", "construction", "verdict", "distinguish", "low", "high", "kind", "engine"),
    *("evidence", "margin", "margin_exponent", "blind_from_n", "blind_searched_to"),
)
Tell = Callable[[int, int, str], None]
"""Hears how many cells are done, of how many, and which was the last or is the next."""


@dataclass(frozen=True)
class Region:
    """One mechanism and its standing on every construction, or why it has none there."""

    mechanism: Mechanism
    standings: tuple[Standing | Unanswered, ...]


@dataclass(frozen=True)
class Atlas:
    """The standing of every mechanism on every construction."""

    regions: tuple[Region, ...]

    @property
    def constructions(self) -> tuple[str, ...]:
        """The names of the constructions."""
        return tuple(points())

    @property
    def families(self) -> dict[str, list[Region]]:
        """The regions of the mechanisms, by family."""
        found: dict[str, list[Region]] = {}
        for region in self.regions:
            found.setdefault(region.mechanism.family, []).append(region)
        return found

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
    mechanisms: Sequence[Mechanism] | None = None, tell: Tell = lambda *_: None, workers: int = 1
) -> Atlas:
    """Assess every mechanism on every construction, in as many processes as there are `workers`."""
    chosen = examples() if mechanisms is None else list(mechanisms)
    cells = [(mechanism, name) for mechanism in chosen for name in points()]
    cells.sort(key=lambda cell: cell[0].takes_counts)  # the long ones first, so that all end together
    found = dict(_filled(cells, tell, workers))
    return Atlas(
        tuple(Region(each, tuple(found[each.spelled, name] for name in points())) for each in chosen)
    )


def _filled(
    cells: list[tuple[Mechanism, str]], tell: Tell, workers: int
) -> Iterator[tuple[tuple[str, str], Standing | Unanswered]]:
    if workers <= 1:
        for done, (mechanism, name) in enumerate(cells):
            tell(done, len(cells), f"{mechanism.spelled} on {name}")
            yield (mechanism.spelled, name), _cell(mechanism, name)
        return
    context = get_context("spawn")
    before = set(active_children())
    with safe_path(), signals_held_back():
        pool = ProcessPoolExecutor(workers, context, initializer=torch.set_num_threads, initargs=(1,))
        waiting: dict[Future[Standing | Unanswered], tuple[str, str]] = {
            pool.submit(_cell, mechanism, name): (mechanism.spelled, name) for mechanism, name in cells
        }
    started = set(active_children()) - before
    with pool:
        try:
            for done, future in enumerate(as_completed(waiting), 1):
                tell(done, len(cells), " on ".join(waiting[future]))
                yield waiting[future], future.result()
        except BaseException:
            for process in started:
                process.kill()
            pool.shutdown(cancel_futures=True)
            raise


def _cell(mechanism: Mechanism, name: str) -> Standing | Unanswered:
    return standing(name, points()[name], mechanism)


def _row(mechanism: Mechanism, cell: Standing | Unanswered) -> dict[str, Any]:
    row = {"family": mechanism.family, "mechanism": mechanism.spelled, "construction": cell.name}
    if isinstance(cell, Unanswered):
        return {**dict.fromkeys(COLUMNS), **row, "verdict": cell.word, "evidence": cell.why}
    outcome, law = cell.verdict.outcome, cell.growth.law
    return {
        **row,
        "verdict": cell.word,
        "distinguish": outcome.distinguish,
        "low": outcome.interval[0],
        "high": outcome.interval[1],
        "kind": cell.evidence,
        "engine": outcome.engine,
        "evidence": outcome.evidence,
        "margin": outcome.margin,
        "margin_exponent": None if law is None else law.exponent,
        "blind_from_n": cell.blind.start,
        "blind_searched_to": cell.blind.searched_to,
    }
