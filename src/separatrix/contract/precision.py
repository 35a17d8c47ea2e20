"""Each number format gives what a wider one gives, within what rounding leaves."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import torch
from torch import Tensor

from separatrix.contract._base import Broken, NotFinite, Skipped, check
from separatrix.contract.calculus import STEEP, WIDE, Triple, gradients, weights_of
from separatrix.contract.calls import defined, fast
from separatrix.contract.inputs import (
    HEADS,
    LENGTH,
    LENGTHS,
    Tokens,
    attender,
    calmest,
    modes,
    narrow_formats,
    nudged,
    require_equal,
    rounding,
    short,
    sizes,
    tokens,
    trial,
    trials,
)
from separatrix.mechanisms import Mechanism

BIAS = {torch.bfloat16: 0.5, torch.float16: 2.0}
"""By how many units of rounding all results together may be off: what is rounded is off to both sides."""
LOGITS = 1.25
"""By how many units of rounding the size of logits may be off: a factor of theirs may be rounded itself."""
KINKS = 4
"""How often tokens are moved by half a unit of rounding, to see how much gradients change by it."""
GROUPS = 32
"""Heads, of all batch elements together, among which it is seen by how much that differs."""
DEVIATIONS = 5
"""By how many deviations of their mean it may be off beyond that: once in 20,000 times by chance."""
MOST_NOISE = 0.01
"""Where rounding alone makes the size of logits uncertain by more than this, it is not asked for."""
DAMPED = 0.15
"""How much of what coordinates change, each by itself, their common size must change for it to be asked for.

Softmax and others that mind it reach 0.18 and more, who divides tokens by their length at most 0.1."""
STEP = 1e-3
"""The step of differences along the size of logits."""
TINY = 1e-9
"""By how much tokens are moved to see whether results follow: more than float64 rounds, less than float32."""
SLOPE = 0.05
"""How far gradients in bfloat16, along those in float64, may be from them."""
NUDGES = 32
NUDGE = {torch.float32: 16.0, torch.bfloat16: 0.75, torch.float16: 0.75}
"""How often keys are made longer and shorter, and by how many units of rounding, to see who chooses anew.

