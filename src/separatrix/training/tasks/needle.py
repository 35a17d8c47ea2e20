"""The needle: one token among n stands out along a direction that the last token names."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from separatrix.core.parameters import Constraint
from separatrix.training.tasks._base import Bound, ProvedCeiling, Samples, Split, Task, best, commonest_class
from separatrix.training.tasks._moved import MovedParameters, log_ratio_of_norm
from separatrix.training.tasks._proofs import linear_inputs, second_moments

if TYPE_CHECKING:
    from numpy.random import Generator

    from separatrix.mechanisms import Mechanism
    from separatrix.training.tasks.setting import Setting


class NeedleParameters(MovedParameters):
    """How many tokens there are, how wide they are, and how far the needle stands out."""

    owner = "needle"
    constraints: ClassVar[tuple[Constraint, ...]] = (
        Constraint(
            ("n",),
            lambda p: (p.n >= 4) & (p.n <= 4096) & (p.n % 2 == 0),
            lambda p: f"n={p.n} must be an even number from 4 to 4096: half of the tokens have either mark",
        ),
        *MovedParameters.constraints,
    )


class Needle(Task):
    """Tokens carry z ~ N(0, I) and a mark of ±1; one has z + A u, and the last says u: which mark has it?"""

    name = "needle"
    title = "Say the mark of the one token that stands out along the direction the last token names."
    provenance = "[ours] docs/theory.md 9.1"
    description = (
        "n tokens, each with dz normal numbers z and a mark, half of them +1 and half -1, in random order. "
        "One token, anywhere, is moved by A u, where u is a random direction that the last token says, and A "
        "= strength sqrt(2 ln n). The answer is its mark. The best rule is the sign of sum_i softmax(A "
        "<u, z_i>) w_i, one softmax head; the linear kernel gets second moments alone, whose best reader is "
        "right with probability Phi(A / sqrt n). The floor is the best rule that "
        "ignores the direction and weighs tokens by their norms: in few dimensions the needle is often the "
        "largest token. Any nonlinearity can see that, softmax included; linear kernels on linear maps of "
        "the tokens cannot, and their proved ceiling may lie below this floor."
    )
    schema = NeedleParameters
    example: ClassVar[dict[str, object]] = {"n": 16}
    setting: ClassVar[dict[str, object]] = {
        "width": 32,
        "heads": 4,  # one is enough, but training it misses for some seeds
        "norm": "no",
        "out_norm": "no",
        "batch": 64,
        "steps": 400,
        "rates": "0.001,0.003,0.01",
    }
    tolerance = 0.005
    parameters: NeedleParameters

    @property
    def features(self) -> int:
        return self.parameters.dz + 2

    @property
    def outputs(self) -> int:
        return 2

    @property
    def shift(self) -> float:
        """A: how far the needle is moved."""
        return self.parameters.shift

    def draw(self, count: int, split: Split, chance: Generator) -> Samples:
        n, dz = self.parameters.n, self.parameters.dz
        z = chance.standard_normal((count, n, dz), dtype=np.float32)
        u = chance.standard_normal((count, dz), dtype=np.float32)
        u /= np.linalg.norm(u, axis=-1, keepdims=True)
        marks = chance.permuted(
            np.tile(np.repeat(np.array([1, -1], dtype=np.float32), n // 2), (count, 1)), axis=1
        )
        place, row = chance.integers(n, size=count), np.arange(count)
        z[row, place] += self.shift * u
        inputs = np.zeros((count, n + 1, dz + 2), dtype=np.float32)
        inputs[:, :n, :dz], inputs[:, :n, dz] = z, marks
        inputs[:, n, :dz], inputs[:, n, dz + 1] = u, 1
        targets = (marks[row, place] > 0).astype(np.int64)[:, None]
        return Samples(
            inputs, np.full((count, 1), n), targets, hidden={"along": np.einsum("cnd,cd->cn", z, u)}
        )

    def ceiling(self, samples: Samples) -> Bound:
        from scipy.special import softmax

        weights = softmax(self.shift * samples.hidden["along"].astype(np.float64), axis=1)
        how = "the Bayes rule, one softmax head, on these samples"
        return Bound(self._right(weights, samples), how, sampled=True)

    def floor(self, samples: Samples, setting: Setting) -> Bound:
        from scipy.special import softmax

        weights = softmax(log_ratio_of_norm(samples.inputs[:, :-1, :-2], self.shift), axis=1)
        shortcut = Bound(
            self._right(weights, samples),
            "the best rule that ignores the direction: tokens weighed by their norms (by a nonlinearity)",
        )
        return best((shortcut, commonest_class(samples)), 1)

    def proved_ceiling(self, mechanism: Mechanism, setting: Setting) -> ProvedCeiling | None:
        from scipy.special import ndtr

        if not (second_moments(mechanism) and linear_inputs(setting)):
            return None
        return ProvedCeiling(
            float(ndtr(self.shift / math.sqrt(self.parameters.n))),
            "one layer of linear-kernel heads, any number, on linear maps of the tokens, whatever reads it",
            "docs/theory.md 9.1: of second moments only the sum of z w depends on the label",
        )

    def _right(self, weights: object, samples: Samples) -> float:
        marks = samples.inputs[:, :-1, -2]
        said = (np.asarray(weights) * marks).sum(1) > 0
        return float((said == (samples.targets[:, 0] == 1)).mean())
