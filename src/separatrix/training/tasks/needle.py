"""The needle: one of n tokens stands out along a direction that the last token gives."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.core.parameters import Constraint
from separatrix.training.tasks._base import Bound, Samples, Split, best_bound, majority_floor
from separatrix.training.tasks._shifted import ShiftedTokenTask, log_norm_ratio
from separatrix.training.tasks.setting import WITHOUT_NORMS


class NeedleTask(ShiftedTokenTask):
    """Return the mark of the token that stands out along the direction given by the last token.

    n tokens, each with dz normal numbers z and a mark, half of them +1 and half -1, in random order. One
    token at a random position is shifted by A u, where u is a random direction given by the last token and A
    = strength sqrt(2 ln n). The answer is its mark. The best rule is the sign of sum_i softmax(A <u, z_i>)
    w_i, one softmax head. Linear kernels only have second moments, and their best reader is correct with
    probability Phi(A / sqrt n). The floor is the best rule that ignores the direction and weights tokens by
    their norms: in few dimensions the needle is often the longest token. Any nonlinearity, including softmax,
    can use that; linear kernels on linear maps of the tokens cannot, and their proved ceiling may be below
    this floor.
    """

    name = "needle"
    provenance = "[ours] docs/theory.md 9.1"
    relations = (
        Constraint(
            ("n",),
            lambda p: p.n % 2 == 0,
            lambda p: f"n={p.n} must be an even number: half of the tokens have either mark",
        ),
    )
    # One head suffices, but training with one head fails for some seeds.
    setting = WITHOUT_NORMS | {"heads": 4, "batch": 64, "steps": 400, "rates": "0.001,0.003,0.01"}
    tolerance = 0.005
    proof = "docs/theory.md 9.1: of second moments only the sum of z w depends on the label"

    @property
    def features(self) -> int:
        return self.dz + 2

    def draw(self, count: int, split: Split, rng: np.random.Generator) -> Samples:
        n, dz, row = self.n, self.dz, np.arange(count)
        z = rng.standard_normal((count, n, dz), dtype=np.float32)
        u = rng.standard_normal((count, dz), dtype=np.float32)
        u /= np.linalg.norm(u, axis=-1, keepdims=True)
        mark_values = np.repeat(np.array([1, -1], dtype=np.float32), n // 2)
        marks = rng.permuted(np.tile(mark_values, (count, 1)), axis=1)
        position = rng.integers(n, size=count)
        z[row, position] += self.shift * u
        inputs = np.zeros((count, n + 1, dz + 2), dtype=np.float32)
        inputs[:, :n, :dz], inputs[:, :n, dz] = z, marks
        inputs[:, n, :dz], inputs[:, n, dz + 1] = u, 1
        targets = (marks[row, position] > 0).astype(np.int64)[:, None]
        along = np.einsum("cnd,cd->cn", z, u)
        return Samples(inputs, np.full((count, 1), n), targets, latents={"along": along})

    def ceiling(self, samples: Samples) -> Bound:
        score = _accuracy(self.shift * samples.latents["along"].astype(np.float64), samples)
        return Bound(score, "the Bayes rule, one softmax head, on these samples", sampled=True)

    def floor(self, samples: Samples) -> Bound:
        score = _accuracy(log_norm_ratio(samples.inputs[:, :-1, :-2], self.shift), samples)
        basis = "the best rule that ignores the direction: tokens weighted by their norms (a nonlinearity)"
        return best_bound((Bound(score, basis), majority_floor(samples)))

    def proved_score(self) -> float:
        from scipy.special import ndtr

        return float(ndtr(self.shift / math.sqrt(self.n)))


def _accuracy(logits: NDArray[Any], samples: Samples) -> float:
    """Return how often the mean mark under softmax weights has the sign of the needle's mark."""
    from scipy.special import softmax

    marks = samples.inputs[:, :-1, -2]
    predictions = (softmax(logits, axis=1) * marks).sum(1) > 0
    return float((predictions == (samples.targets[:, 0] == 1)).mean())
