"""Properties of a callable measured on a few seeded tokens: the sizes it takes, whether it looks ahead.

A callable has no class that declares them. Declared attributes are used; the others are measured here, so that
the contract requires nothing that was never promised.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import wraps
from typing import Any, ParamSpec

from separatrix.core.parameters import UsageError
from separatrix.core.tensors import Tensor, torch

LENGTH, HEADS, WIDTH, FEATURES = 13, 3, 5, 7
USUAL = (8, 16, 32, 64, 128)
"""Widths that are tried where the odd ones fail."""
LAZY = (64, 8, 16, 32, 128)
"""Widths for which weights are made where a module makes them by its first call."""
MOST_TRIED, MOST_HEADS = 400, 64
HEADS_NAMED = re.compile("(n|num|nr|number_of)?_?(n?heads?|h)")
"""What modules call their number of heads."""
ROUNDINGS = 64
LOOSE = 1e8
"""Roundings that are allowed after a map was undone, which magnifies them."""
KINDS = 7
"""Distinct keys among tokens that are reordered: what is decided by the order of equal ones shows."""
LONG = 200
"""Tokens among which scores are looked for."""

REFUSALS = (UsageError, NotImplementedError, ValueError, AssertionError)
"""How a callable says that it does not do something."""

Attend = Callable[[Tensor, Tensor, Tensor], Tensor]
Arguments = ParamSpec("Arguments")


@dataclass(frozen=True)
class Sizes:
    """The sizes that were tried and taken; None where any will do."""

    width: int | None = None
    features: int | None = None
    heads: int | None = None


Check = Callable[[Attend, Sizes, int, float], bool]
"""A check at a number of tokens, up to so many roundings."""


def tokens(sizes: Sizes, length: int = LENGTH, seed: int = 1) -> tuple[Tensor, Tensor, Tensor]:
    """Return seeded positive tokens in float64."""
    generator = torch.Generator().manual_seed(seed)
    heads, width, features = sizes.heads or HEADS, sizes.width or WIDTH, sizes.features or FEATURES

    def draw(last: int) -> Tensor:
        return torch.rand(2, heads, length, last, generator=generator, dtype=torch.float64) + 0.1

    return draw(width), draw(width), draw(features)


def find_sizes(attend: Attend, module: Any, declared: Sizes) -> Sizes | None:
    """Return the first sizes that a callable takes, declared ones before others; None if it takes none."""
    return next((sizes for sizes in _sizes(module, declared) if attends(attend, sizes)), None)


def _sizes(module: Any, declared: Sizes) -> Iterator[Sizes]:
    yield declared
    if declared.width is not None and declared.features is None:
        yield Sizes(declared.width, declared.width, declared.heads)
    own, named = _own_sizes(module)
    heads = [None, *named, *(size for size in own if size <= MOST_HEADS), 1]
    candidates = (
        Sizes(width, features, head)
        for head in (dict.fromkeys(heads) if declared.heads is None else [declared.heads])
        for width in ([None, *_widths(own, head)] if declared.width is None else [declared.width])
        for features in ((declared.features,) if declared.features is not None else (None, width))
    )
    for _, sizes in zip(range(MOST_TRIED), candidates, strict=False):
        yield sizes


def _widths(own: list[int], heads: int | None) -> list[int]:
    """Return widths of a head: a share of a size for all heads, a module's own sizes, the usual ones."""
    shares = [size // heads for size in own if heads is not None and size % heads == 0]
    return list(dict.fromkeys((*shares, *own, *USUAL)))


def _own_sizes(module: Any) -> tuple[list[int], list[int]]:
    """Return the sizes in the shapes of a module's weights, and the numbers of heads that it names."""
    if not isinstance(module, torch.nn.Module):
        return [], []
    shapes = {size for parameter in module.parameters() for size in parameter.shape if 1 < size <= 4096}
    numbers = {
        name: value
        for part in module.modules()
        for name, value in vars(part).items()
        if isinstance(value, int) and not isinstance(value, bool) and 1 < value <= 4096
    }
    named = sorted({value for name, value in numbers.items() if HEADS_NAMED.fullmatch(name)})
    return sorted(shapes), named


def or_if_it_fails(result: bool) -> Callable[[Callable[Arguments, bool]], Callable[Arguments, bool]]:
    """Return a decorator of checks: the result is given, whatever error the user's code raises."""

    def decorate(check: Callable[Arguments, bool]) -> Callable[Arguments, bool]:
        @wraps(check)
        def run(*arguments: Arguments.args, **options: Arguments.kwargs) -> bool:
            try:
                return check(*arguments, **options)
            except Exception:
                return result

        return run

    return decorate


@or_if_it_fails(False)
def attends(attend: Attend, sizes: Sizes) -> bool:
    """Return whether a callable takes tokens of these sizes, and gives as many."""
    q, k, v = tokens(sizes)
    out: Any = attend(q, k, v)
    return isinstance(out, torch.Tensor) and out.shape == (*q.shape[:-1], v.shape[-1])


@or_if_it_fails(False)
def refuses(attend: Attend, sizes: Sizes) -> bool:
    """Return whether a callable states that it does not do this, which is more than to break."""
    try:
        attend(*tokens(sizes))
    except REFUSALS:
        return True
    return False


@or_if_it_fails(False)
def is_causal(attend: Attend, sizes: Sizes) -> bool:
    """Return whether no output changed when later tokens did."""
    inputs = tokens(sizes)
    before = attend(*inputs)
    for place in (1, LENGTH // 2, LENGTH - 1):
        changed_inputs = [x.clone() for x in inputs]
        for x in changed_inputs:
            x[..., place:, :] += 1
        if not is_close(attend(*changed_inputs)[..., :place, :], before[..., :place, :]):
            return False
    return True


@or_if_it_fails(True)
def is_linear_in_values(attend: Attend, sizes: Sizes) -> bool:
    """Return whether attending to a mixture of values gave the mixture of the outputs."""
    q, k, first = tokens(sizes)
    second = tokens(sizes, seed=2)[2]
    out = attend(q, k, 3 * first - 2 * second)
    return is_close(out, 3 * attend(q, k, first) - 2 * attend(q, k, second))


def _one_element(sizes: Sizes, length: int, seed: int = 1) -> tuple[Tensor, ...]:
    """Return tokens of one batch element, and of one head unless the number of heads is fixed."""
    return tuple(x[:1, :1] if sizes.heads is None else x[:1] for x in tokens(sizes, length, seed))


def _shuffled(length: int) -> Tensor:
    return torch.randperm(length, generator=torch.Generator().manual_seed(3))


@or_if_it_fails(False)
def has_no_order(attend: Attend, sizes: Sizes, length: int, roundings: float) -> bool:
    """Return whether permuted tokens gave the permuted output, and a query alone its output among others."""
    q, k, v = _one_element(sizes, length)
    order, place = _shuffled(length), slice(length // 3, length // 3 + 1)
    expected = attend(q, k, v)
    out = attend(*(x[..., order, :] for x in (q, k, v)))
    alone = attend(q[..., place, :], k, v)
    return is_close(out, expected[..., order, :], roundings) and is_close(alone, expected[..., place, :], roundings)


@or_if_it_fails(False)
def has_no_past_order(attend: Attend, sizes: Sizes, length: int, roundings: float) -> bool:
    """Return whether the last output stayed as the tokens were reordered, some of them with equal keys."""
    q, k, v = _one_element(sizes, length)
    q, k = q[..., :1, :].expand_as(q), k[..., torch.arange(length) % min(KINDS, -(-length // 2)), :]
    expected = attend(q, k, v)[..., -1, :]
    orders = _shuffled(length), torch.arange(length).flip(0)
    outputs = (attend(q, k[..., order, :], v[..., order, :])[..., -1, :] for order in orders)
    return all(is_close(out, expected, roundings) for out in outputs)


@or_if_it_fails(False)
def gives_last_alone(attend: Attend, sizes: Sizes, length: int, roundings: float) -> bool:
    """Return whether the last query gave alone its output after others, some keys being equal."""
    return _is_last_alike(attend, sizes, length, roundings, lambda x: x)


@or_if_it_fails(False)
def gives_last_reversed(attend: Attend, sizes: Sizes, length: int, roundings: float) -> bool:
    """Return whether the last query gave alone, on the tokens in reverse order, its output after others.

    So it is if a query without others is at the first position, and distances count to both sides.
    """
    return _is_last_alike(attend, sizes, length, roundings, lambda x: x.flip(-2))


def _is_last_alike(
    attend: Attend, sizes: Sizes, length: int, roundings: float, reorder: Callable[[Tensor], Tensor]
) -> bool:
    for seed, has_equal_keys in ((1, False), (2, True)):
        q, k, v = _one_element(sizes, length, seed)
        if has_equal_keys:
            q, k = q[..., -1:, :].expand_as(q), k[..., torch.arange(length) % KINDS, :]
        expected = attend(q, k, v)[..., -1:, :]
        if not is_close(attend(q[..., -1:, :], reorder(k), reorder(v)), expected, roundings):
            return False
    return True


@or_if_it_fails(True)
def holds_scores(attend: Attend, sizes: Sizes) -> bool:
    """Return whether some tensor it made had a number for each query and key."""
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_iter

    largest = 0

    class Largest(TorchDispatchMode):  # type: ignore[no-untyped-call]
        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            nonlocal largest
            result = function(*args, **(kwargs or {}))
            largest = max(largest, *(x.numel() for x in tree_iter(result) if isinstance(x, torch.Tensor)), 0)
            return result

    width = sizes.width or WIDTH
    length = max(LONG, 4 * width, 4 * (sizes.features or 0))
    inputs = [x[:1] for x in tokens(Sizes(width, sizes.features, sizes.heads or 1), length)]
    with Largest():  # type: ignore[no-untyped-call]
        attend(*inputs)
    return largest >= length * length


@or_if_it_fails(False)
def has_no_coordinate_order(attend: Attend, sizes: Sizes, length: int, roundings: float) -> bool:
    """Return whether reordering the coordinates of queries and keys alike changed nothing."""
    q, k, v = _one_element(sizes, length)
    order = _shuffled(q.shape[-1])
    return is_close(attend(q[..., order], k[..., order], v), attend(q, k, v), roundings)


@or_if_it_fails(False)
def has_no_feature_order(attend: Attend, sizes: Sizes, roundings: float = ROUNDINGS) -> bool:
    """Return whether reordering the features of values reordered the output, each from its own alone."""
    q, k, v = tokens(sizes)
    order = _shuffled(v.shape[-1])
    expected = attend(q, k, v)
    alone = torch.zeros_like(v)
    alone[..., 0] = v[..., 0]
    is_reordered = is_close(attend(q, k, v[..., order]), expected[..., order], roundings)
    return is_reordered and is_close(attend(q, k, alone)[..., 0], expected[..., 0], roundings)


def is_close(actual: Tensor, expected: Tensor, roundings: float = ROUNDINGS) -> bool:
    """Return whether two results are the same within rounding."""
    size = max(1.0, expected.abs().max().item())
    allowed = roundings * torch.finfo(expected.dtype).eps * size
    return actual.shape == expected.shape and bool(((actual - expected).abs() <= allowed).all())