Sums over many float32 tokens, as means of blocks of them, are off by more than one rounding.
"""
BEND = 1 / 8
"""How much of what is allowed a row may be off, both ways together, and hang on no choice."""
MOST_TORN = 0.5
"""Where more rows than this hang on a choice that rounding decides, nothing is told."""


@check()
def double_precision(mechanism: Mechanism) -> None:
    """float64 tokens are attended to in float64: steps of 1e-9 are followed, and not rounded away."""
    for causal in modes(mechanism):
        q, k, v, bound = trial(mechanism, causal)
        dq, dk, dv = tokens(signed=True, shape=sizes(mechanism), seed=2)
        with torch.no_grad():
            here, once, twice = (
                fast(mechanism, q + n * TINY * dq, k + n * TINY * dk, v + n * TINY * dv, causal=causal)
                for n in range(3)
            )
        uneven = ((twice - once) - (once - here)).abs().mean().item()
        if uneven > bound * max(1.0, here.abs().max().item()):
            raise Broken(
                f"float64 results follow steps of {TINY:g} to within {uneven:.1g} only: "
                f"something is computed in less than float64 (causal={causal})"
            )


@check("lengths", "widths", "form_in_16_bits")
def half_precision(mechanism: Mechanism) -> None:
    """In 16 bits the fast form is within a few roundings of the float32 definition, and off to both sides."""
    for causal, q, k, v, bound in _in_16_bits(mechanism):
        found = fast(mechanism, q, k, v, causal=causal).float()
        expected = defined(mechanism, q.float(), k.float(), v.float(), causal=causal)
        batch, heads, length, width = q.shape
        where = f"({length} tokens, batch {batch}, {heads} heads, width {width}, causal={causal})"
        what = f"{short(q.dtype)} differs from float32 {where}"
        found = require_nearly(mechanism, causal, (q, k, v), found, expected, bound, what)
        bias = abs((found - expected).double().mean() / expected.double().abs().mean()).item()
        allowed = BIAS[q.dtype] * torch.finfo(q.dtype).eps
        if bias > allowed:
            raise Broken(
                f"{short(q.dtype)} is off by {bias:.2g} of float32 in the mean of all results {where}, "
                f"where rounding leaves {allowed:.1g}"
            )


def _in_16_bits(mechanism: Mechanism) -> Iterator[tuple[bool, Tensor, Tensor, Tensor, float]]:
    """`causal`, tokens and bound: several lengths, and wide tokens, many heads and batch elements."""
    formats = narrow_formats(mechanism)
    yield from trials(mechanism, LENGTHS, formats)
    for shape in ((1, 1, *WIDE), (2, 16), (9, 2)):
        yield from trials(mechanism, (33,), formats, sizes(mechanism, *shape))


def require_nearly(
    mechanism: Mechanism,
    causal: bool,
    given: Tokens,
    found: Tensor,
    expected: Tensor,
    bound: float,
    what: str,
    nudges: int = NUDGES,
) -> Tensor:
    """As `require_equal`, but for rows that hang on a choice which rounding decides; these as expected."""
    try:
        require_equal(found, expected, bound, what)
    except NotFinite:
        raise
    except Broken:
        torn = _torn(mechanism, causal, given, expected, bound, nudges)
        if torn.double().mean() <= MOST_TORN:
            found = found.where(~torn, expected)
            require_equal(found, expected, bound, what)
            return found
        return expected
    return found


def _torn(
    mechanism: Mechanism, causal: bool, given: Tokens, expected: Tensor, bound: float, nudges: int
) -> Tensor:
    """The rows that jump when keys are longer or shorter by what rounding in their format may make of them.

    Who attends to the largest logits alone chooses one or the other of two that are nearly equal, or both;
    no choice is wrong. What is smooth goes as far one way as it goes the other; a choice shows by a bend.
    """
    by = NUDGE[given[0].dtype] * torch.finfo(given[0].dtype).eps
    q, k, v = (x.to(expected.dtype) for x in given)
    allowed = bound * max(1.0, expected.abs().max().item())
    torn = torch.zeros_like(expected[..., :1], dtype=torch.bool)
    drawn = torch.Generator().manual_seed(10)
    with torch.no_grad():
        for _ in range(nudges):
            ways = 2 * torch.randint(2, (*k.shape[:-1], 1), generator=drawn) - 1
            ahead, behind = (
                fast(mechanism, q, k * (1 + sign * by * ways), v, causal=causal) - expected
                for sign in (1, -1)
            )
            jumps = (ahead.abs() > allowed) | ((ahead + behind).abs() > BEND * allowed)
            torn |= jumps.any(-1, keepdim=True)
    return torn


@check("half_precision")
def logits_in_16_bits(mechanism: Mechanism) -> None:
    """In 16 bits logits are neither larger nor smaller: results are not off along their size."""
    asked = False
    shape = sizes(mechanism, -(-GROUPS // (mechanism.fixed_heads or HEADS)))
    for causal, dtype in product(modes(mechanism), narrow_formats(mechanism)):
        q, k, _, bound = trial(mechanism, causal, LENGTHS[-1], dtype=dtype, shape=shape)
        v = tokens(LENGTHS[-1], dtype=dtype, signed=True, shape=shape, seed=3)[2]
        with torch.no_grad():
            found = _off_along(mechanism, causal, (q, k, v), bound)
        for letter, (off, noise) in found.items():
            if not DEVIATIONS * noise <= MOST_NOISE:
                continue
            asked = True
            allowed = LOGITS * torch.finfo(dtype).eps + DEVIATIONS * noise
            if abs(off) > allowed:
                raise Broken(
                    f"{short(dtype)} gives what {letter} of {1 + off:.3f} times its size would give "
                    f"(causal={causal}); rounding leaves {allowed:.1g}"
                )
    if not asked:
        raise Skipped("the size of queries and keys is next to nothing to it")


def _off_along(
    mechanism: Mechanism, causal: bool, given: Tokens, bound: float
) -> dict[str, tuple[float, float]]:
    """By how much of itself q, or k, would have to be longer to give such results, and how unsure that is.

    Nothing is told of who makes queries or keys equally long: rounding after that looks like a length before.
    """
    q, k, v = (x.double() for x in given)

    def defined_at(longer_q: float = 0, longer_k: float = 0) -> Tensor:
        return defined(mechanism, (1 + longer_q) * q, (1 + longer_k) * k, v, causal=causal)

    expected = defined_at()
    gap = fast(mechanism, *given, causal=causal).double() - expected
    apart = gap.abs() > bound * max(1.0, expected.abs().max().item())  # a choice that rounding decides
    found, unit = {}, torch.finfo(given[0].dtype).eps
    moved = defined(mechanism, *nudged(q, k, unit / 2), v, causal=causal)
    response = (moved - expected).norm().item() / (unit / 2)
    for letter, way in (("q", (STEP, 0.0)), ("k", (0.0, STEP))):
        slope = (defined_at(*way) - defined_at(-way[0], -way[1])) / (2 * STEP)
        slope = slope.masked_fill(apart.any(-1, keepdim=True), 0)
        tells = slope.square().sum().item() > (DAMPED * response) ** 2
        found[letter] = _share(gap, slope) if tells else (0.0, torch.inf)
    return found


def _share(gap: Tensor, slope: Tensor) -> tuple[float, float]:
    """How much of the slope there is in the gap, and by how much that is off in the mean of heads.

    What one rounding does to many results, as that of a value does to all that see it, is told from what all
    heads of all batch elements have in common: their tokens have nothing to do with each other.
    """
    shares, wholes = (gap * slope).sum((-2, -1)), slope.square().sum((-2, -1))
    share = shares.sum() / wholes.sum()
    left, heads = shares - share * wholes, shares.numel()
    noise = (left.square().sum() * heads / (heads - 1)).sqrt() / wholes.sum()
    return share.item(), noise.item()


@check("gradient_in_float32")
def gradient_in_bfloat16(mechanism: Mechanism) -> None:
    """The gradient of bfloat16 tokens is as large as that of float64 ones, along it and within 5 %."""
    if torch.bfloat16 not in narrow_formats(mechanism):
        raise Skipped("it does not run in bfloat16")
    for causal in modes(mechanism):
        usual, wide = sizes(mechanism), sizes(mechanism, 1, 1, *WIDE)
        for length, shape in ((LENGTH, usual), (66, usual), (260, usual), (LENGTH, wide)):
            drawn, steepness = calmest(mechanism, causal, length, shape=shape, order=1)
            if steepness > STEEP:
                raise Skipped(f"it magnifies rounding {steepness:.2g} times in a derivative")
            narrow = tuple(x.bfloat16() for x in drawn)
            point = tuple(x.double() for x in narrow)
            attend = attender(mechanism, causal)
            with torch.no_grad():
                exact = attend(*point)
                gap = (attend(*narrow).double() - exact).abs()
            apart = gap > rounding(torch.bfloat16, slack=4) * exact.abs().max().clamp_min(1)
            weights = weights_of(exact).masked_fill(apart.any(-1, keepdim=True), 0)  # ties broken otherwise
            exactly, found = (gradients(mechanism, causal, each, weights) for each in (point, narrow))
            largest = max(each.norm().item() for each in exactly)
            for letter, one, other in zip("qkv", found, exactly, strict=True):
                whole = other.square().sum().item()
                if whole <= (torch.finfo(torch.bfloat16).eps * largest) ** 2:  # lost beside the others
                    continue
                along = (one.double() * other).sum().item() / whole
                if abs(along - 1) <= SLOPE:
                    continue
                kinks = _slope_of_kinks(mechanism, causal, point, weights, letter, other)
                if not abs(along - 1) <= SLOPE + 2 * kinks:
                    raise Broken(
                        f"the gradient of {letter} in bfloat16 is {along:.3g} times that in float64 "
                        f"({length} tokens, causal={causal})"
                    )


def _slope_of_kinks(
    mechanism: Mechanism, causal: bool, point: Triple, weights: Tensor, letter: str, slope: Tensor
) -> float:
    """By how much of itself, along it, a gradient is another where tokens are off by what rounding leaves.

    About a kink, as that of a relu, it is the one side's or the other's; neither is wrong.
    """
    q, k, v = point
    by, place = torch.finfo(torch.bfloat16).eps / 2, "qkv".index(letter)
    moved = (
        gradients(mechanism, causal, (*nudged(q, k, by, seed), v), weights)[place] for seed in range(KINKS)
    )
    return max(abs((each * slope).sum().item() / slope.square().sum().item() - 1) for each in moved)
