"""Sequential MNIST: pixels or patches, one after the other."""

from __future__ import annotations

from typing import ClassVar

from separatrix.core.parameters import Natural
from separatrix.training.data.mnist import Mnist
from separatrix.training.tasks.real._images import ImageTask, PatchParameters, fits


class SequentialMnistParameters(PatchParameters):
    """How many pixels a side of a patch has; 1 for 784 pixels."""

    owner = "smnist"
    patch: Natural = 4
    constraints = fits(28)


class SequentialMnist(ImageTask):
    """28×28 pixels, one patch after the other; the last says which digit it was."""

    name = "smnist"
    title = "Say which digit 28×28 pixels show, patch after patch."
    provenance = "[rec] sequential MNIST, arXiv 1504.00941"
    description = (
        "MNIST as sequences of patches of patch × patch pixels, row by row, from -1 to 1; the last token "
        "answers. patch=4 are 49 tokens, patch=1 the 784 pixels of the literature."
    )
    data = Mnist.name
    schema = SequentialMnistParameters
    setting: ClassVar[dict[str, object]] = {
        "depth": 2,
        "heads": 4,
        "mlp": 2,
        "rope": 10000,
        "steps": 1500,
        "rates": "0.001,0.003",
        "every": 100,
    }
    parameters: SequentialMnistParameters
