"""Learning curves of a run."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

_BY_STEP = ("loss", "rate", "gradient")


@dataclass
class Curves:
    """The training loss, the learning rate and the norm of the unclipped gradient at every step, and the
    validation score at every evaluation.

    >>> curves = Curves(2)
    >>> curves.record_score(0, 0.5)
    >>> curves.record_step(0, rate=0.1, loss=0.7, norm=2.0)
    >>> list(curves.rows())
    [(0, 'validation', 0.5), (1, 'loss', 0.7), (1, 'rate', 0.1), (1, 'gradient', 2.0)]
    """

    max_steps: int
    evaluations: list[tuple[int, float]] = field(default_factory=list)
    """Pairs of the number of steps and the validation score."""

    def __post_init__(self) -> None:
        self.loss, self.rate, self.gradient = np.full((3, self.max_steps), np.nan)
        self.step_count = 0

    def record_score(self, step: int, score: float) -> None:
        """Record a validation score after `step` steps."""
        self.evaluations.append((step, score))

    def record_step(self, step: int, rate: float, loss: float, norm: float) -> None:
        """Record a step, counted from 0."""
        self.loss[step], self.rate[step], self.gradient[step] = loss, rate, norm
        self.step_count = step + 1

    def has_diverged(self, factor: float) -> bool:
        """Whether the last loss or gradient is not finite, or the loss exceeds `factor` times the first one.

        A first loss below 1 counts as 1.
        """
        loss, gradient = self.loss[self.step_count - 1], self.gradient[self.step_count - 1]
        is_finite = math.isfinite(loss) and math.isfinite(gradient)
        return not is_finite or loss > factor * max(1.0, self.loss[0])

    @property
    def last_loss(self) -> float:
        """The loss of the last step; NaN before the first step."""
        return float(self.loss[self.step_count - 1]) if self.step_count else math.nan

    def rows(self) -> Iterator[tuple[int, str, float]]:
        """Yield `(number of steps, name, value)` in the order of steps; names as in a report."""
        scores = dict(self.evaluations)
        for step in range(self.step_count + 1):
            if step:
                yield from ((step, name, float(getattr(self, name)[step - 1])) for name in _BY_STEP)
            if step in scores:
                yield step, "validation", scores[step]

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the contents for a checkpoint."""
        by_step = {name: getattr(self, name)[: self.step_count] for name in _BY_STEP}
        # "looks" is the name of the evaluations in checkpoints of version 1.
        return {**by_step, "looks": np.array(self.evaluations, dtype=np.float64)}

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Set the contents to those of a checkpoint."""
        self.step_count = len(arrays["loss"])
        for name in _BY_STEP:
            getattr(self, name)[: self.step_count] = arrays[name]
        self.evaluations = [(int(step), float(score)) for step, score in arrays["looks"]]
