"""What mechanisms are tried on: small seeded tokens, and the bounds results are held to."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from itertools import product

import torch
from torch import Tensor

from separatrix.contract._base import Broken, NotFinite, Skipped, least_precise
from separatrix.contract.calls import fast
from separatrix.core.errors import WrongResult, describe_failure
from separatrix.core.parameters import UsageError
from separatrix.mechanisms import Causality, Mechanism, observed
from separatrix.mechanisms.custom import CustomMechanism

BATCH, HEADS, WIDTH, FEATURES = 2, 3, 5, 7
LENGTH = 13
LENGTHS = (1, 2, 7, 33, 66)
"""One token, odd lengths, and lengths beyond the usual chunk sizes."""
LONG_LENGTHS = (3, 16, 17, 32, 48, 63, 64, 65, 96, 100, 101, 128, 257, 512, 1030)
"""Lengths at and beyond the usual and the larger chunk sizes, for fewer tokens at once."""
IN_16_BITS = (torch.bfloat16, torch.float16)
SLACK = 64
"""Two ways to the same number may differ by this many units of rounding."""
MEANINGLESS = 1e-2
"""A bound of this size tells nothing apart."""
CALM = 16.0
"""Where rounding is magnified more than this, other tokens are tried."""

Shape = tuple[int, int, int, int]
Tokens = tuple[Tensor, Tensor, Tensor]


def tokens(
    queries: int = LENGTH,
    keys: int | None = None,
    dtype: torch.dtype = torch.float64,
    signed: bool = False,
    shape: Shape = (BATCH, HEADS, WIDTH, FEATURES),
    seed: int = 1,
) -> Tokens:
    """Queries, keys and values; positive unless `signed`, since some kernels need positive logits.

    Tokens wider than usual are shorter in each coordinate, so that their logits are of the usual size.
    """
    generator = torch.Generator().manual_seed(seed)
    batch, heads, width, features = shape
    keys = queries if keys is None else keys

    def draw(*size: int) -> Tensor:
        if signed:
            return torch.randn(size, generator=generator, dtype=torch.float64).to(dtype)
        return (torch.rand(size, generator=generator, dtype=torch.float64) + 0.1).to(dtype)

    size = min(1.0, (WIDTH / width) ** 0.5)
    return (
        size * draw(batch, heads, queries, width),
        size * draw(batch, heads, keys, width),
        draw(batch, heads, keys, features),
    )


def sizes(
    mechanism: Mechanism, batch: int = BATCH, heads: int = HEADS, width: int = WIDTH, features: int = FEATURES
) -> Shape:
    """The sizes of tokens to try a mechanism on: its own where it takes one alone."""
    return (
        batch,
        mechanism.fixed_heads or heads,
        mechanism.fixed_width or width,
        mechanism.fixed_features or features,
    )


def few(mechanism: Mechanism) -> Shape:
    """Sizes for long inputs."""
    return sizes(mechanism, 1, 1, 3, 2)


def tokens_on_an_arc(
    queries: int = LENGTH,
    keys: int | None = None,
    dtype: torch.dtype = torch.float64,
    shape: Shape = (BATCH, HEADS, WIDTH, FEATURES),
) -> Tokens:
    """Tokens of which neighbours are alike and others are not, so that few of them can stand for the rest."""
    q, k, v = tokens(queries, keys, shape=shape)
    for x in (q, k):
        angle = math.pi * (torch.arange(x.shape[-2], dtype=x.dtype) + 0.5) / x.shape[-2]
        x *= 0.1
        x[..., :2] += 4 * torch.stack([angle.cos(), angle.sin()], dim=-1)
    return q.to(dtype), k.to(dtype), v.to(dtype)


def calmest(
    mechanism: Mechanism,
    causal: bool,
    queries: int = LENGTH,
    keys: int | None = None,
    dtype: torch.dtype = torch.float64,
    shape: Shape = (BATCH, HEADS, WIDTH, FEATURES),
    order: int = 0,
) -> tuple[Tokens, float]:
    """Tokens on which a mechanism magnifies rounding least, and how much; the usual ones if these will do."""
    usual = tokens(queries, keys, dtype, shape=shape)
    magnified = mechanism.sensitivity(*usual[:2], causal, order)
    if magnified <= CALM:
        return usual, magnified
    other = tokens_on_an_arc(queries, keys, dtype, shape)
    less = mechanism.sensitivity(*other[:2], causal, order)
    return (other, less) if less < magnified else (usual, magnified)


def sensitivity(mechanism: Mechanism) -> float:
    """How many times a mechanism magnifies rounding on the usual tokens, at the worst of their lengths."""
    shape, causal = sizes(mechanism), modes(mechanism)[0]
    return max(mechanism.sensitivity(*tokens(length, shape=shape)[:2], causal) for length in LENGTHS)


def trial(
    mechanism: Mechanism,
    causal: bool,
    queries: int = LENGTH,
    keys: int | None = None,
    dtype: torch.dtype = torch.float64,
    shape: Shape | None = None,
) -> tuple[Tensor, Tensor, Tensor, float]:
    """Tokens to try a mechanism on, and the bound for two ways to its result on them.

    16-bit tokens are added up in float32, and the result is within a few roundings.
    """
    (q, k, v), magnified = calmest(mechanism, causal, queries, keys, dtype, shape or sizes(mechanism))
    inside = torch.promote_types(dtype, torch.float32)
    added_up = max(1.0, queries / LENGTHS[-1]) ** 0.5
    bound = rounding(inside) * magnified * added_up
    if magnified > 1 and bound >= MEANINGLESS:
        raise Skipped(
            f"it magnifies rounding {magnified:.2g} times on {queries} tokens in {inside}: "
            f"a bound of {bound:.1g} would tell nothing"
        )
    return q, k, v, bound if inside is dtype else bound + rounding(dtype, slack=4)


def trials(
    mechanism: Mechanism,
    lengths: Iterable[int],
    dtypes: Iterable[torch.dtype],
    shape: Shape | None = None,
) -> Iterator[tuple[bool, Tensor, Tensor, Tensor, float]]:
    """`causal`, tokens and bound in every mode; a case whose bound tells nothing is told of at the end."""
    left_out = None
    for causal, dtype, length in product(modes(mechanism), dtypes, lengths):
        try:
            q, k, v, bound = trial(mechanism, causal, length, dtype=dtype, shape=shape)
        except Skipped as reason:
            left_out = reason
            continue
        yield causal, q, k, v, bound
    if left_out is not None:
        raise left_out


def nudged(q: Tensor, k: Tensor, by: float, seed: int = 9) -> tuple[Tensor, Tensor]:
    """Queries and keys with every coordinate off by so much of itself, this way or that."""
    drawn = torch.Generator().manual_seed(seed)
    ways = [2 * torch.randint(2, x.shape, generator=drawn) - 1 for x in (q, k)]
    return q * (1 + by * ways[0]), k * (1 + by * ways[1])


def refusals(mechanism: Mechanism) -> tuple[type[Exception], ...]:
    """How a mechanism says that it does not do something: a callable of one's own in more ways than ours."""
    return observed.REFUSALS if isinstance(mechanism, CustomMechanism) else (UsageError,)


