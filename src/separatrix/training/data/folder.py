"""The data folder: the one that a user names, or a cache; and reading single files from it."""

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
"""A file is read as it is, or as the only content of a gzip or zip file."""
MAX_PACKING_OVERHEAD = 1 << 20
"""Bytes by which a packed file may exceed its content: incompressible content grows when it is packed."""


class MissingData(UsageError):
    """A data set, or one of its files, is not in the folder."""


@dataclass(frozen=True)
class DataFile:
    """A file of a data set: its name, and the size and checksum of its unpacked content.

    `checksum` is "sha256:…" or "md5:…"; if it is empty, none is known, and `size` is an upper limit.
    """

    name: str
    size: int
    checksum: str = ""
    spellings: tuple[str, ...] = ()

    def verify(self, content: bytes, source: object) -> bytes:
        """Return the content, or raise a UsageError that states how it differs."""
        algorithm, _, expected = self.checksum.partition(":")
        if not expected and len(content) <= self.size:
            return content
        if len(content) != self.size:
            raise UsageError(f"{source} is corrupt: {len(content):,} bytes instead of {self.size:,}")
        actual = new_hash(algorithm, content, usedforsecurity=False).hexdigest()
        if actual != expected:
            raise UsageError(f"{source} is corrupt: its {algorithm} is {actual} instead of {expected}")
        return content


def data_folder(folder: Path | None = None, new: bool = False) -> Path:
    """Return the folder of the data sets: `folder`, else SEPARATRIX_DATA, else one in the user's cache.

    A folder that the user names must exist, unless it may be `new`.
    """
    try:
        if folder is None and (variable := os.environ.get(VARIABLE)):
            folder = Path(variable).expanduser()
        if folder is None:
            return _cache() / "separatrix" / "data"
    except RuntimeError:
        raise UsageError(f"there is no home folder; name a data folder by `folder` or {VARIABLE}") from None
    if not (new or folder.is_dir()):
        raise UsageError(f"there is no folder {folder}")
    return folder


def folder_option(folder: Path) -> str:
    """Return the command-line option for a folder, ` --folder DIR`; empty for the default folder."""
    return "" if folder == data_folder(new=True) else f" --folder {shlex.quote(str(folder))}"


def _cache() -> Path:
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    variable = os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME")
    return Path(variable) if variable else Path.home() / ".cache"


def find(folder: Path, subfolders: Iterable[str], names: Iterable[str]) -> Path | None:
    """Return the first existing file with one of these names in one of the subfolders; None without one."""
    search_paths = [folder / subfolder for subfolder in subfolders]
    for path in (directory / name for directory in search_paths for name in names):
        try:
            # A searched folder can have the name of the file (enwik8/enwik8); it is not the file.
            if path.exists() and not (path in search_paths and path.is_dir()):
                return path
        except OSError as error:
            raise UsageError(f"cannot read {path}: {(error.strerror or str(error)).lower()}") from None
    return None


def find_file(folder: Path, subfolders: Iterable[str], file: DataFile) -> Path | None:
    """Return the path of a file under any of its spellings, packed or not; None if it is missing."""
    names = [f"{name}{ending}" for ending in PACKED for name in (file.name, *file.spellings)]
    return find(folder, subfolders, names)


def read_file(path: Path, file: DataFile) -> bytes:
    """Return the content of a file, unpacked and verified."""
    # A published archive such as aclImdb_v1.tar.gz is verified as it is, and unpacked by its data set.
    is_packed = path.suffix in PACKED[1:] and not file.name.endswith(path.suffix)
    data = read_whole(path, file.size + (MAX_PACKING_OVERHEAD if is_packed else 0), file.name)
    if is_packed:
        is_gzip = path.suffix == ".gz"
        data = gunzip(data, file.size, path) if is_gzip else unzip(data, file.name, file.size, path)
    return file.verify(data, path)
