"""The report card of a mechanism: contract, results on constructions, similar mechanisms, cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from separatrix.analysis.cards.construction_result import AnyResult, AtlasCell, NoConstructionResult, reference_points
from separatrix.analysis.costs.curves import Disagreement, MeasuredCost, compare_with_softmax
from separatrix.core.documents import Document, Hidden, keys_of, shown, shown_as
from separatrix.core.result import Result, Row
from separatrix.mechanisms import Causality, Mechanism, mechanism_named
from separatrix.mechanisms.calling import UNKNOWN_SCALE, Calling
from separatrix.mechanisms.logits import LogitScale

if TYPE_CHECKING:
    # Imported for type checkers only: costs and the contract load torch, and the explorer imports this
    # module for the type of its answers.
    from separatrix.contract import Examination

MAX_EXPONENT_SPREAD = 0.5
"""An exponent whose interval is wider is printed with the interval."""
EQUAL_DISTANCE, NEAR_DISTANCE = 1e-9, 0.05
"""Up to these distances a mechanism equals another one, or is close to it."""
SHOWN_NEIGHBOURS = 3
VERDICT_PHRASES = {
    "distinguishes": "tells D0 from D1 on",
    "partial": "does so some of the time on",
    "blind": "is blind, to this reader at these lengths, on",
    "saturated": "is saturated, firing on both D0 and D1, on",
    "undecided": "is left undecided by the draws on",
    "none": "has no answer on",
}


@dataclass(frozen=True)
class Neighbour(Document):
    """A known mechanism and its distance from another one: 0 for equal results, 2 for opposite ones."""

    mechanism: str
    distance: float


@dataclass(frozen=True)
class ContractResult(Document):
    """The result of every check of the contract."""

    passed: Sequence[str]
    failed: Mapping[str, str]
    skipped: Mapping[str, str]
    not_tried: Mapping[str, str]
    magnifies_rounding: float


@dataclass(frozen=True)
class CallingNotes(Document):
    """Notes on the way a mechanism is called."""

    logit_scale: LogitScale | None
    logit_scale_known: bool
    """Whether the scale could be measured, or does not matter."""
    verdicts_with_scale_sqrt: Mapping[str, str] | None
    """The verdicts that change with --scale sqrt, if the scale could not be measured."""
    notes: Sequence[str]


@dataclass(frozen=True, repr=False)
class Card(Result):
    """The report card of a mechanism."""

    kind: ClassVar[str] = "card"
    columns: ClassVar[tuple[str, ...]] = tuple(key for key, *_ in keys_of(AtlasCell))
    calling: Hidden[Calling]
    contract: Hidden[Examination]
    cost: Hidden[MeasuredCost]
    softmax_cost: Hidden[MeasuredCost]
    constructions: Mapping[str, AnyResult] = field(default_factory=dict)
    neighbours: Hidden[tuple[Neighbour, ...]] = ()
    """Known mechanisms, the most similar first."""
    unscaled_neighbours: Hidden[tuple[Neighbour, ...]] = ()
    """The same with the hidden scale of the logits undone, if there is one."""
    against: tuple[Card, ...] = ()
    """The cards of the mechanisms it is compared with; these have none themselves."""
    quick: Hidden[bool] = False
    """Whether only the contract was requested."""
    changed_by_scale: Hidden[Mapping[str, str] | None] = None
    """The verdicts that change with --scale sqrt, by construction; None if the scale is known."""
    finished: bool = True
    """False if the command was interrupted before everything was computed."""

    @shown
    def mechanism(self) -> Mechanism:
        """The mechanism."""
        return self.calling.mechanism

    @shown_as("contract")
    def contract_result(self) -> ContractResult:
        """The result of every check of the contract."""
        contract = self.contract
        checks = (contract.passed, contract.failed, contract.skipped, contract.not_tried)
        return ContractResult(*checks, self.rounding_magnification)

    @shown
    def nearest(self) -> Sequence[Neighbour]:
        """The most similar known mechanisms."""
        return self.neighbours[:SHOWN_NEIGHBOURS]

    @shown_as("cost")
    def compared_cost(self) -> MeasuredCost:
        """The cost on this machine, compared with softmax."""
        return compare_with_softmax(self.cost, self.softmax_cost)

    @shown_as("calling")
    def calling_notes(self) -> CallingNotes:
        """Notes on the way the mechanism is called."""
        calling = self.calling
        return CallingNotes(calling.scale, calling.scale_known, self.changed_by_scale, calling.notes)

    @shown
    def reading(self) -> str:
        """The card in one paragraph."""
        if self.quick:
            return self.contract_sentence
        if not self.finished:
            sentences = (self.progress_sentence, self.contract_sentence, self.construction_sentence)
            return " ".join(filter(None, sentences))
        if not self.constructions:
            return f"{self.contract_sentence} It could not be called, so nothing else was tried."
        return " ".join(self.sentences)

    @property
    def sentences(self) -> list[str]:
        """The contents of the card, one or two sentences for each part that was computed."""
        results = (self.construction_sentence, self.scale_sentence, self.neighbour_sentence)
        return [*filter(None, (self.contract_sentence, *results, self.cost_sentence))]

    @property
    def holds(self) -> bool:
        """Whether the contract is kept and the mechanism failed nowhere."""
        results = self.constructions.values()
        return self.contract.holds and not any(isinstance(r, NoConstructionResult) and r.is_broken for r in results)

    @property
    def progress_sentence(self) -> str:
        """The progress of an interrupted card in a sentence; empty for one that is finished."""
        if self.finished:
            return ""
        if self.quick:
            return "Not finished: only part of the contract was tried."
        count, total = len(self.constructions), len(reference_points())
        progress = f"{count} of {total} constructions were tested"
        after = "the cost, or a mechanism to compare with, is not measured"
        return f"Not finished: {progress if count < total else after}."

    @property
    def rounding_magnification(self) -> float:
        """The factor by which the formula magnifies rounding errors; 1 if the mechanism cannot be called."""
        from separatrix.contract import sensitivity

        is_callable = self.constructions or (self.quick and self.holds)
        return sensitivity(self.mechanism) if is_callable else 1.0

    @property
    def contract_sentence(self) -> str:
        """The result of the contract in a sentence."""
        contract, name = self.contract, self.mechanism.spelled
        if contract.failed:
            checks = ", ".join(
                f"{check} (it {contract.raised[check]})" if check in contract.raised else check
                for check in contract.failed
            )
            caution = " The results below may mean little." if self.constructions else ""
            return f"{name} breaks the contract: {checks}.{caution}"
        sizes = f", tried up to {contract.longest:,} tokens and width {contract.widest}" if contract.longest else ""
        factor = self.rounding_magnification
        caution = f" On nearly equal tokens it magnifies rounding errors {factor:.2g} times."
        sentence = f"{name} keeps the contract ({len(contract.passed)} checks{sizes})."
        return f"{sentence}{caution if factor > 1 else ''}"

    @property
    def construction_sentence(self) -> str:
        """The number of constructions with each verdict, in a sentence; empty before the first one."""
        if not self.constructions:
            return ""
        counts = Counter[str](result.word for result in self.constructions.values())
        total, name = len(self.constructions), self.mechanism.spelled
        parts = [f"{phrase} {counts[word]}" for word, phrase in VERDICT_PHRASES.items() if word in counts]
        parts[0] += f" of {total} construction{'s' * (total > 1)}"
        variants = Counter(column.partition(",")[0] for column in self.constructions)
        if forms := [f"{kind} in {count} forms" for kind, count in variants.items() if count > 1]:
            parts[0] += f" ({', '.join(forms)})"
        return f"{name} {', '.join(parts[:-1])}{' and ' if parts[1:] else ''}{parts[-1]}."

    @property
    def scale_sentence(self) -> str:
        """The verdicts that depend on a scale of the logits that could not be measured; empty if it was."""
        changed_verdicts = self.changed_by_scale
        if changed_verdicts is None:
            return ""
        if not changed_verdicts:
            return f"{UNKNOWN_SCALE}; --scale sqrt changes no verdict."
        old_words = {name: result.word for name, result in self.constructions.items()}
        verdicts = "; ".join(f"{name} ({old_words[name]} → {word})" for name, word in changed_verdicts.items())
        count = "1 verdict" if len(changed_verdicts) == 1 else f"{len(changed_verdicts)} verdicts"
        advice = "If it divides them by sqrt(width), use --scale sqrt"
        return f"{UNKNOWN_SCALE}. {advice}, which changes {count}: {verdicts}."

    @property
    def neighbour_sentence(self) -> str:
        """The most similar known mechanism, in a sentence or two; empty where none was compared."""
        is_causal = self.mechanism.causality is Causality.ALWAYS
        text = describe_neighbours(self.neighbours, is_causal)
        text = text[:1].upper() + text[1:]
        if self.unscaled_neighbours:
            text += f" With its scale undone {describe_neighbours(self.unscaled_neighbours, is_causal)}"
        return text

    @property
    def cost_sentence(self) -> str:
        """The cost compared with softmax, in a sentence."""
        from separatrix.analysis.laws.costs import cost_law

        if isinstance(self.cost, Disagreement):
            return f"It was not timed: {self.cost.disagreement}."
        law = cost_law(self.cost, "seconds")
        growth = ""
        if law is not None:
            low, high = law.interval
            spread = f" ± {(high - low) / 2:.1f}" if high - low > MAX_EXPONENT_SPREAD else ""
            growth = f"Its time grows like n^{law.exponent:.1f}{spread}"
        if self.mechanism.spelled == "softmax":
            return f"{growth}." if growth else ""
        start = self.compared_cost.faster_than_softmax_from
        lengths = f"from {start:,} tokens on" if start else "at no length tried"
        return f"{growth}{'; it' if growth else 'It'} is faster than softmax, measured here, {lengths}."

    @property
    def summary(self) -> str:
        """The result of the contract, and the number of constructions with each verdict."""
        contract = "keeps the contract" if self.contract.holds else f"breaks {', '.join(self.contract.failed)}"
        counts = Counter(result.word for result in self.constructions.values()).most_common()
        words = [f"{'no answer' if word == 'none' else word} on {count}" for word, count in counts]
        end = "" if self.finished else "; not finished"
        return f"{self.mechanism.spelled}: {', '.join((contract, *words))}{end}"

    @property
    def remarks(self) -> tuple[str, ...]:
        """Notes on the way it is called, one sentence each."""
        return tuple(self.calling.words)

    def rows(self) -> list[Row]:
        """Return one row for each construction, of this mechanism and of those it is compared with.

        Without any construction, as with `quick`, return one row for each check of the contract.
        """
        if not self.constructions:
            return self.contract_rows()
        return [
            vars(AtlasCell.from_result(card.mechanism, result))
            for card in (self, *self.against)
            for result in card.constructions.values()
        ]

    def contract_rows(self) -> list[Row]:
        """Return one row for each check of the contract, broken ones first."""
        contract, name = self.contract, self.mechanism.spelled
        checks = [
            *((check, "broken", fault) for check, fault in contract.failed.items()),
            *((check, "not tried", f"{root} failed") for check, root in contract.not_tried.items()),
            *((check, "kept", "") for check in contract.passed),
            *((check, "does not apply", reason) for check, reason in contract.skipped.items()),
        ]
        columns = ("mechanism", "check", "outcome", "why")
        return [dict(zip(columns, (name, *check), strict=True)) for check in checks]


def describe_neighbours(neighbours: Sequence[Neighbour], is_causal: bool = False) -> str:
    """Name the known mechanism that is closest, in a sentence without a capital letter.

    For a mechanism that is always causal, the others were called with a causal mask.

    >>> describe_neighbours([Neighbour("softmax", 0.0), Neighbour("linear", 0.4)])
    'on the tokens tried it equals softmax.'
    >>> describe_neighbours([Neighbour("softmax", 0.0), Neighbour("retention", 0.4)], is_causal=True)
    'on the tokens tried it equals softmax with a causal mask.'
    >>> describe_neighbours([Neighbour("softmax", 0.31)])
    'it is close to no known mechanism; the nearest is softmax, whose results differ by 31%.'
    """
    if not neighbours:
        return ""
    names = [neighbour.mechanism for neighbour in neighbours[:SHOWN_NEIGHBOURS]]
    if is_causal:
        masked = [mechanism_named(name).causality is Causality.EITHER for name in names]
        names = [f"{name}{' with a causal mask' * is_masked}" for name, is_masked in zip(names, masked, strict=True)]
    equal = [name for name, other in zip(names, neighbours, strict=False) if other.distance <= EQUAL_DISTANCE]
    if equal:
        return f"on the tokens tried it equals {' and '.join(equal)}."
    difference = f"whose results differ by {100 * neighbours[0].distance:.2g}%"
    if neighbours[0].distance <= NEAR_DISTANCE:
        return f"it is close to {names[0]}, {difference}."
    return f"it is close to no known mechanism; the nearest is {names[0]}, {difference}."
