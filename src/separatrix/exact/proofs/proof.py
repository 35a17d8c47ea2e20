"""Proofs for every n: the verdict at every admissible n from a first one on, or the n at which it fails."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from itertools import pairwise
from typing import ClassVar

from separatrix.constructions import Construction
from separatrix.constructions.reference import format_defaults_sentence
from separatrix.core.documents import Document, Hidden, shown, shown_as
from separatrix.core.errors import EngineRefusal
from separatrix.core.numbers.spelling import for_people, round_up_for_people
from separatrix.core.result import Result, Row
from separatrix.exact.engines.outcome import Neuron, combine_neurons, sign_of_powers
from separatrix.exact.proofs.lines import FiringLine
from separatrix.exact.proofs.tables import Piece
from separatrix.exact.verdicts.words import Word, word_for
from separatrix.mechanisms import Mechanism

PHRASES: Mapping[str, str] = {
    "distinguishes": "distinguishes D0 from D1",
    "blind": "is blind",
    "saturated": "is saturated",
    "partial": "is partial",
}
"""Each verdict as a predicate."""
DENIALS: Mapping[str, str] = {
    "distinguishes": "does not distinguish D0 from D1",
    "blind": "is not blind",
    "saturated": "is not saturated",
    "partial": "is not partial",
}


MAX_SHOWN = 10**16
"""Smaller n are shown with all digits."""
SMALL = "10⁻³⁰⁰"
"""A bound of every number that is 0 in float64."""


@dataclass(frozen=True)
class Jump(Document):
    """A value of P(tells apart), and the n from which on it is this."""

    n: int
    distinguish: float


@dataclass(frozen=True)
class Eventually(Document):
    """The verdict that holds for ever."""

    verdict: Word
    start: Hidden[int]

    @shown_as("from")
    def start_key(self) -> int:
        """The least n from which on it holds."""
        return self.start


@dataclass(frozen=True)
class Stretch:
    """A range of n with one value of P: from `n` until the next stretch, the last for ever."""

    n: int
    neuron: Neuron
    distinguish: float
    word: Word

    def relation(self, digits: int = 6) -> str:
        """Return P as "= 0.25"; "= 0" and "= 1" only where it is exactly this."""
        text, (p0, only) = for_people(self.distinguish, digits), (self.neuron.p0, self.neuron.only)
        if text == "0" and only > 0 and p0 < 1:
            return f"< {SMALL}"
        if text == "1" and (p0 > 0 or only < 1):
            return f"> {round_outwards(self.distinguish, ROUND_FLOOR)}"
        return f"= {text}"


@dataclass(frozen=True, repr=False)
class Proof(Result):
    """The verdict for every admissible n from a first one on, with everything else fixed."""

    kind: ClassVar[str] = "proof"
    construction: Construction
    mechanism: Mechanism
    delta: Fraction
    """How sure `distinguishes` and `blind` have to be."""
    requested: Word | None
    """The verdict to be proved; null for the one at the first n."""
    lines: Hidden[tuple[FiringLine, ...]]
    """The firing thresholds for every n."""
    pieces: Hidden[tuple[Piece, ...]]
    """The probabilities of one neuron for every n."""
    stretches: Hidden[tuple[Stretch, ...]]
    """The values of P with their verdicts; a new one where P or the verdict changes."""
    asked_from: Hidden[int]
    """The n that was asked for, from which on the statement holds."""
    taken: Mapping[str, int | str] = field(default_factory=dict)
    """The parameters that were not given, and taken from the construction's reference point."""

    @shown
    def parameters(self) -> Mapping[str, int | str]:
        """All parameters of the construction but n."""
        parameters = self.construction.parameters.as_json()
        return {name: value for name, value in parameters.items() if name != "n"}

    @shown_as("from")
    def start(self) -> int:
        """The first n: the least admissible one from the requested n on."""
        return self.construction.n

    @shown_as("verdict")
    def word(self) -> Word | None:
        """The verdict at every admissible n from `from` on; null if it changes."""
        words = {stretch.word for stretch in self.stretches}
        return words.pop() if len(words) == 1 else None

    @shown
    def least(self) -> float:
        """The least P(tells apart) over all n."""
        return min(stretch.distinguish for stretch in self.stretches)

    @shown
    def most(self) -> float:
        """The largest P(tells apart) over all n."""
        return max(stretch.distinguish for stretch in self.stretches)

    @shown
    def jumps(self) -> Sequence[Jump]:
        """The values of P(tells apart), each with the n from which on P has this value; the first is at `from`."""
        stretches = self.stretches
        later = (b for a, b in pairwise(stretches) if not _have_equal_p(a.neuron, b.neuron, self.construction.m))
        return [Jump(stretch.n, stretch.distinguish) for stretch in (stretches[0], *later)]

    @shown
    def limit(self) -> float:
        """P(tells apart) at all large n: from the last jump on, it is exactly this."""
        return self.stretches[-1].distinguish

    @shown
    def last_jump(self) -> int | None:
        """The n of the last change of P; null if P is the same at every n."""
        return self.jumps[-1].n if len(self.jumps) > 1 else None

    @shown
    def eventually(self) -> Eventually:
        """The verdict that holds for ever, and the least n from which on it does."""
        word = self.stretches[-1].word
        changes = [b.n for a, b in pairwise(self.stretches) if a.word != b.word]
        return Eventually(word, changes[-1] if changes else self.start)

    @shown
    def counterexample(self) -> int | None:
        """The least n at which the requested verdict fails (without one: that at `from`); null if there is none."""
        claimed = self.claimed
        return next((stretch.n for stretch in self.stretches if stretch.word != claimed), None)

    @shown
    def evidence(self) -> str:
        """How the statement is known."""
        steps = sum(len(line.steps) for line in self.lines)
        is_rational = all(line.excess(0).is_short_rational for line in self.lines)
        arithmetic = "fractions" if is_rational else "balls, or fractions where they are rational"
        return (
            f"proved by the shape lemma: {len(self.lines)} firing thresholds with {steps:,} values over all n, "
            f"every change decided exactly, in {arithmetic}"
        )

    @property
    def claimed(self) -> Word:
        """The requested verdict, or that at the first n."""
        return self.requested or self.stretches[0].word

    @property
    def is_proved(self) -> bool:
        """Whether the claimed verdict holds at every n."""
        return self.counterexample is None

    @shown
    def statement(self) -> str:
        """The statement in one sentence."""
        name, start, claimed = self.mechanism.spelled, _spell(self.start), self.claimed
        place = f"every n >= {start} (d={self.parameters['d']}, m={self.parameters['m']})"
        if self.counterexample is None:
            return f"{name} {PHRASES[claimed]} for {place}: {_describe_range(self.stretches)}"
        failure = next(stretch for stretch in self.stretches if stretch.n == self.counterexample)
        verdict = f"it {PHRASES[failure.word]} at {_spell_place(failure.n)}, P {failure.relation()}"
        return f"{name} {DENIALS[claimed]} for {place}: {verdict}"

    @shown
    def final_statement(self) -> str:
        """A sentence on the verdict that holds for ever; empty if it is the statement itself."""
        final = self.eventually
        if self.is_proved and final.start == self.start:
            return ""
        stretches = [stretch for stretch in self.stretches if stretch.n >= final.start]
        return f"From n = {_spell(final.start)} on it {PHRASES[final.verdict]} for ever: {_describe_range(stretches)}"

    @property
    def summary(self) -> str:
        """The verdict for every n, or the first n at which it fails and the verdict that holds for ever."""
        name = f"{self.mechanism.spelled} on {self.construction.name}, every n >= {_spell(self.start)}"
        if self.word is not None:
            return f"{name}: {self.word}, {_describe_range(self.stretches)}"
        change = next(b for a, b in pairwise(self.stretches) if a.word != b.word)
        final = self.stretches[-1].word, _spell(self.eventually.start)
        return (
            f"{name}: {self.stretches[0].word}, but {change.word} at {_spell_place(change.n)}; "
            f"{final[0]} for ever from {final[1]}"
        )

    @property
    def remarks(self) -> tuple[str, ...]:
        """Sentences needed to read the result: a first n that is not the requested one."""
        if self.asked_from == self.start:
            return ()
        step = f"n is a multiple of d-2 = {self.construction.step}"
        return (f"{step}: the first admissible n from {_spell(self.asked_from)} on is {_spell(self.start)}.",)

    @shown_as("remarks")
    def all_remarks(self) -> Sequence[str]:
        """Sentences needed to read the result."""
        return [*self.remarks, *filter(None, [format_defaults_sentence(self.taken)])]

    def rows(self) -> list[Row]:
        """Return one row for each value of P."""
        return [
            {
                "construction": self.construction.name,
                "mechanism": self.mechanism.spelled,
                "from": stretch.n,
                "distinguish": stretch.distinguish,
                "verdict": stretch.word,
                "p0": float(stretch.neuron.p0),
                "p1": float(stretch.neuron.p1),
            }
            for stretch in self.stretches
        ]


