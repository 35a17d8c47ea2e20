"""Every mechanism on every construction."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from multiprocessing import active_children, get_context
from typing import TYPE_CHECKING, Any, ClassVar, cast

import torch

from separatrix.analysis.cards.rescue import rescue
from separatrix.analysis.cards.standing import Standing, Unanswered, kind_of_evidence, points, standing
from separatrix.constructions import construction_named
from separatrix.core.parameters import SeparatrixError, UsageError, require_known
from separatrix.core.result import Result
from separatrix.core.startup import follow_parent, safe_path, signals_held_back
from separatrix.exact.verdicts import Verdict
from separatrix.mechanisms import Mechanism, examples
from separatrix.mechanisms.load import mechanisms_from

if TYPE_CHECKING:
    from separatrix.core.schemas import mechanisms as documents

COLUMNS = (
    *("family", "mechanism", "construction", "verdict", "distinguish", "low", "high", "kind", "engine"),
    *("evidence", "margin", "bits", "margin_exponent", "blind_from_n", "blind_searched_to", "rescued_by"),
)
Tell = Callable[[int, int, str], None]
"""Hears how many cells are done, of how many, and which was the last or is the next."""


@dataclass(frozen=True)
class Region:
    """One mechanism and its standing on every construction, or why it has none there."""

    mechanism: Mechanism
    standings: tuple[Standing | Unanswered, ...]


ORDERS: dict[str, Callable[[Region], Any]] = {
    "family": lambda region: 0,
    "name": lambda region: region.mechanism.spelled,
    "seen": lambda region: -sum(each.word == "distinguishes" for each in region.standings),
}


@dataclass(frozen=True, repr=False)
class Atlas(Result):
    """The standing of every mechanism on every construction."""

    kind: ClassVar[str] = "atlas"
    regions: tuple[Region, ...]

    @property
    def constructions(self) -> tuple[str, ...]:
        """The names of the constructions."""
        return tuple(standing.name for standing in self.regions[0].standings)

    @property
    def titles(self) -> dict[str, str]:
        """What each column asks."""
        return {
            name: f"{construction_named(name.partition(',')[0]).title} n={points()[name].n:,}"
            for name in self.constructions
        }

    @property
    def families(self) -> dict[str, list[Region]]:
        """The regions of the mechanisms, by family."""
        found: dict[str, list[Region]] = {}
        for region in self.regions:
            found.setdefault(region.mechanism.family, []).append(region)
        return found

    @property
    def summary(self) -> str:
        """How many of each verdict there are."""
        counts = Counter(each.word for region in self.regions for each in region.standings)
        cells = f"{len(self.regions)} mechanisms on {len(self.constructions)} constructions"
        return f"{cells}: {', '.join(f'{count} {word}' for word, count in counts.most_common())}"

    def rows(self) -> list[dict[str, Any]]:
        """One row for each mechanism and construction."""
        return [
            standing_row(region.mechanism, standing)
            for region in self.regions
            for standing in region.standings
        ]

    def as_json(self) -> list[documents.AtlasCell]:
        """What `separatrix atlas --json` prints."""
        return cast("list[documents.AtlasCell]", self.rows())

    def as_csv(self) -> str:
        """The rows as CSV."""
        text = io.StringIO()
        writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.rows())
        return text.getvalue()


def atlas(
    mechanisms: Any = None,
    constructions: str | Sequence[str] | None = None,
    *,
    family: str | Sequence[str] | None = None,
    sort: str = "family",
    tell: Tell = lambda *_: None,
    workers: int = 1,
) -> Atlas:
    """Every mechanism on every construction, at its reference point.

    **Arguments:**

    - `mechanisms`: as for `verdict`, several as `"softmax,linear"` or a list; one of each without any.
    - `constructions`: names, with commas or in a list; all without any.
    - `family`: mechanisms of these families alone, as `"recurrent,sparse"`.
    - `sort`: by `"family"`; or by `"name"`, by `"seen"`, what tells most apart first, or by a construction,
      what tells it apart most surely first.
    - `tell`: hears how many cells are done, of how many, and which.
    - `workers`: how many processes share the work; all of it takes minutes. With more than one a script
      needs `if __name__ == "__main__":` around the call, since they import it.

    >>> found = atlas("softmax,linear", "spikes")
    >>> [(row["mechanism"], row["verdict"]) for row in found.rows()]
    [('softmax', 'distinguishes'), ('linear', 'blind')]
    """
    chosen, names = asked(mechanisms, constructions, family)
    order = order_by(sort, names)
    cells = [(mechanism, name) for mechanism in chosen for name in names]
    cells.sort(key=lambda cell: cell[0].takes_counts)  # the long ones first, so that all end together
    found = dict(_filled(cells, tell, workers))
    regions = [Region(each, tuple(found[each.spelled, name] for name in names)) for each in chosen]
    return Atlas(tuple(sorted(regions, key=order)))


def asked(
    mechanisms: Any = None,
    constructions: str | Sequence[str] | None = None,
    family: str | Sequence[str] | None = None,
) -> tuple[list[Mechanism], list[str]]:
    """The mechanisms and the columns of an atlas, before any cell of it is made."""
    chosen = examples() if mechanisms is None else mechanisms_from(mechanisms)
    return _of_families(chosen, family), _columns(constructions)


def order_by(sort: str, columns: Sequence[str]) -> Callable[[Region], Any]:
    """What regions are sorted by: a name of ORDERS, or a construction, its first column or `spike,identity`.

    >>> order_by("spikes", ["spike, ones"])
    Traceback (most recent call last):
    separatrix.core.errors.UsageError: spikes is not among the constructions that are asked for
    """
    if sort in ORDERS:
        return ORDERS[sort]
    wanted = sort.replace(" ", "")
    names = [name for name in points() if wanted in (name.partition(",")[0], name.replace(" ", ""))]
    if not names:
        require_known("order", sort, [*ORDERS, *dict.fromkeys(name.partition(",")[0] for name in points())])
    if names[0] not in columns:
        raise UsageError(f"{sort} is not among the constructions that are asked for")
    place = list(columns).index(names[0])

    def unsure(region: Region) -> float:
        cell = region.standings[place]
        return 2.0 if isinstance(cell, Unanswered) else 1 - cell.verdict.outcome.distinguish

    return unsure


def _of_families(mechanisms: list[Mechanism], family: str | Sequence[str] | None) -> list[Mechanism]:
    if family is None:
        return mechanisms
    wanted = [each.strip() for each in family.split(",")] if isinstance(family, str) else list(family)
    known = list(dict.fromkeys(mechanism.family for mechanism in mechanisms))
    for each in wanted:
        require_known("family", each, known)
    return [mechanism for mechanism in mechanisms if mechanism.family in wanted]


def _columns(constructions: str | Sequence[str] | None) -> list[str]:
    """The columns of these constructions, every variant of each, or all columns."""
    if constructions is None:
        return list(points())
    wanted = constructions.split(",") if isinstance(constructions, str) else list(constructions)
    for each in wanted:
        construction_named(each)
    if not wanted:
        raise UsageError("name a construction, for example spike")
    return [name for name in points() if name.partition(",")[0] in wanted]


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
        pool = ProcessPoolExecutor(workers, context, initializer=_begin)
        waiting: dict[Future[Standing | Unanswered], tuple[str, str]] = {
            pool.submit(_cell, mechanism, name): (mechanism.spelled, name) for mechanism, name in cells
        }
    started = set(active_children()) - before
    with pool:
        try:
            for done, future in enumerate(as_completed(waiting), 1):
                tell(done, len(cells), " on ".join(waiting[future]))
                yield waiting[future], future.result()
        except BrokenProcessPool:
            raise SeparatrixError(
                "a process that computes cells of the atlas died, perhaps for want of memory; name fewer "
                "mechanisms"
            ) from None
        except BaseException:
            for process in started:
                process.kill()
            pool.shutdown(cancel_futures=True)
            raise


def _begin() -> None:
    """Prepare a worker process."""
    follow_parent()
    torch.set_num_threads(1)


def _cell(mechanism: Mechanism, name: str) -> Standing | Unanswered:
    found = standing(name, points()[name], mechanism)
    if isinstance(found, Unanswered):
        return found
    try:
        return replace(found, rescue=rescue(found.verdict))
    except Exception:  # whatever a stranger's mechanism raises, its verdict stands
        return found


def standing_row(mechanism: Mechanism, cell: Standing | Unanswered) -> dict[str, Any]:
    """One cell as a row of a table, with COLUMNS."""
    if isinstance(cell, Unanswered):
        row = {"family": mechanism.family, "mechanism": mechanism.spelled, "construction": cell.name}
        return {**dict.fromkeys(COLUMNS), **row, "verdict": cell.word, "evidence": cell.why}
    law = cell.growth.law
    return {
        **verdict_row(cell.name, cell.verdict),
        "margin_exponent": None if law is None else law.exponent,
        "blind_from_n": cell.blind.start,
        "blind_searched_to": cell.blind.searched_to,
        "rescued_by": None if cell.rescue is None else cell.rescue.by.value,
    }


def verdict_row(name: str, verdict: Verdict) -> dict[str, Any]:
    """What a cell of this column says of the reference point alone: the first of COLUMNS, up to the bits."""
    mechanism, outcome = verdict.mechanism, verdict.outcome
    return {
        "family": mechanism.family,
        "mechanism": mechanism.spelled,
        "construction": name,
        "verdict": verdict.word,
        "distinguish": outcome.distinguish,
        "low": outcome.interval[0],
        "high": outcome.interval[1],
        "kind": kind_of_evidence(outcome),
        "engine": outcome.engine,
        "evidence": outcome.evidence,
        "margin": outcome.margin,
        "bits": verdict.bits,
    }
