"""Who beats whom: one mechanism tells D0 from D1 where another fails, in both directions.

A separation is a statement about the fixed reader at one point, except where the loser's rows are proved
equal: then it holds for every reader.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from separatrix.analysis.cards.outcomes import found_at
from separatrix.analysis.cards.standing import points
from separatrix.claims.separations import UNNORMALISED
from separatrix.constructions import Construction, construction_named
from separatrix.exact.engines import EngineRefusal
from separatrix.exact.outputs.proved import proved_outputs
from separatrix.exact.verdicts import DELTA, Verdict
from separatrix.exact.verdicts.words import separates
from separatrix.mechanisms import Mechanism, mechanism_named

MECHANISMS = ("softmax", "logn-softmax", "topk:k=1", "linear", "relu-features", UNNORMALISED, "delta")
"""Softmax and what sharpens it; linear attention with and without its sum; a fixed state."""
LINEAR_FAMILY = ("linear", "relu-features", UNNORMALISED, "delta")
SHORT: Mapping[str, Mapping[str, object]] = {
    "regression": {"n": 40},
    "rough": {"n": 253, "spikes": 1, "noise": "0.005"},
}
"""Points beside the examples, short enough for literal tokens."""
MOST_LITERAL = 256
"""Mechanisms that see places, and tokens that are all different, are asked up to this length only."""


@dataclass(frozen=True)
class PointAnswer:
    """What one mechanism makes of one point."""

    name: str
    """The construction as tables show it: `spike, identity`."""
    verdict: Verdict
    equal_rows: bool
    """Whether D0 and D1 are proved to get the same: then no reader tells them apart."""

    @property
    def mechanism(self) -> str:
        """The mechanism as it is named on the command line."""
        return self.verdict.mechanism.spelled

    @property
    def word(self) -> str:
        """The verdict in one word."""
        return self.verdict.word

    @property
    def evidence(self) -> str:
        """P with its interval, and the engine behind it; or why no reader at all will do."""
        outcome = self.verdict.outcome
        low, high = outcome.interval
        if self.equal_rows:
            return "rows proved equal: no reader"
        inside = "" if low == high else f" in [{low:.4g}, {high:.4g}]"
        return f"{outcome.engine} P = {outcome.distinguish:.4g}{inside}"

    def as_json(self) -> dict[str, Any]:
        """The answer as it stands in a row of the table."""
        shown: Mapping[str, Any] = self.verdict.as_json()
        kept = ("mechanism", "verdict", "distinguish", "interval", "engine")
        return {name: shown[name] for name in (*kept, "evidence")} | {"equal_rows": self.equal_rows}


@dataclass(frozen=True)
class PaperSeparation:
    """The winner distinguishes and the loser fails (P <= delta), at the same point."""

    winner: PointAnswer
    loser: PointAnswer

    @property
    def name(self) -> str:
        """The construction as tables show it."""
        return self.winner.name

    @property
    def construction(self) -> Construction:
        """The point itself."""
        return self.winner.verdict.construction

    @property
    def sentence(self) -> str:
        """The separation in words."""
        won, lost = self.winner, self.loser
        return (
            f"{won.mechanism} beats {lost.mechanism} on {self.name}: {won.mechanism} distinguishes "
            f"({won.evidence}), {lost.mechanism} is {lost.word} ({lost.evidence})"
        )

    def as_json(self) -> dict[str, Any]:
        """One row of `separations.json`."""
        return {
            "construction": self.construction.name,
            "parameters": self.construction.parameters.shown(),
            "winner": self.winner.as_json(),
            "loser": self.loser.as_json(),
            "sentence": self.sentence,
        }


def answers(
    mechanisms: Sequence[str] = MECHANISMS, tell: Callable[[str], None] = lambda _: None
) -> list[PointAnswer]:
    """What each mechanism makes of every construction at its example, and at a few short points.

    `tell` hears of each point before it.
    """
    found, attending = list[PointAnswer](), [mechanism_named(mechanism) for mechanism in mechanisms]
    for name, point in _points():
        tell(name)
        found += [_answer(name, point, each) for each in attending if _affordable(point, each)]
    return found


def separated(found: Sequence[PointAnswer]) -> list[PaperSeparation]:
    """The pairs of answers at one point of which one distinguishes and the other fails."""
    return [
        PaperSeparation(winner, loser)
        for winner in found
        for loser in found
        if winner.name == loser.name and separates(winner.word, loser.word)
    ]


def _points() -> Iterator[tuple[str, Construction]]:
    yield from points().items()
    for name, changes in SHORT.items():
        kind = construction_named(name)
        yield f"{name}, n={changes['n']}", kind.read({**kind.example, **changes})


def _affordable(point: Construction, mechanism: Mechanism) -> bool:
    """Whether tokens can be counted, or are few."""
    return (mechanism.takes_counts and point.has_groups) or point.n <= MOST_LITERAL


def _answer(name: str, point: Construction, mechanism: Mechanism) -> PointAnswer:
    verdict = Verdict(point, mechanism, found_at(point, mechanism, (DELTA, 1 - DELTA)), DELTA)
    try:
        same = proved_outputs(point, mechanism).same
    except EngineRefusal:
        same = False
    return PointAnswer(name, verdict, same)
