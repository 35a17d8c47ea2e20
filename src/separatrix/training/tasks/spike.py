"""The static spike: does one of n tokens stand out along a fixed direction?"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from separatrix.training.tasks._base import Bound, Samples, Split, best_bound
from separatrix.training.tasks._shifted import ShiftedTokenTask, log_norm_ratio
from separatrix.training.tasks.setting import WITHOUT_NORMS


class SpikeTask(ShiftedTokenTask):
    """Decide whether one of n tokens stands out along a fixed direction.

    n tokens of dz normal numbers z. In half of the samples one token, at a random position, is shifted by A
    u, where u = (1, ..., 1)/sqrt(dz) in every sample and A = strength sqrt(2 ln n). The last token carries
    only a mark, and answers whether there is a spike. The best rule is whether the mean of exp(A <u,z> -
    A²/2) exceeds 1. A linear kernel on linear maps of the tokens only has their second moments; a
    nonlinearity before attention (features or an MLP) removes this limit. The floor is the better of two
    shortcuts: the mean of the tokens, which every mechanism can compute, and the best rule that ignores the
    direction, which uses the norms of the tokens.
    """

    name = "spike"
    provenance = "[ours] docs/theory.md 9.2, after the spike of the paper's summary"
    setting = WITHOUT_NORMS | {"batch": 64, "steps": 400, "rates": "0.003,0.01,0.03"}
    proof = "docs/theory.md 9.2: the likelihood ratio of the moments is a Bessel function"

    @property
    def features(self) -> int:
        return self.dz + 1

    def draw(self, count: int, split: Split, rng: np.random.Generator) -> Samples:
        n, dz = self.n, self.dz
        z = rng.standard_normal((count, n, dz), dtype=np.float32)
        targets, position = rng.integers(2, size=count), rng.integers(n, size=count)
        z[np.arange(count), position] += self.shift / math.sqrt(dz) * targets[:, None]
        inputs = np.zeros((count, n + 1, dz + 1), dtype=np.float32)
        inputs[:, :n, :dz], inputs[:, n, dz] = z, 1
        along = z.sum(-1, dtype=np.float64) / math.sqrt(dz)
        return Samples(inputs, np.full((count, 1), n), targets[:, None], latents={"along": along})

    def ceiling(self, samples: Samples) -> Bound:
        from scipy.special import logsumexp

        ratio = logsumexp(self.shift * samples.latents["along"] - self.shift**2 / 2, axis=1)
        is_correct = (ratio > math.log(self.n)) == samples.targets[:, 0]
        basis = "the Bayes rule, mean exp(A s - A²/2) > 1, on these samples"
        return Bound(float(is_correct.mean()), basis, sampled=True)

    def floor(self, samples: Samples) -> Bound:
        from scipy.special import logsumexp

        labels = samples.targets[:, 0]
        by_mean = (samples.latents["along"].sum(1) > self.shift / 2) == labels
        ratio = logsumexp(log_norm_ratio(samples.inputs[:, :-1, :-1], self.shift), axis=1)
        by_norms = (ratio > self.shift**2 / 2 + math.log(self.n)) == labels
        basis = "the best rule that ignores the direction: it uses the norms of the tokens (a nonlinearity)"
        shortcuts = (
            Bound(float(by_mean.mean()), "whether the mean of the tokens exceeds A/2n", universal=True),
            Bound(float(by_norms.mean()), basis),
        )
        return best_bound(shortcuts)

    def proved_score(self) -> float:
        return moment_ceiling(self.n, self.shift)


def log_mean_exp_coordinate(order: float, k: Any) -> Any:
    """Return log E exp(k c), where c is a coordinate of a uniform direction in 2 order + 2 dimensions.

    It is log(Gamma(order + 1) (2/k)^order I_order(k)). The Bessel function itself underflows at large
    orders (I_2046(300) < 1e-1000), so its logarithm is computed directly: by Debye's uniform expansion at
    large orders, otherwise by the power series at small k and the exponentially scaled function at large k.

    >>> [round(float(log_mean_exp_coordinate(order, 300.0)), 6) for order in (0.5, 40, 2046.5)]
    [293.60307, 203.457657, 10.959745]
    """
    from scipy.special import gammaln, ive

    k = np.asarray(k, dtype=np.float64)
    if order >= MIN_DEBYE_ORDER:
        return _debye(order, k)
    ratio = np.square(k) / 4
    first, second, third, fourth = (ratio / (term * (order + term)) for term in (1, 2, 3, 4))
    series = np.log1p(first * (1 + second * (1 + third * (1 + fourth))))
    large = np.maximum(k, 0.1)
    asymptotic = np.log(ive(order, large)) + large + gammaln(order + 1) + order * np.log(2 / large)
    return np.where(k < 0.1, series, asymptotic)


MIN_DEBYE_ORDER = 30
"""From this order on, four terms of Debye's expansion are exact to about 1e-9."""


