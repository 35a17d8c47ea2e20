"""Sequential CIFAR-10: pixels or patches, in colour or grey."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from separatrix.core.parameters import Flag, Natural
from separatrix.training.data import Images
from separatrix.training.data.cifar10 import Cifar10
from separatrix.training.tasks.real._images import ImageTask, PatchParameters, fits

if TYPE_CHECKING:
    from numpy.typing import NDArray

LUMA = np.array([0.299, 0.587, 0.114])
"""How bright red, green and blue are (ITU-R BT.601)."""


class SequentialCifarParameters(PatchParameters):
    """How many pixels a side of a patch has, and whether colours are left out."""

    owner = "scifar"
    patch: Natural = 4
    grey: Flag = False
    constraints = fits(32)


class SequentialCifar(ImageTask):
    """32×32 pixels, one patch after the other; the last says what is in the image."""

    name = "scifar"
    title = "Say what is in 32×32 pixels, patch after patch."
    provenance = (
        "[rec] sequential CIFAR-10, as in the Long Range Arena (arXiv 2011.04006) with patch=1 grey=yes"
    )
    description = (
        "CIFAR-10 as sequences of patches of patch × patch pixels, row by row, in three colours or grey, "
        "from -1 to 1; the last token answers. patch=4 are 64 tokens; patch=1 grey=yes are the 1,024 pixels "
        "of the Long Range Arena."
    )
    data = Cifar10.name
    schema = SequentialCifarParameters
    setting: ClassVar[dict[str, object]] = {
        "depth": 2,
        "heads": 4,
        "mlp": 2,
        "rope": 10000,
        "steps": 1000,
        "rates": "0.001,0.003",
        "every": 100,
    }
    parameters: SequentialCifarParameters

    @property
    def colours(self) -> int:
        return 1 if self.parameters.grey else 3

    def pixels(self, images: Images) -> NDArray[Any]:
        if not self.parameters.grey:
            return images.pixels
        grey: NDArray[np.uint8] = np.rint(images.pixels @ LUMA).astype(np.uint8)
        return grey[..., None]
