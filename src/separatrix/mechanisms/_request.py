"""What is asked of a mechanism: checked, filled and widened here, once for all.

`first` is the place of the first query among the keys: with `causal`, query i sees keys up to first + i, so
that one new query reads a cache of keys. `present` (batch × keys, bool) says which keys are there: an absent
token is as if it had never been. Present tokens get what they get alone, whatever stands for absent keys; a
row that sees no present key is 0, with gradients of 0. What a query in an absent place gets is not promised.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from enum import Enum
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, Any, TypeVar, cast

from separatrix.parameters import UsageError
from separatrix.tensors import Bool, Tensor, functional, torch

if TYPE_CHECKING:
    from separatrix.mechanisms._base import Mechanism

Present = Bool[Tensor, "batch keys"]
Seen = Bool[Tensor, "#batch 1 #queries keys"]
Attend = TypeVar("Attend", bound=Callable[..., Tensor])
Method = TypeVar("Method", bound=Callable[..., Any])


class Causality(Enum):
    """Whether a mechanism can look ahead."""

    EITHER = "with causal=True a query sees only keys up to its own place, else all"
    ALWAYS = "only the past is ever seen; causal=False is refused"
    NEVER = "all keys are seen; causal=True is refused"


def form(method: Attend) -> Attend:
    """Make a definition or a fast form of `method`, which then has only the mathematics to do.

    The request is checked, extras are filled in, 16-bit numbers are added up in float32, autocast is off
    inside, and the result has the dtype of v. Absent keys and values come as 0, and absent extras too.
    What the method takes by a name of its own, such as `chunk`, is passed on.
    """

    own = signature(method).parameters.keys() - {"first", "present"}

    @wraps(method)
    def attend(
        self: Mechanism,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        counts: Tensor | None = None,
        causal: bool = False,
        *,
        first: int = 0,
        present: Tensor | None = None,
        **extras: Any,
    ) -> Tensor:
        check_request(self, counts, causal)
        named = {name: extras.pop(name) for name in own & extras.keys()}

        def inside(q: Tensor, k: Tensor, v: Tensor, options: dict[str, Any], given: dict[str, Any]) -> Tensor:
            dtype = v.dtype
            with full_precision(v):
                q, k, v = alike(q, k, v, self.accumulates)
                used = filled(self, q, k, v, given)
                used = cleared(self, used, options.get("present"))
                return method(self, q, k, v, counts, causal, **named, **options, **used).to(dtype)

        return placed(self, inside, q, k, v, causal, first, present, extras)

    return cast("Attend", attend)


def run_of_tokens(method: Method) -> Method:
    """Make a recurrence's `advance` of `method`: extras are filled in, and numbers widened, as in `form`."""

    own = signature(method).parameters.keys()

    @wraps(method)
    def advance(
        self: Mechanism, state: Any, q: Tensor, k: Tensor, v: Tensor, **extras: Any
    ) -> tuple[Any, Tensor]:
        named = {name: extras.pop(name) for name in own & extras.keys()}
        with full_precision(v):
            q, k, v = alike(q, k, v)
            used = filled(self, q, k, v, extras)
            found: tuple[Any, Tensor] = method(self, state, q, k, v, **named, **used)
        return found

    return cast("Method", advance)


def one_token(method: Method) -> Method:
    """Make a recurrence's `step` of `method`: extras are filled in, and numbers widened, as in `form`."""

    own = signature(method).parameters.keys()

    @wraps(method)
    def step(
        self: Mechanism, state: Any, q_t: Tensor, k_t: Tensor, v_t: Tensor, **extras_t: Any
    ) -> tuple[Any, Tensor]:
        named = {name: extras_t.pop(name) for name in own & extras_t.keys()}
        streams = {each.name for each in self.extras if each.per_token}
        given = {
            name: x[..., None, :] if name in streams and x is not None else x for name, x in extras_t.items()
        }
        with full_precision(v_t):
            q_t, k_t, v_t = alike(q_t, k_t, v_t)
            used = filled(self, q_t[..., None, :], k_t[..., None, :], v_t[..., None, :], given)
            used = {name: x[..., 0, :] if name in streams else x for name, x in used.items()}
            found: tuple[Any, Tensor] = method(self, state, q_t, k_t, v_t, **named, **used)
        return found

    return cast("Method", step)


