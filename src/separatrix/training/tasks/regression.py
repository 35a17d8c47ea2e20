"""Linear regression in context: examples of a linear function, and a place to say its value at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from separatrix.core.parameters import Constraint, Natural, Parameters, between
from separatrix.training.tasks._base import (
    Answers,
    Bound,
    ProvedCeiling,
    Samples,
    Split,
    Task,
    relative_error,
)
from separatrix.training.tasks._proofs import linear_reader, sums

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    from separatrix.mechanisms import Mechanism
    from separatrix.training.tasks.setting import Setting


class RegressionParameters(Parameters):
    """How many examples there are, and in how many dimensions."""

    owner = "regression"
    n: Natural = 20
    d: Natural = 5
    constraints: ClassVar[tuple[Constraint, ...]] = (between("n", 1, 4096), between("d", 1, 256))


class Regression(Task):
    """n examples (x, <w,x>) with normal x and w, then an x alone: say <w,x>."""

    name = "regression"
    title = "Say the value of a linear function at a point, from n examples in context."
    provenance = "[rec] docs/theory.md 9.5, after arXiv 2212.07677 and 2307.03576"
    description = (
        "x and w have d independent normal numbers each, w is another in every sample. n tokens say x "
        "and y = <w,x>, the last an x with y = 0 and a mark; the answer is <w,x> there, and the score is the "
        "squared error as a share of that of the answer 0. Least squares is the best rule, without error "
        "from n = d on. One layer of attention that adds up <query, key> value can do one step of "
        "gradient descent and no more: its error is (d+1)/(n+d+1)."
    )
    schema = RegressionParameters
    example: ClassVar[dict[str, object]] = {"n": 8, "d": 3}
    answers = Answers.NUMBERS
    setting: ClassVar[dict[str, object]] = {
        "width": 32,
        "norm": "no",
        "out_norm": "no",
        "batch": 128,
        "steps": 600,
        "rates": "0.001,0.003,0.01",
        "validation": 4096,
    }
    parameters: RegressionParameters

    @property
    def features(self) -> int:
        return self.parameters.d + 2

    @property
    def outputs(self) -> int:
        return 1

    def draw(self, count: int, split: Split, chance: Generator) -> Samples:
        n, d = self.parameters.n, self.parameters.d
        x = chance.standard_normal((count, n + 1, d), dtype=np.float32)
        w = chance.standard_normal((count, d), dtype=np.float32)
        y = (x * w[:, None]).sum(-1)
        inputs = np.zeros((count, n + 1, d + 2), dtype=np.float32)
        inputs[..., :d], inputs[:, :n, d], inputs[:, n, d + 1] = x, y[:, :n], 1
        return Samples(inputs, np.full((count, 1), n), y[:, n:])

    def ceiling(self, samples: Samples) -> Bound:
        said, _ = self.answers_of_best_rules(samples)
        how = "least squares, the Bayes rule, on these samples"
        return Bound(relative_error(said, samples), how, sampled=True)

    def answers_of_best_rules(self, samples: Samples) -> tuple[NDArray[Any], NDArray[Any]]:
        """Least squares, and one step of gradient descent at the best rate."""
        inputs, d = samples.inputs.astype(np.float64), self.parameters.d
        x, y, asked = inputs[:, :-1, :d], inputs[:, :-1, d], inputs[:, -1, :d]
        solved = np.einsum("cdn,cn->cd", np.linalg.pinv(x), y)
        stepped = np.einsum("cnd,cn->cd", x, y) / (self.parameters.n + d + 1)
        best, limit = ((each * asked).sum(-1, keepdims=True) for each in (solved, stepped))
        return best, limit

    def floor(self, samples: Samples, setting: Setting) -> Bound:
        return Bound(1.0, "the answer 0, the best there is without the examples", universal=True)

    def proved_ceiling(self, mechanism: Mechanism, setting: Setting) -> ProvedCeiling | None:
        if not (sums(mechanism) and linear_reader(setting)):
            return None
        n, d = self.parameters.n, self.parameters.d
        return ProvedCeiling(
            (d + 1) / (n + d + 1),
            "one layer of attention that adds up <query, key> value, any number of heads, read linearly, "
            "without norms, MLP, convolution or places; the expected error",
            "docs/theory.md 9.5: what helps is odd in w and unchanged by turns: eta sum_i y_i <x_i,x>",
        )
