"""What can be had without any attention: the floor under every result, on the same test samples.

A result at or below its floor says nothing about mechanisms.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.training.data.samples import Bytes, Labels

STEPS = 40
"""Iterations of L-BFGS at most; the best of them on the validation samples is taken."""
CHUNK = 4096
Labelled = tuple[Bytes, Labels]
"""Inputs, (count, …), and a label for each."""
_WORD = re.compile(rb"[a-z']+")


@dataclass(frozen=True)
class Floor:
    """A number that needs no attention, with the name of the shortcut that reaches it."""

    name: str
    value: float
    measure: str

    def as_json(self) -> dict[str, Any]:
        """As it is printed in JSON."""
        return {"name": self.name, "value": self.value, "measure": self.measure}


def majority(train: Labels, test: Labels) -> Floor:
    """Always the label that is commonest in training.

    >>> majority(np.array([0, 1, 1]), np.array([1, 0])).value
    0.5
    """
    return Floor("majority", float(np.mean(test == np.bincount(train).argmax())), "accuracy")


@dataclass(frozen=True)
class LogisticRegression:
    """Multinomial logistic regression on bytes: a column of weights for each label, the last row for 1."""

    weights: NDArray[np.float32]

    @classmethod
    def fit(
        cls, train: Labelled, validation: Labelled, classes: int, steps: int = STEPS
    ) -> LogisticRegression:
        """L-BFGS from zero on the mean cross-entropy of the inputs, (count, …), less their mean.

        Of its iterates the one that is best on the validation samples is taken.
        """
        from scipy.optimize import minimize

        rows, labels = _rows(train[0]), train[1]
        mean, scale = rows.mean(0, dtype=np.float64), 1 / max(1, int(rows.max(initial=0)))
        shape = (len(mean) + 1, classes)
        tried = [cls(np.zeros(shape, np.float32))]

        def in_bytes(flat: NDArray[np.float64]) -> NDArray[np.float32]:
            """The weights for inputs as they are, from those for centred ones between 0 and 1."""
            weights = flat.reshape(shape) * scale
            return np.vstack([weights[:-1], weights[-1] / scale - mean @ weights[:-1]]).astype(np.float32)

        def loss(flat: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
            value, gradient = _cross_entropy(in_bytes(flat), rows, labels)
            gradient[:-1] = scale * (gradient[:-1] - np.outer(mean, gradient[-1]))
            return value, gradient.ravel()

        def keep(flat: NDArray[np.float64]) -> None:
            tried.append(cls(in_bytes(flat)))
            tried[:] = [max(tried, key=lambda each: each.accuracy(*validation))]

        minimize(
            loss,
            np.zeros(shape).ravel(),
            jac=True,
            method="L-BFGS-B",
            callback=keep,
            options={"maxiter": steps},
        )
        return tried[0]

    def accuracy(self, inputs: Bytes, labels: Labels) -> float:
        """The share of inputs whose largest logit is that of the label."""
        rows, right = _rows(inputs), 0
        for start in range(0, len(rows), CHUNK):
            logits = rows[start : start + CHUNK].astype(np.float32) @ self.weights[:-1] + self.weights[-1]
            right += int(np.sum(logits.argmax(1) == labels[start : start + CHUNK]))
        return right / len(rows)


def _rows(inputs: Bytes) -> Bytes:
    return inputs.reshape(len(inputs), -1)


def _cross_entropy(
    weights: NDArray[np.float32], rows: Bytes, labels: Labels
) -> tuple[float, NDArray[np.float64]]:
    """The mean cross-entropy and its gradient, so many rows at a time: nothing large is kept."""
    total, gradient = 0.0, np.zeros(weights.shape)
    for start in range(0, len(rows), CHUNK):
        x, y = rows[start : start + CHUNK].astype(np.float32), labels[start : start + CHUNK]
        logits = x @ weights[:-1] + weights[-1]
        logits -= logits.max(1, keepdims=True)
        p = np.exp(logits)
        sums, here = p.sum(1), np.arange(len(y))
        total += float(np.sum(np.log(sums) - logits[here, y]))
        p /= sums[:, None]
        p[here, y] -= 1
        gradient[:-1] += x.T @ p
        gradient[-1] += p.sum(0)
    return total / len(rows), gradient / len(rows)


def byte_counts(texts: Iterable[bytes]) -> Bytes:
    """How often each byte is in each text, as 16 times the logarithm of one more, (count, 256)."""
    counts = [np.bincount(np.frombuffer(text, np.uint8), minlength=256) for text in texts]
    found: Bytes = np.rint(16 * np.log1p(counts)).clip(0, 255).astype(np.uint8)
    return found


@dataclass(frozen=True)
class NaiveBayes:
    """Two labels by which words are in a text: the logarithm of the odds of each word, and before any."""

    odds: Mapping[bytes, float]
    prior: float

    @classmethod
    def fit(cls, texts: Iterable[bytes], labels: Labels) -> NaiveBayes:
        """Counted in training, smoothed by one; there is nothing to choose.

        >>> fitted = NaiveBayes.fit([b"a good film", b"so bad", b"good", b"bad film"], np.array([1, 0, 1, 0]))
        >>> fitted.accuracy([b"GOOD!", b"bad"], np.array([1, 0]))
        1.0
        """
        counts: tuple[Counter[bytes], Counter[bytes]] = Counter(), Counter()
        for text, label in zip(texts, labels.tolist(), strict=True):
            counts[label].update(_words(text))
        size = np.bincount(labels, minlength=2) + 2
        prior = math.log(size[1] / size[0])
        odds = {
            word: math.log((counts[1][word] + 1) / (counts[0][word] + 1)) - prior
            for word in counts[0].keys() | counts[1].keys()
        }
        return cls(odds, prior)

    def accuracy(self, texts: Iterable[bytes], labels: Labels) -> float:
        """The share of texts whose odds are on the side of the label."""
        said = [self.prior + sum(self.odds.get(word, 0.0) for word in _words(text)) > 0 for text in texts]
        return float(np.mean(np.array(said) == labels))


def _words(text: bytes) -> set[bytes]:
    return set(_WORD.findall(text.lower()))
