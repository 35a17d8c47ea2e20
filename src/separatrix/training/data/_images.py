"""The base class of image data sets."""

from __future__ import annotations

from separatrix.training.data._base import DataSet
from separatrix.training.data.floors import Floor, LogisticRegression, majority
from separatrix.training.data.samples import Images, Splits


class ImageData(DataSet[Images]):
    """Images with ten labels."""

    classes = 10

    def floors(self, splits: Splits[Images]) -> tuple[Floor, ...]:
        """Return the scores of the most frequent label, and of logistic regression on the pixels."""
        train, validation, test = (
            (images.pixels, images.labels) for images in (splits.train, splits.validation, splits.test)
        )
        score = LogisticRegression.fit(train, validation, self.classes).accuracy(*test)
        return majority(train[1], test[1]), Floor("logistic regression on pixels", score)
