"""Sequential CIFAR-10: pixels or patches, in colour or grey."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.core.parameters import flag
from separatrix.training.data import Images
from separatrix.training.data.cifar10 import Cifar10Data
from separatrix.training.tasks.real._base import REAL_DATA_SETTING
from separatrix.training.tasks.real._images import ImageTask, divides

LUMA = np.array([0.299, 0.587, 0.114])
"""Brightness of red, green and blue (ITU-R BT.601)."""


class SequentialCifarTask(ImageTask):
    """Classify images of 32×32 pixels, read patch by patch.

    CIFAR-10 as sequences of patches of patch × patch pixels, row by row, in three colours or grey, scaled to
    -1 to 1; the last token answers. patch=4 gives 64 tokens; patch=1 grey=yes the 1,024 pixels of the Long
    Range Arena.
    """

    name = "scifar"
    provenance = "[rec] sequential CIFAR-10; patch=1 grey=yes as in the Long Range Arena (arXiv 2011.04006)"
    data = Cifar10Data.name
    grey: bool = flag(False)
    relations = (divides(32),)
    setting = REAL_DATA_SETTING

    @property
    def colours(self) -> int:
        return 1 if self.grey else 3

    def pixels(self, images: Images) -> NDArray[Any]:
        if not self.grey:
            return images.pixels
        brightness: NDArray[np.uint8] = np.rint(images.pixels @ LUMA).astype(np.uint8)
        return brightness[..., None]
