"""The 16-bit formats in which a mechanism runs, and the ways in which it refuses others."""

from __future__ import annotations

import torch

from separatrix.contract._base import Skipped
from separatrix.contract.calls import call_fast
from separatrix.contract.inputs import causal_modes, draw_tokens, fit_shape
from separatrix.core.errors import WrongResult, describe_failure
from separatrix.core.parameters import UsageError
from separatrix.mechanisms import Mechanism, observed
from separatrix.mechanisms.custom import CustomMechanism

NARROW_FORMATS = (torch.bfloat16, torch.float16)


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
