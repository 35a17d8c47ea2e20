"""What every data set tells of itself, and how it is found, verified, read and put in place."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar, Generic

from separatrix.core.errors import UsageError
from separatrix.training.data.archives import untar, unzip
from separatrix.training.data.floors import Floor
from separatrix.training.data.folder import DataFile, MissingData, find_file, folder_option, read_file
from separatrix.training.data.packages import Package
from separatrix.training.data.samples import Kind, Splits


@dataclass(frozen=True)
class FileState:
    """A file of a data set as it was found.

    `state` is "found" (its checksum is right), "unverified" (it is readable, and no checksum is known),
    "corrupt", for the `reason` given, or "missing".
    """

    name: str
    state: str
    path: Path | None = None
    size: int | None = None
    checksum: str = ""
    reason: str = ""

    def as_json(self) -> dict[str, Any]:
        """What `data --json` prints of it."""
        path = None if self.path is None else str(self.path)
        known = {"name": self.name, "state": self.state, "path": path, "size": self.size}
        return {**known, "checksum": self.checksum or None, "reason": self.reason or None}


class DataSet(ABC, Generic[Kind]):
    """A set of real data, read from files that everybody has; a file in this folder registers itself."""

    name: ClassVar[str]
    title: ClassVar[str]
    """One line."""
    description: ClassVar[str]
    """What a sample is, what is to be said of it, and how it is split."""
    source: ClassVar[str]
    """Who made it, and where it is from."""
    classes: ClassVar[int]
    """How many labels there are; 256 for a stream of bytes."""
    measure: ClassVar[str] = "accuracy"
    """What floors are measured in: "accuracy", or "bits a byte", of which less is better."""
    files: tuple[DataFile, ...]
    """What is read, all of it."""
    places: ClassVar[tuple[str, ...]] = ()
    """Folders in the data folder in which others keep these files, beside `name` and the folder itself."""
    package: ClassVar[Package | None] = None
    """Where `fetch` gets it; None if nobody publishes it as a package."""
    members: ClassVar[Mapping[str, str]] = {}
    """The members of the package that are put in place, and the name of each there."""
    largest_package: ClassVar[int] = 1 << 28
    """Bytes that the package unpacks to at most, all of its members together."""

    @abstractmethod
    def parse(self, contents: Mapping[str, bytes]) -> tuple[Kind, Kind, Kind]:
        """The samples for training, validation and test, from the verified content of each file."""

    @abstractmethod
    def floors(self, splits: Splits[Kind]) -> tuple[Floor, ...]:
        """What can be had without any attention, on the very test samples."""

    def unpack(self, package: bytes) -> dict[str, bytes]:
        """The files to put in place, by name, from the file of the package: its `members` as they are."""
        assert self.package is not None
        most, where = self.largest_package, self.package.file
        sizes = {file.name: file.size for file in self.files}
        limits = {member: sizes.get(name, most) for member, name in self.members.items()}
        if where.endswith(".whl"):
            return {
                name: unzip(package, member, limits[member], where) for member, name in self.members.items()
            }
        return {self.members[member]: content for member, content in untar(package, limits.get, most, where)}

    def load(self, folder: Path) -> Splits[Kind]:
        """Read and verify every file of the data set in a folder."""
        contents = self.contents(folder)
        marks = (f"{name} {sha256(content).hexdigest()}\n" for name, content in contents.items())
        digest = sha256("".join(marks).encode()).hexdigest()
        return Splits(*self.parse(contents), digest=digest)

    def contents(self, folder: Path) -> dict[str, bytes]:
        """The verified content of every file, by name; refuses what is missing or corrupt."""
        return {file.name: self._content(folder, file)[1] for file in self.files}

    def states(self, folder: Path) -> list[FileState]:
        """The state of every file of the data set in a folder, each one read and verified.

        Never raises a UsageError: a file that cannot be read is "corrupt", so that one data set does not
        hide the others.
        """
        try:
            return self._file_states(folder)
        except UsageError as error:
            return [
                FileState(file.name, "corrupt", None, None, file.checksum, str(error)) for file in self.files
            ]

    def _file_states(self, folder: Path) -> list[FileState]:
        return [self._state(folder, file) for file in self.files]

    def where(self) -> tuple[str, ...]:
        """The folders within the data folder that are looked into, in their order."""
        return (self.name, "", *self.places)

    def get_it(self, folder: Path) -> str:
        """How to get a data set that is missing, in one clause."""
        if self.package is None:
            return f"put {' and '.join(file.name for file in self.files)} there ({self.source})"
        return f"get it by: separatrix data fetch {self.name}{folder_option(folder)}"

    def _content(self, folder: Path, file: DataFile) -> tuple[Path, bytes]:
        path = find_file(folder, self.where(), file)
        if path is None:
            raise MissingData(f"{self.name} is not in {folder}: no {file.name}; {self.get_it(folder)}")
        return path, read_file(path, file)

    def _state(self, folder: Path, file: DataFile) -> FileState:
        try:
            path, content = self._content(folder, file)
        except MissingData:
            return FileState(file.name, "missing", None, file.size, file.checksum)
        except UsageError as error:
            path_or_none = find_file(folder, self.where(), file)
            return FileState(file.name, "corrupt", path_or_none, None, file.checksum, str(error))
        state = "found" if file.checksum else "unverified"
        return FileState(file.name, state, path, len(content), file.checksum)
