"""The base class of tasks on real data: samples are rows of a data set, and the ceiling is unknown."""

from __future__ import annotations

from abc import abstractmethod
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from separatrix.training.data import DATASETS, Splits, data_folder
from separatrix.training.tasks._base import Bound, Metric, Samples, Split, Task
from separatrix.training.tasks.setting import SMALL_TRANSFORMER

REAL_DATA_SETTING = SMALL_TRANSFORMER | {"steps": 1000, "rates": "0.001,0.003", "every": 100}


class RealTask(Task):
    """Samples of a data set in the data folder: `SEPARATRIX_DATA`, or the cache.

    Training samples are drawn at random in every step. Validation and test samples are drawn once, without
    replacement, and are at most as many as the data set has.
    """

    data: ClassVar[str]
    """The name of the data set. Tasks take it from the class of the data set: this import makes its checksums
    and splits part of the code version of stored runs."""

    @abstractmethod
    def select(self, split: Any, rows: NDArray[np.int64]) -> Samples:
        """Return rows of a split of the data set as samples."""

    def splits(self) -> Splits[Any]:
        """Return the verified data set; the error for a missing one has the command that fetches it."""
        return _load(self.data, data_folder())

    def part(self, split: Split) -> Any:
        """Return one split of the data set."""
        return getattr(self.splits(), split.name.lower())

    def count(self, part: Any) -> int:
        """Return the number of rows of a split of the data set."""
        return len(part)

    def draw(self, count: int, split: Split, rng: np.random.Generator) -> Samples:
        part = self.part(split)
        total = self.count(part)
        rows = rng.integers(total, size=count) if split is Split.TRAIN else rng.permutation(total)[:count]
        return self.select(part, rows)

    def ceiling(self, samples: Samples) -> Bound:
        if self.metric is Metric.BITS:
            return Bound(0.0, "unknown; no byte can take fewer bits", exact=False)
        return Bound(1.0, "unknown; no model can be correct more often", exact=False)


@lru_cache(maxsize=4)
def _load(name: str, folder: Path) -> Splits[Any]:
    return DATASETS[name].load(folder)
