"""enwik8: predict every byte from the bytes before it."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from separatrix.core.parameters import natural
from separatrix.training.data import Stream, data_folder
from separatrix.training.data.enwik8 import Enwik8Data
from separatrix.training.data.floors import NGrams, mean_bits
from separatrix.training.tasks._base import Bound, Metric, Samples, Split, best_bound
from separatrix.training.tasks.real._base import REAL_DATA_SETTING, RealTask


class Enwik8Task(RealTask):
    """Predict the next byte of the English Wikipedia, in bits per byte.

    Windows of n bytes at random positions of a split, in which each byte predicts the next one; the score is
    in bits per byte, and the context is only the window. Validation and test windows do not overlap. The
    floor is the best of uni-, bi- and trigrams counted in all of the training bytes.
    """

    name = "enwik8"
    provenance = "[rec] Large Text Compression Benchmark; the usual split"
    data = Enwik8Data.name
    n: int = natural(256, at_least=4, at_most=16384)
    metric = Metric.BITS
    setting = REAL_DATA_SETTING | {"validation": 64, "tests": 400}
    vocabulary = outputs = 256

    def count(self, part: Stream) -> int:
        """Return the number of windows that do not overlap."""
        return (len(part) - 1) // self.n

    def draw(self, count: int, split: Split, rng: np.random.Generator) -> Samples:
        if split is not Split.TRAIN:
            return super().draw(count, split, rng)
        # Training windows start at any byte; the others at multiples of n, so that they do not overlap.
        part = self.part(split)
        return self._windows(part, rng.integers(len(part) - self.n, size=count))

    def select(self, split: Stream, rows: NDArray[np.int64]) -> Samples:
        return self._windows(split, rows * self.n)

    def _windows(self, part: Stream, starts: NDArray[np.int64]) -> Samples:
        symbols = part.symbols[starts[:, None] + np.arange(self.n + 1)].astype(np.int64)
        positions = np.broadcast_to(np.arange(self.n), (len(starts), self.n))
        return Samples(symbols[:, :-1], positions, symbols[:, 1:], latents={"row": starts})

    def floor(self, samples: Samples) -> Bound:
        texts = np.concatenate([samples.inputs[:, :1], samples.targets], axis=1).astype(np.uint8)
        # The first byte of a window is context only, for n-grams as for models.
        orders = _fit_ngrams(data_folder()).probabilities(texts)
        bounds = (
            Bound(mean_bits(order[:, 1:]), f"{name} counted in all of the training bytes")
            for name, order in zip(("unigrams", "bigrams", "trigrams"), orders, strict=True)
        )
        return best_bound(bounds, self.metric.sign)


@lru_cache(maxsize=1)
def _fit_ngrams(_: Path) -> NGrams:
    """Fit n-grams to the data; the data folder is the cache key."""
    task = Enwik8Task.read()
    return NGrams.fit(task.part(Split.TRAIN).symbols, task.part(Split.VALIDATION).symbols)
