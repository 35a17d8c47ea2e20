"""Positions of queries among the keys, absent keys, and the keys that each query sees.

`first` is the position of the first query among the keys: with `causal`, query i sees keys up to first + i,
so one new query can read a cache of keys. `present` (batch × keys, bool) marks the keys that exist. An absent
token changes nothing: present tokens get the same output as without it, whatever numbers stand in its key and
value. A row that sees no present key is 0, with gradients of 0. The output of a query at an absent position
is unspecified.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING, Any

from separatrix.core.parameters import UsageError
from separatrix.core.tensors import Bool, Tensor, functional, torch
from separatrix.mechanisms._types import CallOptions
from separatrix.mechanisms.extras import TokenSizes, describe_value

if TYPE_CHECKING:
    from separatrix.mechanisms._base import Mechanism


class Causality(Enum):
    """Whether a mechanism can look ahead."""

    EITHER = "with causal=True a query sees only keys up to its own position, else all"
    ALWAYS = "only the past is ever seen; causal=False is refused"
    NEVER = "all keys are seen; causal=True is refused"


class LastQueryMode(Enum):
    """How to compute the output of a query that follows all tokens."""

    AFTER_OTHERS = "with a query at every position before it"
    AT_POSITION = "alone, at the position given by `first`"
    ALONE = "alone: a single query counts as the last"
    REVERSED = "alone, on the tokens in reverse order: a single query counts as the first"


Attend = Callable[[Tensor, Tensor, Tensor, CallOptions, dict[str, Any]], Tensor]
"""Attends with q, k, v, options and extras."""


def check_request(mechanism: Mechanism, counts: Tensor | None, causal: bool) -> None:
    """Raise a UsageError if the mechanism does not support these options."""
    if causal and mechanism.causality is Causality.NEVER:
        raise UsageError(f"{mechanism.name} has no causal form; call it with causal=False")
    if not causal and mechanism.causality is Causality.ALWAYS:
        raise UsageError(f"{mechanism.name} only looks back; call it with causal=True")
    if counts is not None and not mechanism.takes_counts:
        raise UsageError(f"{mechanism.name} depends on the order of tokens, so it does not accept counts")
    if counts is not None and causal:
        raise UsageError("counts and causal do not go together: counted tokens have no order")


def check_positions(mechanism: Mechanism, k: Tensor, first: int, present: Tensor | None) -> None:
    """Raise a UsageError if `first` is no position, or `present` no mask of the keys."""
    if isinstance(first, bool) or not isinstance(first, int) or first < 0:
        raise UsageError(f"first={first} is not a position; it is the number of keys before the first query")
    if first and mechanism.causality is Causality.NEVER and not mechanism.takes_first:
        raise UsageError(f"{mechanism.name} has no causal form, so queries have no position; leave first out")
    if present is None:
        return
    shape = (k.shape[0], k.shape[-2])
    if not isinstance(present, torch.Tensor) or present.dtype is not torch.bool or present.shape != shape:
        raise UsageError(f"present must be bool of shape {shape}, batch and keys, not {describe_value(present)}")


def presence_mask(present: Tensor | None, k: Tensor) -> Bool[Tensor, "#batch keys"]:
    """Return `present`, or a mask of all keys if it is None."""
    return k.new_ones(1, k.shape[-2], dtype=torch.bool) if present is None else present


def zero_absent(present: Tensor | None, *tensors: Tensor) -> tuple[Tensor, ...]:
    """Set absent tokens of (batch, heads, tokens, width) to 0."""
    if present is None:
        return tensors
    return tuple(x.masked_fill(~present[:, None, :, None], 0) for x in tensors)


def call_with_positions(
    mechanism: Mechanism, attend: Attend, q: Tensor, k: Tensor, v: Tensor, options: CallOptions, extras: dict[str, Any]
) -> Tensor:
    """Call `attend` with those of `first` and `present` that the mechanism supports, and emulate the others.

    Without support for `first`, queries of zeros are put before the others. Without support for `present`,
    batch elements with the same present tokens are attended together, cut to these tokens. A query for each
    key then belongs to the same token, and is cut with it.
    """
    first, present = options.first, options.present
    check_positions(mechanism, k, first, present)
    # A mask that hides nothing would only keep mechanisms from their faster forms.
    if present is not None and bool(present.all()):
        options, present = replace(options, present=None), None
    if present is not None:
        if not mechanism.takes_present:
            return _attend_to_present(mechanism, attend, q, k, v, options, extras)
        k, v = zero_absent(present, k, v)
    if first and mechanism.permutation_equivariant and not options.causal:
        # The position has no effect, and a form that does not look at it may be faster.
        options, first = replace(options, first=0), 0
    if first == 0 or mechanism.takes_first:
        return attend(q, k, v, options, extras)
    # Zeros in front put each query at its position; their outputs are cut off below.
    q = functional.pad(q, (0, 0, first, 0))
    return attend(q, k, v, replace(options, first=0), extras)[..., first:, :]


def _attend_to_present(
    mechanism: Mechanism, attend: Attend, q: Tensor, k: Tensor, v: Tensor, options: CallOptions, extras: dict[str, Any]
) -> Tensor:
    """Attend with the present tokens of each batch element alone; absent queries get 0."""
    queries, keys, first, counts = q.shape[-2], k.shape[-2], options.first, options.counts
    has_query_per_key = first + queries == keys
    if not has_query_per_key and (options.causal or mechanism.causality is not Causality.NEVER):
        raise UsageError(
            f"{mechanism.name} takes present only with a query for each key from position first on; "
            f"there are {queries} queries from position {first} on, and {keys} keys"
        )
    # Zeros that depend on q, so that a gradient of 0 reaches q even if no token is present.
    out = q[..., :1].where(q.new_zeros((), dtype=torch.bool), 0).expand(*q.shape[:-1], v.shape[-1])
    sizes = mechanism.sizes(q, k, v)
    assert options.present is not None
    patterns, pattern_numbers = torch.unique(options.present, dim=0, return_inverse=True)
    for number, pattern in enumerate(patterns):
        members = (pattern_numbers == number).nonzero()[:, 0]
        positions = pattern.nonzero()[:, 0]
        rows = torch.arange(queries, device=q.device)
        if has_query_per_key:
            rows = positions[positions >= first] - first
        if not len(positions) or not len(rows):
            continue
        tokens = q[members][..., rows, :], k[members][..., positions, :], v[members][..., positions, :]
        cut_extras = {name: _cut_extra(mechanism, name, x, sizes, members, positions) for name, x in extras.items()}
        cut_options = CallOptions(
            None if counts is None else counts.expand(k.shape[:-1])[members][..., positions],
            options.causal,
            int(pattern[:first].sum()) if has_query_per_key else first,
        )
        cut_out = call_with_positions(mechanism, attend, *tokens, cut_options, cut_extras)
        member_out = cut_out.new_zeros(len(members), *out.shape[1:]).index_copy(-2, rows, cut_out)
        out = out.to(member_out.dtype).index_copy(0, members, member_out)
    return out


def _cut_extra(
    mechanism: Mechanism, name: str, value: Any, sizes: TokenSizes, members: Tensor, positions: Tensor
) -> Any:
    """Select the part of an extra that belongs to some batch elements and positions."""
    extra = next((extra for extra in mechanism.extras if extra.name == name), None)
    if extra is None:
        raise UsageError(f"{mechanism.name} does not declare {name}, so it cannot be cut to present tokens")
    if value is None:
        return None
    value = extra.check(value, mechanism.name, sizes)
    if extra.per_token:
        return value[members][..., positions, :]
    # An extra for all tokens may be as long as they are, as a projection is: its first columns are used.
    return value[tuple(slice(n) for n in extra.shape(replace(sizes, tokens=len(positions))))]
