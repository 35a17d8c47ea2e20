"""The report card: what a mechanism keeps of the contract, tells apart, resembles and costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, cast

from separatrix.analysis.cards.atlas import COLUMNS, standing_row
from separatrix.analysis.cards.likeness import Likeness, likenesses, nearest_words
from separatrix.analysis.cards.standing import Standing, Unanswered, points, standings, word_at
from separatrix.analysis.costs.cost import CostCurve, Disagreement, compare_with_softmax, measure_cost
from separatrix.analysis.laws.costs import cost_law
from separatrix.analysis.laws.powerlaw import Law
from separatrix.contract import Broken, Examination, ended_in, examine, not_called, sensitivity
from separatrix.contract.inputs import modes, require_finite, sizes, tokens
from separatrix.core.errors import one_line, raised
from separatrix.core.parameters import listed_mechanisms
from separatrix.core.result import Result, Row
from separatrix.mechanisms import Causality, Mechanism, Softmax
from separatrix.mechanisms.calling import UNKNOWN_SCALE, Calling, calling_of
from separatrix.mechanisms.custom import called_with
from separatrix.mechanisms.how_called import SQRT
from separatrix.mechanisms.load import mechanism_from

if TYPE_CHECKING:
    from separatrix.core.schemas import mechanisms as documents

Tell = Callable[[str], None]
UNREACHED = "the card is not finished"
UNSURE = 0.5
"""An exponent whose interval is wider is told with it."""
SoFar = Callable[["Card"], None]
IfEnded = Callable[[Callable[[str], "Card"]], None]
"""Takes a function from the cause that ended the process to the card for that case."""


@dataclass(frozen=True, repr=False)
class Card(Result):
    """Everything `assess` finds out about one mechanism."""

    kind: ClassVar[str] = "card"
    columns: ClassVar[tuple[str, ...]] = COLUMNS
    calling: Calling
    contract: Examination
    standings: tuple[Standing | Unanswered, ...]
    likenesses: tuple[Likeness, ...]
    cost: CostCurve | Disagreement
    against: tuple[Card, ...]
    """The cards of the mechanisms it is compared with; these have none of their own."""
    softmax_cost: CostCurve | Disagreement
    quick: bool = False
    """Whether the contract alone was asked for."""
    unscaled: tuple[Likeness, ...] = ()
    """What it is like with its scale of logits undone, where it has one."""
    rescaled: Mapping[str, str] | None = None
    """The verdicts that change with --scale sqrt, by construction; None where that was not asked."""
    finished: bool = True
    """Whether all that was asked for is in it."""

    @property
    def mechanism(self) -> Mechanism:
        """What the card is of."""
        return self.calling.mechanism

    @property
    def holds(self) -> bool:
        """Whether the contract is kept and the mechanism broke nowhere."""
        broke = any(isinstance(standing, Unanswered) and standing.broke for standing in self.standings)
        return self.contract.holds and not broke

    @property
    def reading(self) -> str:
        """The card in one plain paragraph."""
        if self.quick:
            return self.contract_words
        if not self.finished:
            return f"{self.unfinished} {' '.join((self.contract_words, *self._standing))}"
        if not self.standings:
            return f"{self.contract_words} It could not be called, so nothing else was tried."
        words = (self.contract_words, self.standing, self.scale_words, self.likeness, self.cost_words)
        return " ".join(filter(None, words))

    @property
    def unfinished(self) -> str:
        """How far a card that is not finished came, in a sentence; empty for one that is."""
        if self.finished:
            return ""
        if self.quick:
            return "Not finished: only part of the contract was tried."
        asked, of = len(self.standings), len(points())
        after = "cost, or a mechanism beside it, is not measured"
        return f"Not finished: {f'{asked} of {of} constructions were asked' if asked < of else after}."

    @property
    def _standing(self) -> list[str]:
        return [self.standing] if self.standings else []

    @property
    def magnified(self) -> float:
        """How many times the formula magnifies rounding; 1 where the mechanism does not attend."""
        return sensitivity(self.mechanism) if self.standings or (self.quick and self.holds) else 1.0

    @property
    def contract_words(self) -> str:
        """What it keeps of the contract, in a sentence."""
        magnified = self.magnified
        care = f" On tokens much alike it magnifies rounding, {magnified:.2g} times." if magnified > 1 else ""
        if not self.contract.failed:
            return f"{self.mechanism.spelled} keeps the contract ({self._tried}).{care}"
        broken = ", ".join(
            f"{name} (it {self.contract.raised[name]})" if name in self.contract.raised else name
            for name in self.contract.failed
        )
        care = " What follows may not mean much." if self.standings else ""
        return f"{self.mechanism.spelled} breaks the contract: {broken}.{care}"

    @property
    def _tried(self) -> str:
        """How many checks it kept, and up to which sizes it was tried."""
        found = self.contract
        sizes = f", tried up to {found.longest:,} tokens and width {found.widest}" if found.longest else ""
        return f"{len(found.passed)} checks{sizes}"

    @property
    def standing(self) -> str:
        """On how many constructions it tells D0 from D1, and on which it does not."""
        groups: dict[str, list[str]] = {}
        for standing in self.standings:
            groups.setdefault(standing.word, []).append(standing.name)
        words = {
            "distinguishes": "tells D0 from D1 on",
            "partial": "does so some of the time on",
            "blind": "is blind, to this reader at these lengths, on",
            "saturated": "is saturated, firing on both D0 and D1, on",
            "undecided": "is left undecided by the draws on",
            "none": "has no answer on",
        }
        known = {word: groups[word] for word in words if word in groups}
        parts = [
            f"{words[word]} {len(names)}" + (f" of {len(self.standings)}" if place == 0 else "")
            for place, (word, names) in enumerate(known.items())
        ]
        parts[0] += " constructions" if len(self.standings) > 1 else " construction"
        kinds = Counter(standing.name.partition(",")[0] for standing in self.standings)
        if twice := [f"{name} in {many} forms" for name, many in kinds.items() if many > 1]:
            parts[0] += f" ({', '.join(twice)})"
        return f"{self.mechanism.spelled} {', '.join(parts[:-1])}{' and ' if parts[1:] else ''}{parts[-1]}."

    @property
    def scale_words(self) -> str:
        """Which verdicts depend on a scale of the logits that could not be measured; empty where it was."""
        if self.rescaled is None:
            return ""
        if not self.rescaled:
            return f"{UNKNOWN_SCALE}; --scale sqrt changes no verdict."
        words = {standing.name: standing.word for standing in self.standings}
        changed = "; ".join(f"{name} ({words[name]} → {word})" for name, word in self.rescaled.items())
        many = "1 verdict" if len(self.rescaled) == 1 else f"{len(self.rescaled)} verdicts"
        return (
            f"{UNKNOWN_SCALE}. If it divides them by sqrt(width), use --scale sqrt, "
            f"which changes {many}: {changed}."
        )

    @property
    def likeness(self) -> str:
        """Which known mechanism it is like, in a sentence or two; empty where it was not compared."""
        causal = self.mechanism.causality is Causality.ALWAYS
        found = nearest_words(self.likenesses, causal)
        undone = f" With its scale undone {nearest_words(self.unscaled, causal)}" if self.unscaled else ""
        return found[:1].upper() + found[1:] + undone

    @property
    def cost_words(self) -> str:
        """What it costs beside softmax, in a sentence."""
        if isinstance(self.cost, Disagreement):
            return f"It was not timed: {self.cost.disagreement}."
        law = cost_law(self.cost, "seconds")
        grows = "" if law is None else f"Its time grows like n^{_exponent(law)}; it"
        if self.mechanism.spelled == "softmax":
            return grows.replace("; it", ".")
        start = compare_with_softmax(self.cost, self.softmax_cost).faster_than_softmax_from
        when = f"from {start:,} tokens on" if start else "at no length tried"
        return f"{grows or 'It'} is faster than softmax, measured here, {when}."

    @property
    def summary(self) -> str:
        """Whether it keeps the contract, and on how many constructions it has which word."""
        kept = "keeps the contract" if self.contract.holds else f"breaks {', '.join(self.contract.failed)}"
        counts = Counter(
            "no answer" if standing.word == "none" else standing.word for standing in self.standings
        )
        found = [f"{word} on {count}" for word, count in counts.most_common()]
        said = f"{self.mechanism.spelled}: {', '.join((kept, *found))}"
        return said if self.finished else f"{said}; not finished"

    @property
    def remarks(self) -> tuple[str, ...]:
        """How it is called, a sentence each."""
        return tuple(self.calling.words)

    def rows(self) -> list[Row]:
        """One row for each construction, of this mechanism and of those it is compared with.

        Where no construction was asked, as by `quick`, one for each check of the contract.
        """
        if not self.standings:
            return self.checks()
        cards = (self, *self.against)
        return [standing_row(card.mechanism, standing) for card in cards for standing in card.standings]

    def checks(self) -> list[Row]:
        """One row for each check of the contract: what is broken first."""
        found = self.contract
        said = [
            *((name, "broken", what) for name, what in found.failed.items()),
            *((name, "not tried", f"{root} failed") for name, root in found.not_tried.items()),
            *((name, "kept", "") for name in found.passed),
            *((name, "does not apply", why) for name, why in found.skipped.items()),
        ]
        return [
            {"mechanism": self.mechanism.spelled, "check": name, "outcome": outcome, "why": why}
            for name, outcome, why in said
        ]

    def as_json(self) -> documents.Card:
        """What `separatrix assess --json` prints."""
        return cast(
            "documents.Card",
            {
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
                "cost": compare_with_softmax(self.cost, self.softmax_cost).as_json(),
                "against": [card.as_json() for card in self.against],
                "calling": {
                    "logit_scale": None if self.calling.scale is None else self.calling.scale.as_json(),
                    "logit_scale_known": self.calling.scale_known,
                    "verdicts_with_scale_sqrt": None if self.rescaled is None else dict(self.rescaled),
                    "notes": list(self.calling.notes),
                },
                "reading": self.reading,
                "finished": self.finished,
            },
        )


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
    so_far: SoFar = lambda _: None,
    if_ended: IfEnded = lambda _: None,
) -> Card:
    """The report card of a mechanism: contract, verdicts on every construction, likeness, cost.

    **Arguments:**

    - `mechanism`: as for `verdict`: `assess("mine:attend", against=["softmax", "linear"])`.
    - `against`: mechanisms whose cards stand beside it, as `"softmax,linear"` or a list.
    - `tell`: hears of each step before it starts.
    - `width`, `heads`: of your own, if it takes no others and they are not found in it.
    - `scale`: a number to multiply its queries by, or "sqrt" or "width", which undo a hidden 1/sqrt(width)
      or 1/width.
    - `seed`: of the weights that are drawn where a class is made; 0 unless given.
    - `quick`: the contract alone, in seconds.
    - `so_far`: gets the card as far as it is: once the contract is known, and after each construction.
    - `if_ended`: gets, before each step, a function from a cause, as "crashed with SIGSEGV", to the card for
      the case that the mechanism ends the process in this step.
    """
    one = mechanism_from(mechanism, width=width, heads=heads, scale=scale, seed=seed)
    others = [mechanism_from(name) for name in listed_mechanisms(against)]
    tell(f"{one.spelled}: contract")
    unreached = Disagreement(one.spelled, UNREACHED)
    empty = Card(Calling(one), Examination(), (), (), unreached, (), unreached, quick=quick, finished=False)
    if_ended(lambda cause: replace(empty, contract=not_called({"form": cause})))
    failed = attends(one)
    calling = Calling(one) if failed else calling_of(one)

    def before_check(name: str, examination: Examination) -> None:
        if_ended(lambda cause: replace(empty, calling=calling, contract=ended_in(examination, name, cause)))

    contract = not_called(failed) if failed else _contract(one, tell, before_check)
    why = "it could not be called" if failed else "only the contract was asked for"
    unasked = Disagreement(one.spelled, why if failed or quick else UNREACHED)
    card = Card(calling, contract, (), (), unasked, (), unasked, quick=quick, finished=bool(failed or quick))
    so_far(card)
    if card.finished:
        return card
    card = _asked(card, None, tell, so_far, if_ended)
    for each in others:
        so_far(replace(card, finished=False))
        if_ended(partial(_ended_beside, card, each))
        card = replace(card, against=(*card.against, _other(each, card.softmax_cost, tell)))
    return card


def _other(mechanism: Mechanism, softmax_cost: CostCurve | Disagreement, tell: Tell) -> Card:
    """The card of a mechanism that another one is compared with."""
    if failed := attends(mechanism):
        untimed = Disagreement(mechanism.spelled, "it could not be called")
        return Card(Calling(mechanism), not_called(failed), (), (), untimed, (), softmax_cost)
    untimed = Disagreement(mechanism.spelled, UNREACHED)
    card = Card(calling_of(mechanism), _contract(mechanism, tell), (), (), untimed, (), softmax_cost)
    return _asked(card, softmax_cost, tell, lambda _: None, lambda _: None)


def _ended_beside(card: Card, other: Mechanism, cause: str) -> Card:
    """The card where a mechanism that it is compared with ended the process."""
    untimed = Disagreement(other.spelled, f"it {cause}")
    beside = Card(Calling(other), Examination(), (), (), untimed, (), card.softmax_cost, finished=False)
    return replace(card, against=(*card.against, beside), finished=False)


def _contract(
    mechanism: Mechanism,
    tell: Tell,
    before_check: Callable[[str, Examination], None] = lambda *_: None,
) -> Examination:
    return examine(mechanism, lambda check: tell(f"{mechanism.spelled}: contract, {check}"), before_check)


def _asked(
    card: Card,
    softmax_cost: CostCurve | Disagreement | None,
    tell: Tell,
    so_far: SoFar,
    if_ended: IfEnded,
) -> Card:
    """The card with all that is asked after the contract."""
    mechanism, name, scale = card.mechanism, card.mechanism.spelled, card.calling.scale

    def before_construction(where: str) -> None:
        known = card
        tell(f"{name}: {where}")
        unanswered = partial(Unanswered, where, broke=True)
        if_ended(lambda cause: replace(known, standings=(*known.standings, unanswered(why=f"it {cause}"))))

    def before_step(what: str) -> None:
        known = card
        tell(f"{name}: {what}")
        if_ended(lambda cause: replace(known, cost=Disagreement(name, f"it {cause}")))

    for standing in standings(mechanism, before_construction):
        card = replace(card, standings=(*card.standings, standing))
        so_far(card)
    if not card.calling.scale_known:
        before_step("the same with --scale sqrt")
        card = replace(card, rescaled=_rescaled(card))
        so_far(card)
    before_step("likeness")
    card = replace(card, likenesses=tuple(likenesses(mechanism)))
    if scale is not None and scale.undone_by is not None:
        undone = called_with(mechanism, {"scale": scale.undone_by})
        card = replace(card, unscaled=tuple(likenesses(undone)))
    so_far(card)
    if softmax_cost is None:
        tell("softmax: cost")
        softmax_cost = measure_cost(Softmax())
    before_step("cost")
    cost = softmax_cost if name == "softmax" else measure_cost(mechanism)
    return replace(card, cost=cost, softmax_cost=softmax_cost, finished=True)


def _rescaled(card: Card) -> dict[str, str]:
    """The verdicts that change where queries are multiplied by sqrt(width), by construction."""
    rescaled, changed = called_with(card.mechanism, {"scale": SQRT}), {}
    known = points()
    for standing in card.standings:
        word = word_at(known[standing.name], rescaled)
        if word != standing.word:
            changed[standing.name] = word
    return changed


def attends(mechanism: Mechanism) -> dict[str, str]:
    """Why a mechanism cannot be called at all: it raises on ordinary tokens, or returns no numbers.

    Nothing else is tried then: every other check would only say the same in its own words.
    """
    q, k, v = tokens(shape=sizes(mechanism))
    try:
        require_finite(mechanism(q, k, v, causal=modes(mechanism)[0]), "ordinary tokens")
    except Broken as what:
        return {"finite": one_line(what)}
    except Exception as error:  # a stranger's mechanism may raise anything
        return {"form": raised(error)}
    return {}


def _exponent(law: Law) -> str:
    """An exponent, and how far it may be off where that shows."""
    low, high = law.interval
    return f"{law.exponent:.1f}" + (f" ± {(high - low) / 2:.1f}" if high - low > UNSURE else "")
