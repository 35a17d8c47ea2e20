"""Floors of data sets: scores without attention, on the same test samples as trained models.

A result at or below its floor is no evidence about mechanisms.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from separatrix.core.documents import Document
from separatrix.training.data.samples import Bytes, Labels

MAX_ITERATIONS = 40
"""Of L-BFGS; the iterate with the best validation accuracy is used."""
CHUNK_ROWS, CHUNK_SYMBOLS = 4096, 1 << 24
NGRAM_NAMES = ("unigram", "bigram", "trigram")
STRENGTHS = tuple(10 ** (k / 2) for k in range(-2, 9))
"""Smoothing of n-grams: the number of occurrences at which a context weighs as much as the shorter one."""
Labelled = tuple[Bytes, Labels]
"""Inputs, (count, …), and a label for each."""
Counts = NDArray[np.int32]
Probabilities = NDArray[np.float64]
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
        best_accuracy = best.accuracy(*validation)

        def byte_weights(flat: NDArray[np.float64]) -> NDArray[np.float32]:
            """Return the weights for raw bytes, from those for centred inputs between 0 and 1."""
            # L-BFGS converges in few iterations on centred inputs of unit scale.
            weights = flat.reshape(shape) * scale
            return np.vstack([weights[:-1], weights[-1] / scale - mean @ weights[:-1]]).astype(np.float32)

        def loss(flat: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
            value, gradient = _cross_entropy(byte_weights(flat), rows, labels)
            gradient[:-1] = scale * (gradient[:-1] - np.outer(mean, gradient[-1]))
            return value, gradient.ravel()

        def keep_best(flat: NDArray[np.float64]) -> None:
            nonlocal best, best_accuracy
            iterate = cls(byte_weights(flat))
            if (accuracy := iterate.accuracy(*validation)) > best_accuracy:
                best, best_accuracy = iterate, accuracy

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


def _cross_entropy(weights: NDArray[np.float32], rows: Bytes, labels: Labels) -> tuple[float, NDArray[np.float64]]:
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
        # The odds of a word are (c1 + 1)/(n1 + 2) to (c0 + 1)/(n0 + 2); the sizes appear as the prior.
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


@dataclass(frozen=True)
class NGrams:
    """Counts of runs of one, two, … bytes, each order smoothed by the one before:

        p(c | context) = (count(context c) + s p(c | shorter context)) / (count(context) + s)

    down to 1/256. The first bytes of a text are predicted from the shorter context that they have.
    """

    counts: tuple[Counts, ...]
    strengths: tuple[float, ...]

    @classmethod
    def fit(cls, train: Bytes, validation: Bytes, orders: int = 3) -> NGrams:
        """Count runs in the training bytes; each s is the best of STRENGTHS on the validation bytes."""
        ngrams, shorter = cls((), ()), np.full(len(validation), 1 / 256)
        for order in range(1, orders + 1):
            counts = _count_runs(train, order)
            occurrences = _look_up(counts, validation, order)
            best = min(STRENGTHS, key=lambda s: mean_bits(_blend(shorter, *occurrences, s)))
            shorter = _blend(shorter, *occurrences, best)
            ngrams = cls((*ngrams.counts, counts), (*ngrams.strengths, best))
        return ngrams

    def probabilities(self, texts: Bytes) -> Iterator[Probabilities]:
        """Yield the probability of each byte of texts, (…, length), by increasing order."""
        blend = np.full(texts.shape, 1 / 256)
        for order, (counts, strength) in enumerate(zip(self.counts, self.strengths, strict=True), 1):
            blend = _blend(blend, *_look_up(counts, texts, order), strength)
            yield blend


def ngram_floors(train: Bytes, validation: Bytes, test: Bytes, orders: int = 3) -> tuple[Floor, ...]:
    """Return the bits per byte of the test bytes for each order.

    >>> text = np.frombuffer(b"ab" * 500, np.uint8)
    >>> [round(floor.value, 2) for floor in ngram_floors(text, text[:100], text[:100], orders=2)]
    [1.0, 0.01]
    """
    blends = NGrams.fit(train, validation, orders).probabilities(test)
    return tuple(Floor(name, mean_bits(blend), "bits a byte") for name, blend in zip(NGRAM_NAMES, blends, strict=False))


def mean_bits(probabilities: Probabilities) -> float:
    """Return the mean information content in bits."""
    return float(-np.log2(probabilities).mean()) if probabilities.size else 0.0


def _run_numbers(texts: Bytes, order: int) -> NDArray[np.int64]:
    """Return the number of each run of `order` bytes, the first byte most significant."""
    count = max(0, texts.shape[-1] - order + 1)
    numbers = np.zeros((*texts.shape[:-1], count), np.int64)
    for k in range(order):
        numbers = numbers * 256 + texts[..., k : count + k]
    return numbers


def _count_runs(text: Bytes, order: int) -> Counts:
    """Return how often each run of `order` bytes occurs."""
    counts = np.zeros(256**order, np.int32)
    for start in range(0, max(0, len(text) - order + 1), CHUNK_SYMBOLS):
        # Chunks overlap by order - 1 bytes, so that no run is lost between them.
        numbers = _run_numbers(text[start : start + CHUNK_SYMBOLS + order - 1], order)
        counts += np.bincount(numbers, minlength=len(counts)).astype(np.int32)
    return counts


def _look_up(counts: Counts, texts: Bytes, order: int) -> tuple[Counts, Counts]:
    """Return, for each byte with a context, how often the run and its context occurred in training."""
    numbers = _run_numbers(texts, order)
    contexts = counts.reshape(-1, 256).sum(1, dtype=np.int32)
    return counts[numbers], contexts[numbers // 256]


def _blend(shorter: Probabilities, runs: Counts, contexts: Counts, strength: float) -> Probabilities:
    """Return the probability of each byte; bytes without a context keep that of the shorter one."""
    blend = shorter.copy()
    first = shorter.shape[-1] - runs.shape[-1]
    blend[..., first:] = (runs + strength * shorter[..., first:]) / (contexts + strength)
    return blend
