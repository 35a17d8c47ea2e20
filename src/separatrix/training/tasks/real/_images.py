"""Images as sequences of pixels or patches."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from separatrix.core.parameters import Constraint, Natural, Parameters, between
from separatrix.training.data import Images, data_folder
from separatrix.training.data.floors import LogisticRegression
from separatrix.training.tasks._base import Bound, Samples, Split, best, commonest_class
from separatrix.training.tasks.real._base import RealTask

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from separatrix.training.tasks.setting import Setting


class PatchParameters(Parameters):
    """How many pixels a side of a patch has; 1 for pixels."""

    patch: Natural = 1


def fits(side: int) -> tuple[Constraint, ...]:
    """That patches fit into an image of so many pixels a side."""
    return (
        between("patch", 1, side),
        Constraint(
            ("patch",),
            lambda p: side % p.patch == 0,
            lambda p: f"patch={p.patch} does not divide {side}, the side of an image",
        ),
    )


class ImageTask(RealTask):
    """An image, row by row, patch after patch; the last token says what it is."""

    largest: ClassVar[int] = 255
    """The largest value of a pixel."""
    parameters: Any

    @property
    def colours(self) -> int:
        """How many numbers a pixel has."""
        return 1

    @property
    def features(self) -> int:
        return int(self.parameters.patch**2 * self.colours)

    @property
    def outputs(self) -> int:
        return 10

    def pixels(self, images: Images) -> NDArray[Any]:
        """The pixels that are taken, (count, height, width, colours), from 0 to `largest`."""
        return images.pixels.reshape(*images.pixels.shape[:3], -1)

    def chosen(self, split: Images, rows: NDArray[np.int64]) -> Samples:
        images = split[rows]
        tokens = patches(self.pixels(images), self.parameters.patch).astype(np.float32)
        inputs = tokens * np.float32(2 / self.largest) - 1
        places = np.full((len(rows), 1), inputs.shape[1] - 1)
        return Samples(inputs, places, images.labels[:, None], hidden={"row": rows})

    def floor(self, samples: Samples, setting: Setting) -> Bound:
        pixels = np.rint((samples.inputs + 1) * (self.largest / 2)).astype(np.uint8)
        right = _fitted(type(self), self.parameters, data_folder()).accuracy(pixels, samples.targets[:, 0])
        linear = Bound(right, "logistic regression on the pixels, fitted to the training images")
        return best((linear, commonest_class(samples)), 1)


def patches(images: NDArray[Any], side: int) -> NDArray[Any]:
    """Patches of images (count, height, width, colours), row by row: (count, patches, side side colours)."""
    count, height, width, colours = images.shape
    cut = images.reshape(count, height // side, side, width // side, side, colours)
    return cut.transpose(0, 1, 3, 2, 4, 5).reshape(count, -1, side * side * colours)


@lru_cache(maxsize=4)
def _fitted(kind: type[ImageTask], parameters: PatchParameters, _: Path) -> LogisticRegression:
    """The regression on the pixels in the order of the tokens, on the data in this folder."""
    task = kind(parameters)

    def part(split: Split) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        images = task.part(split)
        return np.rint(patches(task.pixels(images), parameters.patch)).astype(np.uint8), images.labels

    return LogisticRegression.fit(part(Split.TRAIN), part(Split.VALIDATION), task.outputs)
