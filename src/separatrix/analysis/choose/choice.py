"""Which mechanisms see what they must in the memory there is, and by what the others are excluded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar

import torch

from separatrix.analysis.cards.outcomes import MOST_GROUPS
from separatrix.analysis.choose.budget import Budget, spelled_bytes
from separatrix.analysis.choose.growth import growth
from separatrix.analysis.choose.sight import (
    BOTH,
    CANNOT,
    CONTRADICTION,
    LOST,
    UNKNOWN,
    Cell,
    has_length,
    nearest_point,
    sight,
)
from separatrix.analysis.choose.task_sight import CAN, LEARNED, task_at, task_sight
from separatrix.analysis.costs.state import decoding_state
from separatrix.constructions import CONSTRUCTIONS
from separatrix.core.errors import UsageError
from separatrix.core.parameters import nearest
from separatrix.core.result import Result
from separatrix.core.tensors import one_thread
from separatrix.mechanisms import Causality, Mechanism, examples
from separatrix.mechanisms.decoding import Kept
from separatrix.mechanisms.load import mechanisms_from
from separatrix.training.tasks import REAL_TASKS, TASKS

if TYPE_CHECKING:
    from separatrix.sweeps.store import Store

SEEN = ("distinguishes", CAN, LEARNED)
NOT_SEEN = {
    "blind": "blind, to this reader, on",
    "saturated": "saturated, since this reader fires on both D0 and D1, on",
    BOTH: "blind, and lost in {dtype} as well, on",
    "partial": "only some of the time, to this reader, on",
    LOST: "lost in {dtype}, or it would be seen, on",
    CANNOT: "proved to be unable, in exact arithmetic, on",
}
"""How a cell is shown that excludes a mechanism that must see it, and what is said then."""
NO_CAUSAL_FORM = "has no causal form: it does not decode, and operations are those of a pass without causal"
READS_ALL_AGAIN = "weights depend on the number of tokens: each new token reads all keys and values again"
Tell = Callable[[int, int, str], None]


class Status(StrEnum):
    """What comes of a mechanism."""

    FITS = "fits"
    """It fits the memory, and sees all that it must."""
    OPEN = "not known"
    """It fits the memory; of something that it must see nobody knows."""
    EXCLUDED = "excluded"


@dataclass(frozen=True)
class Row:
    """One mechanism: what comes of it, what it keeps, how its operations grow, and what it sees."""

    mechanism: str
    family: str
    excluded_by: tuple[str, ...]
    open_on: tuple[str, ...]
    """What it must see and of which nothing is known."""
    kept: Kept
    """By all layers, to decode the next token, with a counter of 8 bytes in each."""
    exponent: float | None
    """The operations of a causal pass grow as this power of n; None where they were not counted."""
    counted_at: tuple[int, ...]
    """The lengths at which operations were counted."""
    cells: tuple[Cell, ...]
    failed_on: tuple[str, ...] = ()
    """What it must see and does not."""
    note: str = ""

    @property
    def status(self) -> Status:
        """What comes of it."""
        if self.excluded_by:
            return Status.EXCLUDED
        return Status.OPEN if self.open_on else Status.FITS

    @property
    def known(self) -> bool:
        """Whether anything is known of what it sees."""
        return any(cell.word != UNKNOWN for cell in self.cells)

    @property
    def seen(self) -> int:
        """How many of its cells it sees."""
        return sum(cell.word in SEEN for cell in self.cells)

    def as_json(self) -> dict[str, Any]:
        """As `choose --json` prints it."""
        return {
            "mechanism": self.mechanism,
            "family": self.family,
            "status": self.status.value,
            "excluded_by": list(self.excluded_by),
            "not_known": list(self.open_on),
            "kept_bytes": self.kept.bytes,
            "kept_is": self.kept.kind,
            "operations_exponent": self.exponent,
            "operations_counted_at": list(self.counted_at),
            "note": self.note,
            "sees": {cell.name: cell.as_json() for cell in self.cells},
        }


@dataclass(frozen=True, repr=False)
class Choice(Result):
    """What comes of every mechanism under one budget."""

    kind: ClassVar[str] = "choice"
    budget: Budget
    must: tuple[str, ...]
    lengths: Mapping[str, int | None]
    """The length at which each construction and task was asked."""
    unasked: Mapping[str, str]
    """Constructions that were not asked, and why."""
    literal: bool
    """Whether it was also asked where every token is needed."""
    mechanisms: tuple[Row, ...]
    """Those that fit first, and among them those that see most and then keep least; those that are excluded
    last, and of them first what misses least of what must be seen, and then what keeps least."""

    def of(self, status: Status) -> list[Row]:
        """The rows of which this comes."""
        return [row for row in self.mechanisms if row.status is status]

    @property
    def summary(self) -> str:
        """How many fit, and how many do not."""
        counts = ", ".join(f"{len(self.of(status))} {status.value}" for status in Status)
        return f"n={self.budget.n:,} in {self.budget.dtype}: {counts}"

    def rows(self) -> list[dict[str, Any]]:
        """One row for each mechanism, with a column for each construction and task."""
        return [
            {
                "mechanism": row.mechanism,
                "family": row.family,
                "status": row.status.value,
                "kept_bytes": row.kept.bytes,
                "kept_is": row.kept.kind,
                "operations_exponent": row.exponent,
                "excluded_by": "; ".join(row.excluded_by),
                **{cell.name: cell.word for cell in row.cells},
            }
            for row in self.mechanisms
        ]

    @property
    def elsewhere(self) -> tuple[str, ...]:
        """The constructions and tasks that have no length near n: what is known of them does not count."""
        return tuple(name for name in self.lengths if not _has_length(name, self.budget.n))

    @property
    def contradictions(self) -> tuple[str, ...]:
        """Evidence that contradicts itself, a sentence for each cell."""
        return tuple(
            f"contradiction, {row.mechanism} on {cell.name}: {cell.evidence}"
            for row in self.mechanisms
            for cell in row.cells
            if cell.word == CONTRADICTION
        )

    @property
    def moved(self) -> str:
        """Which constructions were asked at another length than n, as a sentence; empty where none was."""
        groups: dict[int, list[str]] = {}
        for name, n in self.lengths.items():
            if n is not None and n != self.budget.n and name not in self.elsewhere:
                groups.setdefault(n, []).append(name)
        said = "; ".join(f"{', '.join(names)} at n={n:,}" for n, names in groups.items())
        return f"Asked at the nearest length that there is: {said}." if said else ""

    @property
    def nearest(self) -> str:
        """That nothing is known to fit, and what comes nearest, as sentences; empty where something fits."""
        excluded = self.of(Status.EXCLUDED)
        if self.of(Status.FITS):
            return ""
        if not excluded:
            return "Nothing is known to fit."
        who, must = excluded[0], ", ".join(self.must)
        if who.failed_on or who.open_on:
            unknown = f"; whether it sees {', '.join(who.open_on)} is not known" if who.open_on else ""
            said = f"{who.mechanism} comes nearest ({'; '.join(who.excluded_by)}{unknown})"
        else:
            those = f"what is known to see {must}" if must else "all"
            said = f"of {those}, {who.mechanism} keeps the least, {spelled_bytes(who.kept.bytes)}"
        return f"Nothing is known to fit: {said}."

    def way_to_know(self, names: Sequence[str]) -> str:
        """What would tell of those of which nothing is known, in brackets; empty where nothing would."""
        near = [name for name in names if name not in self.elsewhere]
        tasks = [name for name in near if name not in CONSTRUCTIONS]
        ways = ["--literal computes it"] if len(tasks) < len(near) and not self.literal else []
        ways += [f"separatrix learn {tasks[0]} trains it"] if tasks else []
        return f" ({', '.join(ways)})" if ways else ""

    @property
    def left_out(self) -> str:
        """Which constructions were not asked and why, as a sentence; empty where all were."""
        groups: dict[str, list[str]] = {}
        for name, why in self.unasked.items():
            groups.setdefault(why, []).append(name)
        said = "; ".join(f"{', '.join(names)} ({why})" for why, names in groups.items())
        return f"Not asked unless they must be seen: {said}." if said else ""

    @property
    def scope(self) -> str:
        """What the answers are about."""
        dtype = self.budget.dtype
        said = (
            "All of it is of one head with the fixed reader on the tokens of a construction, rounded once to "
            f"{dtype}, and not of a trained model."
        )
        if any(name not in CONSTRUCTIONS for name in self.lengths):
            said += (
                " Tasks are about models of the sizes that separatrix learn trains by default: proofs in "
                f"exact arithmetic, written weights scored in {dtype}."
            )
        return said

    def as_json(self) -> dict[str, Any]:
        """What `separatrix choose --json` prints."""
        return {
            **{name: getattr(self.budget, name) for name in type(self.budget).model_fields},
            "must": list(self.must),
            "asked_at": dict(self.lengths),
            "not_asked": dict(self.unasked),
            "scope": self.scope,
            "mechanisms": [row.as_json() for row in self.mechanisms],
        }


def choose(
    n: Any,
    dtype: Any = "bfloat16",
    memory: Any = None,
    *,
    must: str | Sequence[str] = (),
    mechanisms: Any = None,
    layers: int = 12,
    heads: int = 12,
    kv_heads: int | None = None,
    width: int = 64,
    literal: bool = False,
    store: str | Store | None = None,
    tell: Tell = lambda *_: None,
) -> Choice:
    """Which mechanisms still see what, at a length in a number format, and what they keep for it.

    **Arguments:**

    - `n`: how many tokens. A construction whose lengths are multiples of a step is asked at the nearest one.
      A construction or task without a length near n is not known there: what is known of it at other
      lengths is shown, but does not count.
    - `dtype`: `"bfloat16"`, `"float16"`, `"float32"` or `"float64"`.
    - `memory`: for what is kept of one sequence by all layers, as `"2GiB"`; bytes where it is a number. What
      keeps more is excluded.
    - `must`: constructions and tasks that have to be seen, as `"spike,recall"` or a list. What does not see
      one of them is excluded; where nobody knows, that is said.
    - `mechanisms`: as for `verdict`, several as `"softmax,linear"` or a list; one of each without any.
    - `layers`, `heads`, `kv_heads`, `width`: of the model; `heads` of a layer, `kv_heads` those of them whose
      keys and values are kept where others share them (all unless given), `width` that of a head.
    - `literal`: also where a mechanism needs every token one by one, which takes minutes.
    - `store`: from which runs of training are read, for tasks.
    - `tell`: hears how many mechanisms are done, of how many, and which is next.

    What is seen is about one head on the tokens of a construction at its reference point, with the fixed
    reader, and rounded once: what a model learns is another matter.

    >>> found = choose(5000, "bf16", "10MiB", must="critical", mechanisms="softmax,linear,hedgehog")
    >>> [(row.mechanism, row.status.value) for row in found.mechanisms]
    [('hedgehog', 'fits'), ('softmax', 'excluded'), ('linear', 'excluded')]
    >>> found.mechanisms[2].excluded_by
    ('blind, to this reader, on critical',)
    """
    sizes = {"layers": layers, "heads": heads, "kv_heads": kv_heads, "width": width}
    given = {"n": n, "dtype": dtype, "memory": memory, **sizes}
    budget = Budget.read({name: value for name, value in given.items() if value is not None})
    needed = _named(must)
    chosen = examples() if mechanisms is None else mechanisms_from(mechanisms)
    opened = _opened(store) if isinstance(store, str) else store
    reasons = {name: _unasked(name, budget, literal) for name in CONSTRUCTIONS if name not in needed}
    unasked = {name: why for name, why in reasons.items() if why}
    names = [*(x for x in CONSTRUCTIONS if x not in unasked), *(x for x in needed if x not in CONSTRUCTIONS)]
    rows = []
    with one_thread():
        for done, mechanism in enumerate(chosen):
            tell(done, len(chosen), mechanism.spelled)
            cells = tuple(_cell(name, mechanism, budget, literal, opened) for name in names)
            rows.append(_row(mechanism, budget, needed, cells))
    rows.sort(key=_order)
    return Choice(budget, needed, dict(_lengths(names, budget.n)), unasked, literal, tuple(rows))


def _order(row: Row) -> tuple[int, ...]:
    """Where a row stands: by what comes of it, by what keeps it from fitting, and by what speaks for it."""
    merits = (row.kept.bytes, -row.seen) if row.excluded_by else (-row.seen, row.kept.bytes)
    return [*Status].index(row.status), len(row.failed_on), len(row.open_on), *merits


def _opened(store: str) -> Store:
    from separatrix.sweeps.store import open_store

    return open_store(store)


def _named(must: str | Sequence[str]) -> tuple[str, ...]:
    """What has to be seen, each a construction or a task."""
    names = [each.strip() for each in must.split(",")] if isinstance(must, str) and must else list(must)
    known = [*CONSTRUCTIONS, *(name for name in (*TASKS, *REAL_TASKS) if name not in CONSTRUCTIONS)]
    if any(not isinstance(name, str) or not name for name in names):
        raise UsageError("must names constructions and tasks, with commas between them, as spike,needle")
    for name in names:
        if name not in known:
            lists = "separatrix list constructions and list tasks have all"
            raise UsageError(f"there is no construction or task {name}{nearest(name, known)}; {lists}")
    return tuple(dict.fromkeys(names))


def _unasked(name: str, budget: Budget, literal: bool) -> str:
    """Why a construction says nothing of this length, so that it is not asked unless it must be seen."""
    point = nearest_point(name, budget.n)
    if point is None:
        return "has no length near"
    if 2 * point.n < budget.n:
        return f"ends at n={point.n:,}"
    if not point.has_groups:
        return "" if literal else "needs every token"
    return "" if point.group_count() <= MOST_GROUPS else f"has {point.group_count():,} different tokens"


def _lengths(names: Sequence[str], n: int) -> Iterator[tuple[str, int | None]]:
    for name in names:
        point = nearest_point(name, n) if name in CONSTRUCTIONS else task_at(name, n)
        yield name, None if point is None else getattr(point.parameters, "n", n)


def _has_length(name: str, n: int) -> bool:
    """Whether a construction or task has n tokens, or a number of tokens that answers for n."""
    return has_length(name, n) if name in CONSTRUCTIONS else task_at(name, n) is not None


def _cell(name: str, mechanism: Mechanism, budget: Budget, literal: bool, store: Store | None) -> Cell:
    if name in CONSTRUCTIONS:
        return sight(name, mechanism, budget, literal)
    return task_sight(name, mechanism, budget, store)


def _row(mechanism: Mechanism, budget: Budget, must: Sequence[str], cells: tuple[Cell, ...]) -> Row:
    dtype: torch.dtype = getattr(torch, budget.dtype)
    layer = decoding_state(mechanism, budget.n, budget.kept_heads, budget.width, dtype)
    every = Kept(budget.layers * layer.layer_bytes, layer.kind)
    excluded = []
    if budget.memory is not None and every.bytes > budget.memory:
        sizes = spelled_bytes(every.bytes), spelled_bytes(budget.memory)
        if sizes[0] == sizes[1]:
            sizes = f"{every.bytes:,} bytes", f"{budget.memory:,}"
        excluded.append(f"it keeps {sizes[0]}, and there is {sizes[1]}")
    asked = [cell for cell in cells if cell.name in must]
    failed = [cell for cell in asked if cell.word in NOT_SEEN]
    for cell in failed:
        what = NOT_SEEN[cell.shown_as].format(dtype=budget.dtype)
        at = "" if cell.n == budget.n or cell.n is None else f" at n={cell.n:,}"
        excluded.append(f"{what} {cell.name}{at}")
    names = tuple(cell.name for cell in failed)
    unknown = tuple(cell.name for cell in asked if cell.word not in (*SEEN, *NOT_SEEN))
    note = "" if mechanism.length_free or mechanism.fixed_state else READS_ALL_AGAIN
    note = NO_CAUSAL_FORM if mechanism.causality is Causality.NEVER else note
    counted = (None, ()) if excluded else growth(mechanism, budget.n, budget.width)
    return Row(
        mechanism.spelled, mechanism.family, tuple(excluded), unknown, every, *counted, cells, names, note
    )
