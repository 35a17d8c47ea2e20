"""A part of a computation that backward computes again, so that between the two only its inputs are kept.

A recurrence reads its tokens in chunks, and a score kernel its queries in blocks. What autograd keeps of each
would add up to many times the tokens, or to a matrix of tokens by tokens. Each part is therefore computed
again when its gradient is due, and memory stays linear in the tokens for one more forward.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

from separatrix.mechanisms._request import full_precision
from separatrix.tensors import Tensor, torch

Out = TypeVar("Out")


def recomputed(part: Callable[..., Out], *inputs: Tensor | None) -> Out:
    """`part(*inputs)`, a tensor or a tuple of them, whose gradients come from computing it again.

    `part` reads no tensor that has a gradient but its inputs. Derivatives of second order are right, and take
    the memory that was saved. Where torch transforms the computation as a whole, when it compiles it, in
    `torch.func` and in forward mode, `part` is only called.

    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> torch.autograd.grad(recomputed(torch.square, x), x)
    (tensor(6.),)
    """
    if not torch.is_grad_enabled() or _transformed():
        return part(*inputs)
    if not any(x is not None and x.requires_grad for x in inputs):
        return part(*inputs)
    found: Out = _function().apply(part, *inputs)
    return found


def _transformed() -> bool:
    """Whether torch is to see every operation by itself."""
    return (
        torch.compiler.is_compiling()
        or torch._C._are_functorch_transforms_active()
        or torch.autograd.forward_ad._current_level >= 0
    )


@cache
def _function() -> Any:
    """The function that autograd knows, made when torch is there."""

    class Recomputed(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, part: Callable[..., Any], *inputs: Tensor | None) -> Any:
            ctx.part = part
            ctx.set_materialize_grads(False)
            ctx.save_for_backward(*inputs)
            return part(*inputs)

        @staticmethod
        def backward(ctx: Any, *slopes: Tensor | None) -> Any:
            needed, twice = ctx.needs_input_grad[1:], torch.is_grad_enabled()
            inputs = [
                x if x is None else x.view_as(x) if twice else x.detach().requires_grad_(wanted)
                for x, wanted in zip(ctx.saved_tensors, needed, strict=True)
            ]
            with full_precision(next(x for x in inputs if x is not None)):
                with torch.enable_grad():
                    out = ctx.part(*inputs)
                pairs = [
                    (x, slope)
                    for x, slope in zip([out] if isinstance(out, torch.Tensor) else out, slopes, strict=True)
                    if slope is not None and x is not None and x.requires_grad
                ]
                if not pairs:
                    return None, *(None for _ in inputs)
                wanted = [x for x, need in zip(inputs, needed, strict=True) if need and x is not None]
                made, along = zip(*pairs, strict=True)
                found = iter(torch.autograd.grad(made, wanted, along, create_graph=twice, allow_unused=True))
            return None, *(next(found) if need else None for need in needed)

    return Recomputed
