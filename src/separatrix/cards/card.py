"""The report card: what a mechanism keeps of the contract, tells apart, resembles and costs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from separatrix.cards.likeness import Likeness, likenesses
from separatrix.cards.standing import Standing, Unanswered, standings
from separatrix.contract import Broken, Examination, examine, run, sensitivity
from separatrix.contract.inputs import modes, require_finite, sizes, tokens
from separatrix.costs.cost import CostCurve, Disagreement, checked_cost, cost_json, crossover
from separatrix.errors import one_line
from separatrix.laws.costs import cost_law
from separatrix.mechanisms import Mechanism, Softmax
from separatrix.mechanisms.load import mechanism_from
from separatrix.parameters import listed_mechanisms

Tell = Callable[[str], None]
Examined = Callable[[Mechanism, Examination], None]


@dataclass(frozen=True)
class Card:
    """Everything `assess` finds out about one mechanism."""

    mechanism: Mechanism
    contract: Examination
    standings: tuple[Standing | Unanswered, ...]
    likenesses: tuple[Likeness, ...]
    cost: CostCurve | Disagreement
    against: tuple[Card, ...]
    """The cards of the mechanisms it is compared with; these have none of their own."""
    softmax_cost: CostCurve | Disagreement
    quick: bool = False
    """Whether the contract alone was asked for."""

    @property
    def holds(self) -> bool:
        """Whether the contract is kept and the mechanism broke nowhere."""
        broke = any(isinstance(each, Unanswered) and each.broke for each in self.standings)
        return self.contract.holds and not broke

    @property
    def reading(self) -> str:
        """The card in one plain paragraph."""
        if self.quick:
            return self._contract_words()
        if not self.standings:
            return f"{self._contract_words()} It does not attend, so nothing else was tried."
        return " ".join([self._contract_words(), self._standing_words(), self._cost_words()])

    @property
    def magnified(self) -> float:
        """How many times the formula magnifies rounding; 1 where the mechanism does not attend."""
        return sensitivity(self.mechanism) if self.standings or (self.quick and self.holds) else 1.0

    def _contract_words(self) -> str:
        magnified = self.magnified
        care = f" On tokens much alike it magnifies rounding, {magnified:.2g} times." if magnified > 1 else ""
        if not self.contract.failed:
            return f"{self.mechanism.spelled} keeps the contract ({len(self.contract.passed)} checks).{care}"
        broken = ", ".join(self.contract.failed)
        care = " What follows may not mean much." if self.standings else ""
        return f"{self.mechanism.spelled} breaks the contract: {broken}.{care}"

    def _standing_words(self) -> str:
        groups: dict[str, list[str]] = {}
        for standing in self.standings:
            groups.setdefault(standing.word, []).append(standing.name)
        words = {
            "distinguishes": "It tells D0 from D1 on",
            "partial": "It does so some of the time on",
            "blind": "It is blind, to this reader at these lengths, on",
            "undecided": "The draws leave it undecided on",
            "none": "There is no answer on",
        }
        found = [f"{words[word]} {'; '.join(groups[word])}." for word in words if word in groups]
        nearest = (
            f"Of the known mechanisms it is nearest to {self.likenesses[0].mechanism}."
            if self.likenesses
            else ""
        )
        return " ".join([*found, nearest])

    def _cost_words(self) -> str:
        if isinstance(self.cost, Disagreement):
            return f"It was not timed: {self.cost.what}."
        law = cost_law(self.cost, "seconds")
        grows = "" if law is None else f"Its time grows like n^{law.exponent:.1f}; it"
        start = crossover(self.cost, self.softmax_cost)
        when = f"from {start:,} tokens on" if start else "at no length tried"
        return f"{grows or 'It'} is faster than softmax {when} on this machine."

    def as_json(self) -> dict[str, Any]:
        """What `separatrix assess --json` prints."""
        return {
            "mechanism": self.mechanism.spelled,
            "contract": {
                "passed": self.contract.passed,
                "failed": self.contract.failed,
                "skipped": self.contract.skipped,
                "not_tried": self.contract.not_tried,
                "magnifies_rounding": self.magnified,
            },
            "constructions": {standing.name: standing.as_json() for standing in self.standings},
            "nearest": [asdict(like) for like in self.likenesses[:3]],
            "cost": cost_json(self.cost, self.softmax_cost),
            "against": [card.as_json() for card in self.against],
            "reading": self.reading,
        }


def assess(
    mechanism: Any,
    against: Any = (),
    tell: Tell = lambda _: None,
    *,
    quick: bool = False,
    examined: Examined = lambda _, __: None,
) -> Card:
    """The report card of a mechanism: contract, verdicts on every construction, likeness, cost.

    **Arguments:**

    - `mechanism`: as for `verdict`: `assess("mine:attend", against=["softmax", "linear"])`.
    - `against`: mechanisms whose cards stand beside it, as `"softmax,linear"` or a list.
    - `tell`: hears of each step before it starts.
    - `quick`: the contract alone, in seconds.
    - `examined`: hears what the mechanism keeps of the contract, before anything else is tried.
    """
    one, others = mechanism_from(mechanism), [mechanism_from(each) for each in listed_mechanisms(against)]
    contract, attending = _contract(one, tell)
    examined(one, contract)
    if quick:
        unasked = Disagreement(one.spelled, "only the contract was asked for")
        return Card(one, contract, (), (), unasked, (), unasked, quick=True)
    tell("softmax: cost")
    softmax_cost = checked_cost(Softmax())
    cards = []
    for each in others:
        kept, does = _contract(each, tell)
        cards.append(_card(each, kept, does, (), softmax_cost, tell))
    return _card(one, contract, attending, tuple(cards), softmax_cost, tell)


def _contract(mechanism: Mechanism, tell: Tell) -> tuple[Examination, bool]:
    """What a mechanism keeps of the contract, and whether it attends at all."""
    name = mechanism.spelled
    tell(f"{name}: contract")
    failed = attends(mechanism)
    if failed:
        return Examination(failed=failed), False
    return examine(mechanism, lambda check: tell(f"{name}: contract, {check}")), True


def _card(
    mechanism: Mechanism,
    contract: Examination,
    attending: bool,
    against: tuple[Card, ...],
    softmax_cost: CostCurve | Disagreement,
    tell: Tell,
) -> Card:
    name = mechanism.spelled
    if not attending:
        untimed = Disagreement(name, "it does not attend")
        return Card(mechanism, contract, (), (), untimed, against, softmax_cost)
    found = tuple(standings(mechanism, lambda where: tell(f"{name}: {where}")))
    tell(f"{name}: likeness")
    alike = tuple(likenesses(mechanism))
    tell(f"{name}: cost")
    cost = softmax_cost if name == "softmax" else checked_cost(mechanism)
    return Card(mechanism, contract, found, alike, cost, against, softmax_cost)


def attends(mechanism: Mechanism) -> dict[str, str]:
    """The first broken check of a mechanism that does not attend at all: it raises, or returns no numbers.

    Nothing else is tried then: every other check would only say the same in its own words.
    """
    q, k, v = tokens(shape=sizes(mechanism))
    for name in ("form", "finite"):
        try:
            if name == "form":
                run("form", mechanism)
            else:
                require_finite(mechanism(q, k, v, causal=modes(mechanism)[0]), "ordinary tokens")
        except Broken as what:
            return {name: one_line(what)}
        except Exception as error:  # a stranger's mechanism may raise anything
            return {name: f"raised {type(error).__name__}: {one_line(error)}"}
    return {}
