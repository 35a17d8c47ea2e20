"""Coverage of a point by the separation theorem (docs/theory.md, 3.4)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from separatrix.constructions import Construction
from separatrix.constructions.spike import Spike
from separatrix.constructions.theorem import SIGNS, WIDTH, hypotheses, required_signs, required_width, sufficient_n
from separatrix.core.grouping import group_pairs
from separatrix.core.numbers import format_exact
from separatrix.core.numbers.spelling import round_up_for_people
from separatrix.mechanisms import Linear, Mechanism, Softmax

MAX_DIGITS = 12
"""Longer bounds are written in terms of delta."""
STILL = {None: "", True: " The probabilities are still exact.", False: " This does not affect the probabilities."}
"""Ends of a sentence by whether the probabilities are exact; none for estimates."""


@dataclass(frozen=True)
class TheoremCoverage:
    """The theorem's statement about one mechanism at one point of the spike construction."""

    unmet: tuple[str, ...]
    """The hypotheses that fail here, each with its value."""
    conclusion: str
    """The inequality that the theorem concludes for this mechanism; empty if a hypothesis fails."""
    n: int
    proved_from: int | None
    """The n from which the conclusion is proved; None if a hypothesis fails or it is not known."""

    @property
    def applies(self) -> bool:
        """Whether the theorem's conclusion is proved at this n."""
        return self.proved_from is not None and self.n >= self.proved_from

    def sentence(self, *, exact: bool | None = None) -> str:
        """Return the coverage as a sentence; `exact` adds that the probabilities do not depend on it."""
        still = STILL[exact]
        if self.unmet:
            return f"The theorem does not cover this point: it needs {'; '.join(self.unmet)}.{still}"
        n = round_up_for_people(self.n)
        if self.proved_from is None:
            return (
                f"The theorem's hypotheses hold, so {self.conclusion} for all sufficiently large n; the "
                f"threshold is not known here, and the theorem says nothing about n = {n}.{still}"
            )
        start = round_up_for_people(self.proved_from)
        if self.applies:
            return f"The theorem covers this point: {self.conclusion} for every n >= {start}."
        return (
            f"The theorem's hypotheses hold, but it is about large n: {self.conclusion} is proved from "
            f"n = {start} on, here n = {n}.{still}"
        )


def theorem_coverage(point: Construction, mechanism: Mechanism, delta: Fraction) -> TheoremCoverage | None:
    """Return the theorem's statement at a point; None for other constructions.

    >>> theorem_coverage(Spike.read(Spike.example), Softmax(), Fraction(1, 100)).sentence()
    'The theorem does not cover this point: it needs m >= 17, here m = 12.'
    >>> at = Spike.read({**Spike.example, "m": 17})
    >>> theorem_coverage(at, Softmax(), Fraction(1, 100)).sentence()
    'The theorem covers this point: P >= 0.98 for every n >= 100.'
    >>> theorem_coverage(at, Linear(), Fraction(1, 100)).sentence()
    'The theorem covers this point: P <= 0.01 for every n >= 400.'
    """
    if not isinstance(point, Spike):
        return None
    unmet = (*_unmet_by_point(point, delta), *_unmet_by_mechanism(mechanism))
    if unmet:
        return TheoremCoverage(unmet, "", point.n, None)
    # Each failure has probability delta at most, and softmax can fail on D0 and on D1.
    values, is_softmax = point.parameters.complete_values(), isinstance(mechanism, Softmax)
    limit, formula = (1 - 2 * delta, "1 - 2 delta") if is_softmax else (delta, "delta")
    number = format_exact(limit)
    conclusion = f"P {'>=' if is_softmax else '<='} {number if len(number) <= MAX_DIGITS else formula}"
    proved_from = sufficient_n(values, delta, ["softmax" if is_softmax else "linear"])
    return TheoremCoverage((), conclusion, point.n, proved_from)


def describe_coverage(point: Construction, mechanisms: Iterable[Mechanism], delta: Fraction) -> str:
    """Describe the coverage of several mechanisms, merging equal sentences; empty for other constructions."""
    coverages = ((theorem_coverage(point, mechanism, delta), mechanism.spelled) for mechanism in mechanisms)
    return " ".join(label_groups(group_pairs((coverage.sentence(), name) for coverage, name in coverages if coverage)))


def label_groups(sentences: dict[str, list[str]]) -> list[str]:
    """Prefix each sentence with its mechanisms, unless it is about all of them.

    >>> label_groups({"Yes.": ["softmax"], "No.": ["linear", "relu"]}), label_groups({"Yes.": ["softmax"]})
    (['softmax: Yes.', 'linear, relu: No.'], ['Yes.'])
    """
    if len(sentences) < 2:
        return list(sentences)
    return [f"{', '.join(names)}: {sentence}" for sentence, names in sentences.items()]


def _unmet_by_point(point: Spike, delta: Fraction) -> list[str]:
    values = point.parameters.complete_values()
    a0, a1, b, c, tau = (Fraction(values[name]) for name in ("a0", "a1", "b", "c", "tau"))
    d, m, form = int(values["d"]), int(values["m"]), values["form"]
    values_here = {
        "a1(a1+b+c) > 1": format_exact(a1 * (a1 + b + c)),
        "a0(a0+b+c) < 1": format_exact(a0 * (a0 + b + c)),
        "a1 - b > 0.1": format_exact(a1 - b),
    }
    requirements = {
        WIDTH: f"d >= {required_width(float(b), m, delta)}, here d = {d}",
        SIGNS: f"m >= {required_signs(delta)}, here m = {m}",
    }
    is_met = hypotheses({**values, "d": d, "m": m}, delta)
    unmet = [
        requirements.get(name) or f"{name}, here {values_here[name]}" for name, holds in is_met.items() if not holds
    ]
    if tau != c + Fraction(1, 10):
        proper = format_exact(c + Fraction(1, 10))
        unmet.append(f"tau = c + 0.1 = {proper}, here tau = {format_exact(tau)}")
    if form != "ones":
        unmet.append(f"form=ones, here form={form}")
    return unmet


def _unmet_by_mechanism(mechanism: Mechanism) -> list[str]:
    """Compared by type and parameters: a subclass or a temperature is another mechanism."""
    if type(mechanism) in (Softmax, Linear) and mechanism.spelled in (Softmax().spelled, Linear().spelled):
        return []
    return [f"softmax (temperature 1) or linear attention, here {mechanism.spelled}"]
