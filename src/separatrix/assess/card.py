"""The report card: what a mechanism keeps of the contract, tells apart, resembles and costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from separatrix.assess.cost import CostCurve, measure
from separatrix.assess.likeness import Likeness, likenesses
from separatrix.assess.standing import Standing, standings
from separatrix.contract import Examination, examine
from separatrix.mechanisms import Mechanism

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Card:
    """Everything `assess` finds out about one mechanism."""

    mechanism: Mechanism
    contract: Examination
    standings: tuple[Standing, ...]
    likenesses: tuple[Likeness, ...]
    cost: CostCurve
    against: tuple[Card, ...]
    """The cards of the mechanisms it is compared with; these have none of their own."""
    softmax_cost: CostCurve

    @property
    def reading(self) -> str:
        """One plain paragraph."""
        return " ".join([self._contract_words(), self._standing_words(), self._cost_words()])

    def _contract_words(self) -> str:
        if not self.contract.failed:
            return f"{self.mechanism.spelled} keeps the contract ({len(self.contract.passed)} checks)."
        broken = ", ".join(self.contract.failed)
        return f"{self.mechanism.spelled} breaks the contract: {broken}. What follows may not mean much."

    def _standing_words(self) -> str:
        groups: dict[str, list[str]] = {}
        for standing in self.standings:
            groups.setdefault(standing.verdict.word, []).append(standing.name)
        words = {
            "distinguishes": "It tells D0 from D1 on",
            "partial": "It does so some of the time on",
            "blind": "It is blind, to this reader at n=1000, on",
            "undecided": "The draws leave it undecided on",
        }
        found = [f"{words[word]} {' and '.join(groups[word])}." for word in words if word in groups]
        nearest = (
            f"Of the known mechanisms it is nearest to {self.likenesses[0].mechanism}."
            if self.likenesses
            else ""
        )
        return " ".join([*found, nearest])

    def _cost_words(self) -> str:
        growth = self.cost.exponent(lambda cost: cost.seconds)
        crossover = self.cost.crossover(self.softmax_cost)
        when = f"from {crossover:,} tokens on" if crossover else "at no length tried"
        return f"Its time grows like n^{growth:.1f}; it is faster than softmax {when} on this machine."

    def as_json(self) -> dict[str, Any]:
        """What `separatrix assess --json` prints."""
        return {
            "mechanism": self.mechanism.spelled,
            "contract": {
                "passed": self.contract.passed,
                "failed": self.contract.failed,
                "skipped": self.contract.skipped,
            },
            "constructions": {standing.name: standing.as_json() for standing in self.standings},
            "nearest": [asdict(like) for like in self.likenesses[:3]],
            "cost": {
                **self.cost.as_json(),
                "faster_than_softmax_from": self.cost.crossover(self.softmax_cost),
            },
            "against": [card.as_json() for card in self.against],
            "reading": self.reading,
        }


def assess(mechanism: Mechanism, against: Sequence[Mechanism] = (), tell: Tell = lambda _: None) -> Card:
    """Put a mechanism through everything; `tell` hears of each step before it starts."""
    from separatrix.mechanisms import Softmax

    tell("softmax: cost")
    softmax_cost = measure(Softmax())
    cards = tuple(_one(each, (), softmax_cost, tell) for each in against)
    return _one(mechanism, cards, softmax_cost, tell)


def _one(mechanism: Mechanism, against: tuple[Card, ...], softmax_cost: CostCurve, tell: Tell) -> Card:
    name = mechanism.spelled
    tell(f"{name}: contract")
    contract = examine(mechanism)
    found = tuple(standings(mechanism, lambda where: tell(f"{name}: {where}")))
    tell(f"{name}: cost")
    return Card(
        mechanism, contract, found, tuple(likenesses(mechanism)), measure(mechanism), against, softmax_cost
    )
