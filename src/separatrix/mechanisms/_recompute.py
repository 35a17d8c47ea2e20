"""Parts of a computation that backward computes again, so that only their inputs are stored.

A recurrence reads its tokens in runs, and a score kernel its queries in blocks. The tensors that autograd
stores for each would add up to many times the tokens, or to a matrix of tokens by tokens. Each part is
therefore computed again when its gradient is due: memory stays linear in the tokens, for one more forward
pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, TypeVar

from separatrix.core.tensors import Tensor, torch
from separatrix.mechanisms._methods import full_precision

Out = TypeVar("Out")
Tensors = Iterable[Tensor | None]


def is_transformed() -> bool:
    """Return whether torch needs to see every operation: in `compile`, `torch.func` or forward mode."""
    # torch has no public function for the last two.
    return (
        torch.compiler.is_compiling()
        or torch._C._are_functorch_transforms_active()
        or torch.autograd.forward_ad._current_level >= 0
    )


def recompute(part: Callable[..., Out], *inputs: Tensor | None) -> Out:
    """Return `part(*inputs)`, a tensor or a tuple of them, whose backward pass computes it again.

    `part` must read no tensor with a gradient except its inputs. Second derivatives are right, but take the
    memory that was saved. Where torch transforms the computation, `part` is just called.

    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> torch.autograd.grad(recompute(torch.square, x), x)
    (tensor(6.),)
    """
    if is_transformed() or not is_recorded(*inputs):
        return part(*inputs)
    out: Out = _recompute_function().apply(part, *inputs)
    return out


def recompute_by_rows(
    part: Callable[..., Tensor], blocks: Sequence[range], rows: Tensor, *inputs: Tensor | None
) -> Tensor:
    """Concatenate `part(block, rows of this block, *inputs)` for consecutive blocks; see `recompute`.

    Outputs, and in backward the gradients, are written into tensors allocated once. If every block left a
    tensor of its own among the scores that it frees, the heap would be too fragmented for the scores of later
    blocks, and a process would grow with the square of the tokens although its tensors do not.
    """
    if is_transformed():
        return concatenate_rows(part, blocks, rows, *inputs)
    if is_recorded(rows, *inputs):
        out: Tensor = _recompute_rows_function().apply(part, blocks, rows, *inputs)
        return out
    return _write_rows(part, blocks, rows, *inputs)


def is_recorded(*inputs: Tensor | None) -> bool:
    """Return whether autograd records operations on these tensors."""
    return torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in inputs)


def concatenate_rows(
    part: Callable[..., Tensor], blocks: Sequence[range], rows: Tensor, *inputs: Tensor | None
) -> Tensor:
    """Compute all blocks by operations that torch can transform."""
    return torch.cat([part(block, _slice(rows, block), *inputs) for block in blocks], dim=-2)


def _write_rows(part: Callable[..., Tensor], blocks: Sequence[range], rows: Tensor, *inputs: Tensor | None) -> Tensor:
    """Compute all blocks, and write each into one output."""
    block_out = part(blocks[0], _slice(rows, blocks[0]), *inputs)
    out = block_out.new_empty(*block_out.shape[:-2], rows.shape[-2], block_out.shape[-1])
    _slice(out, blocks[0]).copy_(block_out)
    # Freed before the next block allocates as much.
    del block_out
    for block in blocks[1:]:
        _slice(out, block).copy_(part(block, _slice(rows, block), *inputs))
    return out


def _slice(x: Tensor, block: range) -> Tensor:
    return x[..., block.start : block.stop, :]


def differentiate(
    outputs: Tensors, slopes: Tensors, inputs: Sequence[Tensor | None], needs_grad: Sequence[bool], create_graph: bool
) -> list[Tensor | None]:
    """Return the gradients of the outputs along `slopes` for the inputs that need one, None for others."""
    pairs = [
        (out, slope)
        for out, slope in zip(outputs, slopes, strict=True)
        if slope is not None and out is not None and out.requires_grad
    ]
    if not pairs:
        return [None for _ in inputs]
    variables = [x for x, needs in zip(inputs, needs_grad, strict=True) if needs and x is not None]
    recorded_outputs, along = zip(*pairs, strict=True)
    gradients = iter(
        torch.autograd.grad(recorded_outputs, variables, along, create_graph=create_graph, allow_unused=True)
    )
    return [next(gradients) if needs else None for needs in needs_grad]


def copy_inputs(inputs: Iterable[Tensor | None], needs_grad: Sequence[bool]) -> list[Tensor | None]:
    """Return inputs to differentiate by: detached ones, or views if second derivatives are recorded.

    An input that another input was made from would otherwise be differentiated through it.
    """
    twice = torch.is_grad_enabled()
    return [
        x if x is None else x.view_as(x) if twice else x.detach().requires_grad_(needs)
        for x, needs in zip(inputs, needs_grad, strict=True)
    ]


@cache
def _recompute_function() -> Any:
    """Return the autograd function of `recompute`, defined when torch is loaded."""

    class Recompute(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, part: Callable[..., Any], *inputs: Tensor | None) -> Any:
            ctx.part = part
            # Zeros for outputs without a gradient would be as large as the outputs.
            ctx.set_materialize_grads(False)
            ctx.save_for_backward(*inputs)
            return part(*inputs)

        @staticmethod
        def backward(ctx: Any, *slopes: Tensor | None) -> Any:
            needs_grad, twice = ctx.needs_input_grad[1:], torch.is_grad_enabled()
            inputs = copy_inputs(ctx.saved_tensors, needs_grad)
            with full_precision(next(x for x in inputs if x is not None)):
                with torch.enable_grad():
                    out = ctx.part(*inputs)
                outputs = [out] if isinstance(out, torch.Tensor) else out
                return None, *differentiate(outputs, slopes, inputs, needs_grad, twice)

    return Recompute


@cache
def _recompute_rows_function() -> Any:
    """Return the autograd function of `recompute_by_rows`, defined when torch is loaded."""

    class RecomputeByRows(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, part: Callable[..., Tensor], blocks: Sequence[range], *inputs: Tensor | None) -> Tensor:
            ctx.part, ctx.blocks = part, blocks
            ctx.set_materialize_grads(False)
            ctx.save_for_backward(*inputs)
            return _write_rows(part, blocks, *inputs)  # type: ignore[arg-type]

        @staticmethod
        def backward(ctx: Any, *slopes: Tensor | None) -> Any:
            (slope,), (_, _, *needs_grad) = slopes, ctx.needs_input_grad
            if slope is None:
                return None, None, *(None for _ in needs_grad)
            with full_precision(slope):
                if not torch.is_grad_enabled():
                    gradients = _sum_gradients(ctx.part, ctx.blocks, slope, needs_grad, *ctx.saved_tensors)
                else:
                    inputs = copy_inputs(ctx.saved_tensors, needs_grad)
                    out = concatenate_rows(ctx.part, ctx.blocks, *inputs)  # type: ignore[arg-type]
                    gradients = differentiate([out], [slope], inputs, needs_grad, create_graph=True)
                return None, None, *gradients

    return RecomputeByRows


def _sum_gradients(
    part: Callable[..., Tensor], blocks: Sequence[range], slope: Tensor, needs_grad: Sequence[bool], *inputs: Any
) -> list[Tensor | None]:
    """Return the gradients, summed block by block."""
    rows, *others = inputs
    sums = [
        torch.zeros_like(x) if needs and x is not None else None for x, needs in zip(inputs, needs_grad, strict=True)
    ]
    for block in blocks:
        block_inputs = copy_inputs((_slice(rows, block), *others), needs_grad)
        with torch.enable_grad():
            out = part(block, *block_inputs)
        gradients = differentiate([out], [_slice(slope, block)], block_inputs, needs_grad, create_graph=False)
        for number, (total, gradient) in enumerate(zip(sums, gradients, strict=True)):
            if total is not None and gradient is not None:
                # Input 0 holds the rows of this block alone; every block reads all of the others.
                (total if number else _slice(total, block)).add_(gradient)
    return sums
