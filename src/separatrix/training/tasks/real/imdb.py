"""IMDb reviews, byte by byte: for or against?"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from separatrix.core.parameters import Constraint, Flag, Natural, Parameters, between
from separatrix.training.data import Splits, Texts, data_folder, dataset_named
from separatrix.training.data.floors import LogisticRegression, NaiveBayes, byte_counts
from separatrix.training.data.imdb import Imdb
from separatrix.training.tasks._base import Bound, Samples, Split, best, commonest_class
from separatrix.training.tasks.real._base import RealTask

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from separatrix.training.tasks.setting import Setting


class ImdbParameters(Parameters):
    """How many bytes of a review are read, and which test samples are taken."""

    owner = "imdb"
    n: Natural = 256
    official: Flag = False
    constraints: ClassVar[tuple[Constraint, ...]] = (between("n", 8, 16384),)


class ImdbReviews(RealTask):
    """The first n bytes of a review; the last of them says whether it is for or against."""

    name = "imdb"
    title = "Say whether a review, read byte by byte, is for a film or against it."
    provenance = "[rec] IMDb at the level of bytes, as in the Long Range Arena (arXiv 2011.04006)"
    description = (
        "The first n bytes of a review; shorter ones are shorter. The last byte answers. By default the "
        "25,000 reviews for training are split by their sha256 (70, 10 and 20 per cent), which the package "
        "suffices for; official=yes tests with the other 25,000, as others do: aclImdb must be there."
    )
    data = Imdb.name
    schema = ImdbParameters
    setting: ClassVar[dict[str, object]] = {
        "depth": 2,
        "heads": 4,
        "mlp": 2,
        "rope": 10000,
        "steps": 300,
        "rates": "0.001,0.003",
        "every": 100,
        "tests": 5000,
    }
    parameters: ImdbParameters

    @property
    def vocabulary(self) -> int:
        return 256

    @property
    def outputs(self) -> int:
        return 2

    def splits(self) -> Splits[Texts]:
        return _read(self.parameters.official, data_folder())

    def chosen(self, split: Texts, rows: NDArray[np.int64]) -> Samples:
        texts = split[rows]
        lengths = np.diff(texts.starts).clip(1, self.parameters.n)
        present = np.arange(self.parameters.n) < lengths[:, None]
        inputs = texts.first_symbols(self.parameters.n).astype(np.int64)
        return Samples(inputs, lengths[:, None] - 1, texts.labels[:, None], present, {"row": rows})

    def floor(self, samples: Samples, setting: Setting) -> Bound:
        assert samples.present is not None
        rows = zip(samples.inputs.astype(np.uint8), samples.present, strict=True)
        texts, labels = [row[there].tobytes() for row, there in rows], samples.targets[:, 0]
        by_bytes, by_words = _fitted(self.parameters, data_folder())
        bytes_right = by_bytes.accuracy(byte_counts(texts), labels)
        words_right = by_words.accuracy(texts, labels)
        shortcuts = (
            Bound(bytes_right, "logistic regression on how often each byte is there"),
            Bound(words_right, "naive Bayes on which words are there"),
            commonest_class(samples),
        )
        return best(shortcuts, 1)


@lru_cache(maxsize=2)
def _read(official: bool, folder: Path) -> Splits[Texts]:
    reviews = dataset_named("imdb")
    assert isinstance(reviews, Imdb)
    return reviews.official(folder) if official else reviews.training_half(folder)


@lru_cache(maxsize=4)
def _fitted(parameters: ImdbParameters, _: Path) -> tuple[LogisticRegression, NaiveBayes]:
    """The shortcuts, fitted to what a model sees of the reviews to train with."""
    task = ImdbReviews(parameters)
    seen = {
        split: ([text[: parameters.n] for text in task.part(split).samples()], task.part(split).labels)
        for split in (Split.TRAIN, Split.VALIDATION)
    }
    counts = {split: (byte_counts(texts), labels) for split, (texts, labels) in seen.items()}
    by_bytes = LogisticRegression.fit(counts[Split.TRAIN], counts[Split.VALIDATION], 2)
    return by_bytes, NaiveBayes.fit(*seen[Split.TRAIN])