def find_stretches(pieces: Sequence[Piece], columns: int, m: int, delta: Fraction) -> tuple[Stretch, ...]:
    """Return the values of P with their verdicts; raise an EngineRefusal if a verdict is undecided."""
    stretches: list[Stretch] = []
    for piece in pieces:
        n, neuron = columns * piece.t, piece.neuron
        outcome = combine_neurons(m, neuron, neuron, 0, math.nan, math.nan, math.nan)
        word = word_for(outcome, m, delta)
        if word == "undecided":
            raise EngineRefusal(f"undecided at n = {_spell(n)}: P is too near delta or 1 - delta for m = {m}")
        is_new = not stretches or stretches[-1].word != word
        if is_new or not _have_equal_p(stretches[-1].neuron, neuron, m):
            stretches.append(Stretch(n, neuron, outcome.distinguish, word))
    return tuple(stretches)


def _have_equal_p(first: Neuron, second: Neuron, m: int) -> bool:
    """Whether P(tells apart) is the same; of numbers that no precision separates, this is not assumed."""
    if (first.p0, first.only) == (second.p0, second.only) or first.only == second.only == 0:
        return True
    factors: dict[Fraction, int] = {}
    for base, factor in (
        (1 - first.p0, 1),
        (1 - first.p0 - first.only, -1),
        (1 - second.p0, -1),
        (1 - second.p0 - second.only, 1),
    ):
        factors[base] = factors.get(base, 0) + factor
    return sign_of_powers({base: factor for base, factor in factors.items() if factor}, m, Fraction(0)) == 0


