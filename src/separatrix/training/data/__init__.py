"""Real data sets: searched in a folder, verified by checksums, split, with floors; fetched on request.

>>> from separatrix.training.data import DATASETS
>>> DATASETS["mnist"].title
'handwritten digits, 28×28 pixels, 10 labels'
"""

import sys
from collections.abc import Callable
from typing import Any

from separatrix.core.parameters import find_known
from separatrix.core.registry import by_name, find_classes
from separatrix.training.data._base import DataFloors, DataSet, DataSetState
from separatrix.training.data.fetching import FetchedDataSet, fetch
from separatrix.training.data.folder import MissingData, data_folder
from separatrix.training.data.samples import Images, Splits, Stream, Texts

_kinds: dict[str, Callable[[], DataSet[Any]]] = {**by_name(find_classes(sys.modules[__name__], DataSet), "data sets")}
DATASETS: dict[str, DataSet[Any]] = {name: kind() for name, kind in _kinds.items()}
"""The data sets that the files of this package define, by name."""


def dataset_named(name: str) -> DataSet[Any]:
    """Return the data set of this name, for example `mnist`, or raise a UsageError that lists the names."""
    return find_known("data set", name, DATASETS, "mnist")


__all__ = [
    "DATASETS",
    "DataFloors",
    "DataSet",
    "DataSetState",
    "FetchedDataSet",
    "Images",
    "MissingData",
    "Splits",
    "Stream",
    "Texts",
    "data_folder",
    "dataset_named",
    "fetch",
]
