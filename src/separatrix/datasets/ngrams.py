"""n-grams of bytes: how many bits a byte takes when it is predicted from the few before it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from separatrix.datasets.floors import Floor
from separatrix.datasets.samples import Bytes

NAMES = ("unigram", "bigram", "trigram")
STRENGTHS = tuple(10 ** (k / 2) for k in range(-2, 9))
"""How many times a context must have been seen for its counts to weigh as much as the shorter context."""
CHUNK = 1 << 24


def ngram_floors(train: Bytes, validation: Bytes, test: Bytes, orders: int = 3) -> tuple[Floor, ...]:
    """Bits a byte on the test bytes of counts of one, two, three bytes in training.

    Each order leans on the one before: p(c | context) = (count(context c) + s p(c | shorter context)) /
    (count(context) + s), down to 1/256; s is the best of STRENGTHS on the validation bytes. The first bytes
    of a text, which have no context, are predicted by the shorter one.

    >>> text = np.frombuffer(b"ab" * 500, np.uint8)
    >>> [round(each.value, 2) for each in ngram_floors(text, text[:100], text[:100], orders=2)]
    [1.0, 0.01]
    """
    known = {"validation": np.full(len(validation), 1 / 256), "test": np.full(len(test), 1 / 256)}
    texts = {"validation": validation, "test": test}
    found = []
    for order in range(1, orders + 1):
        counts = _counts(train, order)
        seen = {name: _seen(counts, texts[name], order) for name in texts}
        strength = min(STRENGTHS, key=lambda s: _bits(_blend(known["validation"], *seen["validation"], s)))
        known = {name: _blend(known[name], *seen[name], strength) for name in texts}
        found.append(Floor(NAMES[order - 1], _bits(known["test"]), "bits a byte"))
    return tuple(found)


def _places(text: Bytes, order: int) -> NDArray[np.int64]:
    """The number of each run of `order` bytes, the first of them most significant."""
    numbers = np.zeros(max(0, len(text) - order + 1), np.int64)
    for k in range(order):
        numbers = numbers * 256 + text[k : len(text) - order + 1 + k]
    return numbers


def _counts(text: Bytes, order: int) -> NDArray[np.int32]:
    """How often each run of `order` bytes is there."""
    counts = np.zeros(256**order, np.int32)
    for start in range(0, max(0, len(text) - order + 1), CHUNK):
        part = _places(text[start : start + CHUNK + order - 1], order)
        counts += np.bincount(part, minlength=len(counts)).astype(np.int32)
    return counts


def _seen(counts: NDArray[np.int32], text: Bytes, order: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """How often each byte of a text, but for the first, was seen after its context, and the context."""
    places = _places(text, order)
    contexts = counts.reshape(-1, 256).sum(1, dtype=np.int32)
    return counts[places], contexts[places // 256]


def _blend(
    shorter: NDArray[np.float64], often: NDArray[np.int32], context: NDArray[np.int32], strength: float
) -> NDArray[np.float64]:
    """The probability of each byte of a text; those without a context keep that of the shorter one."""
    blended = shorter.copy()
    first = len(shorter) - len(often)
    blended[first:] = (often + strength * shorter[first:]) / (context + strength)
    return blended


def _bits(probabilities: NDArray[np.float64]) -> float:
    return float(-np.log2(probabilities).mean()) if len(probabilities) else 0.0
