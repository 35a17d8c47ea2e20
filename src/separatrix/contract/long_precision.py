"""Many tokens in few bits: what is added up over thousands of them keeps what wider numbers give.

Sums of a thousand terms that are kept in bfloat16 stop growing at a few hundred; small inputs do not show it.
"""

from __future__ import annotations

from itertools import product

import torch
from torch import Tensor

from separatrix.contract._base import Broken, Skipped, check
from separatrix.contract.calculus import gradients
from separatrix.contract.calls import fast
from separatrix.contract.inputs import (
    LONG_LENGTHS,
    Shape,
    Tokens,
    calmest,
    few,
    modes,
    narrow_formats,
    nudged,
    require_finite,
    rounding,
    short,
    sizes,
    trial,
)
from separatrix.contract.precision import require_nearly
from separatrix.mechanisms import Mechanism

LENGTHS = (1024, 2500)
CODE = 12
"""Coordinates of a token's own code of signs: 4096 of them, so that a query may choose one of all tokens."""
CODE_LOGIT = 48.0
"""The logit of the key that is chosen; that of a key with one other sign is 40, and both are exact."""
SLACK = 4
"""By how many units of rounding one result may be off.

Sums in float32 that are rounded once reach 0.42 over all mechanisms of ours. Logits that are rounded to 16
bits, as plain torch code has them, reach 2.5 where they are largest.
"""
BIAS = 0.5
"""By how many units all results together may be off: by half of one they are where all are nearly the same
number, and are rounded to the same side. Ours and all correct callables tried reach 0.12."""
NUDGES = 3
MOST_MOVED = 8
"""Where tokens that are off by one unit of rounding move results by more units, nothing is asked."""


@check("lengths", "gradient")
def long_in_float32(mechanism: Mechanism) -> None:
    """Long inputs in float32 give what they give in float64, and gradients are finite."""
    for causal in modes(mechanism):
        length = LONG_LENGTHS[-1]
        narrow = trial(mechanism, causal, length, dtype=torch.float32, shape=few(mechanism))
        (q, k, v), bound = (x.double() for x in narrow[:3]), narrow[3]
        what = f"float32 differs from float64 ({length} tokens, causal={causal})"
        with torch.no_grad():
            expected = fast(mechanism, q, k, v, causal=causal)
            found = fast(mechanism, *narrow[:3], causal=causal).double()
        require_nearly(mechanism, causal, narrow[:3], found, expected, bound, what)
        for letter, slope in zip("qkv", gradients(mechanism, causal, narrow[:3]), strict=True):
            what = f"the gradient of {letter} in float32 ({length} tokens, causal={causal})"
            require_finite(slope, what)


@check("half_precision", "long_in_float32")
def long_in_16_bits(mechanism: Mechanism) -> None:
    """1024 and 2500 tokens in 16 bits give what they give in float64, each result and all together."""
    asked, formats = False, narrow_formats(mechanism)
    with torch.no_grad():
        for causal, length in product(modes(mechanism), LENGTHS):
            shape = sizes(mechanism, 1, 1, 3, 4)
            given = calmest(mechanism, causal, length, shape=shape)[0]
            asked |= _asked(mechanism, causal, given, f"{length} tokens, causal={causal}", formats)
        shape, causal = sizes(mechanism, 1, 1, CODE, 4), modes(mechanism)[-1]
        if shape[2] >= CODE:
            given = _codes(LENGTHS[-1], shape)
            noun = f"{LENGTHS[-1]} tokens of which each finds one, causal={causal}"
            asked |= _asked(mechanism, causal, given, noun, formats, may_overflow=True)
    if not asked:
        raise Skipped("it magnifies rounding to 16 bits on all long inputs")


def _codes(length: int, shape: Shape) -> Tokens:
    """Keys that are signs, each token's own, and queries that look for one of the tokens so far."""
    batch, heads, width, features = shape
    drawn = torch.Generator().manual_seed(11)
    numbers = torch.stack([torch.randperm(1 << CODE, generator=drawn)[:length] for _ in range(batch * heads)])
    signs = 2.0 * (numbers[..., None] >> torch.arange(CODE) & 1) - 1
    keys = torch.nn.functional.pad(signs, (0, width - CODE)).double().reshape(batch, heads, length, width)
    wanted = (torch.rand(length, generator=drawn) * (torch.arange(length) + 1)).long()
    values = torch.rand(batch, heads, length, features, generator=drawn, dtype=torch.float64) + 0.1
    return CODE_LOGIT / CODE * keys[..., wanted, :], keys, values


def _asked(
    mechanism: Mechanism,
    causal: bool,
    given: Tokens,
    noun: str,
    formats: tuple[torch.dtype, ...],
    may_overflow: bool = False,
) -> bool:
    """Whether it could be told that results in 16 bits are those in float64; Broken if they are not.

    The tokens are numbers that both formats have.
    """
    q, k, v = (x.bfloat16().double() for x in given)
    expected = fast(mechanism, q, k, v, causal=causal)
    asked = False
    for dtype in formats:
        unit = torch.finfo(dtype).eps
        narrow = q.to(dtype), k.to(dtype), v.to(dtype)
        found = fast(mechanism, *narrow, causal=causal).double()
        if dtype is torch.float16 and may_overflow and not bool(found.isfinite().all()):
            continue
        bound = rounding(dtype, slack=SLACK)
        if not _within(found, expected, bound):
            moved = _moved(mechanism, causal, (q, k, v), expected, unit)
            if not moved <= MOST_MOVED * unit:
                continue
            bound = max(bound, 2 * moved)
        asked = True
        what = f"{short(dtype)} differs from float64 ({noun})"
        found = require_nearly(mechanism, causal, narrow, found, expected, bound, what, nudges=NUDGES)
        bias = abs((found - expected).mean() / expected.abs().mean()).item()
        if bias > BIAS * unit:
            raise Broken(
                f"{short(dtype)} is off by {bias:.2g} of float64 in the mean of all results ({noun}), "
                f"where rounding leaves {BIAS * unit:.1g}"
            )
    return asked


def _within(found: Tensor, expected: Tensor, bound: float) -> bool:
    return bool(((found - expected).abs() <= bound * max(1.0, expected.abs().max().item())).all())


def _moved(mechanism: Mechanism, causal: bool, given: Tokens, expected: Tensor, unit: float) -> float:
    """By how much of the largest results move when queries and keys are off by half a unit of rounding."""
    q, k, v = given
    moved = [
        fast(mechanism, *nudged(q, k, unit / 2, seed), v, causal=causal) - expected for seed in range(NUDGES)
    ]
    return max(each.abs().max().item() for each in moved) / max(1.0, expected.abs().max().item())
