"""Derivatives are right, and results are linear in the values."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import torch
from torch import Tensor
from torch.autograd.gradcheck import GradcheckError, gradcheck, gradgradcheck

from separatrix.contract._base import Broken, Skipped, check
from separatrix.contract.inputs import Shape, Tokens, attender, calmest, modes, require_equal, tokens, trial
from separatrix.errors import one_line
from separatrix.mechanisms import Mechanism

SMALL = (1, 2, 3, 2)
STEP = 1e-5
"""The step of central differences in float64: their error is about STEP**2, plus rounding / STEP."""
SLOPE_BOUND = 1e-6
STEEP = 100.0
"""Where rounding in a derivative is magnified more than this, steps are too long for what they measure."""


@check
def gradient(mechanism: Mechanism) -> None:
    """The first derivative of the fast form is what finite differences say, in float64."""
    for causal in modes(mechanism):
        attend = attender(mechanism, causal)
        inputs = tuple(x.requires_grad_() for x in _smooth_at(mechanism, causal, 4, SMALL))
        out = attend(*inputs)
        if not out.requires_grad:
            raise Broken(f"the result is detached from q, k and v: no gradient flows (causal={causal})")
        try:
            gradcheck(attend, inputs)
        except GradcheckError as error:
            gap = _gradient_gap(attend, inputs)
            raise Broken(
                f"the gradient is off by {gap:.3g} from finite differences along one direction "
                f"(causal={causal}): {one_line(error, 90)}"
            ) from None


@check
def double_backward(mechanism: Mechanism) -> None:
    """The definition can be differentiated twice, and rightly, in float64."""
    causal = modes(mechanism)[-1]
    inputs = tuple(x.requires_grad_() for x in _smooth_at(mechanism, causal, 3, (1, 1, 3, 2)))
    try:
        gradgradcheck(lambda q, k, v: mechanism.definition(q, k, v, causal=causal), inputs)
    except GradcheckError as error:
        raise Broken(
            f"the second derivative of the definition is not what finite differences say (causal={causal}): "
            f"{one_line(error, 90)}"
        ) from None


@check
def forward_mode(mechanism: Mechanism) -> None:
    """Forward-mode derivatives of the definition are what finite differences say, in float64."""
    for causal in modes(mechanism):

        def attend(q: Tensor, k: Tensor, v: Tensor, causal: bool = causal) -> Tensor:
            return mechanism.definition(q, k, v, causal=causal)

        point = _smooth_at(mechanism, causal, 4, SMALL)
        direction = tokens(4, shape=SMALL, signed=True, seed=2)
        with warnings.catch_warnings():
            # torch's own, from the first use of forward mode; the mechanism has no part in it.
            warnings.filterwarnings("ignore", "`torch.jit", DeprecationWarning)
            found: Tensor = torch.func.jvp(attend, point, direction)[1]
        what = f"the forward-mode derivative differs from finite differences (causal={causal})"
        require_equal(found, _slope(attend, point, direction), SLOPE_BOUND, what)


@check
def linear_in_values(mechanism: Mechanism) -> None:
    """Attending to a mixture of values gives the mixture of the results."""
    for causal in modes(mechanism):
        q, k, first, bound = trial(mechanism, causal)
        second = tokens(seed=2)[2]
        attend = attender(mechanism, causal)
        found = attend(q, k, 3 * first - 2 * second)
        expected = 3 * attend(q, k, first) - 2 * attend(q, k, second)
        what = f"attending to 3 v1 - 2 v2 is not 3 times v1's result minus 2 times v2's (causal={causal})"
        require_equal(found, expected, bound, what)


Attend = Callable[[Tensor, Tensor, Tensor], Tensor]
Triple = tuple[Tensor, ...]


def _smooth_at(mechanism: Mechanism, causal: bool, length: int, shape: Shape) -> Tokens:
    """Tokens about which the mechanism bends so little that finite differences say what a derivative is."""
    found, steepness = calmest(mechanism, causal, length, shape=shape, order=1)
    if steepness > STEEP:
        raise Skipped(
            f"it magnifies rounding {steepness:.2g} times in a derivative: differences tell nothing"
        )
    return found


def _slope(attend: Attend, point: Triple, direction: Triple) -> Tensor:
    """The central difference of `attend` along a direction."""
    ahead, behind = (
        attend(*(x + sign * STEP * d for x, d in zip(point, direction, strict=True))) for sign in (1, -1)
    )
    return (ahead - behind).detach() / (2 * STEP)


def _gradient_gap(attend: Attend, inputs: Triple) -> float:
    """How far backward and central differences are apart along one direction, for the message."""
    direction = tokens(4, shape=SMALL, signed=True, seed=2)
    slopes = torch.autograd.grad(attend(*inputs).sum(), inputs, allow_unused=True)
    along = sum((g * d).sum().item() for g, d in zip(slopes, direction, strict=True) if g is not None)
    expected = _slope(attend, tuple(x.detach() for x in inputs), direction).sum().item()
    return abs(along - expected)