def _debye(order: float, k: Any) -> Any:
    """Return `log_mean_exp_coordinate` by the uniform expansion of I_v(v z), DLMF 10.41.3."""
    from scipy.special import gammaln

    root = np.hypot(1, k / order)
    p = 1 / root
    corrections = (
        (3 * p - 5 * p**3) / 24,
        (81 * p**2 - 462 * p**4 + 385 * p**6) / 1152,
        (30375 * p**3 - 369603 * p**5 + 765765 * p**7 - 425425 * p**9) / 414720,
        (4465125 * p**4 - 94121676 * p**6 + 349922430 * p**8 - 446185740 * p**10 + 185910725 * p**12) / 39813120,
    )
    series = sum(term / order**power for power, term in enumerate(corrections, 1))
    # Gamma(v + 1) (2/k)^v times exp(v eta) / sqrt(2 pi v root), where eta = root + log(z / (1 + root)).
    constant = gammaln(order + 1) + order * math.log(2 / order) - math.log(2 * math.pi * order) / 2
    return constant + order * (root - np.log1p(root)) - np.log(root) / 2 + np.log1p(series)


RADIUS_SPAN, RADIUS_NODES = 12.0, 20_001
"""Standard deviations of the radius R to each side of its centre, and nodes of the integral over R. The
integrand varies on a scale of at least 1/sqrt(n)."""


def moment_ceiling(n: int, shift: float) -> float:
    """Return the best accuracy from sum s and sum s², which are independent: a normal and a chi-squared.

    With and without a spike, R = sqrt(sum s² - (sum s)²/n) has a standard deviation of at most 1, and given R
    the best rule is a threshold on sum s. Densities are computed as logarithms, which do not underflow.

    >>> round(moment_ceiling(64, 1.5 * math.sqrt(2 * math.log(64))), 4)
    0.7814
    >>> [round(moment_ceiling(n, 1.5 * math.sqrt(2 * math.log(n))), 3) for n in (2048, 4096)]
    [0.608, 0.584]
    """
    from scipy.integrate import trapezoid
    from scipy.special import gammaln, ndtr

    noncentrality, freedom = shift**2 * (1 - 1 / n), n - 1

    def positive_rate(centre: float, spike: bool) -> float:
        radius = np.linspace(max(1e-12, centre - RADIUS_SPAN), centre + RADIUS_SPAN, RADIUS_NODES)
        log_mean = log_mean_exp_coordinate((n - 3) / 2, shift * radius * math.sqrt(1 - 1 / n))
        # The density of a chi with n - 1 degrees of freedom; a spike multiplies it by the likelihood ratio.
        log_density = (freedom - 1) * np.log(radius) - radius**2 / 2
        log_density -= (freedom / 2 - 1) * math.log(2) + gammaln(freedom / 2)
        threshold = n / shift * (shift**2 / 2 - log_mean)
        if spike:
            log_density, threshold = log_density + log_mean - noncentrality / 2, threshold - shift
        return float(trapezoid(np.exp(log_density) * ndtr(-threshold / math.sqrt(n)), radius))

    gain = positive_rate(math.sqrt(freedom + noncentrality), True) - positive_rate(math.sqrt(freedom), False)
    return min(1.0, max(0.5, 0.5 * (1 + gain)))
