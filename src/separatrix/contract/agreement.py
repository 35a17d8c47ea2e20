"""The fast form is the definition: at every length, width and precision, however tokens lie in memory."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

import torch
from torch import Tensor

from separatrix.contract._base import Skipped, check
from separatrix.contract.calls import defined, fast
from separatrix.contract.inputs import (
    LENGTHS,
    LONG_LENGTHS,
    Tokens,
    few,
    modes,
    nudged,
    refusals,
    require_equal,
    rounding,
    sizes,
    tokens,
    trial,
    trials,
)
from separatrix.core.errors import one_line
from separatrix.mechanisms import Causality, Mechanism
from separatrix.mechanisms.custom import CustomMechanism

CROWD = (9, 17)
"""More batch elements and heads than usual."""
NUDGE = 1e-9
"""By how much of themselves tokens of both signs are moved, to see how much rounding is magnified there."""
MOST_MAGNIFIED = 1e4
LARGE = (100.0, 1e4)
"""How large the largest logit is made: beyond exponentials in float32, and far beyond."""
ROUGHLY = 1e-6
"""The bound on such logits: kernels that cancel lose digits there, and one that is cut off is far off."""
WIDTHS = ((4, 1), (16, 33), (48, 24), (64, 64), (65, 2), (66, 66), (80, 96), (96, 80), (128, 100))
"""Widths of queries and keys, and of values, beside the usual ones."""


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
    drawn = (tokens(length, shape=sizes(mechanism), signed=True) for length in (LENGTHS[2], LENGTHS[-1]))
    _require_definition(mechanism, drawn, "tokens of both signs")


@check("signed_tokens")
def large_logits(mechanism: Mechanism) -> None:
    """The fast form gives what the definition gives on logits up to 100, and up to 1e4, if it can be told."""
    q, k, v = tokens(shape=sizes(mechanism))
    top = (q @ k.mT).max().item()
    _require_definition(mechanism, ((q * (size / top), k, v) for size in LARGE), "large logits", ROUGHLY)


def _require_definition(mechanism: Mechanism, drawn: Iterable[Tokens], noun: str, least: float = 0.0) -> None:
    """The fast form is the definition on such tokens, within `least` or what they magnify of rounding."""
    left_out = None
    for (q, k, v), causal in product(drawn, modes(mechanism)):
        expected = defined(mechanism, q, k, v, causal=causal)
        if not bool(expected.isfinite().all()):
            left_out = Skipped(f"its definition is not for {noun}")
            continue
        size = max(1.0, expected.abs().max().item())
        moved = defined(mechanism, *nudged(q, k, NUDGE), v, causal=causal)
        found = fast(mechanism, q, k, v, causal=causal)
        magnified = (moved - expected).abs().max().item() / (NUDGE * size)
        magnified = max(magnified, mechanism.sensitivity(q, k, causal))
        if not magnified <= MOST_MAGNIFIED:
            left_out = Skipped(f"it magnifies rounding {magnified:.2g} times on {noun}")
            continue
        what = f"the fast form differs from the definition on {noun} ({q.shape[-2]} tokens"
        bound = max(least, rounding(q.dtype) * max(1.0, 16 * magnified))
        require_equal(found, expected, bound, f"{what}, causal={causal})")
    if left_out is not None:
        raise left_out


@check("definition")
def lengths(mechanism: Mechanism) -> None:
    """The fast form gives what the definition gives on 3 to 1030 tokens, at and about the sizes of blocks."""
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
def cross(mechanism: Mechanism) -> None:
    """With more or fewer queries than keys the fast form is still the definition, where there is one."""
    if mechanism.causality is Causality.ALWAYS:
        raise Skipped("it only looks back, so there is a query for every key")
    for queries, keys in ((11, 4), (3, 33), (1, 7), (7, 1), (1, 130), (130, 2)):
        q, k, v, bound = trial(mechanism, False, queries, keys)
        try:
            expected = defined(mechanism, q, k, v)
        except refusals(mechanism) as refusal:
            raise Skipped(f"it refuses {queries} queries on {keys} keys: {one_line(refusal, 90)}") from None
        found = fast(mechanism, q, k, v)
        what = f"the fast form differs from the definition ({queries} queries, {keys} keys)"
        if isinstance(mechanism, CustomMechanism):
            what = f"{queries} queries on {keys} keys"
            nobody = ~expected.isfinite().any(-1, keepdim=True)  # who sees no key has no answer
            if not bool(nobody.all()):
                found, expected = found.masked_fill(nobody, 0), expected.masked_fill(nobody, 0)
        require_equal(found, expected, bound, what)


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
