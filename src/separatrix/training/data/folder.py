"""Where data sets lie: the folder that a user names, or a cache; and reading one file there."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import new as new_hash
from pathlib import Path

from separatrix.core.errors import UsageError
from separatrix.core.files.reading import read_whole
from separatrix.training.data.archives import gunzip, unzip

VARIABLE = "SEPARATRIX_DATA"
"""The environment variable that names the folder."""
PACKED = ("", ".gz", ".zip")
"""A file is read as it is, or packed alone into a gzip or zip file."""
SLACK = 1 << 20
"""Bytes that a packed file may be larger than its content: there is nothing that gzip could not enlarge."""


class MissingData(UsageError):
    """A data set, or a file of it, is not in the folder."""


@dataclass(frozen=True)
class DataFile:
    """A file of a data set: its name, and the size and checksum of its content, unpacked.

    `checksum` is "sha256:…" or "md5:…"; empty where none is known, and `size` is the largest then.
    """

    name: str
    size: int
    checksum: str = ""
    spellings: tuple[str, ...] = ()

    def verify(self, content: bytes, where: object) -> bytes:
        """The content, or a UsageError that says in what it differs."""
        algorithm, _, known = self.checksum.partition(":")
        if not known and len(content) <= self.size:
            return content
        if len(content) != self.size:
            raise UsageError(f"{where} is corrupt: {len(content):,} bytes instead of {self.size:,}")
        found = new_hash(algorithm, content, usedforsecurity=False).hexdigest()
        if found != known:
            raise UsageError(f"{where} is corrupt: its {algorithm} is {found} instead of {known}")
        return content


def data_folder(given: Path | None = None, new: bool = False) -> Path:
    """The folder of the data sets: the one given, else SEPARATRIX_DATA, else one in the user's cache.

    One that somebody named must be there, unless it may be `new`.
    """
    try:
        if given is None and (named := os.environ.get(VARIABLE)):
            given = Path(named).expanduser()
        if given is None:
            return _cache() / "separatrix" / "data"
    except RuntimeError:
        raise UsageError(f"there is no home folder here; name a folder by `folder` or {VARIABLE}") from None
    if not (new or given.is_dir()):
        raise UsageError(f"there is no folder {given}")
    return given


def folder_option(folder: Path) -> str:
    """How a command is told of a folder: ` --folder DIR`, or nothing if it is the one it takes anyway."""
    return "" if folder == data_folder(new=True) else f" --folder {shlex.quote(str(folder))}"


def _cache() -> Path:
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    named = os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME")
    return Path(named) if named else Path.home() / ".cache"


def find(folder: Path, places: Iterable[str], names: Iterable[str]) -> Path | None:
    """The first of these names that is there, in the first of these places in the folder; None without one.

    A place is a folder of its own: where it has the name that is looked for, it is not taken for the file.
    """
    rooms = [folder / place for place in places]
    for room in rooms:
        for name in names:
            path = room / name
            try:
                if path.exists() and not (path in rooms and path.is_dir()):
                    return path
            except OSError as error:
                raise UsageError(f"cannot read {path}: {(error.strerror or str(error)).lower()}") from None
    return None


def find_file(folder: Path, places: Iterable[str], file: DataFile) -> Path | None:
    """Where a file is, under any of its spellings, packed or not; None if it is not there."""
    names = [f"{name}{ending}" for ending in PACKED for name in (file.name, *file.spellings)]
    return find(folder, places, names)


def read_file(path: Path, file: DataFile) -> bytes:
    """The content of a file, unpacked and verified."""
    packed = path.suffix in PACKED and path.suffix != "" and not file.name.endswith(path.suffix)
    data = read_whole(path, file.size + (SLACK if packed else 0), file.name)
    if packed and path.suffix == ".gz":
        data = gunzip(data, file.size, path)
    elif packed:
        data = unzip(data, file.name, file.size, path)
    return file.verify(data, path)
