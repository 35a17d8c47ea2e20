"""The fast form is the definition: at every length, width and precision, however tokens lie in memory."""

from __future__ import annotations

import torch
from torch import Tensor

from separatrix.contract._base import Broken, Skipped, check
from separatrix.contract.calls import defined, fast
from separatrix.contract.inputs import (
    LENGTHS,
    LONG_LENGTHS,
    few,
    modes,
    require_equal,
    rounding,
    sizes,
    tokens,
    trial,
    trials,
)
from separatrix.mechanisms import Causality, Mechanism
from separatrix.parameters import UsageError

CROWD = (9, 17)
"""More batch elements and heads than usual."""
NUDGE = 1e-9
"""By how much of themselves tokens of both signs are moved, to see how much rounding is magnified there."""
MOST_MAGNIFIED = 1e4
WIDTHS = ((4, 1), (16, 33), (48, 24), (64, 64), (65, 2), (80, 96), (96, 80), (128, 100))
"""Widths of queries and keys, and of values, beside the usual ones."""
BIAS = {torch.bfloat16: 0.5, torch.float16: 2.0}
"""By how many units of rounding all results together may be off: what is rounded is off to both sides."""


@check("batch_independence", "head_independence", "causality", "chunks")
def definition(mechanism: Mechanism) -> None:
    """The fast form gives what the definition gives, at every length, in float64 and float32."""
    for causal, q, k, v, bound in trials(mechanism, LENGTHS, (torch.float64, torch.float32)):
        require_equal(
            fast(mechanism, q, k, v, causal=causal),
            defined(mechanism, q, k, v, causal=causal),
            bound,
            f"the fast form differs from the definition ({q.shape[-2]} tokens, {q.dtype}, causal={causal})",
        )
    batch, heads = CROWD
    for causal in modes(mechanism):
        q, k, v, bound = trial(mechanism, causal, shape=sizes(mechanism, batch, heads))
        what = (
            f"the fast form differs from the definition (batch {batch}, {q.shape[1]} heads, causal={causal})"
        )
        expected = defined(mechanism, q, k, v, causal=causal)
        require_equal(fast(mechanism, q, k, v, causal=causal), expected, bound, what)


@check("definition")
def signed_tokens(mechanism: Mechanism) -> None:
    """The fast form gives what the definition gives on tokens of both signs, if these can be told."""
    left_out = None
    for causal in modes(mechanism):
        for length in (LENGTHS[2], LENGTHS[-1]):
            q, k, v = tokens(length, shape=sizes(mechanism), signed=True)
            expected = defined(mechanism, q, k, v, causal=causal)
            if not bool(expected.isfinite().all()):
                left_out = Skipped("its definition is not for tokens of both signs")
                continue
            size = max(1.0, expected.abs().max().item())
            moved = defined(mechanism, *_nudged(q, k, NUDGE), v, causal=causal)
            found = fast(mechanism, q, k, v, causal=causal)
            magnified = (moved - expected).abs().max().item() / (NUDGE * size)
            magnified = max(magnified, mechanism.sensitivity(q, k, causal))
            if not magnified <= MOST_MAGNIFIED:
                left_out = Skipped(f"it magnifies rounding {magnified:.2g} times on tokens of both signs")
                continue
            what = f"the fast form differs from the definition on tokens of both signs ({length} tokens"
            bound = rounding(q.dtype) * max(1.0, 16 * magnified)
            require_equal(found, expected, bound, f"{what}, causal={causal})")
    if left_out is not None:
        raise left_out


@check("definition")
def lengths(mechanism: Mechanism) -> None:
    """The fast form gives what the definition gives on long inputs, of 101 to 1030 tokens."""
    for causal, q, k, v, bound in trials(mechanism, LONG_LENGTHS, (torch.float64,), few(mechanism)):
        what = f"the fast form differs from the definition ({q.shape[-2]} tokens, causal={causal})"
        with torch.no_grad():
            expected = defined(mechanism, q, k, v, causal=causal)
            require_equal(fast(mechanism, q, k, v, causal=causal), expected, bound, what)


