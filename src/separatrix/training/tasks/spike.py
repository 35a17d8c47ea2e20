"""The static spike: does one token among n stand out along a direction that is always the same?"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from separatrix.training.tasks._base import Bound, ProvedCeiling, Samples, Split, Task, best
from separatrix.training.tasks._moved import MovedParameters, log_ratio_of_norm
from separatrix.training.tasks._proofs import linear_inputs, second_moments

if TYPE_CHECKING:
    from numpy.random import Generator

    from separatrix.mechanisms import Mechanism
    from separatrix.training.tasks.setting import Setting


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
        how = "the Bayes rule, mean exp(A s - A²/2) > 1, on these samples"
        return Bound(float(right.mean()), how, sampled=True)

    def floor(self, samples: Samples, setting: Setting) -> Bound:
        from scipy.special import logsumexp

        n, present = self.parameters.n, samples.targets[:, 0]
        by_mean = (samples.hidden["along"].sum(1) > self.shift / 2) == present
        ratio = logsumexp(log_ratio_of_norm(samples.inputs[:, :-1, :-1], self.shift), axis=1)
        by_norms = (ratio > self.shift**2 / 2 + math.log(n)) == present
        how = "the best rule that ignores the direction: by the norms of the tokens (by a nonlinearity)"
        shortcuts = (
            Bound(float(by_mean.mean()), "the mean of the tokens, above A/2n or not", universal=True),
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
    k = shift * np.sqrt(remainder * (1 - 1 / n))
    return shift * total / n - shift**2 / 2 + log_mean_exp_coordinate((n - 3) / 2, k)


def log_mean_exp_coordinate(order: float, k: Any) -> Any:
    """log E exp(k c), where c is a coordinate of a uniform direction in 2 order + 2 dimensions.

    It is log(Gamma(order + 1) (2/k)^order I_order(k)). The Bessel function itself underflows at large
    orders (I_2046(300) < 1e-1000), so its logarithm is computed directly: by Debye's uniform expansion at
    large orders, and else by the power series at small k and the exponentially scaled function at large k.

    >>> [round(float(log_mean_exp_coordinate(order, 300.0)), 6) for order in (0.5, 40, 2046.5)]
    [293.60307, 203.457657, 10.959745]
    """
    from scipy.special import gammaln, ive

    k = np.asarray(k, dtype=np.float64)
    if order >= LEAST_DEBYE_ORDER:
        return _debye(order, k)
    ratio = np.square(k) / 4
    first, second, third, fourth = (ratio / (place * (order + place)) for place in (1, 2, 3, 4))
    series = np.log1p(first * (1 + second * (1 + third * (1 + fourth))))
    large = np.maximum(k, 0.1)
    scaled = np.log(ive(order, large)) + large + gammaln(order + 1) + order * np.log(2 / large)
    return np.where(k < 0.1, series, scaled)


LEAST_DEBYE_ORDER = 30
"""From this order on, four terms of Debye's expansion are exact to about 1e-9."""


def _debye(order: float, k: Any) -> Any:
    """`log_mean_exp_coordinate` by the uniform expansion of I_v(v z) (DLMF 10.41.3), for large orders."""
    from scipy.special import gammaln

    root = np.hypot(1, k / order)
    p = 1 / root
    corrections = (
        (3 * p - 5 * p**3) / 24,
        (81 * p**2 - 462 * p**4 + 385 * p**6) / 1152,
        (30375 * p**3 - 369603 * p**5 + 765765 * p**7 - 425425 * p**9) / 414720,
        (4465125 * p**4 - 94121676 * p**6 + 349922430 * p**8 - 446185740 * p**10 + 185910725 * p**12)
        / 39813120,
    )
    series = sum(each / order**power for power, each in enumerate(corrections, 1))
    # Gamma(v + 1) (2/k)^v times exp(v eta) / sqrt(2 pi v root), where eta = root + log(z / (1 + root)).
    constant = gammaln(order + 1) + order * math.log(2 / order) - math.log(2 * math.pi * order) / 2
    return constant + order * (root - np.log1p(root)) - np.log(root) / 2 + np.log1p(series)


RADIUS_SPAN, RADIUS_NODES = 12.0, 20_001
"""The radius R is integrated over so many standard deviations to each side, at so many points: in R the
integrand changes over 1/sqrt(n) at the fastest."""


def moment_ceiling(n: int, shift: float) -> float:
    """The best accuracy from sum s and sum s², which are independent: a normal and a chi-squared.

    With and without a spike, R = sqrt(sum s² - (sum s)²/n) has a distribution of standard deviation 1 or
    less, and given R the best rule is a threshold on sum s. All densities are computed as logarithms.

    >>> round(moment_ceiling(64, 1.5 * math.sqrt(2 * math.log(64))), 4)
    0.7814
    >>> [round(moment_ceiling(n, 1.5 * math.sqrt(2 * math.log(n))), 3) for n in (2048, 4096)]
    [0.608, 0.584]
    """
    from scipy.integrate import trapezoid
    from scipy.special import gammaln, ndtr

    added, freedom = shift**2 * (1 - 1 / n), n - 1

    def share_said_yes(centre: float, spike: bool) -> float:
        radius = np.linspace(max(1e-12, centre - RADIUS_SPAN), centre + RADIUS_SPAN, RADIUS_NODES)
        log_mean = log_mean_exp_coordinate((n - 3) / 2, shift * radius * math.sqrt(1 - 1 / n))
        # The density of a chi with n - 1 degrees of freedom; a spike multiplies it by the likelihood ratio.
        log_density = (freedom - 1) * np.log(radius) - radius**2 / 2
        log_density -= (freedom / 2 - 1) * math.log(2) + gammaln(freedom / 2)
        threshold = n / shift * (shift**2 / 2 - log_mean)
        if spike:
            log_density, threshold = log_density + log_mean - added / 2, threshold - shift
        return float(trapezoid(np.exp(log_density) * ndtr(-threshold / math.sqrt(n)), radius))

    right = share_said_yes(math.sqrt(freedom + added), True) - share_said_yes(math.sqrt(freedom), False)
    return min(1.0, max(0.5, 0.5 * (1 + right)))
