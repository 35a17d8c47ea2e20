"""Changes that leave small inputs of a callable unaffected leave large inputs unaffected as well.

A callable has no separate definition that says what long inputs give. But for many mechanisms some changes
have no effect: keys that get no weight, coordinates of zeros, additional features of values. If a few of them
have no effect, many must have none either.

And no token, coordinate or feature of a large input is ignored if none of a small input is. An input that has
an effect has a gradient that is not 0. A mechanism that selects keys gives some of them no weight, but which
ones depends on the numbers. If the same ones have a gradient of 0 for all numbers, and only in large inputs,
they are ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import torch
from torch import Tensor
from torch.nn.functional import pad

from separatrix.contract._base import Broken, Skipped, check
from separatrix.contract.calculus import random_weights
from separatrix.contract.calls import call_fast
from separatrix.contract.comparisons import require_close, require_finite, rounding_bound
from separatrix.contract.inputs import LENGTH, Shape, Tokens, causal_modes, draw_tokens, fit_narrow, fit_shape
from separatrix.core.errors import one_line
from separatrix.mechanisms import Mechanism, observed
from separatrix.mechanisms.custom import CustomMechanism

NEUTRAL_KEYS = (-1000.0, 0.0)
"""Coordinates of keys that may have no effect on queries of positive ones: by a weight or a score of 0."""
BLOCKS = (160, 192, 256, 257, 384, 512, 768, 1024)
FEW_KEYS = ((LENGTH, 5), (66, 14))
"""Numbers of tokens, and of additional keys, that tell whether keys have no effect."""
MANY_KEYS = tuple(
    n - LENGTH for n in (*range(19, 130), *range(150, 1101, 50), *BLOCKS, *range(233, 1100, 144), 2048, 2500)
)
"""Additional keys after LENGTH tokens: all totals up to 129, then hundreds, odd totals and full blocks."""
FEW_COORDINATES, MANY_COORDINATES = (2, 3, 7), (*range(8, 125), 139, 155, 187, 219, 251, 507)
FEW_FEATURES, MANY_FEATURES = (1, 3), (*range(4, 123), 137, 153, 185, 217, 249, 505)
FEW_HEADS, MANY_HEADS = (2, 3), (1, *range(4, 33), 40, 48, 64)
FEW_BEFORE, MANY_BEFORE = (1, 5, 14, 23, 40), (128, 256, 512, 1024, 2048)
"""Numbers of tokens put before the others: powers of 2, where blocks of tokens and strides begin anew."""
FEW_QUERIES, MANY_QUERIES = (1, 4, LENGTH - 1), (LENGTH + 1, 2 * LENGTH, 70, 130)
"""Fewer queries than the LENGTH keys, and more."""
FEW_TOKENS, MANY_TOKENS = (LENGTH, 66, 130), (257, 514, 777, 1024, 1101)
"""Odd and even numbers, at and between those that fill blocks."""
SMALL_WIDTHS, LARGE_WIDTHS = ((6, 4), (10, 12)), ((96, 130), (128, 96), (130, 128))
"""Widths of queries and keys, and of values."""
SEEDS = (1, 2, 3)
TOKEN_AXIS, COORDINATE_AXIS = -2, -1
KEY_OR_VALUE = "k and v"

Change = Callable[[Tokens], Tokens]
Case = tuple[int, Shape]
"""A number of tokens, and their shape."""


@check("normalised", "prefix")
def more_keys(mechanism: Mechanism) -> None:
    """Keys without weight have no effect in any number, if a few have none."""
    skip_unless_custom(mechanism)
    if not mechanism.length_free:
        raise Skipped("it declares that results depend on the number of tokens")
    # Only without `causal`: with it, later keys have no effect anyway, which `causality` tests.
    for key in NEUTRAL_KEYS if False in causal_modes(mechanism) else ():
        few = [(length, _add_keys(count, key)) for length, count in FEW_KEYS]
        fault = f"additional keys of {key:g} with values of 0 change results, a few do not"
        fault = f"{fault}; if that is intended, declare length_free = False"
        many = {f"{count} {fault}": _add_keys(count, key) for count in MANY_KEYS}
        if _have_no_effect(mechanism, False, few, many):
            return
    raise Skipped("no keys are known that have no effect on it")


@check("normalised", "prefix")
def later_places(mechanism: Mechanism) -> None:
    """Earlier tokens without weight have no effect in any number, if a few have none."""
    skip_unless_custom(mechanism)
    if True not in causal_modes(mechanism):
        raise Skipped("it has no causal form")
    for key in NEUTRAL_KEYS:
        few = [(LENGTH, _add_keys(count, key, is_before=True)) for count in FEW_BEFORE]
        fault = f"earlier tokens with keys {key:g} and values 0 change results, a few do not"
        many = {f"{count} {fault}": _add_keys(count, key, is_before=True) for count in MANY_BEFORE}
        if _have_no_effect(mechanism, True, few, many, is_before=True):
            return
    raise Skipped("earlier tokens always have an effect on it")


@check("normalised", "prefix", "cross")
def more_queries(mechanism: Mechanism) -> None:
    """A query gives the same among more queries than keys, if it does among fewer."""
    skip_unless_custom(mechanism)
    if False not in causal_modes(mechanism):
        raise Skipped("it is always causal, so there is one query for each key")
    q, k, v = draw_tokens(max(MANY_QUERIES), LENGTH, shape=fit_shape(mechanism, 1, 2))

    def call_rows(start: int, stop: int) -> Tensor:
        with torch.no_grad():
            return call_fast(mechanism, q[..., start:stop, :], k, v)

    try:
        usual = call_rows(0, LENGTH)
        is_independent = all(observed.is_close(call_rows(0, count), usual[..., :count, :]) for count in FEW_QUERIES)
    except Exception:  # a user's mechanism may refuse fewer queries than keys in any way
        is_independent = False
    if not is_independent:
        raise Skipped("its queries depend on each other")
    is_order_free = mechanism.order_free(2 * max(MANY_QUERIES), q.shape[-1])
    for count in MANY_QUERIES:
        try:
            out = call_rows(0, count)
        except observed.REFUSALS as refusal:
            raise Skipped(f"it refuses {count} queries on {LENGTH} keys: {one_line(refusal, 90)}") from None
        message = f"{count} queries on {LENGTH} keys give a different result than {LENGTH} of them"
        require_close(out[..., :LENGTH, :], usual, rounding_bound(q.dtype), message)
        if is_order_free:
            last = call_rows(count - LENGTH, count)
            require_close(out[..., -LENGTH:, :], last, rounding_bound(q.dtype), message)


@check("normalised", "prefix")
def more_coordinates(mechanism: Mechanism) -> None:
    """Coordinates of zeros have no effect in any number, if a few have none."""
    skip_unless_custom(mechanism)
    if mechanism.fixed_width is not None:
        raise Skipped(f"it accepts only tokens of width {mechanism.fixed_width}")
    is_tested = False
    for causal in causal_modes(mechanism):
        for is_scaled in (False, True):
            for is_before in (False, True):
                few = [(LENGTH, _add_coordinates(n, is_scaled, is_before)) for n in FEW_COORDINATES]
                fault = f"additional coordinates of 0 {'before the others ' if is_before else ''}change results"
                fault = f"{fault}, a few do not (causal={causal})"
                many = {f"{n} {fault}": _add_coordinates(n, is_scaled, is_before) for n in MANY_COORDINATES}
                if not _have_no_effect(mechanism, causal, few, many):
                    break
                is_tested = True
            if is_tested:
                break
    if not is_tested:
        raise Skipped("coordinates of 0 have an effect on it")


@check("normalised", "prefix")
def more_features(mechanism: Mechanism) -> None:
    """Additional features of values change no others in any number, if a few change none."""
    skip_unless_custom(mechanism)
    if mechanism.fixed_features is not None:
        raise Skipped(f"it accepts only values of {mechanism.fixed_features} features")
    is_tested = False
    for causal in causal_modes(mechanism):
        few = [(LENGTH, _add_features(count)) for count in FEW_FEATURES]
        fault = f"additional features of values change others, a few do not (causal={causal})"
        many = {f"{count} {fault}": _add_features(count) for count in MANY_FEATURES}
        if not _have_no_effect(mechanism, causal, few, many):
            continue
        is_tested = True
        # The features may also be put before the others, unless their position has an effect.
        if all(_find_effect_of_position(mechanism, causal, count) is None for count in FEW_FEATURES):
            for count in MANY_FEATURES:
                if effect := _find_effect_of_position(mechanism, causal, count):
                    raise effect
    if not is_tested:
        raise Skipped("features of values depend on each other in it")


@check("normalised", "prefix")
def more_heads(mechanism: Mechanism) -> None:
    """A head gives the same among any number of heads, if it does among 2 and 3."""
    skip_unless_custom(mechanism)
    if mechanism.fixed_heads is not None:
        raise Skipped(f"it accepts only {mechanism.fixed_heads} heads")
    is_tested = False
    for causal in causal_modes(mechanism):
        inputs = draw_tokens(shape=fit_shape(mechanism, 1, max(MANY_HEADS)))
        first_heads: dict[int, Tensor] = {}
        with torch.no_grad():
            for count in (*FEW_HEADS, *MANY_HEADS):
                subset = Tokens(*(x[:, :count] for x in inputs))
                first_heads[count] = call_fast(mechanism, *subset, causal=causal)[:, :1]
        usual, second = (first_heads[count] for count in FEW_HEADS)
        if not torch.allclose(usual, second, rtol=1e-12, atol=1e-12):
            continue
        is_tested = True
        for count in MANY_HEADS:
            message = f"the first of {count} heads gives a different result than among 2 or 3 (causal={causal})"
            require_close(first_heads[count], usual, rounding_bound(torch.float64), message)
    if not is_tested:
        raise Skipped("its heads depend on their number")


def skip_unless_custom(mechanism: Mechanism) -> None:
    """Raise Skipped for mechanisms with a definition: `lengths` and `widths` compare with it."""
    if not isinstance(mechanism, CustomMechanism):
        raise Skipped("its definition covers any number of tokens, coordinates and features")


def _add_keys(count: int, key: float, is_before: bool = False) -> Change:
    """Add tokens with these keys and values of 0."""
    ends = (0, 0, count, 0) if is_before else (0, 0, 0, count)
    return lambda inputs: Tokens(pad(inputs.q, ends, value=0.5), pad(inputs.k, ends, value=key), pad(inputs.v, ends))


def _add_coordinates(count: int, is_scaled: bool, is_before: bool) -> Change:
    """Add zeros to queries and keys; `is_scaled` undoes a division of logits by the root of the width."""
    ends = (count, 0) if is_before else (0, count)

    def change(inputs: Tokens) -> Tokens:
        width = inputs.q.shape[-1]
        factor = ((width + count) / width) ** 0.5 if is_scaled else 1.0
        return Tokens(factor * pad(inputs.q, ends), pad(inputs.k, ends), inputs.v)

    return change


def _add_features(count: int, is_before: bool = False) -> Change:
    """Add random features to values."""

    def change(inputs: Tokens) -> Tokens:
        v = inputs.v
        generator = torch.Generator().manual_seed(8)
        features = torch.rand(*v.shape[:-1], count, generator=generator, dtype=v.dtype)
        return inputs._replace(v=torch.cat([features, v] if is_before else [v, features], dim=-1))

    return change


def _find_effect_of_position(mechanism: Mechanism, causal: bool, count: int) -> Broken | None:
    """Return the fault if features give different results after others than before them."""
    inputs = draw_tokens(shape=fit_shape(mechanism, 1, 2))
    with torch.no_grad():
        first, last = (
            call_fast(mechanism, *_add_features(count, is_before)(inputs), causal=causal) for is_before in (False, True)
        )
    message = f"{count} additional features of values before others change these, a few do not (causal={causal})"
    tolerance = rounding_bound(inputs.v.dtype)
    try:
        require_close(last[..., count:], first[..., : inputs.v.shape[-1]], tolerance, message)
    except Broken as fault:
        return fault
    return None


def _call_usual(mechanism: Mechanism, causal: bool, length: int = LENGTH) -> tuple[Tokens, Tensor]:
    """Return unchanged tokens and their result, which is computed once for all changes."""
    inputs = draw_tokens(length, shape=fit_shape(mechanism, 1, 2))
    with torch.no_grad():
        return inputs, call_fast(mechanism, *inputs, causal=causal)


def _have_no_effect(
    mechanism: Mechanism,
    causal: bool,
    few: Iterable[tuple[int, Change]],
    many: Mapping[str, Change],
    is_before: bool = False,
) -> bool:
    """Return whether the first changes, each of this many tokens, leave results as they are.

    Raise Broken, with the message of the change, if they do and one of the others does not.
    """
    try:
        for length, change in few:
            _require_no_effect(mechanism, causal, *_call_usual(mechanism, causal, length), change, "", is_before)
    except Exception:  # a user's mechanism may refuse the changed tokens in any way
        return False
    inputs, usual = _call_usual(mechanism, causal)
    for message, change in many.items():
        _require_no_effect(mechanism, causal, inputs, usual, change, message, is_before)
    return True


def _require_no_effect(
    mechanism: Mechanism, causal: bool, inputs: Tokens, usual: Tensor, change: Change, message: str, is_before: bool
) -> None:
    """Raise Broken if the usual tokens, the last ones if others come before, give different results."""
    with torch.no_grad():
        out = call_fast(mechanism, *change(inputs), causal=causal)
    length, features = usual.shape[-2:]
    out = (out[..., -length:, :] if is_before else out[..., :length, :])[..., :features]
    if out.shape != usual.shape:
        raise Broken(message)
    require_close(out, usual, rounding_bound(torch.float64), message)


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