@check("definition")
def widths(mechanism: Mechanism) -> None:
    """The fast form gives what the definition gives for tokens of width 4 to 128."""
    if mechanism.fixed_width is not None:
        raise Skipped(f"it takes tokens of width {mechanism.fixed_width} alone")
    for width, features in WIDTHS:
        for causal in modes(mechanism):
            shape = sizes(mechanism, 1, 1, width, features)
            q, k, v, bound = trial(mechanism, causal, LENGTHS[-1], shape=shape)
            what = f"the fast form differs from the definition (width {width}, causal={causal})"
            expected = defined(mechanism, q, k, v, causal=causal)
            require_equal(fast(mechanism, q, k, v, causal=causal), expected, bound, what)


@check("lengths", "widths")
def half_precision(mechanism: Mechanism) -> None:
    """In 16 bits the fast form is within a few roundings of the float32 definition, and off to both sides."""
    for causal, q, k, v, bound in trials(mechanism, LENGTHS, tuple(BIAS)):
        found = fast(mechanism, q, k, v, causal=causal).float()
        expected = defined(mechanism, q.float(), k.float(), v.float(), causal=causal)
        where = f"({q.shape[-2]} tokens, causal={causal})"
        require_equal(found, expected, bound, f"{_short(q.dtype)} differs from float32 {where}")
        bias = abs((found - expected).double().mean() / expected.double().abs().mean()).item()
        allowed = BIAS[q.dtype] * torch.finfo(q.dtype).eps
        if bias > allowed:
            raise Broken(
                f"{_short(q.dtype)} is off by {bias:.2g} of float32 in the mean of all results {where}, "
                f"where rounding leaves {allowed:.1g}"
            )


def _nudged(q: Tensor, k: Tensor, by: float) -> tuple[Tensor, Tensor]:
    """Queries and keys with every coordinate off by so much of itself, this way or that."""
    drawn = torch.Generator().manual_seed(9)
    ways = [2 * torch.randint(2, x.shape, generator=drawn) - 1 for x in (q, k)]
    return q * (1 + by * ways[0]), k * (1 + by * ways[1])


def _short(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


@check("lengths", "widths")
def cross(mechanism: Mechanism) -> None:
    """With more or fewer queries than keys the fast form is still the definition."""
    if mechanism.causality is Causality.ALWAYS:
        raise Skipped("it only looks back, so there is a query for every key")
    for queries, keys in ((11, 4), (3, 33), (1, 7), (7, 1), (1, 130), (130, 2)):
        q, k, v, bound = trial(mechanism, False, queries, keys)
        try:
            expected = defined(mechanism, q, k, v)
        except UsageError as refusal:
            raise Skipped(f"it refuses {queries} queries on {keys} keys: {refusal}") from None
        what = f"the fast form differs from the definition ({queries} queries, {keys} keys)"
        require_equal(fast(mechanism, q, k, v), expected, bound, what)


@check()
def layout(mechanism: Mechanism) -> None:
    """Tokens that lie in memory in another order give the same result."""
    for causal in modes(mechanism):
        q, k, v, bound = trial(mechanism, causal)
        for way, moved in (("strided", _across), ("transposed", _by_token), ("expanded", _expanded)):
            given = [moved(x) for x in (q, k, v)]
            whole = [x.contiguous() for x in given]
            expected = fast(mechanism, whole[0], whole[1], whole[2], causal=causal)
            found = fast(mechanism, given[0], given[1], given[2], causal=causal)
            what = f"{way} tokens give another result than contiguous ones (causal={causal})"
            require_equal(found, expected, bound, what)


def _across(x: Tensor) -> Tensor:
    """The same numbers, in another order in memory."""
    return x.permute(2, 0, 3, 1).contiguous().permute(1, 3, 0, 2)


def _by_token(x: Tensor) -> Tensor:
    """The same numbers as a projection leaves them: the heads of a token beside each other."""
    return x.transpose(1, 2).contiguous().transpose(1, 2)


def _expanded(x: Tensor) -> Tensor:
    """The first head for all heads, without copies in memory."""
    return x[:, :1].expand_as(x)
