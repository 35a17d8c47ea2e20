"""Single-location regression: one token, which stands out, says the answer; the others are noise."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from separatrix.core.parameters import Constraint, Exact, Natural, Parameters, between
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


class LocationParameters(Parameters):
    """How many tokens there are, how wide they are, and how far the one that counts stands out."""

    owner = "location"
    n: Natural = 3
    d: Natural = 8
    shift: Exact = Fraction(2)
    constraints: ClassVar[tuple[Constraint, ...]] = (
        between("n", 2, 4096),
        between("d", 2, 1024),
        between("shift", 0, 1000),
    )


class Location(Task):
    """Tokens x ~ N(0, I); one has x + A k, and the answer is <v, x> of it, for fixed directions k and v."""

    name = "location"
    title = "Say a linear function of the one token among n that stands out along a fixed direction."
    provenance = "[rec] docs/theory.md 9.6, after arXiv 2509.21936, without noise in the answer"
    description = (
        "n tokens of d normal numbers x; one of them, anywhere, is moved by A k (shift=A), and the answer is "
        "<v,x> of it, where k and v are the first two axes in every sample. The last token has a mark only, "
        "and answers; the score is the squared error as a share of that of the answer 0. The best rule is "
        "sum_i softmax(A <k,x_i>) <v,x_i>, one softmax head. Attention that adds up <query, key> value has "
        "weights a + b <k,x_i> at best: the error n(n-1)/(n² + (n-1) A²). Equal weights have 1 - 1/n."
    )
    schema = LocationParameters
    example: ClassVar[dict[str, object]] = {"n": 4}
    answers = Answers.NUMBERS
    setting: ClassVar[dict[str, object]] = {
        "width": 32,
        "norm": "no",
        "out_norm": "no",
        "batch": 64,
        "rates": "0.003,0.01,0.03",
    }
    parameters: LocationParameters

    @property
    def features(self) -> int:
        return self.parameters.d + 1

    @property
    def outputs(self) -> int:
        return 1

    def draw(self, count: int, split: Split, chance: Generator) -> Samples:
        n, d, rows = self.parameters.n, self.parameters.d, np.arange(count)
        inputs = np.zeros((count, n + 1, d + 1), dtype=np.float32)
        inputs[:, :n, :d] = chance.standard_normal((count, n, d), dtype=np.float32)
        place = chance.integers(n, size=count)
        inputs[rows, place, 0] += float(self.parameters.shift)
        inputs[:, n, d] = 1
        return Samples(inputs, np.full((count, 1), n), inputs[rows, place, 1, None])

    def ceiling(self, samples: Samples) -> Bound:
        said, _ = self.answers_of_best_rules(samples)
        how = "the posterior mean, one softmax head, on these samples"
        return Bound(relative_error(said, samples), how, sampled=True)

    def answers_of_best_rules(self, samples: Samples) -> tuple[NDArray[Any], NDArray[Any]]:
        """The posterior mean, and sum_i (a + b <k,x_i>) <v,x_i> with the best a and b."""
        from scipy.special import softmax

        n, shift = self.parameters.n, float(self.parameters.shift)
        x = samples.inputs[:, :-1].astype(np.float64)
        weights = softmax(shift * x[..., 0], axis=1)
        linear = (n + (n - 1) * shift * x[..., 0]) / (n**2 + (n - 1) * shift**2)
        best, limit = ((each * x[..., 1]).sum(1, keepdims=True) for each in (weights, linear))
        return best, limit

    def floor(self, samples: Samples, setting: Setting) -> Bound:
        said = samples.inputs[:, :-1, 1].mean(1, keepdims=True)
        return Bound(relative_error(said, samples), "the mean over all tokens", sampled=True, universal=True)

    def proved_ceiling(self, mechanism: Mechanism, setting: Setting) -> ProvedCeiling | None:
        if not (sums(mechanism) and linear_reader(setting)):
            return None
        n, shift = self.parameters.n, float(self.parameters.shift)
        return ProvedCeiling(
            n * (n - 1) / (n**2 + (n - 1) * shift**2),
            "one layer of attention that adds up <query, key> value, any number of heads, read linearly, "
            "without norms, MLP, convolution or places; the expected error",
            "docs/theory.md 9.6: reflections leave sum_i (a + b <k,x_i>) <v,x_i>",
        )
