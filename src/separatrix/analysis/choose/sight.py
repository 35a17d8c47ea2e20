"""What a mechanism sees of a construction, at a length and in a number format, and how that is known."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from separatrix.analysis.cards.outcomes import at_length, found_at
from separatrix.analysis.cards.standing import EVIDENCE
from separatrix.analysis.choose.budget import Budget
from separatrix.analysis.laws.margins import is_literal
from separatrix.constructions import Construction, construction_named
from separatrix.core.errors import SeparatrixError, raised
from separatrix.core.judgement import REPORT_BUG, Conclusion, ReaderClass, conclude_readers, is_nearest_length
from separatrix.exact.engines import EngineRefusal
from separatrix.exact.outputs._base import Outputs
from separatrix.exact.outputs.floats import FloatOutputs
from separatrix.exact.outputs.proved import proved_outputs
from separatrix.exact.verdicts import DELTA
from separatrix.exact.verdicts.rounded_outputs import store_in_format
from separatrix.exact.verdicts.verdict import chance_of
from separatrix.exact.verdicts.words import FAILURES, word_for
from separatrix.mechanisms import Mechanism

LOST, CANNOT, UNKNOWN, CONTRADICTION = "lost", "cannot", "not known", "contradiction"
"""Words beside those of a verdict: seen, but the same number in the format; proved for every reader; no
answer; and evidence that contradicts itself, which is a bug of this program."""
BOTH = "blind, and lost in this format"
"""How a blind cell is shown where what is read is one number of the format, too."""


@dataclass(frozen=True)
class Cell:
    """What is known of one mechanism on one construction or task."""

    name: str
    word: str
    """That of the verdict, or LOST, CANNOT, UNKNOWN, CONTRADICTION; on a task can and learned as well."""
    kind: str
    """How it is known: certified, exact, sampled, proved, written down, trained or not known."""
    n: int | None
    """The length that was asked, the nearest that there is; None where there is none near."""
    evidence: str
    command: str
    """What shows it."""
    p: float | None = None
    """P(tells apart), before anything is rounded."""
    interval: tuple[float, float] | None = None
    one_number: bool | None = None
    """Whether what is read is the same number of the format in D0 and D1; None where that is not known."""
    score: float | None = None
    """On a task, what written weights score on test samples; None without any."""
    best_score: float | None = None
    """What the best rule scores on the same samples."""
    elsewhere: Cell | None = None
    """What is known at another length. It is shown, but counts neither for nor against the mechanism."""

    @property
    def shown_as(self) -> str:
        """Its word, or BOTH where it is blind and the format would not show it to others either."""
        return BOTH if self.word in FAILURES and self.one_number else self.word

    def as_json(self) -> dict[str, Any]:
        """As `choose --json` prints it."""
        return {
            **{name: getattr(self, name) for name in ("word", "kind", "n", "evidence", "command")},
            "distinguish": self.p,
            "interval": None if self.interval is None else list(self.interval),
            "same_in_format": self.one_number,
            "score": self.score,
            "best_score": self.best_score,
            "elsewhere": None if self.elsewhere is None else self.elsewhere.in_short(),
        }

    def in_short(self) -> dict[str, Any]:
        """The word, and how and where it is known."""
        return {name: getattr(self, name) for name in ("word", "kind", "n", "evidence")}


@cache
def nearest_point(name: str, n: int) -> Construction | None:
    """The reference point of a construction, at the length nearest to n that it admits.

    Where it ends before n, that is the largest power of two that it admits.

    >>> [nearest_point(name, 131_072).n for name in ("spike", "dispersion", "recall")]
    [131100, 131072, 4096]
    """
    kind = construction_named(name)
    point = kind.read({**kind.example, **kind.variants[0]})
    lengths = (n, *(1 << power for power in reversed(range(n.bit_length()))))
    found = (at_length(point, length) for length in lengths)
    return next((each for each in found if each is not None), None)


def has_length(name: str, n: int) -> bool:
    """Whether the construction has n tokens, or a number of tokens that answers for n.

    >>> has_length("spike", 131_072), has_length("recall", 131_072)
    (True, False)
    """
    point = nearest_point(name, n)
    return point is not None and is_nearest_length(point.n, n, point.step)


def sight(name: str, mechanism: Mechanism, budget: Budget, literal: bool = False) -> Cell:
    """What a mechanism sees of the construction `name`.

    Where every token is needed, nothing is computed unless `literal` says so. A construction that has no
    length near n is asked at the nearest one, which is shown but does not count.
    """
    point = nearest_point(name, budget.n)
    if point is None:
        return _unknown(name, mechanism, None, f"{name} has no length near n={budget.n:,}")
    found = _sight_at(name, point, mechanism, budget, literal)
    if has_length(name, budget.n):
        return found
    why = f"{name} has no length near n={budget.n:,}"
    if found.word == UNKNOWN:
        return _unknown(name, mechanism, None, why, command=found.command)
    shown = f"{why}; at n={point.n:,}, which does not count here: {found.shown_as}, {found.evidence}"
    return _unknown(name, mechanism, None, shown, command=found.command, elsewhere=found)


def _sight_at(name: str, point: Construction, mechanism: Mechanism, budget: Budget, literal: bool) -> Cell:
    """What a mechanism sees of the construction at one point."""
    if is_literal(point, mechanism) and not literal:
        why = f"every one of {point.n:,} tokens is needed, which may take minutes"
        return _unknown(name, mechanism, point.n, why)
    try:
        outcome = found_at(point, mechanism, (DELTA, 1 - DELTA))
        word: str = word_for(outcome, point.m, DELTA)
        outputs = None if word == "undecided" else _outputs(point, mechanism)
    except SeparatrixError as refused:
        return _unknown(name, mechanism, point.n, str(refused))
    except Exception as error:  # a stranger's mechanism may raise anything
        return _unknown(name, mechanism, point.n, f"it {raised(error)}")
    stored = None if outputs is None else store_in_format(outputs, budget.format)
    chance = f"{chance_of(outcome)}; {outcome.engine}: {outcome.evidence}"
    numbers = (outcome.distinguish, outcome.interval, None if stored is None else stored.same_probe)
    readers = f"separatrix readers {name} {mechanism.spelled} n={point.n}"
    equal = outputs is not None and outputs.proves and outputs.same
    concluded = conclude_readers(word, rows_equal=equal)[ReaderClass.EVERY]
    if outputs is not None and concluded is Conclusion.CONTRADICTION:
        why = f"D0 and D1 are said to have equal rows, but {chance}. {REPORT_BUG}"
        return Cell(name, CONTRADICTION, CONTRADICTION, point.n, why, readers, *numbers)
    if outputs is not None and concluded is Conclusion.CANNOT:
        why = f"D0 and D1 have equal rows, so no reader tells them apart; {outputs.evidence}"
        return Cell(name, CANNOT, "proved", point.n, why, readers, *numbers)
    kind = EVIDENCE.get(outcome.engine, "sampled")
    command = f"separatrix verdict {name} {mechanism.spelled} n={point.n}"
    if outputs is not None and stored is not None and stored.same_probe:
        what = "every number of every row is" if stored.same else "what is read is"
        chance = f"in D0 and D1 {what} the same {budget.dtype}; before rounding {chance}"
        if word not in FAILURES:  # there is something to lose
            known = "certified" if outputs.proves else "closed"
            word, kind, command = LOST, known, readers
    return Cell(name, word, kind, point.n, chance, command, *numbers)


def _outputs(point: Construction, mechanism: Mechanism) -> Outputs | None:
    """What attention returns, proved where it can be; None where every token would be needed."""
    try:
        return proved_outputs(point, mechanism)
    except EngineRefusal:
        return None if is_literal(point, mechanism) else FloatOutputs(point, mechanism, 0)


def _unknown(
    name: str,
    mechanism: Mechanism,
    n: int | None,
    why: str,
    *,
    command: str = "",
    elsewhere: Cell | None = None,
) -> Cell:
    at = f" n={n}" if n else ""
    shows = command or f"separatrix verdict {name} {mechanism.spelled}{at}"
    return Cell(name, UNKNOWN, UNKNOWN, n, why, shows, elsewhere=elsewhere)
