"""What tasks on real data share: their samples are rows of a data set, and no ceiling is known."""

from __future__ import annotations

from abc import abstractmethod
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from separatrix.training.data import DATASETS, Splits, data_folder
from separatrix.training.tasks._base import Answers, Bound, Samples, Split, Task

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray


class RealTask(Task):
    """Samples of a data set, which has to be in the data folder: `SEPARATRIX_DATA`, or the cache.

    Those to train with are drawn at random, step after step; those to validate and to test with are drawn
    once, none twice, and are no more than the data set has.
    """

    data: ClassVar[str]
    """The data set that it is made of: the name of the class, which is imported, so that the checksums and
    splits that it states are part of what a stored run is known by."""

    @abstractmethod
    def chosen(self, split: Any, rows: NDArray[np.int64]) -> Samples:
        """Rows of a split of the data set, as a model takes them."""

    def splits(self) -> Splits[Any]:
        """The data set, read once and verified; a UsageError says how to get what is missing."""
        return _read(self.data, data_folder())

    def part(self, split: Split) -> Any:
        """One split of the data set."""
        return getattr(self.splits(), split.name.lower())

    def count(self, part: Any) -> int:
        """How many rows a split of the data set has."""
        return len(part)

    def draw(self, count: int, split: Split, chance: Generator) -> Samples:
        part = self.part(split)
        total = self.count(part)
        if split is Split.TRAIN:
            return self.chosen(part, chance.integers(total, size=count))
        return self.chosen(part, chance.permutation(total)[:count])

    def ceiling(self, samples: Samples) -> Bound:
        if self.answers is Answers.BITS:
            return Bound(0.0, "none is known; no byte can take less", exact=False)
        return Bound(1.0, "none is known; nobody can be right more often", exact=False)


@lru_cache(maxsize=4)
def _read(name: str, folder: Path) -> Splits[Any]:
    return DATASETS[name].load(folder)
