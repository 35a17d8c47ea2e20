"""n-grams of bytes: how many bits a byte takes when it is predicted from the few before it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from separatrix.training.data.floors import Floor
from separatrix.training.data.samples import Bytes

NAMES = ("unigram", "bigram", "trigram")
STRENGTHS = tuple(10 ** (k / 2) for k in range(-2, 9))
"""How many times a context must have been seen for its counts to weigh as much as the shorter context."""
CHUNK = 1 << 24


@dataclass(frozen=True)
class NGrams:
    """Counts of runs of one, two, … bytes, each order leaning on the one before:

        p(c | context) = (count(context c) + s p(c | shorter context)) / (count(context) + s)

    down to 1/256. The first bytes of a text, which have no context, are predicted by the shorter one.
    """

    counts: tuple[NDArray[np.int32], ...]
    strengths: tuple[float, ...]

    @classmethod
    def fit(cls, train: Bytes, validation: Bytes, orders: int = 3) -> NGrams:
        """Counted in training; each s is the best of STRENGTHS on the validation bytes."""
        fitted, known = cls((), ()), np.full(len(validation), 1 / 256)
        for order in range(1, orders + 1):
            counts = _count(train, order)
            seen = _seen(counts, validation, order)
            best = min(STRENGTHS, key=lambda s: bits_of(_blend(known, *seen, s)))
            known = _blend(known, *seen, best)
            fitted = cls((*fitted.counts, counts), (*fitted.strengths, best))
        return fitted

    def probabilities(self, texts: Bytes) -> Iterator[NDArray[np.float64]]:
        """The probability of each byte of texts, (…, length), by one order after the other."""
        known = np.full(texts.shape, 1 / 256)
        for order, (counts, strength) in enumerate(zip(self.counts, self.strengths, strict=True), 1):
            known = _blend(known, *_seen(counts, texts, order), strength)
            yield known


def ngram_floors(train: Bytes, validation: Bytes, test: Bytes, orders: int = 3) -> tuple[Floor, ...]:
    """Bits a byte on the test bytes, by counts of one, two, three bytes.

    >>> text = np.frombuffer(b"ab" * 500, np.uint8)
    >>> [round(each.value, 2) for each in ngram_floors(text, text[:100], text[:100], orders=2)]
    [1.0, 0.01]
    """
    found = NGrams.fit(train, validation, orders).probabilities(test)
    return tuple(Floor(name, bits_of(each), "bits a byte") for name, each in zip(NAMES, found, strict=False))


def bits_of(probabilities: NDArray[np.float64]) -> float:
    """The mean of the bits that something of these probabilities takes."""
    return float(-np.log2(probabilities).mean()) if probabilities.size else 0.0


def _places(texts: Bytes, order: int) -> NDArray[np.int64]:
    """The number of each run of `order` bytes, the first of them most significant."""
    count = max(0, texts.shape[-1] - order + 1)
    numbers = np.zeros((*texts.shape[:-1], count), np.int64)
    for k in range(order):
        numbers = numbers * 256 + texts[..., k : count + k]
    return numbers


def _count(text: Bytes, order: int) -> NDArray[np.int32]:
    """How often each run of `order` bytes is there."""
    counts = np.zeros(256**order, np.int32)
    for start in range(0, max(0, len(text) - order + 1), CHUNK):
        part = _places(text[start : start + CHUNK + order - 1], order)
        counts += np.bincount(part, minlength=len(counts)).astype(np.int32)
    return counts


def _seen(counts: NDArray[np.int32], texts: Bytes, order: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """How often each byte of texts, but for the first, was seen after its context, and the context."""
    places = _places(texts, order)
    contexts = counts.reshape(-1, 256).sum(1, dtype=np.int32)
    return counts[places], contexts[places // 256]


def _blend(
    shorter: NDArray[np.float64], often: NDArray[np.int32], context: NDArray[np.int32], strength: float
) -> NDArray[np.float64]:
    """The probability of each byte of texts; those without a context keep that of the shorter one."""
    blended = shorter.copy()
    first = shorter.shape[-1] - often.shape[-1]
    blended[..., first:] = (often + strength * shorter[..., first:]) / (context + strength)
    return blended
