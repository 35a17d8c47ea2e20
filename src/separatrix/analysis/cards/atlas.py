"""The atlas: every mechanism on every construction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from multiprocessing import active_children, get_context
from typing import Any, ClassVar

from separatrix.analysis.cards.construction_result import (
    AnyResult,
    AtlasCell,
    NoConstructionResult,
    compute_result,
    find_rescue,
    reference_points,
)
from separatrix.constructions import construction_named
from separatrix.core.documents import keys_of
from separatrix.core.grouping import group_pairs
from separatrix.core.parameters import SeparatrixError, UsageError, require_known
from separatrix.core.result import Result, Row
from separatrix.core.startup import follow_parent, safe_path, signals_held_back
from separatrix.core.tensors import torch
from separatrix.mechanisms import Mechanism, examples
from separatrix.mechanisms.load import mechanisms_from

Names = str | Sequence[str] | None
Tell = Callable[[int, int, str], None]
"""Called with the number of finished cells, the number of all cells, and the last or the next cell."""


@dataclass(frozen=True)
class AtlasRow:
    """One mechanism with its result on every construction."""

    mechanism: Mechanism
    results: tuple[AnyResult, ...]


SORT_KEYS: dict[str, Callable[[AtlasRow], Any]] = {
    "family": lambda row: 0,
    "name": lambda row: row.mechanism.spelled,
    "seen": lambda row: -sum(result.word == "distinguishes" for result in row.results),
}


@dataclass(frozen=True, repr=False)
class Atlas(Result):
    """The results of every mechanism on every construction."""

    kind: ClassVar[str] = "atlas"
    columns: ClassVar[tuple[str, ...]] = tuple(key for key, *_ in keys_of(AtlasCell))
    items: ClassVar[tuple[str, Any] | None] = ("cells", AtlasCell)
    mechanisms: tuple[AtlasRow, ...]

    @property
    def constructions(self) -> tuple[str, ...]:
        """The names of the constructions."""
        return tuple(result.name for result in self.mechanisms[0].results)

    @property
    def titles(self) -> dict[str, str]:
        """The title and the length of each construction."""
        points = reference_points()
        return {
            name: f"{construction_named(name.partition(',')[0]).title} n={points[name].n:,}"
            for name in self.constructions
        }

    @property
    def families(self) -> dict[str, list[AtlasRow]]:
        """The rows by the family of the mechanism."""
        return group_pairs((row.mechanism.family, row) for row in self.mechanisms)

    @property
    def summary(self) -> str:
        """The number of cells with each verdict."""
        counts = Counter(result.word for row in self.mechanisms for result in row.results)
        size = f"{len(self.mechanisms)} mechanisms on {len(self.constructions)} constructions"
        return f"{size}: {', '.join(f'{count} {word}' for word, count in counts.most_common())}"

    @property
    def cells(self) -> list[AtlasCell]:
        """One cell for each mechanism and construction."""
        return [AtlasCell.from_result(row.mechanism, result) for row in self.mechanisms for result in row.results]

    def rows(self) -> list[Row]:
        """Return one row for each mechanism and construction."""
        return [vars(cell) for cell in self.cells]


def atlas(
    mechanisms: Any = None,
    constructions: Names = None,
    *,
    family: Names = None,
    sort: str = "family",
    tell: Tell = lambda *_: None,
    workers: int = 1,
) -> Atlas:
    """Return the results of mechanisms on constructions, at the reference points.

    **Arguments:**

    - `mechanisms`: as for `verdict`, several as `"softmax,linear"` or a list; by default one of each class.
    - `constructions`: names, as `"spike,recall"` or a list (default: all).
    - `family`: only mechanisms of these families, as `"recurrent,sparse"`.
    - `sort`: `"family"`, `"name"`, `"seen"` (most constructions distinguished first), or a construction (the
      highest probability on it first).
    - `tell`: called with the number of finished cells, the number of all cells, and the name of one.
    - `workers`: number of processes; the whole atlas takes minutes. With more than one, a script needs
      `if __name__ == "__main__":` around the call, since the processes import it.

    >>> result = atlas("softmax,linear", "spikes")
    >>> [(row["mechanism"], row["verdict"]) for row in result.rows()]
    [('softmax', 'distinguishes'), ('linear', 'blind')]
    """
    selection, names = select_cells(mechanisms, constructions, family)
    sort_key = find_sort_key(sort, names)
    cells = [(mechanism, name) for mechanism in selection for name in names]
    # Mechanisms that need every token take longest. They come first, so that all workers end together.
    cells.sort(key=lambda cell: cell[0].takes_counts)
    results = dict(_compute_cells(cells, tell, workers))
    rows = [AtlasRow(mechanism, tuple(results[mechanism.spelled, name] for name in names)) for mechanism in selection]
    return Atlas(tuple(sorted(rows, key=sort_key)))


def select_cells(mechanisms: Any, constructions: Names, family: Names) -> tuple[list[Mechanism], list[str]]:
    """Return the mechanisms and the columns of an atlas, before any cell is computed."""
    selection = examples() if mechanisms is None else mechanisms_from(mechanisms)
    if family is not None:
        families = [name.strip() for name in _split(family)]
        all_families = dict.fromkeys(mechanism.family for mechanism in selection)
        for name in families:
            require_known("family", name, all_families)
        selection = [mechanism for mechanism in selection if mechanism.family in families]
    if constructions is None:
        return selection, list(reference_points())
    kinds = _split(constructions)
    for name in kinds:
        construction_named(name)
    if not kinds:
        raise UsageError("name a construction, for example spike")
    return selection, [name for name in reference_points() if name.partition(",")[0] in kinds]


def _split(names: str | Sequence[str]) -> list[str]:
    return names.split(",") if isinstance(names, str) else list(names)


def find_sort_key(sort: str, columns: Sequence[str]) -> Callable[[AtlasRow], Any]:
    """Return the sort key for a name of SORT_KEYS, or for a construction: its first column, or one variant.

    >>> find_sort_key("spikes", ["spike, ones"])
    Traceback (most recent call last):
    separatrix.core.errors.UsageError: spikes is not among the selected constructions
    """
    if sort in SORT_KEYS:
        return SORT_KEYS[sort]
    key, points = sort.replace(" ", ""), reference_points()
    names = [name for name in points if key in (name.partition(",")[0], name.replace(" ", ""))]
    if not names:
        require_known("order", sort, [*SORT_KEYS, *dict.fromkeys(name.partition(",")[0] for name in points)])
    if names[0] not in columns:
        raise UsageError(f"{sort} is not among the selected constructions")
    column = list(columns).index(names[0])

    def failure_probability(row: AtlasRow) -> float:
        result = row.results[column]
        return 2.0 if isinstance(result, NoConstructionResult) else 1 - result.verdict.outcome.distinguish

    return failure_probability


def _compute_cells(
    cells: list[tuple[Mechanism, str]], tell: Tell, workers: int
) -> Iterator[tuple[tuple[str, str], AnyResult]]:
    if workers <= 1:
        for count, (mechanism, name) in enumerate(cells):
            tell(count, len(cells), f"{mechanism.spelled} on {name}")
            yield (mechanism.spelled, name), _compute_cell(mechanism, name)
        return
    # A pool does not tell its processes: they are the children that were not there before it.
    earlier = set(active_children())
    with safe_path(), signals_held_back():
        pool = ProcessPoolExecutor(workers, get_context("spawn"), initializer=_prepare_worker)
        names = {pool.submit(_compute_cell, mechanism, name): (mechanism.spelled, name) for mechanism, name in cells}
    processes = set(active_children()) - earlier
    with pool:
        try:
            for count, future in enumerate(as_completed(names), 1):
                tell(count, len(cells), " on ".join(names[future]))
                yield names[future], future.result()
        except BrokenProcessPool:
            raise SeparatrixError(
                "a process that computes cells of the atlas died, perhaps for lack of memory; name fewer mechanisms"
            ) from None
        except BaseException:
            # Leaving the block waits for the cells that are being computed, which may take minutes.
            for process in processes:
                process.kill()
            pool.shutdown(cancel_futures=True)
            raise


def _prepare_worker() -> None:
    follow_parent()
    # Workers share the cores: further threads would only compete.
    torch.set_num_threads(1)


def _compute_cell(mechanism: Mechanism, name: str) -> AnyResult:
    result = compute_result(name, reference_points()[name], mechanism)
    if isinstance(result, NoConstructionResult):
        return result
    try:
        return replace(result, rescue=find_rescue(result.verdict))
    except Exception:  # a user's mechanism may raise anything; its verdict stands
        return result
