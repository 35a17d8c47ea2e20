"""Where queries and keys stand, which keys are there, and who sees whom.

`first` is the place of the first query among the keys: with `causal`, query i sees keys up to first + i, so
that one new query reads a cache of keys. `present` (batch × keys, bool) says which keys are there: an absent
token is as if it had never been. Present tokens get what they get alone, whatever stands for absent keys; a
row that sees no present key is 0, with gradients of 0. What a query in an absent place gets is not promised.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING, Any

from separatrix.core.parameters import UsageError
from separatrix.core.tensors import Bool, Tensor, functional, torch
from separatrix.mechanisms.extras import Sizes, described

if TYPE_CHECKING:
    from separatrix.mechanisms._base import Mechanism

Present = Bool[Tensor, "batch keys"]
Seen = Bool[Tensor, "#batch 1 #queries keys"]
Attend = Callable[[Tensor, Tensor, Tensor, Tensor | None, dict[str, Any], dict[str, Any]], Tensor]
"""Attends with q, k, v, counts, those of `first` and `present` that a mechanism takes, and extras."""


class Causality(Enum):
    """Whether a mechanism can look ahead."""

    EITHER = "with causal=True a query sees only keys up to its own place, else all"
    ALWAYS = "only the past is ever seen; causal=False is refused"
    NEVER = "all keys are seen; causal=True is refused"


class AskedLast(Enum):
    """How a query that stands after all tokens is asked what it sees."""

    AFTER_OTHERS = "with a query at every place before it"
    PLACED = "alone, at the place that `first` tells"
    ALONE = "alone, and it takes itself for the last"
    REVERSED = "alone, on the tokens in the other order: without others a query stands at the first place"


def check_request(mechanism: Mechanism, counts: Tensor | None, causal: bool) -> None:
    """Refuse what a mechanism does not do, in one line."""
    if causal and mechanism.causality is Causality.NEVER:
        raise UsageError(f"{mechanism.name} has no causal form; call it with causal=False")
    if not causal and mechanism.causality is Causality.ALWAYS:
        raise UsageError(f"{mechanism.name} only looks back; call it with causal=True")
    if counts is not None and not mechanism.takes_counts:
        raise UsageError(f"{mechanism.name} depends on the order of tokens, so it does not accept counts")
    if counts is not None and causal:
        raise UsageError("counts and causal do not go together: counted tokens have no order")


def check_places(mechanism: Mechanism, q: Tensor, k: Tensor, first: int, present: Tensor | None) -> None:
    """Refuse a place or a mask that is none, in one line."""
    if isinstance(first, bool) or not isinstance(first, int) or first < 0:
        raise UsageError(f"first={first} is no place; it is the number of keys before the first query")
    if first and mechanism.causality is Causality.NEVER and not mechanism.takes_first:
        raise UsageError(f"{mechanism.name} has no causal form, so queries have no place; leave first out")
    if present is None:
        return
    wanted = (k.shape[0], k.shape[-2])
    if not isinstance(present, torch.Tensor) or present.dtype is not torch.bool or present.shape != wanted:
        raise UsageError(f"present must be bool of shape {wanted}, batch and keys, not {described(present)}")


def which_present(present: Tensor | None, k: Tensor) -> Tensor:
    """Which keys are there, (batch or 1, keys), said of all of them where nothing was said."""
    return k.new_ones(1, k.shape[-2], dtype=torch.bool) if present is None else present


def seen_keys(
    queries: range, k: Tensor, causal: bool, first: int = 0, present: Tensor | None = None
) -> Tensor | None:
    """Which keys the queries see, (batch or 1, 1, queries or 1, keys); None where they see all.

    >>> seen_keys(range(2), torch.zeros(1, 1, 3, 4), causal=True, first=1)[0, 0].int()
    tensor([[1, 1, 0],
            [1, 1, 1]], dtype=torch.int32)
    """
    keys = k.shape[-2]
    seen = None if present is None else present[:, None, None, :]
    if causal and first + queries.start < keys - 1:
        row = torch.arange(first + queries.start, first + queries.stop, device=k.device)[:, None]
        past = (torch.arange(keys, device=k.device) <= row)[None, None]
        seen = past if seen is None else past & seen
    return seen


def placed(
    mechanism: Mechanism,
    attend: Attend,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    counts: Tensor | None,
    causal: bool,
    first: int,
    present: Tensor | None,
    extras: dict[str, Any],
) -> Tensor:
    """Attend with `first` and `present` as options, or, where a mechanism does not take them, without.

    Without `first`, queries of zeros stand before the others; without `present`, the elements of a batch
    that have the same tokens present are attended by themselves, cut to these. A query for each key is then
    taken for the same token, and cut with it.
    """
    check_places(mechanism, q, k, first, present)
    options: dict[str, Any] = {}
    if present is not None and not bool(present.all()):
        if not mechanism.takes_present:
            return _cut(mechanism, attend, q, k, v, counts, causal, first, present, extras)
        options["present"] = present
        k, v = (x.masked_fill(~present[:, None, :, None], 0) for x in (k, v))
    if first == 0 or (mechanism.permutation_equivariant and not causal):
        return attend(q, k, v, counts, options, extras)
    if mechanism.takes_first:
        return attend(q, k, v, counts, {**options, "first": first}, extras)
    q = functional.pad(q, (0, 0, first, 0))
    return attend(q, k, v, counts, options, extras)[..., first:, :]


def _cut(
    mechanism: Mechanism,
    attend: Attend,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    counts: Tensor | None,
    causal: bool,
    first: int,
    present: Tensor,
    extras: dict[str, Any],
) -> Tensor:
    """The present tokens of each element of the batch by themselves; absent queries get 0."""
    queries, keys = q.shape[-2], k.shape[-2]
    own = first + queries == keys
    if not own and (causal or mechanism.causality is not Causality.NEVER):
        raise UsageError(
            f"{mechanism.name} takes present only with a query for each key from place first on; "
            f"there are {queries} queries from place {first} on, and {keys} keys"
        )
    nothing = q.new_zeros((), dtype=torch.bool)
    out = q[..., :1].where(nothing, 0).expand(*q.shape[:-1], v.shape[-1])
    sizes = mechanism.sizes(q, k, v)
    patterns, which = torch.unique(present, dim=0, return_inverse=True)
    for number, pattern in enumerate(patterns):
        members = (which == number).nonzero()[:, 0]
        places = pattern.nonzero()[:, 0]
        asking = places[places >= first] - first if own else torch.arange(queries, device=q.device)
        if not len(places) or not len(asking):
            continue
        tokens = q[members][..., asking, :], k[members][..., places, :], v[members][..., places, :]
        given = {name: _of_tokens(mechanism, name, x, sizes, members, places) for name, x in extras.items()}
        times = None if counts is None else counts.expand(k.shape[:-1])[members][..., places]
        before = int(pattern[:first].sum()) if own else first
        found = placed(mechanism, attend, *tokens, times, causal, before, None, given)
        rows = found.new_zeros(len(members), *out.shape[1:]).index_copy(-2, asking, found)
        out = out.to(found.dtype).index_copy(0, members, rows)
    return out


def _of_tokens(
    mechanism: Mechanism, name: str, value: Any, sizes: Sizes, members: Tensor, places: Tensor
) -> Any:
    """An extra for some elements of a batch, cut to some of the tokens."""
    extra = next((each for each in mechanism.extras if each.name == name), None)
    if extra is None:
        raise UsageError(
            f"{mechanism.name} does not say what {name} is, so it cannot be cut to present tokens"
        )
    if value is None:
        return None
    value = extra.checked(value, mechanism.name, sizes)
    if extra.per_token:
        return value[members][..., places, :]
    # What is for all tokens may still be as long as they are, as a projection is: its first columns are used.
    return value[tuple(slice(n) for n in extra.shape(replace(sizes, tokens=len(places))))]
