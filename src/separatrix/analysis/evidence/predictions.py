"""The prediction ledger: exact quantities of a mechanism, compared with the results of its training."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from separatrix.analysis.evidence.conclusions import SAMPLING_SLACK, TrainingWord
from separatrix.analysis.evidence.estimates import CONFIDENCE
from separatrix.analysis.evidence.training_result import MechanismEvidence, TrainingResult
from separatrix.constructions import construction_named
from separatrix.core.documents import Document, shown
from separatrix.core.parameters import SeparatrixError
from separatrix.exact.verdicts import verdict

SIMILAR_CONSTRUCTIONS: dict[str, tuple[str, Callable[[Any], dict[str, object]]]] = {
    "needle": ("spike", lambda p: {}),
    "spike": ("spike", lambda p: {}),
    "mqar": ("recall", lambda p: {"n": p.pairs}),
    "duplication": ("duplication", lambda p: {}),
    "location": ("location", lambda p: {}),
}
"""The construction that is most similar to a task, and parameters that differ from its reference point."""
SUFFICIENT_BYTES = 128
"""Bytes per pair that are enough to hold a key and a value of 16 numbers each."""
MIN_PAIRS = 4
"""A rank correlation of fewer pairs has no interval."""


@dataclass(frozen=True)
class PredictedScore(Document):
    """The prediction for a mechanism on a task, and the trained score: both so that more is better."""

    task: str
    mechanism: str
    predicted: float
    trained: float


@dataclass(frozen=True)
class Prediction(Document):
    """One exact quantity, compared with training."""

    name: str
    what: str
    pairs: tuple[PredictedScore, ...]
    misses: tuple[str, ...]
    """Sentences about pairs that differ."""

    @shown
    def correlation(self) -> float | None:
        """Spearman's correlation of all pairs; None if one side is constant or there are too few.

        >>> pairs = tuple(PredictedScore("t", str(i), i, i * i) for i in range(5))
        >>> round(Prediction("", "", pairs, ()).correlation, 9)
        1.0
        """
        if len(self.pairs) < MIN_PAIRS:
            return None
        sides = zip(*((pair.predicted, pair.trained) for pair in self.pairs), strict=True)
        ranks = [scipy.stats.rankdata(side) for side in sides]
        if any(np.ptp(side) == 0 for side in ranks):
            return None
        return float(np.clip(np.corrcoef(*ranks)[0, 1], -1, 1))

    @shown
    def interval(self) -> tuple[float, float] | None:
        """About 95 %: Fisher's z, with the variance of Bonett and Wright for ranks; None at equal ranks."""
        r = self.correlation
        # At equal ranks atanh is infinite.
        if r is None or abs(r) > 1 - 1e-9:
            return None
        quantile = float(scipy.special.ndtri((1 + CONFIDENCE) / 2))
        reach = quantile * math.sqrt((1 + r * r / 2) / (len(self.pairs) - 3))
        return math.tanh(math.atanh(r) - reach), math.tanh(math.atanh(r) + reach)


Forecast = tuple[float, list[str]] | None
"""A prediction, and sentences if it was wrong; None if nothing is predicted."""
Predict = Callable[[TrainingResult, MechanismEvidence, float], Forecast]
"""Predicts the score of a mechanism of a result; the last argument is its trained score."""


def check_predictions(results: Sequence[TrainingResult]) -> tuple[Prediction, ...]:
    """Return the ledger for some experiments, without quantities that predict nothing about them."""
    most_like = "P(tells apart) on the construction that is most like the task"
    ledger = (
        _collect("proved ceilings", "the best score that is proved for it", results, _predict_by_ceiling),
        _collect("constructions", most_like, results, _predict_by_construction),
        _collect("state", "bytes of state for each pair to recall", results, _predict_by_state),
    )
    return tuple(prediction for prediction in ledger if prediction.pairs)


def _collect(name: str, meaning: str, results: Sequence[TrainingResult], predict: Predict) -> Prediction:
    """Apply a prediction to every mechanism that was trained; the same experiment counts once."""
    pairs, misses = dict[tuple[str, str], PredictedScore | None](), list[str]()
    for result in results:
        for evidence in result.mechanisms:
            key = result.label, evidence.mechanism
            if evidence.trained is None or key in pairs:
                continue
            trained_score = result.task.metric.sign * evidence.trained.median
            prediction = predict(result, evidence, trained_score)
            pairs[key] = None if prediction is None else PredictedScore(*key, prediction[0], trained_score)
            misses += [] if prediction is None else prediction[1]
    return Prediction(name, meaning, tuple(filter(None, pairs.values())), tuple(misses))


def _predict_by_ceiling(result: TrainingResult, evidence: MechanismEvidence, trained_score: float) -> Forecast:
    if evidence.proved is None:
        return None
    ceiling, sign = evidence.proved.score, result.task.metric.sign
    name, misses = f"{evidence.mechanism} on {result.label}", []
    if trained_score < sign * ceiling - SAMPLING_SLACK:
        misses.append(f"{name} stays below its ceiling: {sign * trained_score:.4f}, not {ceiling:.4f}")
    if evidence.word is TrainingWord.CONTRADICTION:
        misses.append(f"{name}: {evidence.sentence}")
    return sign * ceiling, misses


def _predict_by_construction(result: TrainingResult, evidence: MechanismEvidence, trained_score: float) -> Forecast:
    if result.task.name not in SIMILAR_CONSTRUCTIONS:
        return None
    construction, parameters = SIMILAR_CONSTRUCTIONS[result.task.name]
    point = {**construction_named(construction).example, **parameters(result.task.parameters)}
    try:
        chance = verdict(construction, evidence.mechanism, point).outcome.distinguish
    except SeparatrixError:
        return None  # no engine answers
    share = _share_of_gap(result, evidence)
    if abs(chance - share) <= 0.5:
        return chance, []
    word = "tells them apart" if chance > 0.5 else "is blind"
    outcome = f"trained on {result.label} it gets {share:.0%} of the way from floor to ceiling"
    return chance, [f"{evidence.mechanism}: on {construction} it {word}, {outcome}"]


def _predict_by_state(result: TrainingResult, evidence: MechanismEvidence, trained_score: float) -> Forecast:
    # Where a proof says "cannot", no state would be enough.
    if result.task.name != "mqar" or evidence.state_bytes is None or evidence.proved is not None:
        return None
    size = evidence.state_bytes / result.task.parameters.pairs
    if size <= SUFFICIENT_BYTES or _share_of_gap(result, evidence) >= 0.5:
        return size, []
    name = f"{evidence.mechanism} on {result.label}"
    return size, [f"{name} has {size:,.0f} bytes a pair and did not learn to use them"]


def _share_of_gap(result: TrainingResult, evidence: MechanismEvidence) -> float:
    """Return how far from floor to ceiling the median came: 0 if it is no better than the floor."""
    gap = result.ceiling - result.floor
    # On a small sample a shortcut may score as high as the best rule: then there is no gap.
    if evidence.trained is None or gap == 0:
        return 0.0
    return max(0.0, (evidence.trained.median - result.floor) / gap)
