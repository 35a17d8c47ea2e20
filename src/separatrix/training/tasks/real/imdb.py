"""IMDb reviews, byte by byte: positive or negative?"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from separatrix.core.parameters import flag, natural
from separatrix.training.data import DATASETS, Splits, Texts, data_folder
from separatrix.training.data.floors import LogisticRegression, NaiveBayes, byte_counts
from separatrix.training.data.imdb import ImdbData, fit_texts
from separatrix.training.tasks._base import Bound, Samples, Split, best_bound, majority_floor
from separatrix.training.tasks.real._base import REAL_DATA_SETTING, RealTask


class ImdbTask(RealTask):
    """Decide whether a film review, read byte by byte, is positive or negative.

    The first n bytes of a review; shorter reviews have fewer tokens. The last byte answers. By default the
    25,000 training reviews are split by their sha256 (70, 10 and 20 per cent), for which the package
    suffices; official=yes tests with the other 25,000, as in the literature, and needs aclImdb.
    """

    name = "imdb"
    provenance = "[rec] IMDb at the level of bytes, as in the Long Range Arena (arXiv 2011.04006)"
    data = ImdbData.name
    n: int = natural(256, at_least=8, at_most=16384)
    official: bool = flag(False)
    setting = REAL_DATA_SETTING | {"steps": 300, "tests": 5000}
    vocabulary, outputs = 256, 2

    def splits(self) -> Splits[Texts]:
        return _load_reviews(self.official, data_folder())

    def select(self, split: Texts, rows: NDArray[np.int64]) -> Samples:
        texts = split[rows]
        # An empty review has one token, a zero, because some position has to answer.
        lengths = np.diff(texts.starts).clip(1, self.n)
        present = np.arange(self.n) < lengths[:, None]
        inputs = texts.first_symbols(self.n).astype(np.int64)
        return Samples(inputs, lengths[:, None] - 1, texts.labels[:, None], present, {"row": rows})

    def floor(self, samples: Samples) -> Bound:
        assert samples.present is not None
        rows = zip(samples.inputs.astype(np.uint8), samples.present, strict=True)
        texts, labels = [row[mask].tobytes() for row, mask in rows], samples.targets[:, 0]
        regression, naive_bayes = _fit_shortcuts(self, data_folder())
        shortcuts = (
            Bound(regression.accuracy(byte_counts(texts), labels), "logistic regression on byte counts"),
            Bound(naive_bayes.accuracy(texts, labels), "naive Bayes on the set of words"),
            majority_floor(samples),
        )
        return best_bound(shortcuts)


@lru_cache(maxsize=2)
def _load_reviews(official: bool, folder: Path) -> Splits[Texts]:
    data = DATASETS[ImdbData.name]
    assert isinstance(data, ImdbData)
    return data.load_official(folder) if official else data.load_training_half(folder)


@lru_cache(maxsize=4)
def _fit_shortcuts(task: ImdbTask, _: Path) -> tuple[LogisticRegression, NaiveBayes]:
    """Fit the shortcuts to the visible bytes of the reviews; the folder is part of the cache key."""
    train, validation = (
        ([text[: task.n] for text in task.part(split).samples()], task.part(split).labels)
        for split in (Split.TRAIN, Split.VALIDATION)
    )
    return fit_texts(train, validation)
