"""Linear regression in context: examples of a linear function, and a point to predict its value at."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from separatrix.core.parameters import natural
from separatrix.training.tasks._base import Bound, Metric, Samples, Split, Task, relative_error
from separatrix.training.tasks._proofs import KERNEL_SUM_MODELS
from separatrix.training.tasks.setting import WITHOUT_NORMS


class RegressionTask(Task):
    """Predict the value of a linear function at a point, from n examples in context.

    x and w have d independent normal numbers each; every sample has its own w. n tokens give x and y = <w,x>,
    the last token an x with y = 0 and a mark; the answer is <w,x> for it, and the score is the squared error
    relative to that of the answer 0. Least squares is the best rule, without error from n = d on. One layer
    of attention that sums <query, key> value can do one step of gradient descent and no more: its error is
    (d+1)/(n+d+1).
    """

    name = "regression"
    provenance = "[rec] docs/theory.md 9.5, after arXiv 2212.07677 and 2307.03576"
    n: int = natural(20, at_least=1, at_most=4096)
    d: int = natural(5, at_least=1, at_most=256)
    example: ClassVar[dict[str, object]] = {"n": 8, "d": 3}
    metric = Metric.RELATIVE_ERROR
    setting = WITHOUT_NORMS | {"batch": 128, "steps": 600, "rates": "0.001,0.003,0.01", "validation": 4096}
    outputs = 1
    proved_for = KERNEL_SUM_MODELS
    proof = "docs/theory.md 9.5: only eta sum_i y_i <x_i,x> is odd in w and invariant under rotations"

    @property
    def features(self) -> int:
        return self.d + 2

    def draw(self, count: int, split: Split, rng: np.random.Generator) -> Samples:
        n, d = self.n, self.d
        x = rng.standard_normal((count, n + 1, d), dtype=np.float32)
        w = rng.standard_normal((count, d), dtype=np.float32)
        y = (x * w[:, None]).sum(-1)
        inputs = np.zeros((count, n + 1, d + 2), dtype=np.float32)
        inputs[..., :d], inputs[:, :n, d], inputs[:, n, d + 1] = x, y[:, :n], 1
        return Samples(inputs, np.full((count, 1), n), y[:, n:])

    def ceiling(self, samples: Samples) -> Bound:
        score = relative_error(self.best_predictions(samples)[0], samples)
        return Bound(score, "least squares, the Bayes rule, on these samples", sampled=True)

    def best_predictions(self, samples: Samples) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the predictions of least squares, and of one step of gradient descent at the best rate."""
        inputs, d = samples.inputs.astype(np.float64), self.d
        x, y, query = inputs[:, :-1, :d], inputs[:, :-1, d], inputs[:, -1, :d]
        least_squares = np.einsum("cdn,cn->cd", np.linalg.pinv(x), y)
        gradient_step = np.einsum("cnd,cn->cd", x, y) / (self.n + d + 1)
        best, limit = ((w * query).sum(-1, keepdims=True) for w in (least_squares, gradient_step))
        return best, limit

    def floor(self, samples: Samples) -> Bound:
        return Bound(1.0, "the answer 0, the best rule without the examples", universal=True)

    def proved_score(self) -> float:
        return (self.d + 1) / (self.n + self.d + 1)
