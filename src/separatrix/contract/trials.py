"""Trials of the checks: the formats in which a mechanism runs, and tokens with the tolerance for results on them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import product

import torch

from separatrix.contract._base import Skipped
from separatrix.contract.calls import call_fast
from separatrix.contract.comparisons import rounding_bound
from separatrix.contract.inputs import LENGTH, LENGTHS, Shape, Tokens, causal_modes, draw_tokens, fit_shape
from separatrix.core.errors import WrongResult, describe_failure
from separatrix.core.parameters import UsageError
from separatrix.mechanisms import Mechanism, observed
from separatrix.mechanisms.custom import CustomMechanism

NARROW_FORMATS = (torch.bfloat16, torch.float16)
MAX_USEFUL_TOLERANCE = 1e-2
"""A comparison with a larger tolerance is not informative."""
MAX_CALM_SENSITIVITY = 16.0
"""If rounding is magnified more than this, other tokens are tried."""


def _draw_tokens_on_arc(queries: int, keys: int | None, dtype: torch.dtype, shape: Shape) -> Tokens:
    """Draw tokens whose neighbours are similar and whose others are not, so that landmarks represent them."""
    q, k, v = draw_tokens(queries, keys, shape=shape)
    for x in (q, k):
        angle = math.pi * (torch.arange(x.shape[-2], dtype=x.dtype) + 0.5) / x.shape[-2]
        x *= 0.1
        x[..., :2] += 4 * torch.stack([angle.cos(), angle.sin()], dim=-1)
    return Tokens(q, k, v).to(dtype)


def draw_calmest(
    mechanism: Mechanism,
    causal: bool,
    queries: int,
    shape: Shape,
    keys: int | None = None,
    dtype: torch.dtype = torch.float64,
    order: int = 0,
) -> tuple[Tokens, float]:
    """Return the tokens on which a mechanism magnifies rounding least, and the factor.

    Tokens on an arc are tried only if the usual ones are magnified more than MAX_CALM_SENSITIVITY.
    """
    usual = draw_tokens(queries, keys, dtype, shape=shape)
    factor = mechanism.sensitivity(usual.q, usual.k, causal, order)
    if factor <= MAX_CALM_SENSITIVITY:
        return usual, factor
    arc = _draw_tokens_on_arc(queries, keys, dtype, shape)
    arc_factor = mechanism.sensitivity(arc.q, arc.k, causal, order)
    return (arc, arc_factor) if arc_factor < factor else (usual, factor)


def sensitivity(mechanism: Mechanism) -> float:
    """Return the largest factor by which a mechanism magnifies rounding on the usual tokens."""
    shape, causal = fit_shape(mechanism), causal_modes(mechanism)[0]
    # The number of tokens decides how nearly singular a matrix is that the formula inverts.
    return max(mechanism.sensitivity(*draw_tokens(length, shape=shape)[:2], causal) for length in LENGTHS)


def draw_trial(
    mechanism: Mechanism,
    causal: bool,
    queries: int = LENGTH,
    keys: int | None = None,
    dtype: torch.dtype = torch.float64,
    shape: Shape | None = None,
) -> tuple[Tokens, float]:
    """Return tokens for a comparison, and its tolerance.

    Sums over 16-bit tokens are computed in float32, and the result is within a few roundings.
    """
    inputs, factor = draw_calmest(mechanism, causal, queries, shape or fit_shape(mechanism), keys, dtype)
    sum_dtype = torch.promote_types(dtype, torch.float32)
    # Rounding errors of a sum of n terms grow like sqrt(n), as a random walk does.
    sum_growth = max(1.0, queries / LENGTHS[-1]) ** 0.5
    tolerance = rounding_bound(sum_dtype) * factor * sum_growth
    if factor > 1 and tolerance >= MAX_USEFUL_TOLERANCE:
        raise Skipped(
            f"it magnifies rounding {factor:.2g} times on {queries} tokens in {sum_dtype}: "
            f"a tolerance of {tolerance:.1g} is not informative"
        )
    return inputs, tolerance if sum_dtype is dtype else tolerance + rounding_bound(dtype, slack=4)


def draw_trials(
    mechanism: Mechanism, lengths: Iterable[int], dtypes: Iterable[torch.dtype], shape: Shape | None = None
) -> Iterator[tuple[bool, Tokens, float]]:
    """Yield `causal`, tokens and tolerance in every mode; raise Skipped at the end if a case is left out."""
    skipped_case = None
    for causal, dtype, length in product(causal_modes(mechanism), dtypes, lengths):
        try:
            inputs, tolerance = draw_trial(mechanism, causal, length, dtype=dtype, shape=shape)
        except Skipped as reason:
            skipped_case = reason
            continue
        yield causal, inputs, tolerance
    # Only now: a fault in one of the other cases is to be reported first.
    if skipped_case is not None:
        raise skipped_case


def perturb(inputs: Tokens, size: float, seed: int = 9) -> Tokens:
    """Change every coordinate of queries and keys by this fraction of itself, up or down at random."""
    generator = torch.Generator().manual_seed(seed)
    q_signs, k_signs = (2 * torch.randint(2, x.shape, generator=generator) - 1 for x in inputs[:2])
    return Tokens(inputs.q * (1 + size * q_signs), inputs.k * (1 + size * k_signs), inputs.v)


def refusal_types(mechanism: Mechanism) -> tuple[type[Exception], ...]:
    """Return the exceptions by which a mechanism refuses a call; callables may use more of them."""
    return observed.REFUSALS if isinstance(mechanism, CustomMechanism) else (UsageError,)


def supported_narrow_formats(mechanism: Mechanism) -> tuple[torch.dtype, ...]:
    """Return the 16-bit formats in which a mechanism runs; raise Skipped if there is none."""
    refusals = find_refused_formats(mechanism)
    formats = tuple(dtype for dtype in NARROW_FORMATS if dtype not in refusals)
    if not formats:
        raise Skipped(next(iter(refusals.values())))
    return formats


def find_refused_formats(mechanism: Mechanism) -> dict[torch.dtype, str]:
    """Return the 16-bit formats in which a mechanism does not run, with the reasons.

    torch lacks some operations in these formats, which is no fault of the mechanism.
    """
    refusals: dict[torch.dtype, str] = {}
    for dtype in NARROW_FORMATS:
        inputs = draw_tokens(dtype=dtype, shape=fit_shape(mechanism))
        try:
            call_fast(mechanism, *inputs, causal=causal_modes(mechanism)[0])
        except Exception as error:
            if not _is_format_refusal(mechanism, error):
                raise
            refusals[dtype] = f"it does not run in {dtype_name(dtype)}: {describe_failure(error)}"
    return refusals


def _is_format_refusal(mechanism: Mechanism, error: Exception) -> bool:
    """Return whether an error says that a format is not supported; others are faults."""
    if isinstance(error, WrongResult):  # a ValueError, which would count as a refusal
        return False
    return isinstance(error, refusal_types(mechanism)) or "not implemented for" in str(error)


def dtype_name(dtype: torch.dtype) -> str:
    """Return the name of a format, `bfloat16`."""
    return str(dtype).removeprefix("torch.")
