"""The fast form is the definition, and counts are literal repetition."""

from __future__ import annotations

from itertools import product

import torch
from torch import Tensor

from separatrix.contract._base import Broken, Skipped, check
from separatrix.contract.inputs import LENGTHS, modes, require_equal, tokens, trial, trials
from separatrix.mechanisms import Causality, Mechanism
from separatrix.parameters import UsageError


@check
def definition(mechanism: Mechanism) -> None:
    """The fast form gives what the definition gives, at every length, in float64 and float32."""
    for causal, q, k, v, bound in trials(mechanism, LENGTHS, (torch.float64, torch.float32)):
        require_equal(
            mechanism(q, k, v, causal=causal),
            mechanism.definition(q, k, v, causal=causal),
            bound,
            f"the fast form differs from the definition ({q.shape[-2]} tokens, {q.dtype}, causal={causal})",
        )


@check
def half_precision(mechanism: Mechanism) -> None:
    """In bfloat16 the fast form is within a few roundings of the float32 definition."""
    for causal, q, k, v, bound in trials(mechanism, LENGTHS, (torch.bfloat16,)):
        require_equal(
            mechanism(q, k, v, causal=causal),
            mechanism.definition(q.float(), k.float(), v.float(), causal=causal),
            bound,
            f"bfloat16 differs from float32 ({q.shape[-2]} tokens, causal={causal})",
        )


@check
def cross(mechanism: Mechanism) -> None:
    """With more or fewer queries than keys the fast form is still the definition."""
    if mechanism.causality is Causality.ALWAYS:
        raise Skipped("it only looks back, so there is a query for every key")
    for queries, keys in ((11, 4), (3, 33), (1, 7), (7, 1)):
        q, k, v, bound = trial(mechanism, False, queries, keys)
        try:
            expected = mechanism.definition(q, k, v)
        except UsageError as refusal:
            raise Skipped(f"it refuses {queries} queries on {keys} keys: {refusal}") from None
        what = f"the fast form differs from the definition ({queries} queries, {keys} keys)"
        require_equal(mechanism(q, k, v), expected, bound, what)


@check
def layout(mechanism: Mechanism) -> None:
    """Tokens that lie in memory in another order give the same result."""
    for causal in modes(mechanism):
        q, k, v, bound = trial(mechanism, causal)
        expected = mechanism(q, k, v, causal=causal)
        q, k, v = (x.permute(2, 0, 3, 1).contiguous().permute(1, 3, 0, 2) for x in (q, k, v))
        found = mechanism(q, k, v, causal=causal)
        what = f"strided tokens give another result than contiguous ones (causal={causal})"
        require_equal(found, expected, bound, what)


@check
def counts(mechanism: Mechanism) -> None:
    """A key with a count is that many equal keys; who takes no counts refuses them."""
    q, k, v, bound = trial(mechanism, False, 11, 4)
    times = torch.tensor([1, 3, 2, 5])
    if not mechanism.takes_counts:
        _require_refusal(mechanism, True)
        raise Skipped("it takes no counts, and refuses them")
    if mechanism.causality is Causality.ALWAYS:
        raise Broken("it takes counts and only looks back, but counted tokens have no order")
    if mechanism.causality is Causality.EITHER:
        _require_refusal(mechanism, False)
    literal = _repeated(mechanism, q, k, v, times)
    for form, attend in (("fast form", mechanism), ("definition", mechanism.definition)):
        what = f"counts 1, 3, 2, 5 differ from literal repetition in the {form}"
        require_equal(attend(q, k, v, times.double()), literal, bound, what)
    each = torch.tensor([1, 3, 2, 5]).repeat(2, 3, 1) + torch.arange(6).reshape(2, 3, 1)
    each[..., 0] = 1
    found = mechanism(q, k, v, each.double())
    for batch, head in product(range(2), range(3)):
        one = (slice(batch, batch + 1), slice(head, head + 1))
        literal = _repeated(mechanism, q[one], k[one], v[one], each[batch, head])
        what = f"counts of each head's own differ from literal repetition in batch {batch}, head {head}"
        require_equal(found[one], literal, bound, what)


def _repeated(mechanism: Mechanism, q: Tensor, k: Tensor, v: Tensor, times: Tensor) -> Tensor:
    """The definition on keys and values that are literally repeated."""
    return mechanism.definition(q, k.repeat_interleave(times, dim=-2), v.repeat_interleave(times, dim=-2))


def _require_refusal(mechanism: Mechanism, all_modes: bool) -> None:
    """Counts must be refused with a UsageError: in causal mode, or in all modes."""
    q, k, v = tokens(4)
    for causal in modes(mechanism) if all_modes else (True,):
        try:
            mechanism(q, k, v, torch.full((4,), 2.0, dtype=q.dtype), causal)
        except UsageError:
            continue
        why = "it says it takes no counts" if all_modes else "counted tokens have no order"
        raise Broken(f"counts were accepted with causal={causal}, but {why}: expected a UsageError")
