"""Real data sets: found in a folder, verified by checksums, split, with floors; fetched when asked to.

>>> from separatrix.training.data import DATASETS
>>> DATASETS["mnist"].title
'handwritten digits, 28×28 pixels, 10 labels'
"""

import sys
from collections.abc import Callable
from typing import Any

from separatrix.core.parameters import UsageError, require_known
from separatrix.core.registry import by_name, defined
from separatrix.training.data._base import DataSet, FileState
from separatrix.training.data.fetching import Fetched, fetch
from separatrix.training.data.floors import Floor
from separatrix.training.data.folder import MissingData, data_folder
from separatrix.training.data.samples import Images, Splits, Stream, Texts

_kinds: dict[str, Callable[[], DataSet[Any]]] = {
    **by_name(defined(sys.modules[__name__], DataSet), "data sets")
}
DATASETS: dict[str, DataSet[Any]] = {name: kind() for name, kind in _kinds.items()}
"""Every data set that a file in this folder defines, by name."""


def dataset_named(name: str) -> DataSet[Any]:
    """The data set called `name`, such as `mnist`, or a UsageError that lists them."""
    if not isinstance(name, str):
        raise UsageError(f"{name!r} is not the name of a data set; write for example 'mnist'")
    require_known("data set", name, DATASETS)
    return DATASETS[name]


__all__ = [
    "DATASETS",
    "DataSet",
    "Fetched",
    "FileState",
    "Floor",
    "Images",
    "MissingData",
    "Splits",
    "Stream",
    "Texts",
    "data_folder",
    "dataset_named",
    "fetch",
]
