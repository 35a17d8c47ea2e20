"""Comparisons of mechanisms: one tells D0 from D1 where another fails, in both directions.

A separation is a statement about the fixed reader at one point, except where the loser's rows are proved
equal: then it holds for every reader.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from separatrix.analysis.cards.construction_result import reference_points, verdict_at
from separatrix.analysis.cards.outcomes import ShortVerdict
from separatrix.claims.separations import UNNORMALISED
from separatrix.constructions import Construction, construction_named
from separatrix.core.documents import Document, Hidden, Inlined, shown
from separatrix.exact.engines import EngineRefusal
from separatrix.exact.outputs.proved import proved_outputs
from separatrix.exact.verdicts import Verdict
from separatrix.exact.verdicts.words import separates
from separatrix.mechanisms import Mechanism, mechanism_named

Tell = Callable[[str], None]
LINEAR_FAMILY = ("linear", "relu-features", UNNORMALISED, "delta")
MECHANISMS = ("softmax", "logn-softmax", "topk:k=1", *LINEAR_FAMILY)
"""Softmax and two sharper forms of it; linear attention with and without its sum; a fixed state."""
SHORT_POINTS: Mapping[str, Mapping[str, object]] = {
    "regression": {"n": 40},
    "rough": {"n": 253, "spikes": 1, "noise": "0.005"},
}
"""Points besides the examples, short enough for literal tokens."""
MAX_LITERAL_N = 256
"""The largest n for mechanisms that see positions, and for tokens that are all different."""


@dataclass(frozen=True)
class PointAnswer(Document):
    """The answer of one mechanism at one point."""

    name: Hidden[str]
    """The construction as tables show it: `spike, identity`."""
    verdict: Hidden[Verdict]
    summary: Inlined[ShortVerdict]
    equal_rows: bool
    """Whether D0 and D1 provably give the same rows: then no reader tells them apart."""

    @shown
    def mechanism(self) -> str:
        """The mechanism as it is named on the command line."""
        return self.verdict.mechanism.spelled

    @property
    def word(self) -> str:
        """The verdict in one word."""
        return self.verdict.word

    @property
    def evidence(self) -> str:
        """P with its interval and engine; or the reason why no reader at all tells the labels apart."""
        outcome = self.verdict.outcome
        low, high = outcome.interval
        if self.equal_rows:
            return "rows proved equal: no reader"
        interval = "" if low == high else f" in [{low:.4g}, {high:.4g}]"
        return f"{outcome.engine} P = {outcome.distinguish:.4g}{interval}"


@dataclass(frozen=True)
class PaperSeparation(Document):
    """A winner that distinguishes and a loser that fails (P <= delta), at the same point."""

    winner: PointAnswer
    loser: PointAnswer

    @property
    def name(self) -> str:
        """The name of the point."""
        return self.winner.name

    @shown
    def construction(self) -> Construction:
        """The point itself."""
        return self.winner.verdict.construction

    @shown
    def parameters(self) -> Mapping[str, int | str]:
        """All parameters of the construction."""
        return self.winner.verdict.parameters

    @shown
    def sentence(self) -> str:
        """The separation in words."""
        winner, loser = self.winner, self.loser
        return (
            f"{winner.mechanism} beats {loser.mechanism} on {winner.name}: {winner.mechanism} distinguishes "
            f"({winner.evidence}), {loser.mechanism} is {loser.word} ({loser.evidence})"
        )


def collect_answers(mechanisms: Sequence[str] = MECHANISMS, tell: Tell = lambda _: None) -> list[PointAnswer]:
    """Return the answers on every construction at its example, and at a few short points.

    `tell` is called with the name of each point before it is computed.
    """
    constructions = dict(reference_points())
    for name, changes in SHORT_POINTS.items():
        kind = construction_named(name)
        constructions[f"{name}, n={changes['n']}"] = kind.read({**kind.example, **changes})
    answers, units = list[PointAnswer](), [mechanism_named(mechanism) for mechanism in mechanisms]
    for name, construction in constructions.items():
        tell(name)
        answers += [_answer(name, construction, unit) for unit in units if _is_affordable(construction, unit)]
    return answers


def find_separations(answers: Sequence[PointAnswer]) -> list[PaperSeparation]:
    """Return the pairs of answers at one point of which one distinguishes and the other fails."""
    pairs = [(winner, loser) for winner, loser in product(answers, repeat=2) if winner.name == loser.name]
    return [PaperSeparation(*pair) for pair in pairs if separates(pair[0].word, pair[1].word)]


def _is_affordable(construction: Construction, mechanism: Mechanism) -> bool:
    """Return whether tokens can be counted, or are few."""
    return (mechanism.takes_counts and construction.has_groups) or construction.n <= MAX_LITERAL_N


def _answer(name: str, construction: Construction, mechanism: Mechanism) -> PointAnswer:
    verdict = verdict_at(construction, mechanism)
    try:
        has_equal_rows = proved_outputs(construction, mechanism).has_equal_rows
    except EngineRefusal:
        has_equal_rows = False
    return PointAnswer(name, verdict, ShortVerdict.of(verdict.outcome, construction.m), has_equal_rows)
