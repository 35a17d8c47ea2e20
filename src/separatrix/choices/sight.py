"""What a mechanism sees of a construction, at a length and in a number format, and how that is known."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import torch

from separatrix.cards.outcomes import at_length, found_at
from separatrix.cards.standing import EVIDENCE
from separatrix.choices.budget import Budget
from separatrix.constructions import Construction, construction_named
from separatrix.costs.state import kept
from separatrix.engines import EngineRefusal
from separatrix.errors import SeparatrixError, raised
from separatrix.laws.margins import is_literal
from separatrix.mechanisms import Mechanism
from separatrix.mechanisms.recurrent._base import RecurrentMechanism
from separatrix.outputs._base import Outputs
from separatrix.outputs.floats import FloatOutputs
from separatrix.outputs.proved import proved_outputs
from separatrix.verdicts import DELTA
from separatrix.verdicts.rounded_outputs import stored_in
from separatrix.verdicts.verdict import chance_of, word_for

LOST, CANNOT, UNKNOWN = "lost", "cannot", "not known"
"""Words beside those of a verdict: seen, but the same number in the format; proved for every reader; and no
answer."""
BOTH = "blind, and lost in this format"
"""How a blind cell is shown where what is read is one number of the format, too."""


@dataclass(frozen=True)
class Cell:
    """What is known of one mechanism on one construction or task."""

    name: str
    word: str
    """That of the verdict, or LOST, CANNOT, UNKNOWN; on a task can, learned or not learned as well."""
    kind: str
    """How it is known: certified, exact, sampled, proved, written down, trained or not known."""
    n: int | None
    """The length that was asked, the nearest that there is."""
    evidence: str
    command: str
    """What shows it."""
    p: float | None = None
    """P(tells apart), before anything is rounded."""
    interval: tuple[float, float] | None = None
    one_number: bool | None = None
    """Whether what is read is the same number of the format in D0 and D1; None where that is not known."""

    @property
    def shown_as(self) -> str:
        """Its word, or BOTH where it is blind and the format would not show it to others either."""
        return BOTH if self.word == "blind" and self.one_number else self.word

    def at(self, n: int) -> str:
        """At which length it was asked, as a phrase, where that is not n or near it."""
        return f" at n={self.n:,}" if elsewhere(self.n, n) else ""

    def as_json(self) -> dict[str, Any]:
        """As `choose --json` prints it."""
        return {
            **{name: getattr(self, name) for name in ("word", "kind", "n", "evidence", "command")},
            "distinguish": self.p,
            "interval": None if self.interval is None else list(self.interval),
            "same_in_format": self.one_number,
        }


def elsewhere(used: int | None, n: int) -> bool:
    """Whether the length that was used is another one than n, by more than a tenth.

    >>> elsewhere(131_100, 131_072), elsewhere(4096, 131_072), elsewhere(None, 131_072)
    (False, True, False)
    """
    return used is not None and 10 * abs(used - n) > n


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
    found = (at_length(point, each) for each in lengths)
    return next((each for each in found if each is not None), None)


def sight(name: str, mechanism: Mechanism, budget: Budget, literal: bool = False) -> Cell:
    """What a mechanism sees of the construction `name`.

    Where every token is needed, nothing is computed unless `literal` says so.
    """
    bounded = _bounded(name, mechanism, budget)
    if bounded is not None:
        return bounded
    point = nearest_point(name, budget.n)
    if point is None:
        return _unknown(name, mechanism, None, f"{name} has no length near n={budget.n:,}")
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
    stored = None if outputs is None else stored_in(outputs, budget.format)
    chance = f"{chance_of(outcome)}; {outcome.engine}: {outcome.evidence}"
    numbers = (outcome.distinguish, outcome.interval, None if stored is None else stored.same_probe)
    readers = f"separatrix readers {name} {mechanism.spelled} n={point.n}"
    if outputs is not None and outputs.proves and outputs.same:
        why = f"D0 and D1 have equal rows, so no reader tells them apart; {outputs.evidence}"
        return Cell(name, CANNOT, "proved", point.n, why, readers, *numbers)
    kind = EVIDENCE.get(outcome.engine, "sampled")
    command = f"separatrix verdict {name} {mechanism.spelled} n={point.n}"
    if outputs is not None and stored is not None and stored.same_probe:
        what = "every number of every row is" if stored.same else "what is read is"
        chance = f"in D0 and D1 {what} the same {budget.dtype}; before rounding {chance}"
        if word != "blind":  # there is something to lose
            known = "certified" if outputs.proves else "exact"
            word, kind, command = LOST, known, readers
    return Cell(name, word, kind, point.n, chance, command, *numbers)


def _outputs(point: Construction, mechanism: Mechanism) -> Outputs | None:
    """What attention returns, proved where it can be; None where every token would be needed."""
    try:
        return proved_outputs(point, mechanism)
    except EngineRefusal:
        return None if is_literal(point, mechanism) else FloatOutputs(point, mechanism, 0)


def _bounded(name: str, mechanism: Mechanism, budget: Budget) -> Cell | None:
    """What is proved of states (theory 6.10): of n values a head's passes on no more than it has rows."""
    states = isinstance(mechanism, RecurrentMechanism) and mechanism.linear_in_values
    if name != "recall" or not states:
        return None
    numbers = kept(mechanism, budget.n, 1, budget.width, torch.float32).bytes // 4
    rows = -(-numbers // budget.width)
    if rows >= budget.n:
        return None
    evidence = f"the state of a head passes at most {rows:,} of {budget.n:,} values on (theory 6.10)"
    return Cell(name, CANNOT, "proved", budget.n, evidence, "separatrix claim state-rank")


def _unknown(name: str, mechanism: Mechanism, n: int | None, why: str) -> Cell:
    at = f" n={n}" if n else ""
    return Cell(name, UNKNOWN, UNKNOWN, n, why, f"separatrix verdict {name} {mechanism.spelled}{at}")
