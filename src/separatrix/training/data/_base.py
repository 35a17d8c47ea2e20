"""The base class of data sets: how files are found, verified, read, described and fetched."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import ClassVar, Generic, Literal

from separatrix.core.documents import Document
from separatrix.core.errors import UsageError
from separatrix.core.registry import Described
from separatrix.training.data.archives import untar, unzip
from separatrix.training.data.floors import Floor, LogisticRegression, majority
from separatrix.training.data.folder import DataFile, MissingData, find_file, folder_option, read_file
from separatrix.training.data.packages import Package
from separatrix.training.data.samples import Images, Kind, Splits

State = Literal["found", "unverified", "missing", "corrupt"]
"""The checksum is right; readable without a known checksum; not there; not readable or wrong."""


@dataclass(frozen=True)
class FileState(Document):
    """A file of a data set in a folder."""

    name: str
    state: State
    path: Path | None = None
    size: int | None = None
    checksum: str | None = None
    reason: str | None = None
    """What is wrong with a corrupt file."""


@dataclass(frozen=True)
class DataSetState(Document):
    """A data set, and which of its files are in a folder."""

    name: str
    title: str
    state: State
    """The worst state of its files."""
    folder: Path
    description: str
    source: str
    package: str | None
    command: str | None
    """How to get it; null if it is complete."""
    files: list[FileState]

    @property
    def is_complete(self) -> bool:
        """Whether all files can be read."""
        return self.state in ("found", "unverified")

    @property
    def size(self) -> int:
        """The number of bytes of all files."""
        return sum(file.size or 0 for file in self.files)


@dataclass(frozen=True)
class DataFloors(Document):
    """The splits of a data set and its floors."""

    name: str
    measure: str
    splits: dict[str, int]
    """The number of samples of each split; bytes for a stream."""
    shared: int
    """Test samples that are also in another split."""
    digest: str
    floors: tuple[Floor, ...]


class DataSet(Described, ABC, Generic[Kind]):
    """A set of real data, read from published files. Each file of the package registers its data sets.

    The docstring of a data set goes on with the form of a sample, the label to predict, and the splits.
    """

    name: ClassVar[str]
    source: ClassVar[str]
    """The authors and the publication."""
    classes: ClassVar[int]
    """The number of labels; 256 for a stream of bytes."""
    measure: ClassVar[str] = "accuracy"
    """The measure of floors: "accuracy", or "bits a byte", of which less is better."""
    files: tuple[DataFile, ...]
    """All files that are read."""
    folders: ClassVar[tuple[str, ...]] = ()
    """Common folders for these files within the data folder, besides `name` and the data folder itself."""
    package: ClassVar[Package | None] = None
    """The package that `fetch` downloads; None if there is none."""
    max_unpacked: ClassVar[int] = 1 << 28
    """The largest size of the unpacked package in bytes."""

    @abstractmethod
    def parse(self, contents: Mapping[str, bytes]) -> tuple[Kind, Kind, Kind]:
        """Return the training, validation and test samples, from the verified content of each file."""

    @abstractmethod
    def floors(self, splits: Splits[Kind]) -> tuple[Floor, ...]:
        """Return the scores of shortcuts without attention on the test samples."""

    def unpack(self, package: bytes) -> dict[str, bytes]:
        """Return the files to install by name: the `members` of the package, unchanged."""
        assert self.package is not None
        limit, source = self.max_unpacked, self.package.file
        sizes = {file.name: file.size for file in self.files}
        members = self.package.members
        limits = {member: sizes.get(name, limit) for member, name in members.items()}
        if source.endswith(".whl"):
            return {name: unzip(package, member, limits[member], source) for member, name in members.items()}
        return {members[name]: content for name, content in untar(package, limits.get, limit, source)}

    def load(self, folder: Path) -> Splits[Kind]:
        """Read and verify all files of the data set in a folder."""
        contents = self.read_contents(folder)
        lines = (f"{name} {sha256(content).hexdigest()}\n" for name, content in contents.items())
        digest = sha256("".join(lines).encode()).hexdigest()
        return Splits(*self.parse(contents), digest=digest)

    def measure_floors(self, folder: Path) -> DataFloors:
        """Load the data set and compute its floors."""
        splits = self.load(folder)
        shared, floors = splits.count_shared(), self.floors(splits)
        return DataFloors(self.name, self.measure, splits.sizes, shared, splits.digest, floors)

    def read_contents(self, folder: Path) -> dict[str, bytes]:
        """Return the verified content of each file by name, or raise a UsageError."""
        return {file.name: self._read_content(folder, file) for file in self.files}

    def _read_content(self, folder: Path, file: DataFile) -> bytes:
        path = find_file(folder, self.search_folders(), file)
        if path is None:
            raise MissingData(f"{self.name} is not in {folder}: no {file.name}; {self.instructions(folder)}")
        return read_file(path, file)

    def describe(self, folder: Path) -> DataSetState:
        """Return the state of the data set in a folder; all its files are read and verified."""
        files = self.file_states(folder)
        worst_first: tuple[State, ...] = ("corrupt", "missing", "unverified", "found")
        state = min((file.state for file in files), key=worst_first.index)
        package = None if self.package is None else self.package.title
        command = self.instructions(folder) if state in ("corrupt", "missing") else None
        about = (self.description, self.source, package, command)
        return DataSetState(self.name, self.title, state, folder, *about, files)

    def file_states(self, folder: Path) -> list[FileState]:
        """Return the state of each file in a folder.

        It never raises a UsageError: a file that cannot be read is "corrupt", so that one data set does not
        hide the others in a list.
        """
        try:
            return self._file_states(folder)
        except UsageError as error:
            return [
                FileState(file.name, "corrupt", checksum=file.checksum or None, reason=str(error))
                for file in self.files
            ]

    def _file_states(self, folder: Path) -> list[FileState]:
        return [self._file_state(folder, file) for file in self.files]

    def _file_state(self, folder: Path, file: DataFile) -> FileState:
        path = find_file(folder, self.search_folders(), file)
        if path is None:
            return FileState(file.name, "missing", size=file.size, checksum=file.checksum or None)
        return read_state(file.name, file.checksum, path, lambda: len(read_file(path, file)))

    def search_folders(self) -> tuple[str, ...]:
        """Return the folders within the data folder that are searched, in order."""
        return (self.name, "", *self.folders)

    def instructions(self, folder: Path) -> str:
        """Return how to get a missing data set, in one clause."""
        if self.package is None:
            return f"put {' and '.join(file.name for file in self.files)} there ({self.source})"
        return f"get it with: separatrix data fetch {self.name}{folder_option(folder)}"


class ImageData(DataSet[Images]):
    """Images with ten labels."""

    classes = 10

    def floors(self, splits: Splits[Images]) -> tuple[Floor, ...]:
        """Return the scores of the most frequent label, and of logistic regression on the pixels."""
        train, validation, test = (
            (images.pixels, images.labels) for images in (splits.train, splits.validation, splits.test)
        )
        score = LogisticRegression.fit(train, validation, self.classes).accuracy(*test)
        return majority(train[1], test[1]), Floor("logistic regression on pixels", score)


def read_state(name: str, checksum: str, path: Path, read_size: Callable[[], int]) -> FileState:
    """Return the state of an existing file; `read_size` reads, verifies and returns the number of bytes."""
    try:
        size = read_size()
    except UsageError as error:
        return FileState(name, "corrupt", path, None, checksum or None, str(error))
    return FileState(name, "found" if checksum else "unverified", path, size, checksum or None)
