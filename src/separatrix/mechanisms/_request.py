"""What is asked of a mechanism: checked, filled in and widened here, once for all."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, Any, TypeVar, cast

from separatrix.core.parameters import UsageError
from separatrix.core.tensors import Tensor, torch
from separatrix.mechanisms._places import check_request, placed

if TYPE_CHECKING:
    from separatrix.mechanisms._base import Mechanism

Form = TypeVar("Form", bound=Callable[..., Tensor])
Method = TypeVar("Method", bound=Callable[..., Any])


def form(method: Form) -> Form:
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

        return placed(
            self,
            lambda q, k, v, counts, options, given: _computed(
                self, method, q, k, v, counts, causal, named, options, given
            ),
            *(q, k, v, counts, causal, first, present, extras),
        )

    return cast("Form", attend)


def _computed(
    mechanism: Mechanism,
    method: Callable[..., Tensor],
    q: Tensor,
    k: Tensor,
    v: Tensor,
    counts: Tensor | None,
    causal: bool,
    named: dict[str, Any],
    options: dict[str, Any],
    given: dict[str, Any],
) -> Tensor:
    """What the method of a form gives, in the dtype of v."""
    dtype = v.dtype
    with full_precision(v):
        q, k, v = alike(q, k, v, mechanism.accumulates)
        used = cleared(mechanism, filled(mechanism, q, k, v, given), options.get("present"))
        return method(mechanism, q, k, v, counts, causal, **named, **options, **used).to(dtype)


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
        streams = self.token_extras
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
            (found[name],) = widened(extra.checked(value, mechanism.name, mechanism.sizes(q, k, v)))
        elif defaults:
            found[name] = extra.default(mechanism, q, k, v)
    return found


def cleared(mechanism: Mechanism, extras: dict[str, Tensor], present: Tensor | None) -> dict[str, Tensor]:
    """Extras that come with each token as 0 where it is absent: a gate is open, a write has no strength."""
    if present is None:
        return extras
    absent, streams = ~present[:, None, :, None], mechanism.token_extras
    return {name: x.masked_fill(absent, 0) if name in streams else x for name, x in extras.items()}


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
