"""Handwritten digits of 8×8 pixels, the file that comes with scikit-learn."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar

import numpy as np

from separatrix.core.errors import UsageError
from separatrix.training.data._base import DataSet
from separatrix.training.data.floors import Floor, LogisticRegression, majority
from separatrix.training.data.folder import DataFile
from separatrix.training.data.packages import Package
from separatrix.training.data.samples import Images, Splits


class Digits(DataSet[Images]):
    """1,797 images of digits, 8×8, 17 shades."""

    name = "digits"
    title = "handwritten digits, 8×8 pixels, 10 labels"
    description = (
        "1,797 grey images of 8×8 pixels with values 0 to 16, as (count, 8, 8), and the digit that is meant. "
        "In the order of the file: 1,000 for training, 297 for validation, 500 for test."
    )
    source = "the test half of Optical Recognition of Handwritten Digits (UCI), as scikit-learn ships it"
    classes = 10
    files = (
        DataFile(
            "digits.csv", 264_712, "sha256:6ebb3d2fee246a4e99363262ddf8a00a3c41bee6014c373ed9d9216ba7f651b8"
        ),
    )
    package = Package(
        "PyPI",
        "scikit-learn",
        "1.8.0",
        "scikit_learn-1.8.0.tar.gz",
        7_335_585,
        "9bccbb3b40e3de10351f8f5068e105d0f4083b1a65fa07b6634fbc401a6287fd",
    )
    members: ClassVar[Mapping[str, str]] = {
        "scikit_learn-1.8.0/sklearn/datasets/data/digits.csv.gz": "digits.csv.gz"
    }
    train, validation = 1000, 297

    def where(self) -> tuple[str, ...]:
        """Also where scikit-learn is installed: its file is read, and nothing of it is imported."""
        installed = find_spec("sklearn")
        folders = (installed.submodule_search_locations or ()) if installed else ()
        return (*super().where(), *(str(Path(folder, "datasets", "data")) for folder in folders))

    def parse(self, contents: Mapping[str, bytes]) -> tuple[Images, Images, Images]:
        try:
            rows = [line.split(b",") for line in contents["digits.csv"].split()]
            table = np.array(rows, np.uint8).reshape(-1, 65)
        except (ValueError, OverflowError):
            raise UsageError("digits.csv is not 64 pixels and a digit in every line") from None
        images = Images(table[:, :-1].reshape(-1, 8, 8), table[:, -1].astype(np.int64))
        last = self.train + self.validation
        return images[: self.train], images[self.train : last], images[last:]

    def floors(self, splits: Splits[Images]) -> tuple[Floor, ...]:
        return pixel_floors(splits, self.classes)


def pixel_floors(splits: Splits[Images], classes: int) -> tuple[Floor, ...]:
    """The floors of every set of images: the commonest label, and logistic regression on the pixels."""
    fitted = LogisticRegression.fit(
        (splits.train.pixels, splits.train.labels),
        (splits.validation.pixels, splits.validation.labels),
        classes,
    )
    score = fitted.accuracy(splits.test.pixels, splits.test.labels)
    return (
        majority(splits.train.labels, splits.test.labels),
        Floor("logistic regression on pixels", score, "accuracy"),
    )
