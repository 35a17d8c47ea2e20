"""Classes of models that proved ceilings cover: conditions on the mechanism and on the setting."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from separatrix.training.tasks.setting import Setting

if TYPE_CHECKING:
    from separatrix.mechanisms import Mechanism

KERNEL_SUMS = ("identity-features:normalised=no", "causal-linear")
"""Spellings of attention that returns sum_i <q, k_i> v_i, and nothing else."""

SECOND_MOMENTS = (
    *KERNEL_SUMS,
    *("identity-features", "causal-linear:normalised=yes", "linear", "power:beta=1", "taylor:order=1"),
)
"""Spellings of attention whose output is a function of the query and the second moments of (1, k, v)."""

PROPORTIONAL = (
    *("softmax", "linear", "power", "taylor", "hardmax", "relu", "squared-relu", "differential"),
    *("based", "dpfp", "elu", "exp-features", "favor", "hedgehog", "identity-features"),
    *("relu-features", "rff", "squared-relu-features"),
)
"""Mechanisms whose output does not change if every token is repeated r times: scores are divided by their
sum, or by the number of tokens. Mechanisms that use the number of tokens (logn-softmax, adaptive-softmax) or
compare scores with a threshold (sparsemax, entmax, topk) do not belong here."""


@dataclass(frozen=True)
class ModelClass:
    """A set of models, by their mechanism and setting."""

    description: str
    contains: Callable[[Mechanism, Setting], bool]


def is_proportional(mechanism: Mechanism) -> bool:
    """Whether the output is the same if every token is repeated equally often."""
    divides = mechanism.is_normalised or mechanism.name in ("relu", "squared-relu", "differential")
    return mechanism.name in PROPORTIONAL and divides


def is_single_layer(setting: Setting) -> bool:
    """Whether tokens interact only once, and only by the mechanism."""
    return setting.depth == 1 and not (setting.conv or setting.rope)


def has_linear_inputs(setting: Setting) -> bool:
    """Whether, in addition, queries, keys and values are linear in the inputs."""
    return is_single_layer(setting) and not setting.norm


def has_linear_reader(setting: Setting) -> bool:
    """Whether, in addition, the answer is linear in the output of attention."""
    return has_linear_inputs(setting) and not (setting.out_norm or setting.mlp)


LINEAR_KERNEL_MODELS = ModelClass(
    "one layer of linear-kernel heads, any number of them, on linear maps of the tokens, with any reader",
    lambda mechanism, setting: mechanism.spelled in SECOND_MOMENTS and has_linear_inputs(setting),
)
KERNEL_SUM_MODELS = ModelClass(
    "one layer of attention that sums <query, key> value, any number of heads, with a linear reader and "
    "without norms, MLP, convolution or positional encoding; the expected error",
    lambda mechanism, setting: mechanism.spelled in KERNEL_SUMS and has_linear_reader(setting),
)
ORDER_BLIND_MODELS = ModelClass(
    "one layer without convolution or positional encoding, of a permutation-equivariant mechanism, with any reader",
    lambda mechanism, setting: mechanism.permutation_equivariant and is_single_layer(setting),
)
PROPORTIONAL_MODELS = ModelClass(
    "one layer without convolution, positional encoding or first token, of a mechanism whose weights depend "
    "on proportions only, with any reader",
    lambda mechanism, setting: is_proportional(mechanism) and is_single_layer(setting),
)


def expected_majority_share(draws: int, classes: int) -> float:
    """Return the expected share of the most frequent class among independent uniform draws.

    The counts are those of independent Poisson variables of mean draws / classes, conditioned on their sum.
    The largest count is at least draws / classes, so the sum of P(largest > count) starts there.

    >>> [round(expected_majority_share(pairs, 32), 3) for pairs in (4, 8, 16, 32)]
    [0.295, 0.208, 0.15, 0.11]
    """
    from scipy.stats import poisson

    if classes == 1:
        return 1.0
    probabilities, total = poisson.pmf(np.arange(draws + 1), draws / classes), poisson.pmf(draws, draws)
    least = -(-draws // classes)
    expected = float(least)
    for count in range(least, draws):
        exceeds = 1 - _power_coefficient(probabilities[: count + 1], classes, draws) / total
        if exceeds < 1e-12:
            break
        expected += exceeds
    return float(expected / draws)


def _power_coefficient(polynomial: NDArray[Any], power: int, degree: int) -> float:
    """Return the coefficient of x^degree in a polynomial to a power of 2 or more, by repeated squaring.

    >>> _power_coefficient(np.array([1.0, 1.0]), 5, 3)
    10.0
    """
    product, factor = polynomial, polynomial
    *bits, last_bit = list(bin(power)[3:])
    for bit in bits:
        product = np.convolve(product, product)[: degree + 1]
        if bit == "1":
            product = np.convolve(product, polynomial)[: degree + 1]
    # Of the last product one coefficient is needed, an inner product in linear time.
    if last_bit == "1":
        product = np.convolve(product, product)[: degree + 1]
    else:
        factor = product
    low, high = max(0, degree + 1 - len(factor)), min(len(product), degree + 1)
    return float(product[low:high] @ factor[degree + 1 - high : degree + 1 - low][::-1])
