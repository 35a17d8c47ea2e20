"""Sequential MNIST: pixels or patches in sequence."""

from __future__ import annotations

from separatrix.training.data.mnist import MnistData
from separatrix.training.tasks.real._base import REAL_DATA_SETTING
from separatrix.training.tasks.real._images import ImageTask, divides


class SequentialMnistTask(ImageTask):
    """Classify handwritten digits of 28×28 pixels, read patch by patch.

    MNIST as sequences of patches of patch × patch pixels, row by row, scaled to -1 to 1; the last token
    answers. patch=4 gives 49 tokens, patch=1 the 784 pixels of the literature.
    """

    name = "smnist"
    provenance = "[rec] sequential MNIST, arXiv 1504.00941"
    data = MnistData.name
    relations = (divides(28),)
    setting = REAL_DATA_SETTING | {"steps": 1500}
