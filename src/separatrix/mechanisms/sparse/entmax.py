"""Entmax: between softmax and sparsemax."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

from separatrix.core.numbers import format_exact
from separatrix.core.parameters import Constraint, Exact, Parameters
from separatrix.core.tensors import Int64, Tensor, torch
from separatrix.mechanisms.kernels._streamed import Copies, Logits, PerRow, StreamedMechanism, over

STEPS = 100
"""Newton steps at most; fewer than ten are usual."""
ULPS = 16
"""A step this small, in units of rounding, is the last."""


Places = Int64[Tensor, "*rows places"]


class EntmaxParameters(Parameters):
    """How sparse: towards 1 it is softmax, at 2 sparsemax."""

    owner = "entmax"
    alpha: Exact = Fraction(3, 2)
    constraints: ClassVar[tuple[Constraint, ...]] = (
        Constraint(
            ("alpha",),
            lambda p: 1 + Fraction(1, 10**6) <= p.alpha <= 2,
            lambda p: f"alpha={format_exact(p.alpha)} is out of range; alpha must be 1.000001 to 2",
        ),
    )


class Entmax(StreamedMechanism):
    """`f = max((alpha-1) <q,k> - tau, 0)^(1/(alpha-1))`, tau such that `<f,1> = 1` (arXiv 1905.05702).

    With a = alpha - 1, z the logits less that of an anchor and e^-r the anchor's weight this is
    `exp(-r + log(1 + a z e^(a r)) / a)`, which tends to `exp(z - r)`: written so, nothing is lost near
    softmax. A key that stands for c tokens gets c times the weight of one, which may be 1/c; the anchor is
    the key of most tokens among those with any weight, so that r has all digits of the logarithm of c. That
    is found in float64. A query that sees nothing (all counts 0) gets zeros.

    >>> from separatrix.mechanisms import mechanism_named
    >>> logits = torch.tensor([2.0, 0.0, -2.0]).reshape(1, 1, 3, 1)
    >>> mechanism_named("entmax")(torch.ones(1, 1, 1, 1), logits, torch.eye(3)[None, None]).flatten()
    tensor([1., 0., 0.])
    """

    name = "entmax"
    formula = "max((alpha-1) <q,k> - tau, 0)^(1/(alpha-1)), tau such that they sum to 1"
    source = "[rec] arXiv 1905.05702"
    family = "sparse"
    schema = EntmaxParameters
    parameters: EntmaxParameters

    def weights(self, logits: Logits, copies: Copies) -> Logits:
        a, dtype = float(self.parameters.alpha - 1), logits.dtype
        if bool((copies > 1).any()):
            logits, copies = logits.double(), copies.double()
        copies = copies.expand_as(logits)
        seen = logits.detach().masked_fill(copies <= 0, -torch.inf)
        z = (logits - seen.gather(-1, _anchor(seen, copies, a))).where(copies > 0, 0)
        r = _first_root(z.detach(), copies, a)
        places = _support(z.detach(), r, copies, a)
        if places is not None:
            z, copies = z.gather(-1, places), copies.gather(-1, places)
        r = _root(z.detach(), r, copies, a)
        # From a root taken for a constant, two Newton steps carry first and second derivatives.
        for _ in range(2):
            r = r + _newton_step(z, r, copies, a)
        weights = (copies * _power(z, r, a)[0]).to(dtype)
        if places is None:
            return weights
        return torch.zeros_like(logits, dtype=dtype).scatter(-1, places, weights)


def _power(z: Logits, r: PerRow, a: float) -> tuple[Logits, Logits]:
    """`(e^(-a r) + a z)^(1/a)`, and minus its derivative in r; both 0 where the sum is not positive."""
    ratio = a * z * (a * r).exp()
    inside = ratio > -1
    ratio = ratio.where(inside, 0)
    power = (ratio.log1p() / a - r).exp().where(inside, 0)
    return power, power / (1 + ratio)


def _newton_step(z: Logits, r: PerRow, copies: Copies, a: float) -> PerRow:
    """Return what Newton's method adds to r so that the weights sum to 1.

    The equation is `sum^a = 1` in the unknown `e^(-a r)`: its left side is a norm of an affine function,
    convex and almost linear, so that few steps are needed.
    """
    total, slope = ((copies * part).sum(-1, keepdim=True) for part in _power(z, r, a))
    limits = torch.finfo(total.dtype)
    excess = -total * torch.expm1(-a * total.clamp(min=limits.tiny).log())
    return -torch.log1p(-over(excess, slope).clamp(max=1 - limits.eps)) / a


def _anchor(seen: Logits, copies: Copies, a: float) -> Int64[Tensor, "*rows 1"]:
    """The key of most tokens that has some weight: those above it, at weight 0 for it, sum to less than 1."""
    open_ = copies > 0
    while True:
        number = copies.where(open_, -1)
        most = open_ & (number == number.amax(-1, keepdim=True))
        place = seen.where(most, -torch.inf).argmax(-1, keepdim=True)
        here = seen.gather(-1, place)
        above = (copies * (a * (seen - here).clamp(min=0)) ** (1 / a)).sum(-1, keepdim=True)
        without = above >= 1
        if not bool(without.any()):
            return place
        open_ = open_ & ~(without & (seen <= here))


def _first_root(z: Logits, copies: Copies, a: float) -> PerRow:
    """Return a lower bound of r: the r at which the largest share of one key is 1."""
    log_copies = copies.clamp(min=1e-300).log()
    lower = 1 - a * z * (a * log_copies).exp()
    r = (log_copies - lower.where(lower > 0, 1).log() / a).where((copies > 0) & (lower > 0), -torch.inf)
    r = r.amax(-1, keepdim=True)
    return r.where(r.isfinite(), 0)


def _support(z: Logits, r: PerRow, copies: Copies, a: float) -> Places | None:
    """Return the places of the keys that may have a weight, or None if they are most of the keys.

    A key without weight at a lower bound of r has none at r either, so Newton's method can leave it out.
    """
    inside = (a * z * (a * r).exp() > -1) & (copies > 0)
    most = int(inside.sum(-1).amax()) if inside.numel() else 0
    if 2 * most > z.shape[-1] or most == 0:
        return None
    return z.masked_fill(~inside, -torch.inf).topk(most, -1, sorted=False).indices


def _root(z: Logits, r: PerRow, copies: Copies, a: float) -> PerRow:
    """Return r by Newton's method from a lower bound.

    The equation of `_newton_step` is convex, so no step goes too far.
    """
    for _ in range(STEPS):
        step = _newton_step(z, r, copies, a).clamp(min=0)
        r = r + step
        if bool((step <= ULPS * torch.finfo(z.dtype).eps * (1 + r.abs())).all()):
            break
    return r
