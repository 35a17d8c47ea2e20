"""Handwritten digits of 8×8 pixels, from the file in scikit-learn."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from separatrix.core.errors import UsageError
from separatrix.training.data._base import ImageData
from separatrix.training.data.folder import DataFile
from separatrix.training.data.packages import Package
from separatrix.training.data.samples import Images

CHECKSUM = "sha256:6ebb3d2fee246a4e99363262ddf8a00a3c41bee6014c373ed9d9216ba7f651b8"


class DigitsData(ImageData):
    """1,797 images of digits, 8×8, 17 shades.

    1,797 grey images of 8×8 pixels with values 0 to 16, as (count, 8, 8), labelled with the digit. In the
    order of the file: 1,000 for training, 297 for validation, 500 for test.
    """

    name = "digits"
    title = "handwritten digits, 8×8 pixels, 10 labels"
    source = "the test half of Optical Recognition of Handwritten Digits (UCI), as scikit-learn ships it"
    files = (DataFile("digits.csv", 264_712, CHECKSUM),)
    package = Package(
        "PyPI scikit-learn 1.8.0",
        "scikit_learn-1.8.0.tar.gz",
        7_335_585,
        "9bccbb3b40e3de10351f8f5068e105d0f4083b1a65fa07b6634fbc401a6287fd",
        {"scikit_learn-1.8.0/sklearn/datasets/data/digits.csv.gz": "digits.csv.gz"},
    )
    train, validation = 1000, 297

    def search_folders(self) -> tuple[str, ...]:
        """Include the folder of an installed scikit-learn, which is not imported."""
        spec = find_spec("sklearn")
        packages = (spec.submodule_search_locations or ()) if spec else ()
        return (*super().search_folders(), *(str(Path(path, "datasets", "data")) for path in packages))

    def parse(self, contents: Mapping[str, bytes]) -> tuple[Images, Images, Images]:
        try:
            rows = [line.split(b",") for line in contents["digits.csv"].split()]
            table = np.array(rows, np.uint8).reshape(-1, 65)
        except (ValueError, OverflowError):
            raise UsageError("digits.csv does not have 64 pixels and a digit in every line") from None
        images = Images(table[:, :-1].reshape(-1, 8, 8), table[:, -1].astype(np.int64))
        last = self.train + self.validation
        return images[: self.train], images[self.train : last], images[last:]
