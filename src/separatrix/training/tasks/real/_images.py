"""Images as sequences of pixels or patches."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from separatrix.core.parameters import Constraint, natural
from separatrix.training.data import Images, data_folder
from separatrix.training.data.floors import LogisticRegression
from separatrix.training.tasks._base import Bound, Samples, Split, best_bound, majority_floor
from separatrix.training.tasks.real._base import RealTask


def divides(side: int) -> Constraint:
    """Return the constraint that patches tile an image of `side` × `side` pixels."""
    return Constraint(
        ("patch",),
        lambda p: side % p.patch == 0,
        lambda p: f"patch={p.patch} does not divide {side}, the side of an image",
    )


class ImageTask(RealTask):
    """An image, row by row, patch after patch; the last token answers with its class."""

    patch: int = natural(4, at_least=1)
    """The side of a patch in pixels; 1 for single pixels."""
    max_value: ClassVar[int] = 255
    """The largest value of a pixel."""
    outputs = 10

    @property
    def colours(self) -> int:
        """The number of values per pixel."""
        return 1

    @property
    def features(self) -> int:
        return self.patch**2 * self.colours

    def pixels(self, images: Images) -> NDArray[Any]:
        """Return the pixels, (count, height, width, colours), from 0 to `max_value`."""
        return images.pixels.reshape(*images.pixels.shape[:3], -1)

    def tokens(self, images: Images) -> NDArray[Any]:
        """Return the patches of images, row by row: (count, patches, features)."""
        pixels, side = self.pixels(images), self.patch
        count, height, width, colours = pixels.shape
        blocks = pixels.reshape(count, height // side, side, width // side, side, colours)
        return blocks.transpose(0, 1, 3, 2, 4, 5).reshape(count, -1, side * side * colours)

    def select(self, split: Images, rows: NDArray[np.int64]) -> Samples:
        images = split[rows]
        inputs = self.tokens(images).astype(np.float32) * np.float32(2 / self.max_value) - 1
        positions = np.full((len(rows), 1), inputs.shape[1] - 1)
        return Samples(inputs, positions, images.labels[:, None], latents={"row": rows})

    def floor(self, samples: Samples) -> Bound:
        # Rounding recovers the bytes exactly from the scaled inputs.
        pixels = np.rint((samples.inputs + 1) * (self.max_value / 2)).astype(np.uint8)
        score = _fit_regression(self, data_folder()).accuracy(pixels, samples.targets[:, 0])
        linear = Bound(score, "logistic regression on the pixels, fitted to the training images")
        return best_bound((linear, majority_floor(samples)))


@lru_cache(maxsize=4)
def _fit_regression(task: ImageTask, _: Path) -> LogisticRegression:
    """Fit a regression on the pixels in the order of the tokens; the data folder is part of the cache key."""

    def regression_data(split: Split) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        images = task.part(split)
        return np.rint(task.tokens(images)).astype(np.uint8), images.labels

    train, validation = map(regression_data, (Split.TRAIN, Split.VALIDATION))
    return LogisticRegression.fit(train, validation, task.outputs)
