"""Entmax: between softmax and sparsemax."""

from __future__ import annotations

from fractions import Fraction

from separatrix.core.parameters import exact
from separatrix.core.tensors import Int64, Tensor, torch
from separatrix.mechanisms.kernels._streamed import Copies, Logits, PerRow, StreamedMechanism, safe_divide

MAX_STEPS = 100
"""Newton steps at most; fewer than ten are usual."""
LAST_STEP_ULPS = 16
"""A step this small, in units of rounding, is the last."""

Columns = Int64[Tensor, "*rows columns"]


class Entmax(StreamedMechanism):
    """`f = max((alpha-1) <q,k> - tau, 0)^(1/(alpha-1))`, tau such that `<f,1> = 1` (arXiv 1905.05702).

    With a = alpha - 1, z the logits less that of an anchor and e^-r the anchor's weight this is `exp(-r +
    log(1 + a z e^(a r)) / a)`, which tends to `exp(z - r)`: written so, nothing is lost near softmax. A key
    of count c gets c times the weight of one, which may be 1/c; the anchor is the key with the largest count
    among those with any weight, so that r has all digits of the logarithm of c. With counts, r is computed in
    float64. A query that sees nothing (all counts 0) gets zeros.

    >>> from separatrix.mechanisms import mechanism_named
    >>> logits = torch.tensor([2.0, 0.0, -2.0]).reshape(1, 1, 3, 1)
    >>> mechanism_named("entmax")(torch.ones(1, 1, 1, 1), logits, torch.eye(3)[None, None]).flatten()
    tensor([1., 0., 0.])
    """

    name = "entmax"
    formula = "max((alpha-1) <q,k> - tau, 0)^(1/(alpha-1)), tau such that they sum to 1"
    source = "[rec] arXiv 1905.05702"
    family = "sparse"
    alpha: Fraction = exact(Fraction(3, 2), at_least=1 + Fraction(1, 10**6), at_most=2)
    """The sparsity: towards 1 it is softmax, at 2 sparsemax."""

    def weights(self, logits: Logits, copies: Copies) -> Logits:
        a, dtype = float(self.alpha - 1), logits.dtype
        if bool((copies > 1).any()):
            logits, copies = logits.double(), copies.double()
        copies = copies.expand_as(logits)
        visible = logits.detach().masked_fill(copies <= 0, -torch.inf)
        z = (logits - visible.gather(-1, _anchor(visible, copies, a))).where(copies > 0, 0)
        r = _lower_bound(z.detach(), copies, a)
        support = _support(z.detach(), r, copies, a)
        if support is not None:
            z, copies = z.gather(-1, support), copies.gather(-1, support)
        r = _root(z.detach(), r, copies, a)
        # From a root treated as a constant, two Newton steps carry first and second derivatives.
        for _ in range(2):
            r = r + _newton_step(z, r, copies, a)
        weights = (copies * _power(z, r, a)[0]).to(dtype)
        if support is None:
            return weights
        return torch.zeros_like(logits, dtype=dtype).scatter(-1, support, weights)


def _power(z: Logits, r: PerRow, a: float) -> tuple[Logits, Logits]:
    """Return `(e^(-a r) + a z)^(1/a)` and minus its derivative in r; both 0 where the sum is not positive."""
    ratio = a * z * (a * r).exp()
    inside = ratio > -1
    ratio = ratio.where(inside, 0)
    power = (ratio.log1p() / a - r).exp().where(inside, 0)
    return power, power / (1 + ratio)


def _newton_step(z: Logits, r: PerRow, copies: Copies, a: float) -> PerRow:
    """Return the step of Newton's method in r towards weights that sum to 1.

    The equation is `sum^a = 1` in the unknown `e^(-a r)`: its left side is a norm of an affine function,
    convex and almost linear, so that few steps are needed.
    """
    total, slope = ((copies * part).sum(-1, keepdim=True) for part in _power(z, r, a))
    limits = torch.finfo(total.dtype)
    excess = -total * torch.expm1(-a * total.clamp(min=limits.tiny).log())
    # A step to e^(-a r) = 0 or below would have no logarithm.
    return -torch.log1p(-safe_divide(excess, slope).clamp(max=1 - limits.eps)) / a


def _anchor(visible: Logits, copies: Copies, a: float) -> Int64[Tensor, "*rows 1"]:
    """Return the key with the most copies that has some weight.

    A key has weight if the weights of those above it, at weight 0 for it, sum to less than 1.
    """
    candidates = copies > 0
    # Each round drops at least the current key of every undecided row, so this ends.
    while True:
        number = copies.where(candidates, -1)
        most = candidates & (number == number.amax(-1, keepdim=True))
        column = visible.where(most, -torch.inf).argmax(-1, keepdim=True)
        logit = visible.gather(-1, column)
        above = (copies * (a * (visible - logit).clamp(min=0)) ** (1 / a)).sum(-1, keepdim=True)
        is_weightless = above >= 1
        if not bool(is_weightless.any()):
            return column
        candidates = candidates & ~(is_weightless & (visible <= logit))


def _lower_bound(z: Logits, copies: Copies, a: float) -> PerRow:
    """Return a lower bound of r: the r at which the largest share of one key is 1."""
    log_copies = copies.clamp(min=1e-300).log()
    lower = 1 - a * z * (a * log_copies).exp()
    r = (log_copies - lower.where(lower > 0, 1).log() / a).where((copies > 0) & (lower > 0), -torch.inf)
    r = r.amax(-1, keepdim=True)
    return r.where(r.isfinite(), 0)


def _support(z: Logits, r: PerRow, copies: Copies, a: float) -> Columns | None:
    """Return the columns of the keys that may have a weight, or None if they are most of the keys.

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
    for _ in range(MAX_STEPS):
        step = _newton_step(z, r, copies, a).clamp(min=0)
        r = r + step
        if bool((step <= LAST_STEP_ULPS * torch.finfo(z.dtype).eps * (1 + r.abs())).all()):
            break
    return r
