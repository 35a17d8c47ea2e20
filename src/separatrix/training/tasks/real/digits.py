"""Handwritten digits of 8×8 pixels, pixel by pixel."""

from __future__ import annotations

from separatrix.core.parameters import natural
from separatrix.training.data.digits import DigitsData
from separatrix.training.tasks.real._base import REAL_DATA_SETTING
from separatrix.training.tasks.real._images import ImageTask, divides


class DigitsTask(ImageTask):
    """Classify handwritten digits of 8×8 pixels, read in sequence.

    The 1,797 digits of scikit-learn as sequences of 64 pixels, or of patches of patch × patch pixels, row by
    row, scaled to -1 to 1; the last token answers. With 500 test samples, differences of 0.02 are within
    chance.
    """

    name = "digits"
    provenance = "[rec] scikit-learn's digits"
    data = DigitsData.name
    max_value = 16
    patch: int = natural(1, at_least=1)
    relations = (divides(8),)
    setting = REAL_DATA_SETTING | {"rates": "0.001,0.003,0.01", "validation": 297, "tests": 500}
