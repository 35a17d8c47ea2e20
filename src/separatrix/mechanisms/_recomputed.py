"""A part of a computation that backward computes again, so that between the two only its inputs are kept.

A recurrence reads its tokens in chunks, and a score kernel its queries in blocks. What autograd keeps of each
would add up to many times the tokens, or to a matrix of tokens by tokens. Each part is therefore computed
again when its gradient is due, and memory stays linear in the tokens for one more forward.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeVar

from separatrix.core.tensors import Tensor, torch
from separatrix.mechanisms._request import full_precision

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
    if not torch.is_grad_enabled() or is_transformed():
        return part(*inputs)
    if not any(x is not None and x.requires_grad for x in inputs):
        return part(*inputs)
    found: Out = _function().apply(part, *inputs)
    return found


def recomputed_by_rows(
    part: Callable[..., Tensor], blocks: Sequence[range], rows: Tensor, *inputs: Tensor | None
) -> Tensor:
    """`part(block, rows of this block, *inputs)` for consecutive blocks, end to end; see `recomputed`.

    Outputs, and in backward the gradients, are written into tensors made once. If every block left a tensor
    of its own among the scores that it frees, the heap would be too fragmented for the scores of later
    blocks, and a process would grow with the square of the tokens although its tensors do not.
    """
    if is_transformed():
        return joined_by_rows(part, blocks, rows, *inputs)
    if torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in (rows, *inputs)):
        out: Tensor = _function_by_rows().apply(part, blocks, rows, *inputs)
        return out
    return _written_rows(part, blocks, rows, *inputs)


def joined_by_rows(
    part: Callable[..., Tensor], blocks: Sequence[range], rows: Tensor, *inputs: Tensor | None
) -> Tensor:
    """All blocks by operations that torch can transform."""
    return torch.cat([part(block, _of_block(rows, block), *inputs) for block in blocks], dim=-2)


def _written_rows(
    part: Callable[..., Tensor], blocks: Sequence[range], rows: Tensor, *inputs: Tensor | None
) -> Tensor:
    """All blocks, each written to its place."""
    first = part(blocks[0], _of_block(rows, blocks[0]), *inputs)
    out = first.new_empty(*first.shape[:-2], rows.shape[-2], first.shape[-1])
    _of_block(out, blocks[0]).copy_(first)
    del first
    for block in blocks[1:]:
        _of_block(out, block).copy_(part(block, _of_block(rows, block), *inputs))
    return out


def _of_block(x: Tensor, block: range) -> Tensor:
    return x[..., block.start : block.stop, :]


@cache
def _function_by_rows() -> Any:
    """The function that autograd knows, made when torch is there."""

    class RecomputedByRows(torch.autograd.Function):
        @staticmethod
        def forward(
            ctx: Any,
            part: Callable[..., Tensor],
            blocks: Sequence[range],
            rows: Tensor,
            *inputs: Tensor | None,
        ) -> Tensor:
            ctx.part, ctx.blocks = part, blocks
            ctx.set_materialize_grads(False)
            ctx.save_for_backward(rows, *inputs)
            return _written_rows(part, blocks, rows, *inputs)

        @staticmethod
        def backward(ctx: Any, *slopes: Tensor | None) -> Any:
            (slope,), (_, _, *needed) = slopes, ctx.needs_input_grad
            if slope is None:
                return None, None, *(None for _ in needed)
            with full_precision(slope):
                find = _gradients_to_differentiate if torch.is_grad_enabled() else _gradients_by_rows
                return None, None, *find(ctx.part, ctx.blocks, slope, needed, *ctx.saved_tensors)

    return RecomputedByRows


def _gradients_to_differentiate(
    part: Callable[..., Tensor],
    blocks: Sequence[range],
    slope: Tensor,
    needed: Sequence[bool],
    *tensors: Tensor | None,
) -> list[Tensor | None]:
    """The gradients with a graph of their own, which takes the memory that was saved."""
    # A view, since an input that another input was made from is not differentiated through it.
    views = [x if x is None else x.view_as(x) for x in tensors]
    out = joined_by_rows(part, blocks, *views)  # type: ignore[arg-type]
    wanted = [x for x, need in zip(views, needed, strict=True) if need and x is not None]
    found = iter(torch.autograd.grad(out, wanted, slope, create_graph=True, allow_unused=True))
    return [next(found) if need else None for need in needed]


def _gradients_by_rows(
    part: Callable[..., Tensor],
    blocks: Sequence[range],
    slope: Tensor,
    needed: Sequence[bool],
    rows: Tensor,
    *inputs: Tensor | None,
) -> list[Tensor | None]:
    """The gradients, summed up block by block."""
    tensors = (rows, *inputs)
    sums = [
        torch.zeros_like(x) if need and x is not None else None
        for x, need in zip(tensors, needed, strict=True)
    ]
    for block in blocks:
        some = [
            x if x is None else x.detach().requires_grad_(need)
            for x, need in zip((_of_block(rows, block), *inputs), needed, strict=True)
        ]
        with torch.enable_grad():
            out = part(block, *some)
        wanted = [x for x, need in zip(some, needed, strict=True) if need and x is not None]
        found = torch.autograd.grad(out, wanted, _of_block(slope, block), allow_unused=True)
        places = [x if number else _of_block(x, block) for number, x in enumerate(sums) if x is not None]
        for place, gradient in zip(places, found, strict=True):
            if gradient is not None:
                place.add_(gradient)
    return list(sums)


def is_transformed() -> bool:
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
