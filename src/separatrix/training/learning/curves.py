"""How a run went, step by step."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray


def _unknown(steps: int) -> NDArray[np.float64]:
    return np.full(steps, np.nan)


@dataclass
class Curves:
    """The training loss, the learning rate and the norm of the gradient before clipping, at every step made,
    and the validation score at every look.

    >>> curves = Curves(2)
    >>> curves.looked(0, 0.5)
    >>> curves.stepped(0, rate=0.1, loss=0.7, norm=2.0)
    >>> list(curves.rows())
    [(0, 'validation', 0.5), (1, 'loss', 0.7), (1, 'rate', 0.1), (1, 'gradient', 2.0)]
    """

    steps: int
    """The most that there can be."""
    looks: list[tuple[int, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.loss, self.rate, self.gradient = (_unknown(self.steps) for _ in range(3))
        self.made = 0

    def looked(self, step: int, score: float) -> None:
        """Take down a validation score after so many steps."""
        self.looks.append((step, score))

    def stepped(self, step: int, rate: float, loss: float, norm: float) -> None:
        """Take down a step, counted from 0."""
        self.loss[step], self.rate[step], self.gradient[step] = loss, rate, norm
        self.made = step + 1

    def exploded(self, times: float) -> bool:
        """Whether the last loss or gradient is no number, or the loss so many times the first, or times 1."""
        loss, gradient = self.loss[self.made - 1], self.gradient[self.made - 1]
        finite = math.isfinite(loss) and math.isfinite(gradient)
        return not finite or loss > times * max(1.0, self.loss[0])

    @property
    def last_loss(self) -> float:
        """The loss of the last step; NaN before the first."""
        return float(self.loss[self.made - 1]) if self.made else math.nan

    def rows(self) -> Iterator[tuple[int, str, float]]:
        """What was taken down as `(steps made, name, value)`, in the order of steps; names as in a report."""
        looks = dict(self.looks)
        for step in range(self.made + 1):
            if step:
                yield step, "loss", float(self.loss[step - 1])
                yield step, "rate", float(self.rate[step - 1])
                yield step, "gradient", float(self.gradient[step - 1])
            if step in looks:
                yield step, "validation", looks[step]

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All of it, for a checkpoint."""
        made = {name: getattr(self, name)[: self.made] for name in ("loss", "rate", "gradient")}
        return {**made, "looks": np.array(self.looks, dtype=np.float64)}

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Go on from a checkpoint."""
        self.made = len(arrays["loss"])
        for name in ("loss", "rate", "gradient"):
            getattr(self, name)[: self.made] = arrays[name]
        self.looks = [(int(step), float(score)) for step, score in arrays["looks"]]
