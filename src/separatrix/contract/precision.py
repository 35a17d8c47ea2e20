"""Each number format gives the same results as a wider one, within rounding."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import torch
from torch import Tensor

from separatrix.contract._base import Broken, NotFinite, Skipped, check
from separatrix.contract.calculus import WIDE, draw_for_gradients, gradients, weights_without_ties
from separatrix.contract.calls import call_definition, call_fast
from separatrix.contract.comparisons import largest_size, require_close, rounding_bound
from separatrix.contract.inputs import HEADS, LENGTH, LENGTHS, Tokens, causal_modes, draw_tokens, fit_shape
from separatrix.contract.trials import draw_trial, draw_trials, dtype_name, perturb, supported_narrow_formats
from separatrix.mechanisms import Mechanism

MAX_BIAS = {torch.bfloat16: 0.5, torch.float16: 2.0}
"""By how many units of rounding the mean of all results may be off: rounding errors have both signs."""
LOGIT_ROUNDINGS = 1.25
"""By how many units of rounding the scale of logits may be off: one of its factors may itself be rounded."""
KINK_SEEDS = 4
"""How often tokens are perturbed by half a unit of rounding, to measure how much gradients change."""
HEAD_COUNT = 32
"""The number of heads, over all batch elements, from which the noise of a mean is estimated."""
MAX_DEVIATIONS = 5
"""By how many standard deviations a mean may be off beyond that: once in 20,000 times by chance."""
MAX_NOISE = 0.01
"""If rounding alone makes the scale of logits more uncertain than this, it is not tested."""
MIN_RESPONSE = 0.15
"""The scale of q or k is tested if it changes results by this share of what independent changes do.

Softmax and others that depend on it reach 0.18 and more, those that normalise tokens at most 0.1."""
SCALE_STEP = 1e-3
"""The step of differences along the scale of logits."""
TINY_STEP = 1e-9
"""A change of tokens that results in float64 follow, and that float32 would round away."""
MAX_SLOPE_ERROR = 0.05
"""By how much the size of a gradient in bfloat16 may differ from that in float64."""
TIE_TRIALS = 32
TIE_ROUNDINGS = {torch.float32: 16.0, torch.bfloat16: 0.75, torch.float16: 0.75}
"""How often keys are scaled up and down, and by how many units of rounding, to find ties.

