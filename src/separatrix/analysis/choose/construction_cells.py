"""Cells of a choice for constructions: the knowledge about one mechanism at a length in a number format."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal

from separatrix.analysis.cards.construction_result import evidence_kind
from separatrix.analysis.cards.outcomes import at_length, describe_missing_result, solve_until_decided
from separatrix.analysis.choose.budget import Budget
from separatrix.analysis.laws.margins import is_literal
from separatrix.constructions import Construction, construction_named
from separatrix.core.documents import Document, Hidden, shown_as
from separatrix.core.judgement import REPORT_BUG, Conclusion, ReaderClass, conclude_readers, is_nearest_length
from separatrix.exact.engines import EngineRefusal
from separatrix.exact.outputs._base import Outputs
from separatrix.exact.outputs.floats import FloatOutputs
from separatrix.exact.outputs.proved import proved_outputs
from separatrix.exact.verdicts import DELTA
from separatrix.exact.verdicts.rounded_outputs import store_in_format
from separatrix.exact.verdicts.verdict import chance_of
from separatrix.exact.verdicts.words import FAILURES, Word, word_for
from separatrix.mechanisms import Mechanism

CellWord = Word | Literal["lost", "cannot", "not known", "can", "learned", "not learned", "contradiction"]
BOTH = "blind, and lost in this format"
"""The displayed word of a blind cell whose difference is also lost in the number format."""


@dataclass(frozen=True)
class KnownElsewhere(Document):
    """A result at another length than n."""

    word: CellWord
    kind: str
    n: int | None
    evidence: str


@dataclass(frozen=True)
class ChoiceCell(Document):
    """The knowledge about one mechanism on one construction or task."""

    name: Hidden[str]
    word: CellWord
    """The verdict, or: `lost` if D0 and D1 differ but round to the same number; `cannot` if proved for every
    reader or model; `can`, `learned` and `not learned` on tasks; `not known`; `contradiction` for
    evidence that contradicts itself, which is a bug of this program."""
    kind: str
    """The kind of evidence: certified, closed, sampled, proved, written down, trained or not known."""
    n: int | None
    """The length of the result, the nearest possible one; None where there is none near n."""
    evidence: str
    command: str
    """The command that shows it."""
    distinguish: float | None = None
    """P(tells apart) before rounding."""
    interval: tuple[float, float] | None = None
    same_in_format: bool | None = None
    """Whether the readings of D0 and D1 are the same number of the format; None where that is not known."""
    score: float | None = None
    """The score of hand-written weights on the test samples of a task; None without any."""
    best_score: float | None = None
    """The score of the best rule on the same samples."""
    elsewhere: Hidden[ChoiceCell | None] = None

    @shown_as("elsewhere")
    def known_elsewhere(self) -> KnownElsewhere | None:
        """The result at another length, if there is none near n. It does not count."""
        cell = self.elsewhere
        return None if cell is None else KnownElsewhere(cell.word, cell.kind, cell.n, cell.evidence)

    @property
    def displayed_word(self) -> str:
        """The word, or BOTH for a blind cell whose difference is lost in the number format as well."""
        return BOTH if self.word in FAILURES and self.same_in_format else self.word


@cache
def nearest_point(name: str, n: int) -> Construction | None:
    """Return the reference point of a construction at the admissible length nearest to n.

    If the construction ends before n, that is the largest power of two that it admits.

    >>> [nearest_point(name, 131_072).n for name in ("spike", "dispersion", "recall")]
    [131100, 131072, 4096]
    """
    kind = construction_named(name)
    point = kind.read({**kind.example, **kind.variants[0]})
    lengths = (n, *(1 << power for power in reversed(range(n.bit_length()))))
    candidates = (at_length(point, length) for length in lengths)
    return next((candidate for candidate in candidates if candidate is not None), None)


def has_length(name: str, n: int) -> bool:
    """Whether the construction has n tokens, or a number of tokens that counts for n.

    >>> has_length("spike", 131_072), has_length("recall", 131_072)
    (True, False)
    """
    point = nearest_point(name, n)
    return point is not None and is_nearest_length(point.n, n, point.step)


def construction_cell(name: str, mechanism: Mechanism, budget: Budget, literal: bool = False) -> ChoiceCell:
    """Return the cell of a mechanism on the construction `name`.

    Where every token is needed, nothing is computed unless `literal` is set. A construction without a length
    near n is computed at its nearest length; that result is shown but does not count.
    """
    point, reason = nearest_point(name, budget.n), f"{name} has no length near n={budget.n:,}"
    if point is None:
        return _unknown_cell(name, reason, f"separatrix verdict {name} {mechanism.spelled}")
    cell = _cell_at(name, point, mechanism, budget, literal)
    if has_length(name, budget.n):
        return cell
    if cell.word == "not known":
        return _unknown_cell(name, reason, cell.command)
    evidence = f"{reason}; at n={point.n:,}, which does not count here: {cell.displayed_word}, {cell.evidence}"
    return _unknown_cell(name, evidence, cell.command, elsewhere=cell)


def _cell_at(name: str, point: Construction, mechanism: Mechanism, budget: Budget, literal: bool) -> ChoiceCell:
    """Return the cell at one point, whether it counts for n or not."""
    n, question = point.n, f"{name} {mechanism.spelled} n={point.n}"
    verdict_command, readers_command = f"separatrix verdict {question}", f"separatrix readers {question}"
    if is_literal(point, mechanism) and not literal:
        return _unknown_cell(name, f"all {n:,} tokens are needed, which may take minutes", verdict_command, n)
    try:
        outcome = solve_until_decided(point, mechanism, (DELTA, 1 - DELTA))
        word: CellWord = word_for(outcome, point.m, DELTA)
        outputs = None if word == "undecided" else _compute_outputs(point, mechanism)
    except Exception as error:  # a user's mechanism may raise anything
        return _unknown_cell(name, describe_missing_result(error), verdict_command, n)
    in_format = None if outputs is None else store_in_format(outputs, budget.format)
    numbers = (outcome.distinguish, outcome.interval, None if in_format is None else in_format.same_probe)
    kind: str = evidence_kind(outcome)
    evidence, command = f"{chance_of(outcome)}; {outcome.engine}: {outcome.evidence}", verdict_command
    rows_equal = outputs is not None and outputs.proves and outputs.has_equal_rows
    conclusion = conclude_readers(word, rows_equal=rows_equal)[ReaderClass.EVERY]
    if outputs is not None and conclusion is Conclusion.CONTRADICTION:
        word, kind, command = "contradiction", "contradiction", readers_command
        evidence = f"a proof claims that D0 and D1 have equal rows, but {evidence}. {REPORT_BUG}"
    elif outputs is not None and conclusion is Conclusion.CANNOT:
        word, kind, command = "cannot", "proved", readers_command
        evidence = f"D0 and D1 have equal rows, so no reader tells them apart; {outputs.evidence}"
    elif outputs is not None and in_format is not None and in_format.same_probe:
        numbers_read = "every number of every row is" if in_format.same else "the reading is"
        evidence = f"in D0 and D1 {numbers_read} the same {budget.dtype}; before rounding {evidence}"
        if word not in FAILURES:  # only a difference that was seen before rounding can be lost
            word, kind, command = "lost", "certified" if outputs.proves else "closed", readers_command
    return ChoiceCell(name, word, kind, n, evidence, command, *numbers)


def _compute_outputs(point: Construction, mechanism: Mechanism) -> Outputs | None:
    """Return the outputs of attention, proved if possible; None where every token would be needed."""
    try:
        return proved_outputs(point, mechanism)
    except EngineRefusal:
        return None if is_literal(point, mechanism) else FloatOutputs(point, mechanism, 0)


def _unknown_cell(
    name: str, reason: str, command: str, n: int | None = None, elsewhere: ChoiceCell | None = None
) -> ChoiceCell:
    return ChoiceCell(name, "not known", "not known", n, reason, command, elsewhere=elsewhere)
