"""`assess`: build the report card of a mechanism, and report it as it grows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from separatrix.analysis.cards.card import Card
from separatrix.analysis.cards.construction_result import (
    NoConstructionResult,
    compute_result,
    reference_points,
    verdict_at,
)
from separatrix.analysis.cards.neighbours import find_neighbours
from separatrix.analysis.costs.cost import measure_cost
from separatrix.analysis.costs.curves import Disagreement, MeasuredCost
from separatrix.contract import Broken, Examination, examine
from separatrix.contract.comparisons import require_finite
from separatrix.contract.inputs import causal_modes, draw_tokens, fit_shape
from separatrix.core.errors import describe_failure, one_line
from separatrix.core.parameters import listed_mechanisms
from separatrix.mechanisms import Mechanism, Softmax
from separatrix.mechanisms.calling import Calling, calling_of
from separatrix.mechanisms.custom import with_call_options
from separatrix.mechanisms.how_called import SQRT
from separatrix.mechanisms.load import mechanism_from

Tell = Callable[[str], None]
OnUpdate = Callable[[Card], None]
OnCrash = Callable[[Callable[[str], Card]], None]
"""Takes a function that returns, for the cause of a crash, the card to show in that case."""
UNFINISHED = "the card is not finished"
NOT_CALLABLE = "it could not be called"


def assess(
    mechanism: Any,
    against: Any = (),
    tell: Tell = lambda _: None,
    *,
    width: int | None = None,
    heads: int | None = None,
    scale: str | float | None = None,
    seed: int | None = None,
    quick: bool = False,
    on_update: OnUpdate = lambda _: None,
    on_crash: OnCrash = lambda _: None,
) -> Card:
    """Return the report card of a mechanism: contract, verdicts on every construction, similarity, cost.

    **Arguments:**

    - `mechanism`: as for `verdict`: `assess("mine:attend", against=["softmax", "linear"])`.
    - `against`: mechanisms to compare with, as `"softmax,linear"` or a list; each gets a card, too.
    - `tell`: called with the name of each step before it starts.
    - `width`, `heads`: the sizes that your own mechanism requires, if they cannot be found in it.
    - `scale`: a number to multiply its queries by, or "sqrt" or "width", which undo a hidden 1/sqrt(width)
      or 1/width.
    - `seed`: the seed for the initial weights of your own class; 0 by default.
    - `quick`: run the contract only, which takes seconds.
    - `on_update`: called with the unfinished card, once the contract is known and after each construction.
    - `on_crash`: called before each step with a function. If the mechanism ends the process in this step, the
      function returns the card for a cause such as "crashed with SIGSEGV".
    """
    subject = mechanism_from(mechanism, width=width, heads=heads, scale=scale, seed=seed)
    rivals = [mechanism_from(name) for name in listed_mechanisms(against)]
    card = _Assessment(tell, on_update, on_crash).build_card(subject, quick=quick)
    for rival in rivals if card.constructions else ():
        on_update(replace(card, finished=False))
        on_crash(partial(_crashed_beside, card, rival))
        card = replace(card, against=(*card.against, _Assessment(tell).build_card(rival, card.softmax_cost)))
    return card


def _crashed_beside(card: Card, mechanism: Mechanism, cause: str) -> Card:
    """Return the card for the case that a mechanism to compare with ended the process."""
    not_timed = Disagreement(mechanism.spelled, f"it {cause}")
    other_card = Card(Calling(mechanism), Examination(), not_timed, card.softmax_cost, finished=False)
    return replace(card, against=(*card.against, other_card), finished=False)


@dataclass(frozen=True)
class _Assessment:
    """The steps of a card, with the functions that hear of them."""

    tell: Tell
    on_update: OnUpdate = lambda _: None
    on_crash: OnCrash = lambda _: None

    def build_card(self, mechanism: Mechanism, softmax_cost: MeasuredCost | None = None, quick: bool = False) -> Card:
        """Return the card of one mechanism; softmax is measured unless its cost is given."""
        name = mechanism.spelled
        self.tell(f"{name}: contract")
        pending = Disagreement(name, UNFINISHED)
        empty = Card(Calling(mechanism), Examination(), pending, softmax_cost or pending, quick=quick, finished=False)
        self.on_crash(lambda cause: replace(empty, contract=Examination.of_uncallable({"form": cause})))
        if failure := find_call_failure(mechanism):
            cost = Disagreement(name, NOT_CALLABLE)
            card = replace(empty, contract=Examination.of_uncallable(failure), cost=cost, finished=True)
        else:
            card = self._examine(replace(empty, calling=calling_of(mechanism)))
        self.on_update(card)
        return card if card.finished else self._complete(card, softmax_cost)

    def _examine(self, card: Card) -> Card:
        """Return the card with the contract, finished if nothing else was requested."""

        def before_check(check: str, examination: Examination) -> None:
            self.on_crash(lambda cause: replace(card, contract=examination.after_crash(check, cause)))

        name = card.mechanism.spelled
        contract = examine(card.mechanism, lambda check: self.tell(f"{name}: contract, {check}"), before_check)
        if not card.quick:
            return replace(card, contract=contract)
        unmeasured = Disagreement(name, "only the contract was requested")
        return replace(card, contract=contract, cost=unmeasured, softmax_cost=unmeasured, finished=True)

    def _complete(self, card: Card, softmax_cost: MeasuredCost | None) -> Card:
        """Return the card with everything that comes after the contract."""
        mechanism, scale = card.mechanism, card.calling.scale
        for name, point in reference_points().items():
            self._begin(card, name, partial(_crashed_on, card, name))
            card = replace(card, constructions={**card.constructions, name: compute_result(name, point, mechanism)})
            self.on_update(card)
        if not card.calling.scale_known:
            self._begin(card, "the same with --scale sqrt")
            card = replace(card, changed_by_scale=_find_changed_verdicts(card))
            self.on_update(card)
        self._begin(card, "similar mechanisms")
        card = replace(card, neighbours=tuple(find_neighbours(mechanism)))
        if scale is not None and scale.undone_by is not None:
            mechanism_without_scale = with_call_options(mechanism, {"scale": scale.undone_by})
            card = replace(card, unscaled_neighbours=tuple(find_neighbours(mechanism_without_scale)))
        self.on_update(card)
        if softmax_cost is None:
            self.tell("softmax: cost")
            softmax_cost = measure_cost(Softmax())
        self._begin(card, "cost")
        cost = softmax_cost if mechanism.spelled == "softmax" else measure_cost(mechanism)
        return replace(card, cost=cost, softmax_cost=softmax_cost, finished=True)

    def _begin(self, card: Card, step: str, card_after: Callable[[str], Card] | None = None) -> None:
        """Announce a step, and the card for a crash in it: without a cost, unless `card_after` gives it."""
        name = card.mechanism.spelled
        self.tell(f"{name}: {step}")
        self.on_crash(card_after or (lambda cause: replace(card, cost=Disagreement(name, f"it {cause}"))))


def _crashed_on(card: Card, name: str, cause: str) -> Card:
    """Return the card for the case that the mechanism ended the process on a construction."""
    failure = NoConstructionResult(name, f"it {cause}", is_broken=True)
    return replace(card, constructions={**card.constructions, name: failure})


def _find_changed_verdicts(card: Card) -> dict[str, str]:
    """Return the verdicts that change if queries are multiplied by sqrt(width), by construction."""
    mechanism_with_scale, points = with_call_options(card.mechanism, {"scale": SQRT}), reference_points()
    words = dict[str, str]()
    for name in card.constructions:
        try:
            words[name] = verdict_at(points[name], mechanism_with_scale).word
        except Exception:  # a user's mechanism may raise anything: it has no answer
            words[name] = NoConstructionResult.word
    return {name: word for name, word in words.items() if word != card.constructions[name].word}


def find_call_failure(mechanism: Mechanism) -> dict[str, str]:
    """Return why a mechanism cannot be called on ordinary tokens, by check; empty if it can.

    Nothing else is tried then: every other check would only report the same error.
    """
    inputs = draw_tokens(shape=fit_shape(mechanism))
    try:
        require_finite(mechanism(*inputs, causal=causal_modes(mechanism)[0]), "ordinary tokens")
    except Broken as fault:
        return {"finite": one_line(fault)}
    except Exception as error:  # a user's mechanism may raise anything
        return {"form": describe_failure(error)}
    return {}
