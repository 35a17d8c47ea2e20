"""`choose`: mechanisms that see what is required within a memory budget, and reasons against the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar

from separatrix.analysis.cards.outcomes import MAX_GROUPS
from separatrix.analysis.choose.budget import Budget, format_bytes
from separatrix.analysis.choose.construction_cells import BOTH, ChoiceCell, construction_cell, has_length, nearest_point
from separatrix.analysis.choose.task_cells import task_at, task_cell
from separatrix.analysis.costs.cost import decoding_state
from separatrix.analysis.laws.costs import fit_operations
from separatrix.constructions import CONSTRUCTIONS
from separatrix.core.documents import Document, Hidden, shown
from separatrix.core.grouping import group_pairs
from separatrix.core.parameters import UsageError, nearest
from separatrix.core.result import Result, Row
from separatrix.core.tensors import one_thread, torch
from separatrix.mechanisms import Causality, Mechanism, examples
from separatrix.mechanisms.load import mechanisms_from
from separatrix.training.tasks import REAL_TASKS, TASKS

if TYPE_CHECKING:
    from separatrix.sweeps.store import Store

SUCCESSES = ("distinguishes", "can", "learned")
EXCLUSIONS = {
    "blind": "blind with this reader on",
    "saturated": "saturated (this reader fires on both D0 and D1) on",
    BOTH: "blind, and the difference is lost in {dtype}, on",
    "partial": "distinguishes only some of the time with this reader on",
    "lost": "the difference is lost in {dtype} on",
    "cannot": "proved unable, in exact arithmetic, on",
}
"""Displayed words of a required cell that exclude a mechanism, and the reason that is given."""
NO_CAUSAL_FORM = "has no causal form: it cannot decode, and its operations are those of a non-causal pass"
READS_ALL_AGAIN = "weights depend on the number of tokens: each new token reads all keys and values again"
Tell = Callable[[int, int, str], None]


class ChoiceStatus(StrEnum):
    """The result for a mechanism."""

    FITS = "fits"
    """It fits the memory, and sees every required question."""
    OPEN = "not known"
    """It fits the memory, but the result of a required question is unknown."""
    EXCLUDED = "excluded"


@dataclass(frozen=True)
class ChoiceRow(Document):
    """The result for one mechanism."""

    mechanism: str
    family: str
    excluded_by: tuple[str, ...]
    not_known: tuple[str, ...]
    """The required questions whose result is unknown."""
    kept_bytes: int
    """The bytes that the caches of all layers keep of one sequence, with a counter of 8 bytes in each."""
    kept_is: str
    """A state of fixed size, or a cache of keys and values."""
    operations_exponent: float | None
    """The power of n with which the operations of a causal pass grow; None where they were not counted."""
    operations_counted_at: tuple[int, ...]
    note: str
    sees: Mapping[str, ChoiceCell]
    failed_on: Hidden[tuple[str, ...]] = ()
    """The required questions that it does not see."""

    @shown
    def status(self) -> ChoiceStatus:
        """Whether the mechanism fits."""
        if self.excluded_by:
            return ChoiceStatus.EXCLUDED
        return ChoiceStatus.OPEN if self.not_known else ChoiceStatus.FITS

    @property
    def has_results(self) -> bool:
        """Whether the result of any question is known."""
        return any(cell.word != "not known" for cell in self.sees.values())

    @property
    def sort_key(self) -> tuple[int, ...]:
        """The position in the list: by status, required questions that fail or are unknown, then merits."""
        successes = sum(cell.word in SUCCESSES for cell in self.sees.values())
        merits = (self.kept_bytes, -successes) if self.excluded_by else (-successes, self.kept_bytes)
        return [*ChoiceStatus].index(self.status), len(self.failed_on), len(self.not_known), *merits


@dataclass(frozen=True, repr=False)
class Choice(Result):
    """The results for every mechanism under one budget."""

    kind: ClassVar[str] = "choice"
    n: int
    dtype: str
    memory: int | None
    """The bytes for the caches of one sequence in all layers; None for no limit."""
    layers: int
    heads: int
    """The query heads of a layer."""
    kv_heads: int | None
    """The heads whose keys and values are kept, if query heads share them; None for all."""
    width: int
    """The width of a head."""
    must: tuple[str, ...]
    """The constructions and tasks that have to be seen."""
    asked_at: Mapping[str, int | None]
    """The length at which each construction and task was computed."""
    not_asked: Mapping[str, str]
    """Constructions that were skipped, with the reason."""
    literal: Hidden[bool]
    """Whether cells were computed that need every token."""
    mechanisms: tuple[ChoiceRow, ...]
    """Mechanisms that fit first, most successes and then least memory first; excluded ones last, those that
    fail the fewest required questions and then those that keep least first."""

    def with_status(self, status: ChoiceStatus) -> list[ChoiceRow]:
        """Return the rows with this status."""
        return [row for row in self.mechanisms if row.status is status]

    @property
    def model(self) -> str:
        """The sizes of the model in words."""
        layers, heads = (f"{x} {name}{'s' * (x > 1)}" for x, name in ((self.layers, "layer"), (self.heads, "head")))
        kv_text = "" if self.kv_heads in (None, self.heads) else f" ({self.kv_heads} of keys and values)"
        return f"{layers} of {heads}{kv_text} of width {self.width}"

    @property
    def summary(self) -> str:
        """The number of mechanisms with each status."""
        counts = ", ".join(f"{len(self.with_status(status))} {status.value}" for status in ChoiceStatus)
        return f"n={self.n:,} in {self.dtype}: {counts}"

    def rows(self) -> list[Row]:
        """Return one row for each mechanism, with a column for each construction and task."""
        columns = ("mechanism", "family", "status", "kept_bytes", "kept_is", "operations_exponent")
        return [
            {
                **{column: getattr(row, column) for column in columns},
                "excluded_by": "; ".join(row.excluded_by),
                **{name: cell.word for name, cell in row.sees.items()},
            }
            for row in self.mechanisms
        ]

    @property
    def elsewhere(self) -> tuple[str, ...]:
        """The constructions and tasks without a length near n: results at other lengths do not count."""
        n, names = self.n, self.asked_at
        is_near = {name: has_length(name, n) if name in CONSTRUCTIONS else task_at(name, n) for name in names}
        return tuple(name for name in names if not is_near[name])

    @property
    def contradictions(self) -> tuple[str, ...]:
        """Contradictory evidence, a sentence for each cell."""
        return tuple(
            f"contradiction, {row.mechanism} on {name}: {cell.evidence}"
            for row in self.mechanisms
            for name, cell in row.sees.items()
            if cell.word == "contradiction"
        )

    @property
    def length_remark(self) -> str:
        """The constructions that were computed at another length than n, as a sentence; empty without any."""
        names_by_length = group_pairs((n, name) for name, n in self.asked_at.items() if name not in self.elsewhere)
        other_lengths = {n: names for n, names in names_by_length.items() if n not in (None, self.n)}
        groups = "; ".join(f"{', '.join(names)} at n={n:,}" for n, names in other_lengths.items())
        return f"Computed at the nearest possible length: {groups}." if groups else ""

    @property
    def left_out(self) -> str:
        """The constructions that were skipped, as a sentence; empty without any."""
        groups = group_pairs((reason, name) for name, reason in self.not_asked.items())
        text = "; ".join(f"{', '.join(names)} ({reason})" for reason, names in groups.items())
        return f"Skipped unless required by --must: {text}." if text else ""

    @property
    def nearest(self) -> str:
        """A sentence on the mechanism that comes nearest if none is known to fit; empty if one does."""
        excluded_rows = self.with_status(ChoiceStatus.EXCLUDED)
        if self.with_status(ChoiceStatus.FITS):
            return ""
        if not excluded_rows:
            return "No mechanism is known to fit."
        row = excluded_rows[0]
        if row.failed_on or row.not_known:
            open_text = f"; unknown: {', '.join(row.not_known)}" if row.not_known else ""
            text = f"the nearest is {row.mechanism} ({'; '.join(row.excluded_by)}{open_text})"
        else:
            among = f"those known to see {', '.join(self.must)}" if self.must else "all"
            text = f"of {among}, {row.mechanism} keeps the least, {format_bytes(row.kept_bytes)}"
        return f"No mechanism is known to fit; {text}."

    def describe_remedy(self, names: Sequence[str]) -> str:
        """Return how the results of unknown cells could be computed, in brackets; empty if they cannot."""
        near = [name for name in names if name not in self.elsewhere]
        tasks = [name for name in near if name not in CONSTRUCTIONS]
        ways = ["--literal computes it"] if len(tasks) < len(near) and not self.literal else []
        ways += [f"separatrix learn {tasks[0]} trains it"] if tasks else []
        return f" ({', '.join(ways)})" if ways else ""

    @shown
    def scope(self) -> str:
        """The scope of the results."""
        text = (
            "All results are for one head with the fixed reader on the tokens of a construction, rounded "
            f"once to {self.dtype}; they are not about a trained model."
        )
        if any(name not in CONSTRUCTIONS for name in self.asked_at):
            text += (
                " Tasks use models of the default sizes of separatrix learn: proofs hold in exact "
                f"arithmetic, hand-written weights are scored in {self.dtype}."
            )
        return text


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
    """Find the mechanisms that work at a length in a number format, and the memory that they need.

    Mechanisms over the memory budget, or blind to a required question, are excluded with the reason. Unknown
    results are marked as unknown. Results are about one head on the tokens of a construction at its reference
    point, with the fixed reader, rounded once; they say nothing about trained models.

    **Arguments:**

    - `n`: number of tokens. A construction whose lengths are multiples of a step is computed at the nearest
      one. A construction or task without a length near n is unknown; results at other lengths are shown, but
      do not count.
    - `dtype`: `"bfloat16"`, `"float16"`, `"float32"` or `"float64"`.
    - `memory`: the largest size of the caches of one sequence in all layers, as `"2GiB"` or in bytes.
    - `must`: constructions and tasks that have to be seen, as `"spike,recall"` or a list.
    - `mechanisms`: as for `verdict`, several as `"softmax,linear"` or a list; by default one of each class.
    - `layers`, `heads`, `kv_heads`, `width`: sizes of the model: heads of a layer, those of them whose keys
      and values are kept if others share them (default: all), width of a head.
    - `literal`: also compute cells that need every token one by one, which takes minutes.
    - `store`: a store with training runs, for tasks.
    - `tell`: called with the number of finished mechanisms, the number of all, and the next one.

    >>> choice = choose(5000, "bf16", "10MiB", must="critical", mechanisms="softmax,linear,hedgehog")
    >>> [(row.mechanism, row.status.value) for row in choice.mechanisms]
    [('hedgehog', 'fits'), ('softmax', 'excluded'), ('linear', 'excluded')]
    >>> choice.mechanisms[2].excluded_by
    ('blind with this reader on critical',)
    """
    sizes = {"layers": layers, "heads": heads, "kv_heads": kv_heads, "width": width}
    values = {"n": n, "dtype": dtype, "memory": memory, **sizes}
    budget = Budget.read({name: value for name, value in values.items() if value is not None})
    required_names = _read_required(must)
    selection = examples() if mechanisms is None else mechanisms_from(mechanisms)
    if isinstance(store, str):
        from separatrix.sweeps.store import open_store

        store = open_store(store)
    optional_names = [name for name in CONSTRUCTIONS if name not in required_names]
    skip_reasons = {name: why for name in optional_names if (why := _reason_to_skip(name, budget.n, literal))}
    names = [name for name in CONSTRUCTIONS if name not in skip_reasons]
    names += [name for name in required_names if name not in CONSTRUCTIONS]
    rows = []
    with one_thread():
        for count, mechanism in enumerate(selection):
            tell(count, len(selection), mechanism.spelled)
            cells = dict[str, ChoiceCell]()
            for name in names:
                is_task, question = name not in CONSTRUCTIONS, (name, mechanism, budget)
                cells[name] = task_cell(*question, store) if is_task else construction_cell(*question, literal)
            rows.append(_build_row(mechanism, budget, required_names, cells))
    rows.sort(key=lambda row: row.sort_key)
    lengths = {name: _nearest_length(name, budget.n) for name in names}
    questions: dict[str, Any] = {"must": required_names, "asked_at": lengths, "not_asked": skip_reasons}
    return Choice(**budget.complete_values(), **questions, literal=literal, mechanisms=tuple(rows))


def _read_required(must: str | Sequence[str]) -> tuple[str, ...]:
    """Return the names of required constructions and tasks."""
    names = [name.strip() for name in must.split(",")] if isinstance(must, str) and must else list(must)
    all_names = list(dict.fromkeys((*CONSTRUCTIONS, *TASKS, *REAL_TASKS)))
    if any(not isinstance(name, str) or not name for name in names):
        raise UsageError("must takes names of constructions and tasks, separated by commas: spike,needle")
    for name in names:
        if name not in all_names:
            lists = "separatrix list constructions and list tasks show all"
            raise UsageError(f"there is no construction or task {name}{nearest(name, all_names)}; {lists}")
    return tuple(dict.fromkeys(names))


def _reason_to_skip(name: str, n: int, literal: bool) -> str:
    """Return why a construction says nothing about this length; empty if it does."""
    point = nearest_point(name, n)
    if point is None:
        return "has no length near"
    if 2 * point.n < n:
        return f"ends at n={point.n:,}"
    if not point.has_groups:
        return "" if literal else "needs every token"
    return "" if point.group_count() <= MAX_GROUPS else f"has {point.group_count():,} different tokens"


def _nearest_length(name: str, n: int) -> int | None:
    point = nearest_point(name, n) if name in CONSTRUCTIONS else task_at(name, n)
    return None if point is None else getattr(point.parameters, "n", n)


def _build_row(mechanism: Mechanism, budget: Budget, must: Sequence[str], cells: Mapping[str, ChoiceCell]) -> ChoiceRow:
    heads, dtype = budget.kv_heads or budget.heads, getattr(torch, budget.dtype)
    layer = decoding_state(mechanism, budget.n, heads, budget.width, dtype)
    kept_bytes, reasons = budget.layers * layer.layer_bytes, []
    if budget.memory is not None and kept_bytes > budget.memory:
        size, room = format_bytes(kept_bytes), format_bytes(budget.memory)
        # Rounded sizes may look equal; then every byte is shown.
        sizes = f"{kept_bytes:,} bytes, more than {budget.memory:,}" if size == room else f"{size}, more than {room}"
        reasons.append(f"it keeps {sizes}")
    required_cells = [cell for name, cell in cells.items() if name in must]
    failures = [cell for cell in required_cells if cell.displayed_word in EXCLUSIONS]
    for cell in failures:
        reason = EXCLUSIONS[cell.displayed_word].format(dtype=budget.dtype)
        length = "" if cell.n in (None, budget.n) else f" at n={cell.n:,}"
        reasons.append(f"{reason} {cell.name}{length}")
    unknown_names = [cell.name for cell in required_cells if cell not in failures and cell.word not in SUCCESSES]
    is_bounded = mechanism.length_free or mechanism.fixed_state
    note = NO_CAUSAL_FORM if mechanism.causality is Causality.NEVER else "" if is_bounded else READS_ALL_AGAIN
    # Counting takes a second for some mechanisms, and nobody compares the cost of excluded ones.
    operations = (None, ()) if reasons else fit_operations(mechanism, budget.n, budget.width)
    names, failed_on = (mechanism.spelled, mechanism.family), tuple(cell.name for cell in failures)
    unknown = tuple(unknown_names)
    return ChoiceRow(*names, tuple(reasons), unknown, kept_bytes, layer.kind, *operations, note, cells, failed_on)
