"""Derivatives are right, and results are linear in the values if that is declared."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import product
from typing import Any

import torch
from torch import Tensor
from torch.autograd.gradcheck import GradcheckError, gradgradcheck

from separatrix.contract._base import Broken, Skipped, check
from separatrix.contract.calls import bind_fast, call_definition, make_extras, random_extras
from separatrix.contract.comparisons import require_close, require_finite, rounding_bound
from separatrix.contract.inputs import LENGTH, Shape, Tokens, causal_modes, draw_tokens, fit_narrow, fit_shape
from separatrix.contract.trials import draw_calmest, draw_trial
from separatrix.core.errors import one_line
from separatrix.mechanisms import Mechanism, ScoreMechanism

STEP = 1e-5
"""The step of central differences in float64: their error is about STEP**2, plus rounding / STEP."""
SLOPE_TOLERANCE = 1e-6
MAX_SENSITIVITY = 100.0
"""If a derivative magnifies rounding more than this, differences with STEP are inaccurate."""
SMALL = 1e-9
LARGE = 1e3
"""The sizes of values on which linearity is tested."""
MAX_BEND = 1e-3
"""If the slopes to both sides differ by more than this, there is no derivative."""
WIDE = (96, 80)
"""A large width of queries and keys, and of values."""
LARGE_BATCH, MANY_HEADS = 5, 9
MAX_GRADIENT = 1e6
"""The gradient of tokens of size 1 is larger only if something is divided by a small number."""
MAX_GRADCHECK_WIDTH = 8
"""Second derivatives are compared along every axis, which takes too long for wider tokens."""

Attend = Callable[[Tensor, Tensor, Tensor], Tensor]


@check("causality_of_gradients", "double_precision")
def gradient(mechanism: Mechanism) -> None:
    """The first derivative of the fast form agrees with finite differences, in float64."""
    for causal in causal_modes(mechanism):
        inputs = _draw_smooth(mechanism, causal, 4, _fit_small(mechanism)).map(torch.Tensor.requires_grad_)
        out = bind_fast(mechanism, causal)(*inputs)
        if not out.requires_grad:
            raise Broken(
                f"the result is detached from q, k and v: no gradient flows (causal={causal}); "
                "avoid no_grad, detach and .data"
            )
        require_finite(out, "ordinary tokens")
        _require_gradient(mechanism, causal, inputs, "")


@check("gradient")
def gradient_of_one_input(mechanism: Mechanism) -> None:
    """Results and gradients do not depend on which of q, k and v require gradients."""
    for causal, length in product(causal_modes(mechanism), (LENGTH, 66)):
        inputs = _draw_smooth(mechanism, causal, length, _fit_small(mechanism))
        attend, all_gradients = bind_fast(mechanism, causal), gradients(mechanism, causal, inputs)
        case = f"{length} tokens, causal={causal}"
        with torch.no_grad():
            reference = attend(*inputs)
        tolerance = max(1.0, mechanism.sensitivity(inputs.q, inputs.k, causal, 1))
        tolerance *= rounding_bound(reference.dtype)
        for i, letter in enumerate("qkv"):
            leaves = Tokens(*(x.detach().clone().requires_grad_(i == j) for j, x in enumerate(inputs)))
            out = attend(*leaves)
            require_close(out, reference, tolerance, f"the result differs where gradients are required ({case})")
            slope = None
            if out.requires_grad:
                total = (out * random_weights(out)).sum()
                slope = torch.autograd.grad(total, leaves[i], allow_unused=True)[0]
            slope = torch.zeros_like(leaves[i]) if slope is None else slope
            message = f"the gradient of {letter} alone differs from that together with the others ({case})"
            require_close(slope, all_gradients[i], tolerance, message)


@check("gradient", "lengths")
def gradient_of_long_inputs(mechanism: Mechanism) -> None:
    """The first derivative agrees with finite differences on 33 to 1030 tokens, wide ones and many heads."""
    for causal in causal_modes(mechanism):
        for length in (33, 66, 130, 260, 520, 1030):
            inputs = _draw_smooth(mechanism, causal, length, fit_narrow(mechanism))
            _require_gradient(mechanism, causal, inputs, f", {length} tokens")
        inputs = _draw_smooth(mechanism, causal, LENGTH, fit_shape(mechanism, 1, 1, *WIDE))
        _require_gradient(mechanism, causal, inputs, f", width {inputs.q.shape[-1]}, {inputs.v.shape[-1]} features")
        shape = fit_shape(mechanism, LARGE_BATCH, MANY_HEADS)
        inputs = _draw_smooth(mechanism, causal, LENGTH, shape)
        _require_gradient(mechanism, causal, inputs, f", batch {LARGE_BATCH}, {shape[1]} heads")


@check("gradient", "half_precision")
def gradient_in_float32(mechanism: Mechanism) -> None:
    """The gradient of float32 tokens agrees with that of float64 tokens, within rounding."""
    usual, wide = fit_shape(mechanism), fit_shape(mechanism, 1, 1, *WIDE)
    cases = ((LENGTH, usual), (66, usual), (130, usual), (LENGTH, wide))
    for causal, (length, shape) in product(causal_modes(mechanism), cases):
        narrow, wide_inputs = draw_for_gradients(mechanism, causal, length, shape, torch.float32)
        sensitivity = mechanism.sensitivity(wide_inputs.q, wide_inputs.k, causal, 1)
        tolerance = 4 * rounding_bound(torch.float32) * max(1.0, sensitivity)
        weights = weights_without_ties(mechanism, causal, narrow, wide_inputs, 1e-4)
        references = gradients(mechanism, causal, wide_inputs, weights)
        actual = gradients(mechanism, causal, narrow, weights)
        # Relative to the largest of the three: a small one is a difference of large terms.
        size = max(1.0, *(gradient.abs().max().item() for gradient in references))
        for letter, slope, reference in zip("qkv", actual, references, strict=True):
            message = f"the gradient of {letter} in float32 differs from that in float64 ({length} tokens"
            require_close(slope / size, reference / size, tolerance, f"{message}, causal={causal})")


def draw_for_gradients(
    mechanism: Mechanism, causal: bool, length: int, shape: Shape, dtype: torch.dtype
) -> tuple[Tokens, Tokens]:
    """Return tokens in a format, and the same numbers in float64."""
    narrow = _draw_smooth(mechanism, causal, length, shape).to(dtype)
    return narrow, narrow.to(torch.float64)


def weights_without_ties(mechanism: Mechanism, causal: bool, narrow: Tokens, wide: Tokens, tolerance: float) -> Tensor:
    """Return weights for `gradients`, 0 for rows whose results in both formats differ.

    In such rows rounding decides a choice, as between two nearly equal keys. Neither choice is wrong, but
    their gradients differ.
    """
    with torch.no_grad():
        exact = bind_fast(mechanism, causal)(*wide)
        require_finite(exact, "ordinary tokens")
        gap = (bind_fast(mechanism, causal)(*narrow).double() - exact).abs()
    is_tied = gap > tolerance * exact.abs().max().clamp_min(1)
    return random_weights(exact).masked_fill(is_tied.any(-1, keepdim=True), 0)


@check("gradient")
def gradient_of_extras(mechanism: Mechanism) -> None:
    """The derivative with respect to each random extra agrees with finite differences, in float64."""
    if not mechanism.extras:
        raise Skipped("it has no inputs beside q, k and v")
    if not random_extras.get():
        return
    cases = ((4, _fit_small(mechanism)), (70, fit_narrow(mechanism)))
    for causal, (length, shape) in product(causal_modes(mechanism), cases):
        inputs = _draw_smooth(mechanism, causal, length, shape)
        extras = {name: x.contiguous() for name, x in make_extras(mechanism, *inputs).items()}
        for name in extras:
            _require_gradient_of_extra(mechanism, causal, inputs, extras, name)


def _require_gradient_of_extra(
    mechanism: Mechanism, causal: bool, inputs: Tokens, extras: dict[str, Tensor], name: str
) -> None:
    extra = extras[name].detach()
    generator = torch.Generator().manual_seed(7)
    direction = 2 * torch.rand(extra.shape, generator=generator, dtype=extra.dtype) - 1

    def attend(x: Tensor) -> Tensor:
        named: dict[str, Any] = {**extras, name: x}
        return mechanism(*inputs, None, causal, **named)

    def find_gradient(weights: Tensor) -> Tensor:
        leaf = extra.clone().requires_grad_()
        out = attend(leaf)
        return torch.autograd.grad((out * weights).sum(), leaf)[0] if out.requires_grad else torch.zeros_like(leaf)

    # An extra that is not finite, such as a sink of minus infinity, cannot be moved.
    direction = direction * extra.isfinite()
    message = f"the gradient of {name} is off by {{}} (causal={causal}, {inputs.q.shape[-2]} tokens)"
    _require_slope(attend, find_gradient, extra, direction, message)


@check("gradient", "finite")
def gradient_on_zero_keys(mechanism: Mechanism) -> None:
    """A key of zeros among others, as in padding, has a gradient that is finite and not huge."""
    if isinstance(mechanism, ScoreMechanism) and not _has_slope_at_zero(mechanism):
        raise Skipped("its kernel has no slope at a logit of 0")

    position = torch.tensor(LENGTH // 2)
    _require_bounded_gradient(
        mechanism, lambda k: k.index_fill(-2, position, 0), "with a key of zeros", "the norm of the key"
    )


@check("gradient_on_zero_keys")
def gradient_on_equal_keys(mechanism: Mechanism) -> None:
    """If all keys are equal, and so all logits of a query, the gradient is finite and not huge."""
    _require_bounded_gradient(
        mechanism, lambda k: k[..., :1, :].expand_as(k), "with equal keys", "the differences of keys"
    )


def _require_bounded_gradient(
    mechanism: Mechanism, change: Callable[[Tensor], Tensor], case: str, divisor: str
) -> None:
    for causal, dtype in product(causal_modes(mechanism), (torch.float64, torch.float32)):
        q, k, v = draw_tokens(dtype=dtype, shape=fit_shape(mechanism))
        for letter, slope in zip("qkv", gradients(mechanism, causal, Tokens(q, change(k), v)), strict=True):
            message = f"the gradient of {letter} {case} ({dtype}, causal={causal})"
            require_finite(slope, message)
            largest = slope.abs().max().item()
            if largest > MAX_GRADIENT:
                raise Broken(f"{message} is {largest:.2g}: it is divided by {divisor}; add an epsilon")


@check("gradient")
def double_backward(mechanism: Mechanism) -> None:
    """The second derivative of the definition agrees with finite differences, in float64."""
    declaration, causal = mechanism.twice_differentiable, causal_modes(mechanism)[-1]
    if declaration is False:
        raise Skipped("it declares that it has no second derivative")
    shape = fit_shape(mechanism, 1, 1, 3, 2)
    if max(shape) > MAX_GRADCHECK_WIDTH:
        raise Skipped("its tokens are too wide for second derivatives by finite differences")
    inputs = _draw_smooth(mechanism, causal, 3, shape).map(torch.Tensor.requires_grad_)

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return call_definition(mechanism, q, k, v, causal=causal)

    require_finite(attend(*inputs), "ordinary tokens")
    try:
        gradgradcheck(attend, tuple(inputs))
    except GradcheckError as error:
        message = f"the second derivative of the definition differs from finite differences (causal={causal})"
        if declaration is None:
            raise Skipped(f"it does not declare a second derivative, and {message}") from None
        raise Broken(f"{message}: {one_line(error, 90)}") from None
    except Exception as error:
        if declaration is None:
            raise Skipped(f"it has no second derivative: {one_line(error, 90)}") from None
        raise


@check("double_backward")
def forward_mode(mechanism: Mechanism) -> None:
    """Forward-mode derivatives of the definition agree with finite differences, in float64."""
    declaration = mechanism.twice_differentiable
    if declaration is False:
        raise Skipped("it declares that it has only backward derivatives")
    for causal in causal_modes(mechanism):

        def attend(q: Tensor, k: Tensor, v: Tensor, causal: bool = causal) -> Tensor:
            return call_definition(mechanism, q, k, v, causal=causal)

        inputs = _draw_smooth(mechanism, causal, 4, _fit_small(mechanism))
        direction = draw_tokens(4, shape=_fit_small(mechanism), is_signed=True, seed=2)
        with warnings.catch_warnings():
            # torch itself raises it at the first use of forward mode.
            warnings.filterwarnings("ignore", "`torch.jit", DeprecationWarning)
            try:
                actual: Tensor = torch.func.jvp(attend, tuple(inputs), tuple(direction))[1]
            except Exception as error:
                if declaration is None:
                    raise Skipped(f"it has no forward mode: {one_line(error, 90)}") from None
                raise
        message = f"the forward-mode derivative differs from finite differences (causal={causal})"
        require_close(actual, _difference_slope(attend, inputs, direction), SLOPE_TOLERANCE, message)


@check("lengths", "widths")
def linear_in_values(mechanism: Mechanism) -> None:
    """A linear combination of values gives that of the results, if the mechanism declares it."""
    if not mechanism.linear_in_values:
        raise Skipped("it does not declare that results are linear in the values")
    narrow = fit_narrow(mechanism)
    cases = ((LENGTH, fit_shape(mechanism)), (130, narrow), (520, narrow))
    for causal, (length, shape) in product(causal_modes(mechanism), cases):
        (q, k, first), tolerance = draw_trial(mechanism, causal, length, shape=shape)
        second = draw_tokens(length, shape=shape, seed=2).v
        attend = bind_fast(mechanism, causal)
        first_out, second_out = attend(q, k, first), attend(q, k, second)
        message = f"the result of 3 v1 - 2 v2 is not 3 times that of v1 minus 2 times that of v2 (causal={causal})"
        actual = attend(q, k, 3 * first - 2 * second)
        require_close(actual, 3 * first_out - 2 * second_out, 2 * tolerance, message)
        zero_out = attend(q, k, torch.zeros_like(first))  # not 0 if there is a learned bias, which is no fault
        small_tolerance = 2 * tolerance * (1 + zero_out.abs().max().item() / SMALL)
        message = f"the result of values of about {SMALL:g} is not {SMALL:g} times that of large ones"
        actual = (attend(q, k, SMALL * first) - zero_out) / SMALL
        require_close(actual, first_out - zero_out, small_tolerance, message)
        message = f"the results of values of about {LARGE:g} are combined in another way than those of small ones"
        actual = attend(q, k, (LARGE + 1) * first - LARGE * second)
        reference = (LARGE + 1) * first_out - LARGE * second_out
        require_close(actual, reference, 2 * LARGE * tolerance, f"{message} (causal={causal})")


def _has_slope_at_zero(mechanism: ScoreMechanism) -> bool:
    """Return whether the score has a derivative at a logit of 0."""
    zero = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    score = mechanism.score(zero).sum()
    return not score.requires_grad or bool(torch.autograd.grad(score, zero)[0].isfinite().all())


def _fit_small(mechanism: Mechanism) -> Shape:
    return fit_shape(mechanism, 1, 2, 3, 2)


def _draw_smooth(mechanism: Mechanism, causal: bool, length: int, shape: Shape) -> Tokens:
    """Draw tokens near which the mechanism bends so little that finite differences are accurate."""
    inputs, sensitivity = draw_calmest(mechanism, causal, length, shape=shape, order=1)
    if sensitivity > MAX_SENSITIVITY:
        raise Skipped(
            f"it magnifies rounding {sensitivity:.2g} times in a derivative: finite differences are not accurate enough"
        )
    return inputs


def gradients(mechanism: Mechanism, causal: bool, inputs: Tokens, weights: Tensor | None = None) -> tuple[Tensor, ...]:
    """Return the gradients of a random combination of the results with respect to q, k and v."""
    leaves = inputs.map(lambda x: x.detach().clone().requires_grad_())
    out = bind_fast(mechanism, causal)(*leaves)
    weights = random_weights(out) if weights is None else weights.to(out.dtype)
    return torch.autograd.grad((out * weights).sum(), leaves, allow_unused=True, materialize_grads=True)


def random_weights(out: Tensor) -> Tensor:
    """Return a seeded weight of either sign for each result: in a plain sum gradients could cancel."""
    generator = torch.Generator().manual_seed(4)
    return torch.randn(out.shape, generator=generator, dtype=torch.float64).to(out.dtype)


def _require_gradient(mechanism: Mechanism, causal: bool, inputs: Tokens, case: str) -> None:
    """Compare the gradient along one direction of q, of k and of v with finite differences."""
    attend, point = bind_fast(mechanism, causal), inputs.map(torch.Tensor.detach)
    generator = torch.Generator().manual_seed(5)
    for i, (letter, x) in enumerate(zip("qkv", point, strict=True)):
        direction = torch.randn(x.shape, generator=generator, dtype=x.dtype)

        def attend_with(x: Tensor, letter: str = letter) -> Tensor:
            return attend(*point._replace(**{letter: x}))

        def find_gradient(weights: Tensor, i: int = i) -> Tensor:
            return gradients(mechanism, causal, point, weights)[i]

        message = f"the gradient of {letter} is off by {{}} (causal={causal}{case})"
        _require_slope(attend_with, find_gradient, x, direction, message)


def _require_slope(
    attend: Callable[[Tensor], Tensor],
    find_gradient: Callable[[Tensor], Tensor],
    x: Tensor,
    direction: Tensor,
    message: str,
) -> None:
    """Raise Broken unless the gradient along a direction agrees with the central difference along it.

    Results with a kink within the step, where the slopes to both sides differ, get a weight of 0.
    """
    with torch.no_grad():
        after, usual, before = (attend(x + sign * STEP * direction) for sign in (1, 0, -1))
    require_finite(usual, "ordinary tokens")
    slope, bend = (after - before) / (2 * STEP), (after - 2 * usual + before).abs() / STEP
    has_kink = bend > MAX_BEND * slope.abs().max().clamp_min(1)
    weights = random_weights(slope).masked_fill(has_kink, 0)
    gradient = find_gradient(weights)
    gap = abs((gradient * direction).sum().item() - (slope * weights).sum().item())
    # The bend bounds the error of a central difference near a kink that was not left out.
    limit = SLOPE_TOLERANCE * max(1.0, (slope * weights).norm().item()) + (bend * weights).norm().item()
    if not gap <= limit:
        detail = f"{gap:.3g} from finite differences along one direction, allowed {limit:.1g}"
        raise Broken(message.format(detail))


def _difference_slope(attend: Attend, inputs: Tokens, direction: Tokens) -> Tensor:
    """Return the central difference along a direction."""
    after, before = (
        attend(*Tokens(*(x + sign * STEP * d for x, d in zip(inputs, direction, strict=True)))) for sign in (1, -1)
    )
    return (after - before).detach() / (2 * STEP)
