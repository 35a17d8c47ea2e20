"""Many tokens in few bits: sums over thousands of terms keep the precision of wider formats.

Sums of a thousand terms in bfloat16 stop growing at a few hundred; short inputs do not show it.
"""

from __future__ import annotations

from itertools import product

import torch
from torch import Tensor

from separatrix.contract._base import Skipped, check
from separatrix.contract.calculus import gradients
from separatrix.contract.calls import call_fast
from separatrix.contract.comparisons import largest_size, require_finite, rounding_bound
from separatrix.contract.inputs import LONG_LENGTHS, Shape, Tokens, causal_modes, fit_narrow, fit_shape
from separatrix.contract.precision import require_close_without_ties, require_unbiased
from separatrix.contract.trials import draw_calmest, draw_trial, dtype_name, perturb, supported_narrow_formats
from separatrix.mechanisms import Mechanism

LENGTHS = (1024, 2500)
CODE_WIDTH = 12
"""The length of the code of signs that each token has: 2**12 codes, so that a query can find any token."""
CODE_LOGIT = 48.0
"""The logit of the key with the same code; that of a key with one other sign is 40, and both are exact."""
SLACK = 4
"""By how many units of rounding one result may be off.

Float32 sums that are rounded once reach 0.42 over all registered mechanisms. Logits rounded to 16 bits, as in
plain torch code, reach 2.5 where they are largest.
"""
MAX_BIAS = 0.5
"""By how many units of rounding the mean of all results may be off.

It is half a unit if all results are nearly the same number and are rounded to the same side. Registered
mechanisms and all correct callables tried reach 0.12."""
PERTURBATIONS = 3
MAX_RESPONSE = 8
"""If tokens that are off by a unit of rounding change results by more units, nothing is compared."""


@check("lengths", "gradient")
def long_in_float32(mechanism: Mechanism) -> None:
    """Long inputs in float32 give the same as in float64, and finite gradients."""
    length = LONG_LENGTHS[-1]
    for causal in causal_modes(mechanism):
        narrow, tolerance = draw_trial(mechanism, causal, length, dtype=torch.float32, shape=fit_narrow(mechanism))
        message = f"float32 differs from float64 ({length} tokens, causal={causal})"
        with torch.no_grad():
            reference = call_fast(mechanism, *narrow.to(torch.float64), causal=causal)
            actual = call_fast(mechanism, *narrow, causal=causal).double()
        require_close_without_ties(mechanism, causal, narrow, actual, reference, tolerance, message)
        for letter, slope in zip("qkv", gradients(mechanism, causal, narrow), strict=True):
            message = f"the gradient of {letter} in float32 ({length} tokens, causal={causal})"
            require_finite(slope, message)


@check("half_precision", "long_in_float32")
def long_in_16_bits(mechanism: Mechanism) -> None:
    """1024 and 2500 tokens in 16 bits give the same as in float64, each result and their mean."""
    is_tested, formats = False, supported_narrow_formats(mechanism)
    with torch.no_grad():
        for causal, length in product(causal_modes(mechanism), LENGTHS):
            inputs = draw_calmest(mechanism, causal, length, shape=fit_shape(mechanism, 1, 1, 3, 4))[0]
            case = f"{length} tokens, causal={causal}"
            is_tested |= _require_close_in_16_bits(mechanism, causal, inputs, case, formats)
        shape, causal = fit_shape(mechanism, 1, 1, CODE_WIDTH, 4), causal_modes(mechanism)[-1]
        if shape[2] >= CODE_WIDTH:
            inputs = _draw_codes(LENGTHS[-1], shape)
            case = f"{LENGTHS[-1]} tokens, each finding one by its code, causal={causal}"
            # exp(48) overflows float16 unless the maximum is subtracted; `finite_in_16_bits` requires less.
            is_tested |= _require_close_in_16_bits(mechanism, causal, inputs, case, formats, may_overflow=True)
    if not is_tested:
        raise Skipped("it magnifies rounding to 16 bits on all long inputs")


def _draw_codes(length: int, shape: Shape) -> Tokens:
    """Draw keys that are the code of each token, and queries that look for one of the tokens so far."""
    batch, heads, width, features = shape
    generator = torch.Generator().manual_seed(11)
    numbers = torch.stack([torch.randperm(1 << CODE_WIDTH, generator=generator)[:length] for _ in range(batch * heads)])
    signs = 2.0 * (numbers[..., None] >> torch.arange(CODE_WIDTH) & 1) - 1
    keys = torch.nn.functional.pad(signs, (0, width - CODE_WIDTH)).double()
    keys = keys.reshape(batch, heads, length, width)
    targets = (torch.rand(length, generator=generator) * (torch.arange(length) + 1)).long()
    values = torch.rand(batch, heads, length, features, generator=generator, dtype=torch.float64) + 0.1
    return Tokens(CODE_LOGIT / CODE_WIDTH * keys[..., targets, :], keys, values)


def _require_close_in_16_bits(
    mechanism: Mechanism,
    causal: bool,
    inputs: Tokens,
    case: str,
    formats: tuple[torch.dtype, ...],
    may_overflow: bool = False,
) -> bool:
    """Return whether a comparison with float64 was conclusive; raise Broken if results differ."""
    wide = inputs.to(torch.bfloat16).to(torch.float64)  # numbers that all formats represent exactly
    reference = call_fast(mechanism, *wide, causal=causal)
    size = largest_size(reference)
    is_tested = False
    for dtype in formats:
        unit = torch.finfo(dtype).eps
        narrow = wide.to(dtype)
        actual = call_fast(mechanism, *narrow, causal=causal).double()
        if dtype is torch.float16 and may_overflow and not bool(actual.isfinite().all()):
            continue
        tolerance = rounding_bound(dtype, slack=SLACK)
        # The response costs three more calls in float64, so it is measured only if it may matter.
        if not bool(((actual - reference).abs() <= tolerance * size).all()):
            response = _measure_response(mechanism, causal, wide, reference, unit)
            if not response <= MAX_RESPONSE * unit:
                continue
            tolerance = max(tolerance, 2 * response)
        is_tested = True
        message = f"{dtype_name(dtype)} differs from float64 ({case})"
        actual = require_close_without_ties(
            mechanism, causal, narrow, actual, reference, tolerance, message, trials=PERTURBATIONS
        )
        mean_case = f"float64 in the mean of all results ({case})"
        require_unbiased(actual, reference, MAX_BIAS * unit, mean_case, dtype)
    return is_tested


def _measure_response(mechanism: Mechanism, causal: bool, inputs: Tokens, reference: Tensor, unit: float) -> float:
    """Return the relative change of results if queries and keys are off by half a unit of rounding."""
    changes = [
        call_fast(mechanism, *perturb(inputs, unit / 2, seed), causal=causal) - reference
        for seed in range(PERTURBATIONS)
    ]
    return max(change.abs().max().item() for change in changes) / largest_size(reference)