Sums over many float32 tokens, such as the means of blocks, are off by more than one rounding.
"""
MAX_BEND = 1 / 8
"""The share of the tolerance by which a row without a tie may deviate from a straight line."""
MAX_TIES = 0.5
"""If rounding decides a choice in more rows than this, the comparison is inconclusive."""


@check()
def double_precision(mechanism: Mechanism) -> None:
    """Results for float64 tokens are computed in float64: they follow steps of 1e-9."""
    for causal in causal_modes(mechanism):
        inputs, tolerance = draw_trial(mechanism, causal)
        direction = draw_tokens(is_signed=True, shape=fit_shape(mechanism), seed=2)
        with torch.no_grad():
            first, second, third = (
                call_fast(
                    mechanism,
                    *Tokens(*(x + n * TINY_STEP * d for x, d in zip(inputs, direction, strict=True))),
                    causal=causal,
                )
                for n in range(3)
            )
        unevenness = ((third - second) - (second - first)).abs().mean().item()
        if unevenness > tolerance * largest_size(first):
            raise Broken(
                f"float64 results follow steps of {TINY_STEP:g} only to within {unevenness:.1g}: "
                f"something is computed in less than float64 (causal={causal}); use the dtype of q, k and v"
            )


@check("lengths", "widths", "form_in_16_bits")
def half_precision(mechanism: Mechanism) -> None:
    """In 16 bits the fast form is within a few roundings of the float32 definition, and not biased."""
    for causal, inputs, tolerance in _draw_trials_in_16_bits(mechanism):
        dtype = inputs.q.dtype
        actual = call_fast(mechanism, *inputs, causal=causal).float()
        reference = call_definition(mechanism, *inputs.to(torch.float32), causal=causal)
        batch, heads, length, width = inputs.q.shape
        case = f"({length} tokens, batch {batch}, {heads} heads, width {width}, causal={causal})"
        message = f"{dtype_name(dtype)} differs from float32 {case}"
        actual = require_close_without_ties(mechanism, causal, inputs, actual, reference, tolerance, message)
        limit = MAX_BIAS[dtype] * torch.finfo(dtype).eps
        require_unbiased(actual, reference, limit, f"float32 in the mean of all results {case}", dtype)


def require_unbiased(actual: Tensor, reference: Tensor, limit: float, case: str, dtype: torch.dtype) -> None:
    """Raise Broken if the mean of all results is off by more than rounding leaves."""
    bias = abs((actual - reference).double().mean() / reference.double().abs().mean()).item()
    if bias > limit:
        raise Broken(
            f"{dtype_name(dtype)} is off by {bias:.2g} of {case}, where rounding leaves {limit:.1g}; "
            "accumulate sums in float32"
        )


def _draw_trials_in_16_bits(mechanism: Mechanism) -> Iterator[tuple[bool, Tokens, float]]:
    """Yield `causal`, tokens and tolerance: several lengths, wide tokens, many heads and batch elements."""
    formats = supported_narrow_formats(mechanism)
    yield from draw_trials(mechanism, LENGTHS, formats)
    for shape in ((1, 1, *WIDE), (2, 16), (9, 2)):
        yield from draw_trials(mechanism, (33,), formats, fit_shape(mechanism, *shape))


def require_close_without_ties(
    mechanism: Mechanism,
    causal: bool,
    inputs: Tokens,
    actual: Tensor,
    reference: Tensor,
    tolerance: float,
    message: str,
    trials: int = TIE_TRIALS,
) -> Tensor:
    """Compare as `require_close`, but ignore rows with a tie; return the results with the reference there."""
    try:
        require_close(actual, reference, tolerance, message)
    except NotFinite:
        raise
    except Broken:
        has_tie = _find_ties(mechanism, causal, inputs, reference, tolerance, trials)
        if has_tie.double().mean() > MAX_TIES:
            return reference
        actual = actual.where(~has_tie, reference)
        require_close(actual, reference, tolerance, message)
    return actual


def _find_ties(
    mechanism: Mechanism, causal: bool, inputs: Tokens, reference: Tensor, tolerance: float, trials: int
) -> Tensor:
    """Return the rows that jump when keys are scaled up or down by rounding errors.

    A mechanism that attends only to the largest logits selects one of two nearly equal ones, or both; no
    choice is wrong. A smooth result moves as far one way as the other; a choice shows as a bend.
    """
    dtype = inputs.q.dtype
    size = TIE_ROUNDINGS[dtype] * torch.finfo(dtype).eps
    q, k, v = inputs.to(reference.dtype)
    limit = tolerance * largest_size(reference)
    has_tie = torch.zeros_like(reference[..., :1], dtype=torch.bool)
    generator = torch.Generator().manual_seed(10)
    with torch.no_grad():
        for _ in range(trials):
            signs = 2 * torch.randint(2, (*k.shape[:-1], 1), generator=generator) - 1
            up, down = (
                call_fast(mechanism, q, k * (1 + direction * size * signs), v, causal=causal) - reference
                for direction in (1, -1)
            )
            jumps = (up.abs() > limit) | ((up + down).abs() > MAX_BEND * limit)
            has_tie |= jumps.any(-1, keepdim=True)
    return has_tie


@check("half_precision")
def logits_in_16_bits(mechanism: Mechanism) -> None:
    """In 16 bits the scale of logits is right: results do not deviate as for longer queries or keys."""
    is_tested = False
    shape = fit_shape(mechanism, -(-HEAD_COUNT // (mechanism.fixed_heads or HEADS)))
    for causal, dtype in product(causal_modes(mechanism), supported_narrow_formats(mechanism)):
        inputs, tolerance = draw_trial(mechanism, causal, LENGTHS[-1], dtype=dtype, shape=shape)
        # Signed values: the mean of positive ones would hide small changes of the weights.
        signed = draw_tokens(LENGTHS[-1], dtype=dtype, is_signed=True, shape=shape, seed=3)
        with torch.no_grad():
            errors = _measure_scale_errors(mechanism, causal, inputs._replace(v=signed.v), tolerance)
        for letter, (error, noise) in errors.items():
            if not MAX_DEVIATIONS * noise <= MAX_NOISE:
                continue
            is_tested = True
            limit = LOGIT_ROUNDINGS * torch.finfo(dtype).eps + MAX_DEVIATIONS * noise
            if abs(error) > limit:
                raise Broken(
                    f"{dtype_name(dtype)} gives the results of {letter} scaled by {1 + error:.3f} "
                    f"(causal={causal}); rounding leaves {limit:.1g}. Compute scale factors in float32"
                )
    if not is_tested:
        raise Skipped("the size of queries and keys has almost no effect on it")


def _measure_scale_errors(
    mechanism: Mechanism, causal: bool, inputs: Tokens, tolerance: float
) -> dict[str, tuple[float, float]]:
    """Return by how much q, or k, seems to be scaled, and the noise of that; infinite if it has no effect.

    If a mechanism normalises queries or keys, rounding after that looks like a scale before.
    """
    wide = inputs.to(torch.float64)

    def call_scaled(q_change: float = 0, k_change: float = 0) -> Tensor:
        q, k, v = wide
        return call_definition(mechanism, (1 + q_change) * q, (1 + k_change) * k, v, causal=causal)

    reference = call_scaled()
    gap = call_fast(mechanism, *inputs, causal=causal).double() - reference
    has_tie = (gap.abs() > tolerance * largest_size(reference)).any(-1, keepdim=True)
    errors, unit = {}, torch.finfo(inputs.q.dtype).eps
    change = call_definition(mechanism, *perturb(wide, unit / 2), causal=causal) - reference
    response = change.norm().item() / (unit / 2)
    for letter, (q_step, k_step) in {"q": (SCALE_STEP, 0.0), "k": (0.0, SCALE_STEP)}.items():
        slope = (call_scaled(q_step, k_step) - call_scaled(-q_step, -k_step)) / (2 * SCALE_STEP)
        slope = slope.masked_fill(has_tie, 0)
        has_effect = slope.square().sum().item() > (MIN_RESPONSE * response) ** 2
        errors[letter] = _project(gap, slope) if has_effect else (0.0, torch.inf)
    return errors


def _project(gap: Tensor, slope: Tensor) -> tuple[float, float]:
    """Return the coefficient of the slope in the gap, and its standard deviation over heads.

    One rounding may change many results, as that of a value changes all that see it. The heads of all batch
    elements have independent tokens, so the common part is no rounding.
    """
    shares, totals = (gap * slope).sum((-2, -1)), slope.square().sum((-2, -1))
    coefficient = shares.sum() / totals.sum()
    residuals, heads = shares - coefficient * totals, shares.numel()
    noise = (residuals.square().sum() * heads / (heads - 1)).sqrt() / totals.sum()
    return coefficient.item(), noise.item()


@check("gradient_in_float32")
def gradient_in_bfloat16(mechanism: Mechanism) -> None:
    """The gradient of bfloat16 tokens is as large as that of float64 tokens, along it and within 5 %."""
    if torch.bfloat16 not in supported_narrow_formats(mechanism):
        raise Skipped("it does not run in bfloat16")
    usual, wide_shape = fit_shape(mechanism), fit_shape(mechanism, 1, 1, *WIDE)
    cases = ((LENGTH, usual), (66, usual), (260, usual), (LENGTH, wide_shape))
    for causal, (length, shape) in product(causal_modes(mechanism), cases):
        narrow, wide = draw_for_gradients(mechanism, causal, length, shape, torch.bfloat16)
        tolerance = rounding_bound(torch.bfloat16, slack=4)
        weights = weights_without_ties(mechanism, causal, narrow, wide, tolerance)
        references = gradients(mechanism, causal, wide, weights)
        actual = gradients(mechanism, causal, narrow, weights)
        largest = max(reference.norm().item() for reference in references)
        for i, (slope, reference) in enumerate(zip(actual, references, strict=True)):
            size = reference.square().sum().item()
            if size <= (torch.finfo(torch.bfloat16).eps * largest) ** 2:  # rounding of the others hides it
                continue
            ratio = (slope.double() * reference).sum().item() / size
            if abs(ratio - 1) <= MAX_SLOPE_ERROR:
                continue
            change = _measure_change_by_kinks(mechanism, causal, wide, weights, i, reference)
            if not abs(ratio - 1) <= MAX_SLOPE_ERROR + 2 * change:
                raise Broken(
                    f"the gradient of {'qkv'[i]} in bfloat16 is {ratio:.3g} times that in float64 "
                    f"({length} tokens, causal={causal})"
                )


def _measure_change_by_kinks(
    mechanism: Mechanism, causal: bool, inputs: Tokens, weights: Tensor, i: int, reference: Tensor
) -> float:
    """Return the relative change of a gradient along itself when tokens are perturbed by rounding errors.

    Near a kink, as that of a ReLU, the gradient is that of one side or of the other; neither is wrong.
    """
    size = torch.finfo(torch.bfloat16).eps / 2
    slopes = (gradients(mechanism, causal, perturb(inputs, size, seed), weights)[i] for seed in range(KINK_SEEDS))
    return max(abs((slope * reference).sum().item() / reference.square().sum().item() - 1) for slope in slopes)
