"""n-grams of bytes: bits per byte if each byte is predicted from the few bytes before it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from separatrix.training.data.floors import Floor
from separatrix.training.data.samples import Bytes

NAMES = ("unigram", "bigram", "trigram")
STRENGTHS = tuple(10 ** (k / 2) for k in range(-2, 9))
"""Smoothing: the number of occurrences at which a context weighs as much as the shorter context."""
CHUNK_SYMBOLS = 1 << 24


@dataclass(frozen=True)
class NGrams:
    """Counts of runs of one, two, … bytes, each order smoothed by the one before:

        p(c | context) = (count(context c) + s p(c | shorter context)) / (count(context) + s)

    down to 1/256. The first bytes of a text are predicted from the shorter context that they have.
    """

    counts: tuple[NDArray[np.int32], ...]
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

    def probabilities(self, texts: Bytes) -> Iterator[NDArray[np.float64]]:
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
    return tuple(
        Floor(name, mean_bits(blend), "bits a byte") for name, blend in zip(NAMES, blends, strict=False)
    )


def mean_bits(probabilities: NDArray[np.float64]) -> float:
    """Return the mean information content in bits."""
    return float(-np.log2(probabilities).mean()) if probabilities.size else 0.0


def _run_numbers(texts: Bytes, order: int) -> NDArray[np.int64]:
    """Return the number of each run of `order` bytes, the first byte most significant."""
    count = max(0, texts.shape[-1] - order + 1)
    numbers = np.zeros((*texts.shape[:-1], count), np.int64)
    for k in range(order):
        numbers = numbers * 256 + texts[..., k : count + k]
    return numbers


def _count_runs(text: Bytes, order: int) -> NDArray[np.int32]:
    """Return how often each run of `order` bytes occurs."""
    counts = np.zeros(256**order, np.int32)
    for start in range(0, max(0, len(text) - order + 1), CHUNK_SYMBOLS):
        numbers = _run_numbers(text[start : start + CHUNK_SYMBOLS + order - 1], order)
        counts += np.bincount(numbers, minlength=len(counts)).astype(np.int32)
    return counts


def _look_up(
    counts: NDArray[np.int32], texts: Bytes, order: int
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return, for each byte with a context, how often the run and its context occurred in training."""
    numbers = _run_numbers(texts, order)
    contexts = counts.reshape(-1, 256).sum(1, dtype=np.int32)
    return counts[numbers], contexts[numbers // 256]


def _blend(
    shorter: NDArray[np.float64], runs: NDArray[np.int32], contexts: NDArray[np.int32], strength: float
) -> NDArray[np.float64]:
    """Return the probability of each byte; bytes without a context keep that of the shorter one."""
    blend = shorter.copy()
    first = shorter.shape[-1] - runs.shape[-1]
    blend[..., first:] = (runs + strength * shorter[..., first:]) / (contexts + strength)
    return blend