def placed(
    mechanism: Mechanism,
    attend: Callable[[Tensor, Tensor, Tensor, dict[str, Any], dict[str, Any]], Tensor],
    q: Tensor,
    k: Tensor,
    v: Tensor,
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
            return _cut(mechanism, attend, q, k, v, causal, first, present, extras)
        options["present"] = present
        k, v = (x.masked_fill(~present[:, None, :, None], 0) for x in (k, v))
    if first == 0 or (mechanism.permutation_equivariant and not causal):
        return attend(q, k, v, options, extras)
    if mechanism.takes_first:
        return attend(q, k, v, {**options, "first": first}, extras)
    return attend(functional.pad(q, (0, 0, first, 0)), k, v, options, extras)[..., first:, :]


def _cut(
    mechanism: Mechanism,
    attend: Callable[[Tensor, Tensor, Tensor, dict[str, Any], dict[str, Any]], Tensor],
    q: Tensor,
    k: Tensor,
    v: Tensor,
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
    patterns, which = torch.unique(present, dim=0, return_inverse=True)
    for number, pattern in enumerate(patterns):
        members = (which == number).nonzero()[:, 0]
        places = pattern.nonzero()[:, 0]
        asking = places[places >= first] - first if own else torch.arange(queries, device=q.device)
        if not len(places) or not len(asking):
            continue
        tokens = q[members][..., asking, :], k[members][..., places, :], v[members][..., places, :]
        given = {}
        for name, value in extras.items():
            given[name] = None if value is None else _of_tokens(mechanism, name, value, members, places)
        before = int(pattern[:first].sum())
        found = placed(mechanism, attend, *tokens, causal, before if own else first, None, given)
        rows = found.new_zeros(len(members), *out.shape[1:]).index_copy(-2, asking, found)
        out = out.to(found.dtype).index_copy(0, members, rows)
    return out


def _of_tokens(mechanism: Mechanism, name: str, value: Tensor, members: Tensor, places: Tensor) -> Tensor:
    """An extra for some elements of a batch, cut to some of the tokens."""
    extra = next((each for each in mechanism.extras if each.name == name), None)
    if extra is None:
        raise UsageError(
            f"{mechanism.name} does not say what {name} is, so it cannot be cut to present tokens"
        )
    if extra.per_token:
        return value[members][..., places, :]
    # What is for all tokens may still be as long as they are, as a projection is: its first columns are used.
    shorter = extra.shape(mechanism.sizes(*(value.new_zeros(1, 1, len(places), 1),) * 3))
    longer = extra.shape(mechanism.sizes(*(value.new_zeros(1, 1, len(places) + 1, 1),) * 3))
    cut = (slice(n if n != m else None) for n, m in zip(shorter, longer, strict=True))
    return value[tuple(cut)]


def check_request(mechanism: Mechanism, counts: Tensor | None, causal: bool) -> None:
    """Refuse what a mechanism does not do, in one line."""
    if causal and mechanism.causality is Causality.NEVER:
        raise UsageError(f"{mechanism.name} has no causal form; call it with causal=False")
    if not causal and mechanism.causality is Causality.ALWAYS:
        raise UsageError(f"{mechanism.name} only looks back; call it with causal=True")
    if counts is not None and not mechanism.takes_counts:
        raise UsageError(f"{mechanism.name} depends on the order of tokens, so it does not take counts")
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
        raise UsageError(f"present must be bool of shape {wanted}, batch and keys, not {_described(present)}")


def filled(
    mechanism: Mechanism, q: Tensor, k: Tensor, v: Tensor, given: dict[str, Any], defaults: bool = True
) -> dict[str, Tensor]:
    """The extras of a mechanism: those given, checked and widened, and else (if asked for) the defaults."""
    known = {extra.name: extra for extra in mechanism.extras}
    for name in given:
        if name not in known:
            taken = ", ".join(known) or "nothing"
            raise UsageError(f"{mechanism.name} does not take {name}; beside q, k and v it takes {taken}")
    found = {}
    for name, extra in known.items():
        value = given.get(name)
        if value is not None:
            (found[name],) = widened(_checked(mechanism, extra, value, q, k, v))
        elif defaults:
            found[name] = extra.default(mechanism, q, k, v)
    return found


def _checked(mechanism: Mechanism, extra: Any, value: Any, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """A given extra, if it has the right shape, type and range."""
    wanted = extra.shape(mechanism.sizes(q, k, v))
    what = f"{extra.name} of {mechanism.name} must"
    if not isinstance(value, torch.Tensor) or not value.is_floating_point():
        raise UsageError(f"{what} be a tensor of floats of shape {wanted}, not {_described(value)}")
    if value.shape != wanted:
        raise UsageError(f"{what} have shape {wanted}, not {tuple(value.shape)}")
    if not bool(extra.allowed(value.detach()).all()):
        raise UsageError(f"{what} be {extra.domain}")
    return value


def _described(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"{str(value.dtype).removeprefix('torch.')} of shape {tuple(value.shape)}"
    return type(value).__name__


def cleared(mechanism: Mechanism, extras: dict[str, Tensor], present: Tensor | None) -> dict[str, Tensor]:
    """Extras that come with each token as 0 where it is absent: a gate is open, a write has no strength."""
    if present is None:
        return extras
    absent, streams = ~present[:, None, :, None], {each.name for each in mechanism.extras if each.per_token}
    return {name: x.masked_fill(absent, 0) if name in streams else x for name, x in extras.items()}


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


def widened(*tensors: Tensor) -> tuple[Tensor, ...]:
    """16-bit numbers are added up in float32, as fused kernels do; the result is rounded once."""
    return tuple(x.float() if x.dtype.itemsize < 4 else x for x in tensors)


def alike(q: Tensor, k: Tensor, v: Tensor, widen: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    """Tokens in one dtype that holds all of theirs: under autocast they come in several."""
    dtype = torch.promote_types(torch.promote_types(q.dtype, k.dtype), v.dtype)
    dtype = torch.float32 if widen and dtype.itemsize < 4 else dtype
    return q.to(dtype), k.to(dtype), v.to(dtype)


def full_precision(x: Tensor) -> AbstractContextManager[Any]:
    """Autocast off, where it is on: it would round in places where the mathematics does not bear it."""
    kind = x.device.type
    return torch.autocast(kind, enabled=False) if torch.is_autocast_enabled(kind) else nullcontext()
