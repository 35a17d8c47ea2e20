"""No token, coordinate or feature of a large input is ignored if none of a small input is.

An input that has an effect has a gradient that is not 0. A mechanism that selects keys gives some of them no
weight, but which ones depends on the numbers. If the same ones have a gradient of 0 for all numbers, and only
in large inputs, they are ignored.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from separatrix.contract._base import Broken, Skipped, check
from separatrix.contract.calculus import random_weights
from separatrix.contract.calls import call_fast
from separatrix.contract.inputs import (
    LENGTH,
    Shape,
    causal_modes,
    draw_tokens,
    fit_narrow,
    fit_shape,
    require_finite,
    rounding_bound,
)
from separatrix.contract.larger import skip_unless_custom
from separatrix.mechanisms import Mechanism

FEW_TOKENS, MANY_TOKENS = (LENGTH, 66, 130), (257, 514, 777, 1024, 1101)
"""Odd and even numbers, at and between those that fill blocks."""
SMALL_WIDTHS, LARGE_WIDTHS = ((6, 4), (10, 12)), ((96, 130), (128, 96), (130, 128))
"""Widths of queries and keys, and of values."""
SEEDS = (1, 2, 3)
TOKEN_AXIS, COORDINATE_AXIS = -2, -1
KEY_OR_VALUE = "k and v"

Case = tuple[int, Shape]


@check("gradient_of_long_inputs", "more_keys", "more_coordinates", "more_features", "later_places")
def nothing_dropped(mechanism: Mechanism) -> None:
    """Every token, coordinate and feature of large inputs has an effect, if each of small ones has."""
    skip_unless_custom(mechanism)
    is_tested, narrow = False, fit_narrow(mechanism)
    for causal in causal_modes(mechanism):
        if mechanism.length_free:
            small = [(length, narrow) for length in FEW_TOKENS]
            large = [(length, narrow) for length in MANY_TOKENS]
            is_tested |= _require_effects(mechanism, causal, TOKEN_AXIS, small, large)
        if mechanism.fixed_width is None and mechanism.fixed_features is None:
            small = [(LENGTH, fit_shape(mechanism, 1, 1, *widths)) for widths in SMALL_WIDTHS]
            large = [(LENGTH, fit_shape(mechanism, 1, 1, *widths)) for widths in LARGE_WIDTHS]
            is_tested |= _require_effects(mechanism, causal, COORDINATE_AXIS, small, large)
    if not is_tested:
        raise Skipped("parts of small inputs have no effect either")


def _require_effects(
    mechanism: Mechanism, causal: bool, axis: int, small: Iterable[Case], large: Iterable[Case]
) -> bool:
    """Return whether all parts of small inputs have an effect; raise Broken if those of large ones do not."""
    effects = [_find_effects(mechanism, causal, axis, *case) for case in small]
    letters = [letter for letter in effects[0] if all(bool(effect[letter].all()) for effect in effects)]
    for case in large if letters else ():
        effect = _find_effects(mechanism, causal, axis, *case)
        for letter in letters:
            if not bool(effect[letter].all()):
                _require_dependence_on_numbers(mechanism, causal, axis, case, letter, effect[letter])
    return bool(letters)


def _find_effects(
    mechanism: Mechanism, causal: bool, axis: int, length: int, shape: Shape, seed: int = SEEDS[0]
) -> dict[str, Tensor]:
    """Return which positions along an axis of q, of k and of v have an effect on the results.

    A token has one by its key or by its value: if a query sees a single key, its weight is 1 for any key.
    """
    inputs = draw_tokens(length, shape=shape, seed=seed).map(torch.Tensor.requires_grad_)
    out = call_fast(mechanism, *inputs, causal=causal)
    if not out.requires_grad:
        raise Skipped("no gradient reaches q, k or v")
    total = (out * random_weights(out)).sum()
    gradients = torch.autograd.grad(total, inputs, allow_unused=True, materialize_grads=True)
    effects = {}
    for letter, gradient in zip("qkv", gradients, strict=True):
        require_finite(gradient, f"the gradient of {letter} ({length} tokens, causal={causal})")
        largest = gradient.abs().movedim(axis, 0).flatten(1).amax(1)
        effects[letter] = largest > rounding_bound(gradient.dtype) * largest.max()
    return {KEY_OR_VALUE: effects["k"] | effects["v"]} if axis == TOKEN_AXIS else effects


def _require_dependence_on_numbers(
    mechanism: Mechanism, causal: bool, axis: int, case: Case, letter: str, effect: Tensor
) -> None:
    """Raise Broken if the same positions have no effect for other random numbers as well."""
    effects = (_find_effects(mechanism, causal, axis, *case, seed)[letter] for seed in SEEDS[1:])
    if not all(torch.equal(other, effect) for other in effects):
        return
    length, shape = case
    ignored = (~effect).nonzero()[:, 0].tolist()
    more = f", and neither have {len(ignored) - 1} more" if len(ignored) > 1 else ""
    if axis == TOKEN_AXIS:
        raise Broken(
            f"token {ignored[0]} of {length} has no effect on any result, for any {KEY_OR_VALUE}{more}; "
            f"of fewer tokens, each has one (causal={causal}); "
            "if that is intended, declare length_free = False"
        )
    noun, width = ("feature", shape[3]) if letter == "v" else ("coordinate", shape[2])
    raise Broken(
        f"{noun} {ignored[0]} of {width} of {letter} has no effect on any result{more}; "
        f"of narrower tokens, each has one (causal={causal})"
    )
