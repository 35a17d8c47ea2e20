"""Handwritten digits of 8×8 pixels, pixel by pixel."""

from __future__ import annotations

from typing import ClassVar

from separatrix.training.data.digits import Digits as DigitsData
from separatrix.training.tasks.real._images import ImageTask, PatchParameters, fits


class DigitsParameters(PatchParameters):
    """How many pixels a side of a patch has."""

    owner = "digits"
    constraints = fits(8)


class Digits(ImageTask):
    """8×8 pixels, one after the other; the last says which digit it was."""

    name = "digits"
    title = "Say which digit 8×8 pixels show, one after the other."
    provenance = "[rec] scikit-learn's digits"
    description = (
        "The 1,797 digits of scikit-learn as sequences of 64 pixels, or of patches of patch × patch pixels, "
        "row by row, from -1 to 1; the last token answers. With 500 to test with, a difference of 0.02 is "
        "within chance."
    )
    data = DigitsData.name
    largest = 16
    schema = DigitsParameters
    setting: ClassVar[dict[str, object]] = {
        "depth": 2,
        "heads": 4,
        "mlp": 2,
        "rope": 10000,
        "steps": 1000,
        "every": 100,
        "rates": "0.001,0.003,0.01",
        "validation": 297,
        "tests": 500,
    }
    parameters: DigitsParameters