def narrow_formats(mechanism: Mechanism) -> tuple[torch.dtype, ...]:
    """The formats of 16 bits that a mechanism runs in, if there is one."""
    refused = formats_refused(mechanism)
    found = tuple(dtype for dtype in IN_16_BITS if dtype not in refused)
    if not found:
        raise Skipped(next(iter(refused.values())))
    return found


def formats_refused(mechanism: Mechanism) -> dict[torch.dtype, str]:
    """The formats of 16 bits that a mechanism does not run in, and why: torch lacks some operations there."""
    found: dict[torch.dtype, str] = {}
    for dtype in IN_16_BITS:
        q, k, v = tokens(dtype=dtype, shape=sizes(mechanism))
        try:
            fast(mechanism, q, k, v, causal=modes(mechanism)[0])
        except Exception as error:
            if not _refuses_format(mechanism, error):
                raise
            found[dtype] = f"it does not run in {short(dtype)}: {describe_failure(error)}"
    return found


def _refuses_format(mechanism: Mechanism, error: Exception) -> bool:
    """Whether an error says that something is not done in a format, and not that it went wrong there."""
    if isinstance(error, WrongResult):
        return False
    return isinstance(error, refusals(mechanism)) or "not implemented for" in str(error)


def short(dtype: torch.dtype) -> str:
    """The name of a format, `bfloat16`."""
    return str(dtype).removeprefix("torch.")


def modes(mechanism: Mechanism) -> tuple[bool, ...]:
    """The values of `causal` that a mechanism takes."""
    return {
        Causality.EITHER: (False, True),
        Causality.ALWAYS: (True,),
        Causality.NEVER: (False,),
    }[mechanism.causality]


def attender(mechanism: Mechanism, causal: bool) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """The fast form as a function of tokens alone."""
    return lambda q, k, v: fast(mechanism, q, k, v, causal=causal)


def rounding(dtype: torch.dtype, slack: float = SLACK) -> float:
    """The bound for two ways to the same number in `dtype`."""
    return slack * max(torch.finfo(dtype).eps, torch.finfo(least_precise()).eps)


def require_equal(found: Tensor, expected: Tensor, bound: float, what: str) -> None:
    """Broken unless `found` is `expected` within `bound`, times the largest number expected if above 1."""
    if found.shape != expected.shape:
        raise Broken(f"{what}: shape {tuple(found.shape)}, expected {tuple(expected.shape)}")
    found, expected = found.detach().double(), expected.detach().double()
    require_finite(expected, f"{what} (expected value)")
    require_finite(found, what)
    if not found.numel():
        return
    allowed = bound * max(1.0, expected.abs().max().item())
    gap = (found - expected).abs()
    if gap.max().item() > allowed:
        raise Broken(f"{what}: off by {gap.max().item():.3g}, allowed {allowed:.1g}, at {place_of(gap)}")


def require_finite(found: Tensor, what: str) -> None:
    """Broken if there is a NaN or an infinity."""
    bad = ~found.isfinite()
    if bad.any():
        first = place_of(bad.double())
        raise NotFinite(
            f"{what}: {int(bad.sum())} of {bad.numel()} numbers are not finite, the first at {first}"
        )


def place_of(size: Tensor) -> str:
    """Where the largest number stands, in words."""
    index = torch.unravel_index(size.argmax(), size.shape)
    names = ("batch", "head", "token", "feature")
    return ", ".join(f"{name} {int(i)}" for name, i in zip(names, index, strict=False)) or "the only number"
