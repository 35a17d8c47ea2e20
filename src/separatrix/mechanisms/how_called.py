"""How a user's own callable is called: its sizes, a scale, the seed of its weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from fractions import Fraction
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator

from separatrix.core.errors import WrongResult, annotate_user_error, describe_failure
from separatrix.core.numbers.exact import parse_exact
from separatrix.core.parameters import Constraint, Natural, Parameters, UsageError, limit
from separatrix.core.tensors import Tensor, torch
from separatrix.mechanisms import observed

SQRT, WIDTH = "sqrt", "width"
WIDTH_FACTORS: dict[str, Callable[[int], float]] = {SQRT: lambda width: width**0.5, WIDTH: float}
"""Scales that undo a division of logits by the square root of the width, or by the width."""


def _scale(value: object) -> Fraction | str:
    return value if isinstance(value, str) and value in WIDTH_FACTORS else parse_exact(value, "scale")


class HowCalled(Parameters):
    """How a callable is called: sizes that it takes alone, what queries are multiplied with before, and the
    seed of weights that were drawn when it was made."""

    owner = "a mechanism of your own"
    width: Natural | None = None
    heads: Natural | None = None
    scale: Annotated[Fraction | str | None, BeforeValidator(_scale)] = None
    seed: Natural | None = None
    constraints: ClassVar[tuple[Constraint, ...]] = (
        limit("width", 1),
        limit("heads", 1),
        limit("seed", 0, 2**63 - 1),
        Constraint(
            ("scale",),
            lambda p: p.scale in WIDTH_FACTORS or p.scale > 0,
            lambda p: f"scale={p.scale} must be {SQRT} (square root of the width), {WIDTH}, or more than 0",
        ),
    )

    def factor(self, width: int) -> float:
        """Return the factor of queries of this width."""
        if self.scale is None:
            return 1.0
        return WIDTH_FACTORS[self.scale](width) if isinstance(self.scale, str) else float(self.scale)


def describe_call(q: Tensor, k: Tensor, v: Tensor, options: Mapping[str, Any]) -> str:
    """Describe the arguments of a call.

    >>> describe_call(torch.zeros(1, 1, 4, 2), torch.zeros(1, 1, 4, 2), torch.zeros(1, 1, 4, 3), {})
    'called with q (1, 1, 4, 2), k (1, 1, 4, 2), v (1, 1, 4, 3), float32'
    """
    shapes = ", ".join(f"{name} {tuple(x.shape)}" for name, x in (("q", q), ("k", k), ("v", v)))
    kinds = dict.fromkeys(str(x.dtype).removeprefix("torch.") for x in (q, k, v))
    more = (f"{name} {tuple(x.shape)}" if isinstance(x, torch.Tensor) else f"{name}={x}" for name, x in options.items())
    return ", ".join([f"called with {shapes}", *kinds, *more])


def require_result(out: Any, shape: tuple[int, ...], dtype: torch.dtype) -> None:
    """Raise WrongResult unless the result is a tensor of this shape and dtype; with the remedy if it is clear."""
    if not isinstance(out, torch.Tensor):
        name = type(out).__name__
        kind = "nothing" if out is None else f"{'an' if name[0] in 'aeioAEIO' else 'a'} {name}"
        raise WrongResult(f"returned {kind} where a tensor of shape {shape} was due")
    if out.shape != shape:
        turned = out.ndim == 4 and out.transpose(1, 2).shape == shape
        hint = "; heads come before tokens, as in q" if turned else ""
        raise WrongResult(f"returned {tuple(out.shape)} where a tensor of shape {shape} was due{hint}")
    if out.dtype is not dtype:
        actual, expected = (str(kind).removeprefix("torch.") for kind in (out.dtype, dtype))
        raise WrongResult(f"returned {actual} where {expected} was due, as q, k and v are; use .to(q.dtype)")


def is_lazy(attend: Any) -> bool:
    """Return whether it is a module with weights that its first call makes."""
    if not isinstance(attend, torch.nn.Module):
        return False
    return any(map(torch.nn.parameter.is_lazy, (*attend.parameters(), *attend.buffers())))


def prepare_callable(attend: Any, name: str, how: HowCalled) -> Any:
    """Return a callable of q, k and v: torch's own module adapted, lazy weights made for a width."""
    if not isinstance(attend, torch.nn.Module):
        return attend
    if isinstance(attend, torch.nn.MultiheadAttention):
        from separatrix.mechanisms.multihead import Multihead

        return Multihead(attend)
    if not is_lazy(attend):
        return attend
    first_error: Exception | None = None
    for width in observed.LAZY if how.width is None else (how.width,):
        for flat in (False, True):
            tokens = observed.tokens(observed.Sizes(width, width, how.heads))
            copy = deepcopy(attend)
            try:
                with torch.random.fork_rng(devices=[]), torch.no_grad():
                    torch.manual_seed(how.seed or 0)
                    copy(*((x.flatten(0, 1) if flat else x).float() for x in tokens))
                return copy
            except Exception as error:
                annotate_user_error(error, name, describe_call(*tokens, {}), tokens[1].shape[-2])
                first_error = first_error or error
    assert first_error is not None
    raise UsageError(
        f"{name} has weights that its first call makes, and that call failed: it {describe_failure(first_error)}"
    )
