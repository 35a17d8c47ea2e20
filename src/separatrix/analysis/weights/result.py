"""Weight matrices side by side: attention, margin and P of each, exact, with what it has to know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from separatrix.constructions import Construction
from separatrix.core.documents import Document, Hidden, shown
from separatrix.core.numbers.spelling import for_people
from separatrix.core.result import Result, Row
from separatrix.exact.engines import Outcome
from separatrix.exact.engines.outcome import NeuronProbabilities
from separatrix.exact.verdicts import Verdict
from separatrix.exact.verdicts.words import Word
from separatrix.exact.weights import LinearReading
from separatrix.mechanisms import Mechanism

CONCLUSION = (
    "The separation is about X = 11ᵀ, one normalisation and this reader. Other weights rescue linear attention, "
    "each at a price: to attend to the spike itself at large n with scores >= 0, they must depend on n or know its "
    "amplitude a1 exactly; weights that know a1 within a factor attend to its block instead, and their margin falls "
    "like 1/n."
)


@dataclass(frozen=True)
class AmplitudeError(Document):
    """The reading if the spike of D1 is larger or smaller than the amplitude that the weights were made for."""

    factor: Fraction
    """The amplitude in D1 over a1."""
    attention: Fraction | None
    """The weight of the spike in its own row of D1; null if the scores of a row add up to 0."""
    margin: Fraction | None
    distinguish: float | None


@dataclass(frozen=True)
class WeightChoice(Document):
    """One weight matrix of linear attention."""

    name: str
    weights: str
    """The matrix X as a formula."""
    numbers: Mapping[str, Fraction]
    """The numbers in the formula."""
    needs: tuple[str, ...]
    """The parameters of the construction, beside b and c, that the matrix depends on."""
    price: str
    """The price in a few words."""
    reading: Hidden[LinearReading]
    verdict: Word
    bound: str
    """A bound that is proved for the family; empty if there is none."""
    if_amplitude_differs: tuple[AmplitudeError, ...]

    @shown
    def attention(self) -> tuple[Fraction, Fraction]:
        """The weight of the spike in its own row, in D0 and D1."""
        return self.reading.own

    @shown
    def margin(self) -> Fraction:
        """v(D1) - v(D0) with all signs +, in units of sqrt(log n)."""
        return self.reading.margin

    @shown
    def least_score(self) -> Fraction:
        """The least score of a query and a key."""
        return self.reading.least_score

    @property
    def outcome(self) -> Outcome:
        """The probabilities."""
        return self.reading.outcome

    @shown
    def neuron(self) -> NeuronProbabilities:
        """Exact probabilities of one neuron."""
        return self.outcome.neuron

    @shown
    def distinguish(self) -> float:
        """P(tells apart)."""
        return self.outcome.distinguish


@dataclass(frozen=True, repr=False)
class Weights(Result):
    """Weight matrices of linear attention on the spike, and the reference: softmax with X = 11ᵀ."""

    kind: ClassVar[str] = "weights"
    softmax: Hidden[Verdict]
    mechanism: Mechanism
    choices: tuple[WeightChoice, ...]
    unnormalised_ratio: Fraction
    """v(D1)/v(D0) of linear attention with X = 11ᵀ without its normaliser; it tends to (a1+b+c)/(a0+b+c)."""
    statements: tuple[str, ...]
    """What is proved about all weights, or computed about families of them."""

    @shown
    def construction(self) -> Construction:
        """The construction."""
        return self.softmax.construction

    @shown
    def parameters(self) -> Mapping[str, int | str]:
        """All parameters of the construction."""
        return self.softmax.parameters

    @shown
    def taken(self) -> Mapping[str, int | str]:
        """The parameters that were not given, and taken from the reference point."""
        return self.softmax.taken

    @shown
    def reference(self) -> Mapping[str, float | str]:
        """Softmax with X = 11ᵀ: margin, P(tells apart) and verdict."""
        outcome = self.softmax.outcome
        return {"margin": outcome.margin, "distinguish": outcome.distinguish, "verdict": str(self.softmax.word)}

    @shown
    def evidence(self) -> str:
        """How the numbers are known."""
        return "exact fractions over all sign states; every score is rational"

    def choice(self, name: str) -> WeightChoice:
        """Return the weights of a name."""
        return {choice.name: choice for choice in self.choices}[name]

    @property
    def summary(self) -> str:
        """The best P, and what its weights need."""
        best = max(self.choices, key=lambda choice: choice.distinguish)
        needs = f", which depend on {' and '.join(best.needs)}" if best.needs else ""
        return (
            f"linear on {self.construction.name}: P = {for_people(best.distinguish)} with weights {best.name}{needs}; "
            f"{for_people(self.choice('ones').distinguish)} with X = 11ᵀ"
        )

    @property
    def remarks(self) -> tuple[str, ...]:
        """The conclusion."""
        return (CONCLUSION,)

    def rows(self) -> list[Row]:
        """Return one row for each matrix."""
        return [
            {
                "name": choice.name,
                "weights": choice.weights,
                "needs": ", ".join(choice.needs),
                "attention_d0": float(choice.attention[0]),
                "attention_d1": float(choice.attention[1]),
                "margin": float(choice.margin),
                "distinguish": choice.distinguish,
                "verdict": str(choice.verdict),
            }
            for choice in self.choices
        ]

    def sentences(self) -> Sequence[str]:
        """Return the conclusion and the statements."""
        return [CONCLUSION, *self.statements]
