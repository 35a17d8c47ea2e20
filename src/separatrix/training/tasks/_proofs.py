"""Classes of models that proved ceilings are about: which mechanisms, in which settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from separatrix.mechanisms import Mechanism
    from separatrix.training.tasks.setting import Setting

SUMS = ("identity-features:normalised=no", "causal-linear")
"""Spellings of attention that returns sum_i <q, k_i> v_i, and nothing else."""

SECOND_MOMENTS = (
    *SUMS,
    "identity-features",
    "causal-linear:normalised=yes",
    "linear",
    "power:beta=1",
    "taylor:order=1",
)
"""Spellings of attention that returns a function of the query and of second moments of (1, k, v)."""

PROPORTIONAL = (
    *("softmax", "linear", "power", "taylor", "hardmax", "relu", "squared-relu"),
    "differential",
    *("based", "dpfp", "elu", "exp-features", "favor", "hedgehog", "identity-features"),
    *("relu-features", "rff", "squared-relu-features"),
)
"""Mechanisms whose weights do not change when every token is there r times, each counted r times: scores
divided by their sum, or by the number of tokens. Not those that look at the number of tokens
(logn-softmax, adaptive-softmax) or compare scores with a threshold (sparsemax, entmax, topk)."""


def sums(mechanism: Mechanism) -> bool:
    """Whether it returns `sum_i <q, k_i> v_i`."""
    return mechanism.spelled in SUMS


def second_moments(mechanism: Mechanism) -> bool:
    """Whether what it returns is known from the query and the second moments of the tokens."""
    return mechanism.spelled in SECOND_MOMENTS


def proportional(mechanism: Mechanism) -> bool:
    """Whether tokens that are all there twice get what they would get once."""
    divides = mechanism.normalised or mechanism.name in ("relu", "squared-relu", "differential")
    return mechanism.name in PROPORTIONAL and divides


def one_layer_without_places(setting: Setting) -> bool:
    """Whether tokens hear each other once, by the mechanism alone."""
    return setting.depth == 1 and not (setting.conv or setting.rope)


def linear_inputs(setting: Setting) -> bool:
    """Whether in addition queries, keys and values are linear in the inputs."""
    return one_layer_without_places(setting) and not setting.norm


def linear_reader(setting: Setting) -> bool:
    """Whether in addition the answer is linear in what attention returns."""
    return linear_inputs(setting) and not (setting.out_norm or setting.mlp)


def commonest_share(draws: int, classes: int) -> float:
    """The expected share of the commonest of some classes among independent draws.

    The counts are those of independent Poisson variables of mean draws / classes, given that they add up to
    the draws. Some class has at least draws / classes of them, so the sum of P(commonest > most) over `most`
    begins there.

    >>> [round(commonest_share(pairs, 32), 3) for pairs in (4, 8, 16, 32)]
    [0.295, 0.208, 0.15, 0.11]
    """
    from scipy.stats import poisson

    if classes == 1:
        return 1.0
    probabilities, total = poisson.pmf(np.arange(draws + 1), draws / classes), poisson.pmf(draws, draws)
    least = -(-draws // classes)
    expected = float(least)
    for most in range(least, draws):
        more = 1 - _power_coefficient(probabilities[: most + 1], classes, draws) / total
        if more < 1e-12:
            break
        expected += more
    return float(expected / draws)


def _power_coefficient(polynomial: NDArray[Any], power: int, degree: int) -> float:
    """The coefficient of x^degree in a polynomial to a power of 2 or more, by repeated squaring.

    >>> _power_coefficient(np.array([1.0, 1.0]), 5, 3)
    10.0
    """

    def coefficient(one: NDArray[Any], other: NDArray[Any]) -> float:
        padded = np.zeros(degree + 1)
        padded[: len(other)] = other[: degree + 1]
        return float(one[: degree + 1] @ padded[::-1][: len(one)])

    def times(one: NDArray[Any], other: NDArray[Any]) -> NDArray[Any]:
        return np.convolve(one, other)[: degree + 1]

    found, bits = polynomial, bin(power)[3:]
    for place, bit in enumerate(bits, 1):
        if place == len(bits) and bit == "0":
            return coefficient(found, found)
        found = times(found, found)
        if place == len(bits):
            break
        found = times(found, polynomial) if bit == "1" else found
    return coefficient(found, polynomial)
