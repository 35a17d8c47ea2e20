"""The static spike: does one token among n stand out along a direction that is always the same?"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from separatrix.tasks._base import Bound, ProvedCeiling, Samples, Split, Task, best
from separatrix.tasks._moved import MovedParameters, log_ratio_of_norm
from separatrix.tasks._proofs import linear_inputs, second_moments

if TYPE_CHECKING:
    from numpy.random import Generator

    from separatrix.mechanisms import Mechanism
    from separatrix.tasks.setting import Setting


class SpikeParameters(MovedParameters):
    """How many tokens there are, how wide they are, and how far the spike stands out."""

    owner = "spike"


class Spike(Task):
    """Tokens z ~ N(0, I); in half of the samples one of them has z + A u, for a fixed u: is it there?"""

    name = "spike"
    title = "Say whether one of n tokens stands out along a direction that never changes."
    provenance = "[ours] docs/theory.md 9.2, after the spike of the paper's summary"
    description = (
        "n tokens of dz normal numbers z; in half of the samples one token, anywhere, is moved by A u; u "
        "is the direction (1, ..., 1)/sqrt(dz) in every sample and A = strength sqrt(2 ln n). The last token "
        "has a mark only, and answers whether there is a spike. The best rule is whether the mean of exp(A "
        "<u,z> - A²/2) exceeds 1. A linear kernel on linear maps of the tokens gets their second moments "
        "alone; any nonlinearity before attention, of features or an MLP, is past that: the gap belongs to "
        "linear kernels without one. The floor is the better of two shortcuts: the mean of the tokens, which "
        "every mechanism can take, and the best rule that ignores the direction, by the norms of the tokens."
    )
    schema = SpikeParameters
    example: ClassVar[dict[str, object]] = {"n": 16}
    setting: ClassVar[dict[str, object]] = {
        "width": 32,
        "norm": "no",
        "out_norm": "no",
        "batch": 64,
        "steps": 400,
        "rates": "0.003,0.01,0.03",
    }
    parameters: SpikeParameters

    @property
    def features(self) -> int:
        return self.parameters.dz + 1

    @property
    def outputs(self) -> int:
        return 2

    @property
    def shift(self) -> float:
        """A: how far the spike is moved."""
        return self.parameters.shift

    def draw(self, count: int, split: Split, chance: Generator) -> Samples:
        n, dz = self.parameters.n, self.parameters.dz
        z = chance.standard_normal((count, n, dz), dtype=np.float32)
        targets, place = chance.integers(2, size=count), chance.integers(n, size=count)
        z[np.arange(count), place] += self.shift / math.sqrt(dz) * targets[:, None]
        inputs = np.zeros((count, n + 1, dz + 1), dtype=np.float32)
        inputs[:, :n, :dz], inputs[:, n, dz] = z, 1
        along = z.sum(-1, dtype=np.float64) / math.sqrt(dz)
        return Samples(inputs, np.full((count, 1), n), targets[:, None], hidden={"along": along})

    def ceiling(self, samples: Samples) -> Bound:
        from scipy.special import logsumexp

        ratio = logsumexp(self.shift * samples.hidden["along"] - self.shift**2 / 2, axis=1)
        right = (ratio > math.log(self.parameters.n)) == samples.targets[:, 0]
        return Bound(float(right.mean()), "the Bayes rule, mean exp(A s - A²/2) > 1, on these samples")

    def floor(self, samples: Samples, setting: Setting) -> Bound:
        from scipy.special import logsumexp

        n, present = self.parameters.n, samples.targets[:, 0]
        by_mean = (samples.hidden["along"].sum(1) > self.shift / 2) == present
        ratio = logsumexp(log_ratio_of_norm(samples.inputs[:, :-1, :-1], self.shift), axis=1)
        by_norms = (ratio > self.shift**2 / 2 + math.log(n)) == present
        how = "the best rule that ignores the direction: by the norms of the tokens (by a nonlinearity)"
        shortcuts = (
            Bound(float(by_mean.mean()), "the mean of the tokens, above A/2n or not"),
            Bound(float(by_norms.mean()), how),
        )
        return best(shortcuts, 1)

    def proved_ceiling(self, mechanism: Mechanism, setting: Setting) -> ProvedCeiling | None:
        if not (second_moments(mechanism) and linear_inputs(setting)):
            return None
        return ProvedCeiling(
            moment_ceiling(self.parameters.n, self.shift),
            "one layer of linear-kernel heads, any number, on linear maps of the tokens, whatever reads it",
            "docs/theory.md 9.2: the likelihood ratio of the moments is a Bessel function",
        )


def log_moment_ratio(total: Any, remainder: Any, n: int, shift: float) -> Any:
    """The logarithm of the likelihood ratio of a spike, given sum s and R² = sum s² - (sum s)²/n.

    Without a spike, s_i - mean(s) is then R sqrt(1 - 1/n) times a coordinate of a uniform direction in
    n - 1 dimensions, and E exp(k coordinate) = Gamma(v + 1) (2/k)^v I_v(k) with v = (n - 3)/2.
    """
    from scipy.special import gammaln, ive

    order, k = (n - 3) / 2, shift * np.sqrt(remainder * (1 - 1 / n))
    bessel = np.log(ive(order, k)) + k + gammaln(order + 1) + order * np.log(2 / k)
    return shift * total / n - shift**2 / 2 + bessel


def moment_ceiling(n: int, shift: float) -> float:
    """The best accuracy from sum s and sum s², which are independent: a normal and a chi-squared.

    >>> round(moment_ceiling(64, 1.5 * math.sqrt(2 * math.log(64))), 4)
    0.7814
    """
    from scipy.integrate import quad
    from scipy.special import ndtr
    from scipy.stats import chi2, ncx2

    added = shift**2 * (1 - 1 / n)

    def gain(square: float) -> float:
        least = -n / shift * float(log_moment_ratio(0.0, square, n, shift))
        found = ncx2.pdf(square, n - 1, added) * ndtr((shift - least) / math.sqrt(n))
        return float(found - chi2.pdf(square, n - 1) * ndtr(-least / math.sqrt(n)))

    spread = 12 * math.sqrt(2 * (n - 1) + 4 * added)
    ends = max(1e-9, n - 1 - spread), n - 1 + added + spread
    return 0.5 * (1 + float(quad(gain, *ends, limit=500)[0]))
