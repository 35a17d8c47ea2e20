"""Floors of data sets: scores without attention, on the same test samples as trained models.

A result at or below its floor is no evidence about mechanisms.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from separatrix.core.documents import Document
from separatrix.training.data.samples import Bytes, Labels

MAX_ITERATIONS = 40
"""Of L-BFGS; the iterate with the best validation accuracy is used."""
CHUNK_ROWS = 4096
Labelled = tuple[Bytes, Labels]
"""Inputs, (count, …), and a label for each."""
_WORD = re.compile(rb"[a-z']+")


@dataclass(frozen=True)
class Floor(Document):
    """The score of a shortcut without attention."""

    name: str
    value: float
    measure: str = "accuracy"


def majority(train: Labels, test: Labels) -> Floor:
    """Return the score of the most frequent training label.

    >>> majority(np.array([0, 1, 1]), np.array([1, 0])).value
    0.5
    """
    return Floor("majority", float(np.mean(test == np.bincount(train).argmax())))


@dataclass(frozen=True)
class LogisticRegression:
    """Multinomial logistic regression on bytes: a column of weights for each label, with the bias last."""

    weights: NDArray[np.float32]

    @classmethod
    def fit(
        cls, train: Labelled, validation: Labelled, classes: int, steps: int = MAX_ITERATIONS
    ) -> LogisticRegression:
        """Minimise the mean cross-entropy of the centred inputs by L-BFGS from zero.

        Of its iterates, return the one with the best validation accuracy.
        """
        from scipy.optimize import minimize

        rows, labels = _flatten(train[0]), train[1]
        mean, scale = rows.mean(0, dtype=np.float64), 1 / max(1, int(rows.max(initial=0)))
        shape = (len(mean) + 1, classes)
        best = cls(np.zeros(shape, np.float32))

        def byte_weights(flat: NDArray[np.float64]) -> NDArray[np.float32]:
            """Return the weights for raw bytes, from those for centred inputs between 0 and 1."""
            weights = flat.reshape(shape) * scale
            return np.vstack([weights[:-1], weights[-1] / scale - mean @ weights[:-1]]).astype(np.float32)

        def loss(flat: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
            value, gradient = _cross_entropy(byte_weights(flat), rows, labels)
            gradient[:-1] = scale * (gradient[:-1] - np.outer(mean, gradient[-1]))
            return value, gradient.ravel()

        def keep_best(flat: NDArray[np.float64]) -> None:
            nonlocal best
            iterate = cls(byte_weights(flat))
            best = max(best, iterate, key=lambda fitted: fitted.accuracy(*validation))

        start, options = np.zeros(shape).ravel(), {"maxiter": steps}
        minimize(loss, start, jac=True, method="L-BFGS-B", callback=keep_best, options=options)
        return best

    def accuracy(self, inputs: Bytes, labels: Labels) -> float:
        """Return the share of inputs whose label has the largest logit."""
        rows, correct = _flatten(inputs), 0
        for start in range(0, len(rows), CHUNK_ROWS):
            chunk = slice(start, start + CHUNK_ROWS)
            logits = rows[chunk].astype(np.float32) @ self.weights[:-1] + self.weights[-1]
            correct += int(np.sum(logits.argmax(1) == labels[chunk]))
        return correct / len(rows)


def _flatten(inputs: Bytes) -> Bytes:
    return inputs.reshape(len(inputs), -1)


def _cross_entropy(
    weights: NDArray[np.float32], rows: Bytes, labels: Labels
) -> tuple[float, NDArray[np.float64]]:
    """Return the mean cross-entropy and its gradient, in chunks of rows that bound the memory."""
    total, gradient = 0.0, np.zeros(weights.shape)
    for start in range(0, len(rows), CHUNK_ROWS):
        x, y = rows[start : start + CHUNK_ROWS].astype(np.float32), labels[start : start + CHUNK_ROWS]
        logits = x @ weights[:-1] + weights[-1]
        logits -= logits.max(1, keepdims=True)
        p = np.exp(logits)
        sums, row = p.sum(1), np.arange(len(y))
        total += float(np.sum(np.log(sums) - logits[row, y]))
        p /= sums[:, None]
        p[row, y] -= 1
        gradient[:-1] += x.T @ p
        gradient[-1] += p.sum(0)
    return total / len(rows), gradient / len(rows)


def byte_counts(texts: Iterable[bytes]) -> Bytes:
    """Return 16 log(1 + count) of each byte in each text, (texts, 256)."""
    counts = [np.bincount(np.frombuffer(text, np.uint8), minlength=256) for text in texts]
    logs: Bytes = np.rint(16 * np.log1p(counts)).clip(0, 255).astype(np.uint8)
    return logs


@dataclass(frozen=True)
class NaiveBayes:
    """Two labels by the set of words of a text: the log odds of each word, and the prior log odds."""

    odds: Mapping[bytes, float]
    prior: float

    @classmethod
    def fit(cls, texts: Iterable[bytes], labels: Labels) -> NaiveBayes:
        """Count the words of the training texts, with add-one smoothing.

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
        """Return the share of texts whose log odds have the sign of the label."""
        odds = [self.prior + sum(self.odds.get(word, 0.0) for word in _words(text)) for text in texts]
        return float(np.mean((np.array(odds) > 0) == labels))


def _words(text: bytes) -> set[bytes]:
    return set(_WORD.findall(text.lower()))
