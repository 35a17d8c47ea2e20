"""The prediction ledger: what the exact side says of a mechanism, against what its training reached."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from separatrix.analysis.evidence.estimates import CONFIDENCE
from separatrix.analysis.evidence.found import Learned, MechanismEvidence
from separatrix.analysis.evidence.sentences import CLOSE, Word
from separatrix.constructions import construction_named
from separatrix.core.parameters import SeparatrixError
from separatrix.exact.verdicts.verdict import verdict

LIKE: dict[str, tuple[str, Callable[[Any], dict[str, object]]]] = {
    "needle": ("spike", lambda p: {}),
    "spike": ("spike", lambda p: {}),
    "mqar": ("recall", lambda p: {"n": p.pairs}),
    "duplication": ("duplication", lambda p: {}),
    "location": ("location", lambda p: {}),
}
"""The construction that a task is most like, and where it is asked, if not at its reference point."""
ROOMY = 128
"""Bytes for each pair that are enough to hold a key and a value of 16 numbers each."""
LEAST = 4
"""Pairs from which a rank correlation has an interval."""


@dataclass(frozen=True)
class Pair:
    """What was said of a mechanism on a task, and what training reached: both so that more is better."""

    task: str
    mechanism: str
    predicted: float
    trained: float


@dataclass(frozen=True)
class Prediction:
    """One quantity of the exact side, held against training."""

    name: str
    what: str
    pairs: tuple[Pair, ...]
    misses: tuple[str, ...]
    """Where it said otherwise, in words."""

    @property
    def correlation(self) -> float | None:
        """Spearman's, over all pairs; None where one side is constant or there are too few.

        >>> pairs = tuple(Pair("t", str(i), i, i * i) for i in range(5))
        >>> round(Prediction("", "", pairs, ()).correlation, 9)
        1.0
        """
        if len(self.pairs) < LEAST:
            return None
        one, other = (
            scipy.stats.rankdata([getattr(pair, name) for pair in self.pairs])
            for name in ("predicted", "trained")
        )
        if np.ptp(one) == 0 or np.ptp(other) == 0:
            return None
        return float(np.clip(np.corrcoef(one, other)[0, 1], -1, 1))

    @property
    def interval(self) -> tuple[float, float] | None:
        """About 95 %: Fisher's z, with the variance of Bonett and Wright for ranks; None at equal ranks."""
        r = self.correlation
        if r is None or abs(r) > 1 - 1e-9:
            return None
        half = float(scipy.special.ndtri((1 + CONFIDENCE) / 2)) * math.sqrt(
            (1 + r * r / 2) / (len(self.pairs) - 3)
        )
        return math.tanh(math.atanh(r) - half), math.tanh(math.atanh(r) + half)

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "what": self.what,
            "correlation": self.correlation,
            "interval": self.interval,
            "pairs": [vars(pair) for pair in self.pairs],
            "misses": list(self.misses),
        }


def predictions(found: Sequence[Learned]) -> tuple[Prediction, ...]:
    """The ledger for some experiments; a quantity that says nothing of any of them is left out."""
    made = (_ceilings(found), _constructions(found), _states(found))
    return tuple(each for each in made if each.pairs)


def _mechanisms(found: Iterable[Learned]) -> Iterator[tuple[Learned, MechanismEvidence, float]]:
    """Every mechanism that was trained, once, with its median score, so that more is better."""
    seen = set[tuple[str, str]]()
    for learned in found:
        for mechanism in learned.mechanisms:
            known = (learned.spelled, mechanism.mechanism) in seen
            seen.add((learned.spelled, mechanism.mechanism))
            if mechanism.trained is not None and not known:
                yield learned, mechanism, learned.task.metric.sign * mechanism.trained.median


def _ceilings(found: Iterable[Learned]) -> Prediction:
    pairs, misses = list[Pair](), list[str]()
    for learned, each, trained in _mechanisms(found):
        if each.proved is None:
            continue
        sign, name = learned.task.metric.sign, f"{each.mechanism} on {learned.spelled}"
        pairs.append(Pair(learned.spelled, each.mechanism, sign * each.proved.score, trained))
        if trained < sign * each.proved.score - CLOSE:
            misses.append(
                f"{name} stays below its ceiling: {sign * trained:.4f}, not {each.proved.score:.4f}"
            )
        if each.word is Word.CONTRADICTION:
            misses.append(f"{name}: {each.sentence}")
    return Prediction("proved ceilings", "the best score that is proved for it", tuple(pairs), tuple(misses))


def _constructions(found: Iterable[Learned]) -> Prediction:
    pairs, misses = list[Pair](), list[str]()
    for learned, each, trained in _mechanisms(found):
        if learned.task.name not in LIKE:
            continue
        construction, changed = LIKE[learned.task.name]
        point = {**construction_named(construction).example, **changed(learned.task.parameters)}
        try:
            said = verdict(construction, each.mechanism, point)
        except SeparatrixError:
            continue  # it has no answer there
        predicted = said.outcome.distinguish
        pairs.append(Pair(learned.spelled, each.mechanism, predicted, trained))
        share = _share(learned, each)
        if abs(predicted - share) > 0.5:
            word = "tells them apart" if predicted > 0.5 else "is blind"
            where = f"on {construction} it {word}, trained on {learned.spelled} it"
            misses.append(f"{each.mechanism}: {where} gets {share:.0%} of the way from floor to ceiling")
    what = "P(tells apart) on the construction that is most like the task"
    return Prediction("constructions", what, tuple(pairs), tuple(misses))


def _states(found: Iterable[Learned]) -> Prediction:
    pairs, misses = list[Pair](), list[str]()
    for learned, each, trained in _mechanisms(found):
        if learned.task.name != "mqar" or each.state_bytes is None or each.proved is not None:
            continue  # where a proof says cannot, no state would do
        asked = learned.task.parameters.pairs
        pairs.append(Pair(learned.spelled, each.mechanism, each.state_bytes / asked, trained))
        if each.state_bytes / asked > ROOMY and _share(learned, each) < 0.5:
            held = f"{each.state_bytes / asked:,.0f} bytes a pair"
            misses.append(f"{each.mechanism} on {learned.spelled} has {held} and did not learn to use them")
    return Prediction("state", "bytes of state for each pair to recall", tuple(pairs), tuple(misses))


def _share(learned: Learned, each: MechanismEvidence) -> float:
    """How far from floor to ceiling it came: 0 for a score that is no better than the floor."""
    gap = learned.ceiling.score - learned.floor.score
    if each.trained is None or gap == 0:  # on a small sample a shortcut may score as high as the best rule
        return 0.0
    return max(0.0, (each.trained.median - learned.floor.score) / gap)