def _describe_range(stretches: Sequence[Stretch]) -> str:
    """Describe the values of P by bounds that are rounded outwards."""
    values = [stretch.distinguish for stretch in stretches]
    least, most = min(values), max(values)
    if least == most:
        relations = [stretch.relation() for stretch in stretches]
        return f"P {next((text for text in relations if text[0] != '='), relations[0])}"
    word = stretches[0].word
    if word == "distinguishes":
        return f"P >= {round_outwards(least, ROUND_FLOOR)}"
    return f"P <= {round_outwards(most, ROUND_CEILING)}" if word != "partial" else _describe_ends(least, most)


def _describe_ends(least: float, most: float) -> str:
    return f"{round_outwards(least, ROUND_FLOOR)} <= P <= {round_outwards(most, ROUND_CEILING)}"


def round_outwards(value: float, rounding: str) -> str:
    """Round a correctly rounded number to six digits in one direction."""
    outer = math.nextafter(value, -math.inf if rounding == ROUND_FLOOR else math.inf)
    return for_people(float(Context(prec=6, rounding=rounding).plus(Decimal(outer))))


def _spell(n: int) -> str:
    """Spell the first of all larger n: rounded up if it is long."""
    return str(n) if n < MAX_SHOWN else round_up_for_people(n)


def _spell_place(n: int) -> str:
    """Spell a single n, which may not be rounded without saying so."""
    return f"n = {n}" if n < MAX_SHOWN else f"n ≈ {round_up_for_people(n)}"
