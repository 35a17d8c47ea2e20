"""Decorators for the methods of mechanisms: checks, defaults and number formats, in one place for all.

A decorated method contains the mathematics only. The decorator checks the request, fills in extras, computes
16-bit numbers in float32 and switches autocast off.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, Any, TypeVar, cast

from separatrix.core.parameters import UsageError
from separatrix.core.tensors import Tensor, torch
from separatrix.mechanisms._positions import call_with_positions, check_request, zero_absent
from separatrix.mechanisms._types import CallOptions

if TYPE_CHECKING:
    from separatrix.mechanisms._base import Mechanism

Method = TypeVar("Method", bound=Callable[..., Any])


def attention_method(method: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Turn `method(q, k, v, options, **extras)` into a definition or a fast form of a mechanism.

    The result is called as `(q, k, v, counts=None, causal=False, *, first=0, present=None, **extras)` and
    returns the dtype of v. The method gets every extra by name, and `first` and `present` only if the
    mechanism supports them; absent keys, values and per-token extras are 0. Other keyword arguments of the
    method, such as `chunk`, are passed on.
    """

    names = signature(method).parameters.keys()

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
        arguments = {name: extras.pop(name) for name in names & extras.keys()}

        def compute(q: Tensor, k: Tensor, v: Tensor, options: CallOptions, extras: dict[str, Any]) -> Tensor:
            dtype = v.dtype
            with full_precision(v):
                q, k, v = to_common_dtype(q, k, v, self.accumulates)
                extras = zero_absent_extras(self, fill_extras(self, q, k, v, extras), options.present)
                self.check_lengths(q.shape[-2], k.shape[-2], options)
                return method(self, q, k, v, options, **arguments, **extras).to(dtype)

        return call_with_positions(self, compute, q, k, v, CallOptions(counts, causal, first, present), extras)

    # The signature is that of the call, not that of the method.
    del attend.__wrapped__
    return attend


def advance_method(method: Method) -> Method:
    """Turn `method` into `advance` of a recurrence, which reads a run of tokens."""

    @wraps(method)
    def advance(self: Mechanism, state: Any, q: Tensor, k: Tensor, v: Tensor, **extras: Any) -> Any:
        arguments = {name: extras.pop(name) for name in ("present",) if name in extras}
        with full_precision(v):
            q, k, v = to_common_dtype(q, k, v)
            return method(self, state, q, k, v, **arguments, **fill_extras(self, q, k, v, extras))

    return cast("Method", advance)


def step_method(method: Method) -> Method:
    """Turn `method` into `step` of a recurrence, which reads one token."""

    @wraps(method)
    def step(self: Mechanism, state: Any, q_t: Tensor, k_t: Tensor, v_t: Tensor, **extras_t: Any) -> Any:
        arguments = {name: extras_t.pop(name) for name in ("present",) if name in extras_t}
        # Extras are checked and filled in as those of a run, so a token becomes a run of one.
        streams = self.token_extras
        extras = {name: x[..., None, :] if name in streams and x is not None else x for name, x in extras_t.items()}
        with full_precision(v_t):
            q_t, k_t, v_t = to_common_dtype(q_t, k_t, v_t)
            q, k, v = (x[..., None, :] for x in (q_t, k_t, v_t))
            extras = fill_extras(self, q, k, v, extras)
            extras = {name: x[..., 0, :] if name in streams else x for name, x in extras.items()}
            return method(self, state, q_t, k_t, v_t, **arguments, **extras)

    return cast("Method", step)


def fill_extras(
    mechanism: Mechanism, q: Tensor, k: Tensor, v: Tensor, extras: dict[str, Any], defaults: bool = True
) -> dict[str, Tensor]:
    """Check and upcast the given extras, and add the defaults of the others unless `defaults` is False."""
    declared = {extra.name: extra for extra in mechanism.extras}
    for name in extras:
        if name not in declared:
            names = ", ".join(declared) or "nothing"
            raise UsageError(f"{mechanism.name} does not take {name}; beside q, k and v it takes {names}")
    filled_extras = {}
    for name, extra in declared.items():
        value = extras.get(name)
        if value is not None:
            (filled_extras[name],) = upcast(extra.check(value, mechanism.name, mechanism.sizes(q, k, v)))
        elif defaults:
            filled_extras[name] = extra.default(mechanism, q, k, v)
    return filled_extras


def zero_absent_extras(mechanism: Mechanism, extras: dict[str, Tensor], present: Tensor | None) -> dict[str, Tensor]:
    """Set per-token extras to 0 where a token is absent: a log gate of 0 is open, a write has no strength."""
    if present is None:
        return extras
    streams = mechanism.token_extras
    return {name: zero_absent(present, x)[0] if name in streams else x for name, x in extras.items()}


def upcast(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Convert 16-bit numbers to float32, in which fused kernels accumulate too; results are rounded once."""
    return tuple(x.float() if x.dtype.itemsize < 4 else x for x in tensors)


def to_common_dtype(q: Tensor, k: Tensor, v: Tensor, accumulate: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    """Convert tokens to one dtype that holds all of theirs, which under autocast differ.

    With `accumulate`, it is float32 at least.
    """
    dtype = torch.promote_types(torch.promote_types(q.dtype, k.dtype), v.dtype)
    dtype = torch.float32 if accumulate and dtype.itemsize < 4 else dtype
    return q.to(dtype), k.to(dtype), v.to(dtype)


def full_precision(x: Tensor) -> AbstractContextManager[Any]:
    """Return a context in which autocast is off; it would round sums that need all digits."""
    kind = x.device.type
    return torch.autocast(kind, enabled=False) if torch.is_autocast_enabled(kind) else nullcontext()
