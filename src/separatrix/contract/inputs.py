"""Inputs and comparisons of the checks: small seeded tokens, and the tolerances for results."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import product
from typing import NamedTuple

import torch
from torch import Tensor

from separatrix.contract._base import Broken, NotFinite, Skipped, required_precision
from separatrix.contract.calls import call_definition, call_fast
from separatrix.core.errors import WrongResult, describe_failure
from separatrix.core.parameters import UsageError
from separatrix.mechanisms import Causality, Mechanism, observed
from separatrix.mechanisms.custom import CustomMechanism

# The sizes differ pairwise, so that swapped axes raise an error or change the shape of a result.
BATCH, HEADS, WIDTH, FEATURES = 2, 3, 5, 7
LENGTH = 13
LENGTHS = (1, 2, 7, 33, 66)
"""One token, odd lengths, and lengths above the usual chunk sizes."""
LONG_LENGTHS = (3, 16, 17, 32, 48, 63, 64, 65, 96, 100, 101, 128, 257, 512, 1030)
"""Lengths at and above the usual and the larger chunk sizes, for inputs of NARROW shape."""
NARROW = (1, 1, 3, 2)
"""Batch, heads, width and features of long inputs."""
NARROW_FORMATS = (torch.bfloat16, torch.float16)
SLACK = 64
"""Two ways to compute a number may differ by this many units of rounding."""
MAX_USEFUL_TOLERANCE = 1e-2
"""A comparison with a larger tolerance is not informative."""
MAX_CALM_SENSITIVITY = 16.0
"""If rounding is magnified more than this, other tokens are tried."""

Shape = tuple[int, int, int, int]
"""Batch, heads, width and features."""


class Tokens(NamedTuple):
    """Queries, keys and values."""

    q: Tensor
    k: Tensor
    v: Tensor

    def map(self, function: Callable[[Tensor], Tensor]) -> Tokens:
        """Apply a function to queries, keys and values."""
        return Tokens(*map(function, self))

    def to(self, dtype: torch.dtype) -> Tokens:
        """Convert all three."""
        return self.map(lambda x: x.to(dtype))

    def rows(self, rows: int | slice | Tensor) -> Tokens:
        """Select some of the tokens, or one."""
        return self.map(lambda x: x[..., rows, :])

    def element(self, i: int) -> Tokens:
        """Select an element of the batch, as a batch of one."""
        return self.map(lambda x: x[i : i + 1])


def draw_tokens(
    queries: int = LENGTH,
    keys: int | None = None,
    dtype: torch.dtype = torch.float64,
    is_signed: bool = False,
    shape: Shape = (BATCH, HEADS, WIDTH, FEATURES),
    seed: int = 1,
) -> Tokens:
    """Draw queries, keys and values; positive by default, since some kernels require positive logits.

    The coordinates of tokens wider than usual are scaled down, so that logits have their usual size.
    """
    generator = torch.Generator().manual_seed(seed)
    batch, heads, width, features = shape
    keys = queries if keys is None else keys

    def draw(*size: int) -> Tensor:
        # Drawn in float64 and then converted: every format sees the same numbers.
        if is_signed:
            return torch.randn(size, generator=generator, dtype=torch.float64).to(dtype)
        return (torch.rand(size, generator=generator, dtype=torch.float64) + 0.1).to(dtype)

    scale = min(1.0, (WIDTH / width) ** 0.5)
    return Tokens(
        scale * draw(batch, heads, queries, width),
        scale * draw(batch, heads, keys, width),
        draw(batch, heads, keys, features),
    )


def fit_shape(
    mechanism: Mechanism, batch: int = BATCH, heads: int = HEADS, width: int = WIDTH, features: int = FEATURES
) -> Shape:
    """Return a shape of tokens, with the sizes that the mechanism requires in place of others."""
    return (batch, mechanism.fixed_heads or heads, mechanism.fixed_width or width, mechanism.fixed_features or features)


def fit_narrow(mechanism: Mechanism) -> Shape:
    """Return the shape of long inputs."""
    return fit_shape(mechanism, *NARROW)


def draw_tokens_on_arc(
    queries: int = LENGTH,
    keys: int | None = None,
    dtype: torch.dtype = torch.float64,
    shape: Shape = (BATCH, HEADS, WIDTH, FEATURES),
) -> Tokens:
    """Draw tokens whose neighbours are similar and whose others are not, so that landmarks represent them."""
    q, k, v = draw_tokens(queries, keys, shape=shape)
    for x in (q, k):
        angle = math.pi * (torch.arange(x.shape[-2], dtype=x.dtype) + 0.5) / x.shape[-2]
        x *= 0.1
        x[..., :2] += 4 * torch.stack([angle.cos(), angle.sin()], dim=-1)
    return Tokens(q, k, v).to(dtype)


def draw_calmest(
    mechanism: Mechanism,
    causal: bool,
    queries: int = LENGTH,
    keys: int | None = None,
    dtype: torch.dtype = torch.float64,
    shape: Shape = (BATCH, HEADS, WIDTH, FEATURES),
    order: int = 0,
) -> tuple[Tokens, float]:
    """Return the tokens on which a mechanism magnifies rounding least, and the factor.

    Tokens on an arc are tried only if the usual ones are magnified more than MAX_CALM_SENSITIVITY.
    """
    usual = draw_tokens(queries, keys, dtype, shape=shape)
    factor = mechanism.sensitivity(usual.q, usual.k, causal, order)
    if factor <= MAX_CALM_SENSITIVITY:
        return usual, factor
    arc = draw_tokens_on_arc(queries, keys, dtype, shape)
    arc_factor = mechanism.sensitivity(arc.q, arc.k, causal, order)
    return (arc, arc_factor) if arc_factor < factor else (usual, factor)


def sensitivity(mechanism: Mechanism) -> float:
    """Return the largest factor by which a mechanism magnifies rounding on the usual tokens."""
    shape, causal = fit_shape(mechanism), causal_modes(mechanism)[0]
    # The number of tokens decides how nearly singular a matrix is that the formula inverts.
    return max(mechanism.sensitivity(*draw_tokens(length, shape=shape)[:2], causal) for length in LENGTHS)


def draw_trial(
    mechanism: Mechanism,
    causal: bool,
    queries: int = LENGTH,
    keys: int | None = None,
    dtype: torch.dtype = torch.float64,
    shape: Shape | None = None,
) -> tuple[Tokens, float]:
    """Return tokens for a comparison, and its tolerance.

    Sums over 16-bit tokens are computed in float32, and the result is within a few roundings.
    """
    inputs, factor = draw_calmest(mechanism, causal, queries, keys, dtype, shape or fit_shape(mechanism))
    sum_dtype = torch.promote_types(dtype, torch.float32)
    # Rounding errors of a sum of n terms grow like sqrt(n), as a random walk does.
    sum_growth = max(1.0, queries / LENGTHS[-1]) ** 0.5
    tolerance = rounding_bound(sum_dtype) * factor * sum_growth
    if factor > 1 and tolerance >= MAX_USEFUL_TOLERANCE:
        raise Skipped(
            f"it magnifies rounding {factor:.2g} times on {queries} tokens in {sum_dtype}: "
            f"a tolerance of {tolerance:.1g} is not informative"
        )
    return inputs, tolerance if sum_dtype is dtype else tolerance + rounding_bound(dtype, slack=4)


def draw_trials(
    mechanism: Mechanism, lengths: Iterable[int], dtypes: Iterable[torch.dtype], shape: Shape | None = None
) -> Iterator[tuple[bool, Tokens, float]]:
    """Yield `causal`, tokens and tolerance in every mode; raise Skipped at the end if a case is left out."""
    skipped_case = None
    for causal, dtype, length in product(causal_modes(mechanism), dtypes, lengths):
        try:
            inputs, tolerance = draw_trial(mechanism, causal, length, dtype=dtype, shape=shape)
        except Skipped as reason:
            skipped_case = reason
            continue
        yield causal, inputs, tolerance
    # Only now: a fault in one of the other cases is to be reported first.
    if skipped_case is not None:
        raise skipped_case


def perturb(inputs: Tokens, size: float, seed: int = 9) -> Tokens:
    """Change every coordinate of queries and keys by this fraction of itself, up or down at random."""
    generator = torch.Generator().manual_seed(seed)
    q_signs, k_signs = (2 * torch.randint(2, x.shape, generator=generator) - 1 for x in inputs[:2])
    return Tokens(inputs.q * (1 + size * q_signs), inputs.k * (1 + size * k_signs), inputs.v)


def refusal_types(mechanism: Mechanism) -> tuple[type[Exception], ...]:
    """Return the exceptions by which a mechanism refuses a call; callables may use more of them."""
    return observed.REFUSALS if isinstance(mechanism, CustomMechanism) else (UsageError,)


def supported_narrow_formats(mechanism: Mechanism) -> tuple[torch.dtype, ...]:
    """Return the 16-bit formats in which a mechanism runs; raise Skipped if there is none."""
    refusals = find_refused_formats(mechanism)
    formats = tuple(dtype for dtype in NARROW_FORMATS if dtype not in refusals)
    if not formats:
        raise Skipped(next(iter(refusals.values())))
    return formats


def find_refused_formats(mechanism: Mechanism) -> dict[torch.dtype, str]:
    """Return the 16-bit formats in which a mechanism does not run, with the reasons.

    torch lacks some operations in these formats, which is no fault of the mechanism.
    """
    refusals: dict[torch.dtype, str] = {}
    for dtype in NARROW_FORMATS:
        inputs = draw_tokens(dtype=dtype, shape=fit_shape(mechanism))
        try:
            call_fast(mechanism, *inputs, causal=causal_modes(mechanism)[0])
        except Exception as error:
            if not _is_format_refusal(mechanism, error):
                raise
            refusals[dtype] = f"it does not run in {dtype_name(dtype)}: {describe_failure(error)}"
    return refusals


def _is_format_refusal(mechanism: Mechanism, error: Exception) -> bool:
    """Return whether an error says that a format is not supported; others are faults."""
    if isinstance(error, WrongResult):  # a ValueError, which would count as a refusal
        return False
    return isinstance(error, refusal_types(mechanism)) or "not implemented for" in str(error)


def dtype_name(dtype: torch.dtype) -> str:
    """Return the name of a format, `bfloat16`."""
    return str(dtype).removeprefix("torch.")


def causal_modes(mechanism: Mechanism) -> tuple[bool, ...]:
    """Return the values of `causal` that a mechanism supports."""
    return {Causality.EITHER: (False, True), Causality.ALWAYS: (True,), Causality.NEVER: (False,)}[mechanism.causality]


def bind_fast(mechanism: Mechanism, causal: bool) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """Return the fast form as a function of q, k and v alone."""
    # A lambda would be one more frame of ours in each call of a user's function.
    return partial(call_fast, mechanism, causal=causal)


def rounding_bound(dtype: torch.dtype, slack: float = SLACK) -> float:
    """Return the tolerance for two ways to compute a number in `dtype`."""
    return slack * max(torch.finfo(dtype).eps, torch.finfo(required_precision()).eps)


def require_definition(mechanism: Mechanism, causal: bool, inputs: Tokens, tolerance: float, case: str) -> None:
    """Raise Broken unless the fast form agrees with the definition."""
    reference = call_definition(mechanism, *inputs, causal=causal)
    message = f"the fast form differs from the definition ({case}, causal={causal})"
    require_close(call_fast(mechanism, *inputs, causal=causal), reference, tolerance, message)


def require_close(actual: Tensor, reference: Tensor, tolerance: float, message: str) -> None:
    """Raise Broken unless two results agree within the tolerance, times the largest reference if above 1."""
    if actual.shape != reference.shape:
        raise Broken(f"{message}: shape {tuple(actual.shape)}, expected {tuple(reference.shape)}")
    actual, reference = actual.detach().double(), reference.detach().double()
    require_finite(reference, f"{message} (expected value)")
    require_finite(actual, message)
    if not actual.numel():
        return
    # Relative to the largest result, not to each: small results are differences of large terms.
    limit = tolerance * largest_size(reference)
    gap = (actual - reference).abs()
    if gap.max().item() > limit:
        raise Broken(f"{message}: off by {gap.max().item():.3g}, allowed {limit:.1g}, at {locate_largest(gap)}")


def largest_size(reference: Tensor) -> float:
    """Return the largest absolute value, or 1 if that is smaller: tolerances are relative to it."""
    return max(1.0, reference.abs().max().item())


def require_finite(actual: Tensor, message: str) -> None:
    """Raise NotFinite if there is a NaN or an infinity."""
    bad = ~actual.isfinite()
    if bad.any():
        place = locate_largest(bad.double())
        raise NotFinite(f"{message}: {int(bad.sum())} of {bad.numel()} numbers are not finite, the first at {place}")


def locate_largest(size: Tensor) -> str:
    """Return the position of the largest number, in words."""
    index = torch.unravel_index(size.argmax(), size.shape)
    names = ("batch", "head", "token", "feature")
    return ", ".join(f"{name} {int(i)}" for name, i in zip(names, index, strict=False)) or "the only number"
