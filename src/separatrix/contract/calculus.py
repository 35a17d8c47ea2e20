"""Derivatives are right, and results are linear in the values."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.gradcheck import GradcheckError, gradcheck, gradgradcheck

from separatrix.contract._base import Broken, Skipped, check
from separatrix.contract.calls import defined, drawing, extras_of
from separatrix.contract.inputs import (
    LENGTH,
    Shape,
    Tokens,
    attender,
    calmest,
    few,
    modes,
    require_equal,
    require_finite,
    rounding,
    sizes,
    tokens,
    trial,
)
from separatrix.core.errors import one_line
from separatrix.mechanisms import Mechanism, ScoreMechanism

STEP = 1e-5
"""The step of central differences in float64: their error is about STEP**2, plus rounding / STEP."""
SLOPE_BOUND = 1e-6
STEEP = 100.0
"""Where rounding in a derivative is magnified more than this, steps are too long for what they measure."""
SMALL = 1e-9
LARGE = 1e3
"""Values this large are still mixed as small ones are."""
KINK = 1e-3
"""Where the slopes to both sides differ by more than this, there is no derivative."""
WIDE = (96, 80)
"""Wide tokens: of queries and keys, and of values."""
MANY = (5, 9)
"""More batch elements and heads than usual."""
LARGEST_SLOPE = 1e6
"""No gradient of tokens of size 1 is larger, unless something small was divided by."""


@check("causality_of_gradients", "double_precision")
def gradient(mechanism: Mechanism) -> None:
    """The first derivative of the fast form is what finite differences say, in float64."""
    for causal in modes(mechanism):
        attend = attender(mechanism, causal)
        inputs = tuple(x.requires_grad_() for x in _smooth_at(mechanism, causal, 4, _small(mechanism)))
        out = attend(*inputs)
        if not out.requires_grad:
            raise Broken(f"the result is detached from q, k and v: no gradient flows (causal={causal})")
        require_finite(out, "ordinary tokens")
        if out.shape[-1] > FULL_WIDTH or inputs[0].shape[-1] > FULL_WIDTH:
            _require_slope(mechanism, causal, inputs, "")
            continue
        try:
            gradcheck(attend, inputs)
        except GradcheckError as error:
            gap = _gradient_gap(attend, inputs)
            raise Broken(
                f"the gradient is off by {gap:.3g} from finite differences along one direction "
                f"(causal={causal}): {one_line(error, 90)}"
            ) from None


FULL_WIDTH = 8
"""Wider tokens are moved along a few directions only, not along every axis."""


@check("gradient")
def gradient_of_one_input(mechanism: Mechanism) -> None:
    """Results do not mind whether gradients are asked for, nor a gradient which others are, too."""
    for causal in modes(mechanism):
        for length in (LENGTH, 66):
            point = _smooth_at(mechanism, causal, length, _small(mechanism))
            attend, whole = attender(mechanism, causal), gradients(mechanism, causal, point)
            with torch.no_grad():
                expected = attend(*point)
            for i, letter in enumerate("qkv"):
                one = [x.detach().clone().requires_grad_(i == j) for j, x in enumerate(point)]
                out = attend(one[0], one[1], one[2])
                bound = rounding(out.dtype) * max(1.0, mechanism.sensitivity(*point[:2], causal, 1))
                what = (
                    f"where gradients are asked for the result is another ({length} tokens, causal={causal})"
                )
                require_equal(out, expected, bound, what)
                found = torch.zeros_like(one[i])
                if out.requires_grad:
                    slope = torch.autograd.grad((out * weights_of(out)).sum(), one[i], allow_unused=True)[0]
                    found = found if slope is None else slope
                what = f"the gradient of {letter} alone is not that beside others ({length} tokens"
                require_equal(found, whole[i], bound, f"{what}, causal={causal})")


@check("gradient", "lengths")
def gradient_of_long_inputs(mechanism: Mechanism) -> None:
    """The first derivative is what finite differences say, at 33 to 1030 tokens, on wide ones, on many."""
    for causal in modes(mechanism):
        for length in (33, 66, 130, 260, 520, 1030):
            inputs = _smooth_at(mechanism, causal, length, few(mechanism))
            _require_slope(mechanism, causal, inputs, f", {length} tokens")
        inputs = _smooth_at(mechanism, causal, LENGTH, sizes(mechanism, 1, 1, *WIDE))
        width, features = inputs[0].shape[-1], inputs[2].shape[-1]
        _require_slope(mechanism, causal, inputs, f", width {width}, {features} features")
        batch, heads = MANY
        inputs = _smooth_at(mechanism, causal, LENGTH, sizes(mechanism, batch, heads))
        _require_slope(mechanism, causal, inputs, f", batch {batch}, {inputs[0].shape[1]} heads")


@check("gradient", "half_precision")
def gradient_in_float32(mechanism: Mechanism) -> None:
    """The gradient of float32 tokens is that of float64 ones, within rounding."""
    for causal in modes(mechanism):
        wide = sizes(mechanism, 1, 1, *WIDE)
        for length, shape in (*((n, sizes(mechanism)) for n in (LENGTH, 66, 130)), (LENGTH, wide)):
            drawn, steepness = calmest(mechanism, causal, length, shape=shape, order=1)
            if steepness > STEEP:
                raise Skipped(f"it magnifies rounding {steepness:.2g} times in a derivative")
            bound = 4 * rounding(torch.float32) * max(1.0, steepness)
            narrow = tuple(x.float() for x in drawn)
            point = tuple(x.double() for x in narrow)
            attend = attender(mechanism, causal)
            with torch.no_grad():
                exact = attend(*point)
                require_finite(exact, "ordinary tokens")
                apart = (attend(*narrow).double() - exact).abs() > 1e-4 * exact.abs().max().clamp_min(1)
            weights = weights_of(exact).masked_fill(apart.any(-1, keepdim=True), 0)  # ties broken otherwise
            exactly, found = (gradients(mechanism, causal, each, weights) for each in (point, narrow))
            size = max(1.0, *(each.abs().max().item() for each in exactly))
            for letter, one, other in zip("qkv", found, exactly, strict=True):
                what = f"the gradient of {letter} in float32 is not that in float64 ({length} tokens"
                require_equal(one / size, other / size, bound, f"{what}, causal={causal})")


@check("gradient")
def gradient_of_extras(mechanism: Mechanism) -> None:
    """The derivative with respect to each drawn extra is what finite differences say, in float64."""
    if not mechanism.extras:
        raise Skipped("it takes nothing beside q, k and v")
    if not drawing():
        return
    for causal in modes(mechanism):
        for length, shape in ((4, _small(mechanism)), (70, few(mechanism))):
            q, k, v = _smooth_at(mechanism, causal, length, shape)
            given = {name: x.contiguous() for name, x in extras_of(mechanism, q, k, v).items()}
            for name in given:
                _require_slope_of(mechanism, causal, (q, k, v), given, name)


def _require_slope_of(
    mechanism: Mechanism, causal: bool, point: Tokens, given: dict[str, Tensor], name: str
) -> None:
    """The gradient of one extra along a direction is the central difference along it."""
    extra = given[name].detach()
    drawn = torch.Generator().manual_seed(7)
    move = (2 * torch.rand(extra.shape, generator=drawn, dtype=extra.dtype) - 1) * extra.isfinite()

    def attend(x: Tensor) -> Tensor:
        extras: dict[str, Any] = {**given, name: x}
        return mechanism(*point, None, causal, **extras)

    with torch.no_grad():
        ahead, here, behind = (attend(extra + sign * STEP * move) for sign in (1, 0, -1))
    slope, bend = (ahead - behind) / (2 * STEP), (ahead - 2 * here + behind).abs() / STEP
    weights = weights_of(slope).masked_fill(bend > KINK * slope.abs().max().clamp_min(1), 0)
    at = extra.clone().requires_grad_()
    out = attend(at)
    slopes = torch.autograd.grad((out * weights).sum(), at)[0] if out.requires_grad else torch.zeros_like(at)
    found, expected = (slopes * move).sum().item(), (slope * weights).sum().item()
    allowed = SLOPE_BOUND * max(1.0, (slope * weights).norm().item()) + (bend * weights).norm().item()
    if not abs(found - expected) <= allowed:
        raise Broken(
            f"the gradient of {name} is off by {abs(found - expected):.3g} from finite differences along one "
            f"direction, allowed {allowed:.1g} (causal={causal}, {point[0].shape[-2]} tokens)"
        )


@check("gradient", "finite")
def gradient_on_zero_keys(mechanism: Mechanism) -> None:
    """A key of zeros among others, as padding leaves it, has a gradient that is finite and not huge."""
    if isinstance(mechanism, ScoreMechanism) and not _slope_at_zero(mechanism):
        raise Skipped("its kernel has no slope at a logit of 0")
    for causal in modes(mechanism):
        for dtype in (torch.float64, torch.float32):
            q, k, v = tokens(dtype=dtype, shape=sizes(mechanism))
            k[..., LENGTH // 2, :] = 0
            for letter, slope in zip("qkv", gradients(mechanism, causal, (q, k, v)), strict=True):
                what = f"the gradient of {letter} with a key of zeros ({dtype}, causal={causal})"
                require_finite(slope, what)
                largest = slope.abs().max().item()
                if largest > LARGEST_SLOPE:
                    raise Broken(f"{what} is {largest:.2g}: something is divided by the length of the key")


@check("gradient_on_zero_keys")
def gradient_on_equal_keys(mechanism: Mechanism) -> None:
    """Where all keys are equal, and with them all logits of a query, the gradient is finite and not huge."""
    for causal in modes(mechanism):
        for dtype in (torch.float64, torch.float32):
            q, k, v = tokens(dtype=dtype, shape=sizes(mechanism))
            k = k[..., :1, :].expand_as(k)
            for letter, slope in zip("qkv", gradients(mechanism, causal, (q, k, v)), strict=True):
                what = f"the gradient of {letter} with equal keys ({dtype}, causal={causal})"
                require_finite(slope, what)
                largest = slope.abs().max().item()
                if largest > LARGEST_SLOPE:
                    raise Broken(f"{what} is {largest:.2g}: something is divided by what keys differ by")


@check("gradient")
def double_backward(mechanism: Mechanism) -> None:
    """The definition can be differentiated twice, and rightly, in float64."""
    claimed, causal = mechanism.twice_differentiable, modes(mechanism)[-1]
    if claimed is False:
        raise Skipped("it says that it cannot be differentiated twice")
    shape = sizes(mechanism, 1, 1, 3, 2)
    if max(shape) > FULL_WIDTH:
        raise Skipped("tokens of its width are too wide for second derivatives by differences")
    inputs = tuple(x.requires_grad_() for x in _smooth_at(mechanism, causal, 3, shape))

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return defined(mechanism, q, k, v, causal=causal)

    require_finite(attend(*inputs), "ordinary tokens")
    try:
        gradgradcheck(attend, inputs)
    except GradcheckError as error:
        what = f"the second derivative of the definition is not what finite differences say (causal={causal})"
        if claimed is None:
            raise Skipped(f"it does not claim that it can be differentiated twice, and {what}") from None
        raise Broken(f"{what}: {one_line(error, 90)}") from None
    except Exception as error:
        if claimed is None:
            raise Skipped(f"it cannot be differentiated twice: {one_line(error, 90)}") from None
        raise


@check("double_backward")
def forward_mode(mechanism: Mechanism) -> None:
    """Forward-mode derivatives of the definition are what finite differences say, in float64."""
    claimed = mechanism.twice_differentiable
    if claimed is False:
        raise Skipped("it says that it has backward derivatives alone")
    for causal in modes(mechanism):

        def attend(q: Tensor, k: Tensor, v: Tensor, causal: bool = causal) -> Tensor:
            return defined(mechanism, q, k, v, causal=causal)

        point = _smooth_at(mechanism, causal, 4, _small(mechanism))
        direction = tokens(4, shape=_small(mechanism), signed=True, seed=2)
        with warnings.catch_warnings():
            # torch's own, from the first use of forward mode; the mechanism has no part in it.
            warnings.filterwarnings("ignore", "`torch.jit", DeprecationWarning)
            try:
                found: Tensor = torch.func.jvp(attend, point, direction)[1]
            except Exception as error:
                if claimed is None:
                    raise Skipped(f"it has no forward mode: {one_line(error, 90)}") from None
                raise
        what = f"the forward-mode derivative differs from finite differences (causal={causal})"
        require_equal(found, _slope(attend, point, direction), SLOPE_BOUND, what)


@check("lengths", "widths")
def linear_in_values(mechanism: Mechanism) -> None:
    """Attending to a mixture of values gives the mixture of the results, where the mechanism says so."""
    if not mechanism.linear_in_values:
        raise Skipped("it does not say that results are linear in the values")
    for causal in modes(mechanism):
        for length, shape in ((LENGTH, sizes(mechanism)), (130, few(mechanism)), (520, few(mechanism))):
            q, k, first, bound = trial(mechanism, causal, length, shape=shape)
            second = tokens(length, shape=shape, seed=2)[2]
            attend = attender(mechanism, causal)
            found = attend(q, k, 3 * first - 2 * second)
            expected = 3 * attend(q, k, first) - 2 * attend(q, k, second)
            what = f"attending to 3 v1 - 2 v2 is not 3 times v1's result minus 2 times v2's (causal={causal})"
            require_equal(found, expected, 2 * bound, what)
            nothing = attend(q, k, torch.zeros_like(first))  # a bias of its own is no fault
            found = (attend(q, k, SMALL * first) - nothing) / SMALL
            least = 2 * bound * (1 + nothing.abs().max().item() / SMALL)
            what = f"attending to values of about {SMALL:g} is not {SMALL:g} times that of large ones"
            require_equal(found, attend(q, k, first) - nothing, least, what)
            found = attend(q, k, (LARGE + 1) * first - LARGE * second)
            expected = (LARGE + 1) * attend(q, k, first) - LARGE * attend(q, k, second)
            what = f"attending to values of about {LARGE:g} is not mixed as small ones are (causal={causal})"
            require_equal(found, expected, 2 * LARGE * bound, what)


Attend = Callable[[Tensor, Tensor, Tensor], Tensor]
Triple = tuple[Tensor, ...]


def _slope_at_zero(mechanism: ScoreMechanism) -> bool:
    """Whether the score has a derivative at a logit of 0."""
    zero = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    score = mechanism.score(zero).sum()
    return not score.requires_grad or bool(torch.autograd.grad(score, zero)[0].isfinite().all())


def _small(mechanism: Mechanism) -> Shape:
    return sizes(mechanism, 1, 2, 3, 2)


def _smooth_at(mechanism: Mechanism, causal: bool, length: int, shape: Shape) -> Tokens:
    """Tokens about which the mechanism bends so little that finite differences say what a derivative is."""
    found, steepness = calmest(mechanism, causal, length, shape=shape, order=1)
    if steepness > STEEP:
        raise Skipped(
            f"it magnifies rounding {steepness:.2g} times in a derivative: differences tell nothing"
        )
    return found


def gradients(mechanism: Mechanism, causal: bool, point: Triple, weights: Tensor | None = None) -> Triple:
    """The gradient of the results, weighted so that none cancels, with respect to q, k and v."""
    inputs = tuple(x.detach().clone().requires_grad_() for x in point)
    out = attender(mechanism, causal)(*inputs)
    weights = weights_of(out) if weights is None else weights.to(out.dtype)
    slopes = torch.autograd.grad((out * weights).sum(), inputs, allow_unused=True)
    return tuple(
        torch.zeros_like(x) if slope is None else slope for x, slope in zip(inputs, slopes, strict=True)
    )


def weights_of(out: Tensor) -> Tensor:
    """Seeded weights of both signs, one for each result."""
    drawn = torch.Generator().manual_seed(4)
    return torch.randn(out.shape, generator=drawn, dtype=torch.float64).to(out.dtype)


def _require_slope(mechanism: Mechanism, causal: bool, point: Triple, where: str) -> None:
    """The gradient along a direction of q, of k and of v is the central difference along it.

    Results with a kink on the way, where one side says another slope than the other, are left out.
    """
    attend, at = attender(mechanism, causal), tuple(x.detach() for x in point)
    drawn = torch.Generator().manual_seed(5)
    for i, letter in enumerate("qkv"):
        move = torch.randn(at[i].shape, generator=drawn, dtype=at[i].dtype)
        with torch.no_grad():
            ahead, here, behind = (
                attend(*(x + sign * STEP * move if i == j else x for j, x in enumerate(at)))
                for sign in (1, 0, -1)
            )
        require_finite(here, "ordinary tokens")
        slope, bend = (ahead - behind) / (2 * STEP), (ahead - 2 * here + behind).abs() / STEP
        kinked = bend > KINK * slope.abs().max().clamp_min(1)
        weights = weights_of(slope).masked_fill(kinked, 0)
        expected = (slope * weights).sum().item()
        found = (gradients(mechanism, causal, at, weights)[i] * move).sum().item()
        size = max(1.0, (slope * weights).norm().item())
        allowed = SLOPE_BOUND * size + (bend * weights).norm().item()
        if not abs(found - expected) <= allowed:
            raise Broken(
                f"the gradient of {letter} is off by {abs(found - expected):.3g} from finite differences "
                f"along one direction, allowed {allowed:.1g} (causal={causal}{where})"
            )


def _slope(attend: Attend, point: Triple, direction: Triple) -> Tensor:
    """The central difference of `attend` along a direction."""
    ahead, behind = (
        attend(*(x + sign * STEP * d for x, d in zip(point, direction, strict=True))) for sign in (1, -1)
    )
    return (ahead - behind).detach() / (2 * STEP)


def _gradient_gap(attend: Attend, inputs: Triple) -> float:
    """How far backward and central differences are apart along one direction, for the message."""
    shape = (*inputs[0].shape[:2], inputs[0].shape[-1], inputs[2].shape[-1])
    direction = tokens(4, shape=(shape[0], shape[1], shape[2], shape[3]), signed=True, seed=2)
    slopes = torch.autograd.grad(attend(*inputs).sum(), inputs, allow_unused=True)
    along = sum((g * d).sum().item() for g, d in zip(slopes, direction, strict=True) if g is not None)
    expected = _slope(attend, tuple(x.detach() for x in inputs), direction).sum().item()
    return abs(along - expected)
