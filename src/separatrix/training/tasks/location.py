"""Single-location regression: one token, which stands out, holds the answer; the others are noise."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from separatrix.core.parameters import exact, natural
from separatrix.training.tasks._base import Bound, Metric, Samples, Split, Task, relative_error
from separatrix.training.tasks._proofs import KERNEL_SUM_MODELS
from separatrix.training.tasks.setting import WITHOUT_NORMS


class LocationTask(Task):
    """Return a linear function of the one token that stands out along a fixed direction.

    n tokens of d normal numbers x. One of them, at a random position, is shifted by A k (shift=A), and the
    answer is its <v,x>, where k and v are the first two axes in every sample. The last token carries only a
    mark, and answers; the score is the squared error relative to that of the answer 0. The best rule is sum_i
    softmax(A <k,x_i>) <v,x_i>, one softmax head. Attention that sums <query, key> value has at best the
    weights a + b <k,x_i>, with the error n(n-1)/(n² + (n-1) A²). Equal weights have the error 1 - 1/n.
    """

    name = "location"
    provenance = "[rec] docs/theory.md 9.6, after arXiv 2509.21936, without noise in the answer"
    n: int = natural(3, at_least=2, at_most=4096)
    d: int = natural(8, at_least=2, at_most=1024)
    shift: Fraction = exact(2, at_least=0, at_most=1000)
    example: ClassVar[dict[str, object]] = {"n": 4}
    metric = Metric.RELATIVE_ERROR
    setting = WITHOUT_NORMS | {"batch": 64, "rates": "0.003,0.01,0.03"}
    outputs = 1
    proved_for = KERNEL_SUM_MODELS
    proof = "docs/theory.md 9.6: reflections leave sum_i (a + b <k,x_i>) <v,x_i>"

    @property
    def features(self) -> int:
        return self.d + 1

    def draw(self, count: int, split: Split, rng: np.random.Generator) -> Samples:
        n, d, rows = self.n, self.d, np.arange(count)
        inputs = np.zeros((count, n + 1, d + 1), dtype=np.float32)
        inputs[:, :n, :d] = rng.standard_normal((count, n, d), dtype=np.float32)
        position = rng.integers(n, size=count)
        inputs[rows, position, 0] += float(self.shift)
        inputs[:, n, d] = 1
        return Samples(inputs, np.full((count, 1), n), inputs[rows, position, 1, None])

    def ceiling(self, samples: Samples) -> Bound:
        score = relative_error(self.best_predictions(samples)[0], samples)
        return Bound(score, "the posterior mean, one softmax head, on these samples", sampled=True)

    def best_predictions(self, samples: Samples) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the posterior mean, and sum_i (a + b <k,x_i>) <v,x_i> with the best a and b."""
        from scipy.special import softmax

        n, shift = self.n, float(self.shift)
        x = samples.inputs[:, :-1].astype(np.float64)
        posterior = softmax(shift * x[..., 0], axis=1)
        linear = (n + (n - 1) * shift * x[..., 0]) / (n**2 + (n - 1) * shift**2)
        best, limit = ((weights * x[..., 1]).sum(1, keepdims=True) for weights in (posterior, linear))
        return best, limit

    def floor(self, samples: Samples) -> Bound:
        score = relative_error(samples.inputs[:, :-1, 1].mean(1, keepdims=True), samples)
        return Bound(score, "the mean over all tokens", sampled=True, universal=True)

    def proved_score(self) -> float:
        n, shift = self.n, float(self.shift)
        return n * (n - 1) / (n**2 + (n - 1) * shift**2)
