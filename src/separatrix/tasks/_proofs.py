"""Classes of models that proved ceilings are about: which mechanisms, in which settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from separatrix.mechanisms import Mechanism
    from separatrix.tasks.setting import Setting

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
    the draws.

    >>> [round(commonest_share(pairs, 32), 3) for pairs in (4, 8, 16, 32)]
    [0.295, 0.208, 0.15, 0.11]
    """
    from scipy.stats import poisson

    each, total = poisson.pmf(np.arange(draws + 1), draws / classes), poisson.pmf(draws, draws)
    expected = 0.0
    for most in range(draws):
        alone, together = np.where(np.arange(draws + 1) <= most, each, 0), np.eye(1, draws + 1)[0]
        for bit in bin(classes)[2:]:
            together = np.convolve(together, together)[: draws + 1]
            if bit == "1":
                together = np.convolve(together, alone)[: draws + 1]
        more = 1 - together[draws] / total
        if more < 1e-12:
            break
        expected += more
    return float(expected / draws)
