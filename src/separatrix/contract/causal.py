"""The past does not depend on the future, and `causal` is refused where it has no meaning."""

from __future__ import annotations

import torch

from separatrix.contract._base import Broken, Skipped, check
from separatrix.contract.inputs import LENGTH, modes, place_of, require_equal, rounding, tokens, trial
from separatrix.mechanisms import Causality, Mechanism
from separatrix.parameters import UsageError


@check
def causality(mechanism: Mechanism) -> None:
    """With causal=True, changing future tokens changes no earlier result."""
    _needs_causal(mechanism)
    for length, place in ((LENGTH, 1), (LENGTH, 8), (66, 33), (66, 64)):
        q, k, v, bound = trial(mechanism, True, length)
        before = mechanism(q, k, v, causal=True)[..., :place, :]
        for name, changed in (("q", 0), ("k", 1), ("v", 2)):
            inputs = [x.clone() for x in (q, k, v)]
            inputs[changed][..., place:, :] += 1
            after = mechanism(inputs[0], inputs[1], inputs[2], causal=True)[..., :place, :]
            what = f"the past sees the future: {name} from token {place} on changed earlier results"
            require_equal(after, before, bound, f"{what} ({length} tokens)")


@check
def prefix(mechanism: Mechanism) -> None:
    """With causal=True, the first tokens give alone what they give when others follow."""
    _needs_causal(mechanism)
    if not mechanism.length_free:
        raise Skipped("it says that causal results depend on how many tokens follow")
    for length, place in ((LENGTH, 1), (LENGTH, 8), (66, 33), (66, 64)):
        q, k, v, bound = trial(mechanism, True, length)
        whole = mechanism(q, k, v, causal=True)[..., :place, :]
        alone = mechanism(q[..., :place, :], k[..., :place, :], v[..., :place, :], causal=True)
        what = f"the first {place} of {length} tokens give another result than alone"
        require_equal(whole, alone, bound, f"{what}; if that is meant, say length_free = False")


@check
def causality_of_gradients(mechanism: Mechanism) -> None:
    """With causal=True, the gradient of a result with respect to later tokens is zero."""
    _needs_causal(mechanism)
    q, k, v = (x.requires_grad_() for x in tokens(9, shape=(1, 2, 4, 3)))
    out = mechanism(q, k, v, causal=True)
    if not out.requires_grad:
        raise Broken("the result has no gradient at all: it is detached from q, k and v")
    weights = torch.linspace(0.5, 1.5, out.shape[-1], dtype=out.dtype)
    for i in range(q.shape[-2] - 1):
        row = (out[..., i, :] * weights).sum()
        slopes = torch.autograd.grad(row, (q, k, v), retain_graph=True, allow_unused=True)
        for name, slope in zip("qkv", slopes, strict=True):
            if slope is None:
                continue
            later = slope.abs()
            allowed = rounding(q.dtype) * max(1.0, later.max().item())
            later[..., : i + 1, :] = 0
            if not later.max().item() <= allowed:
                raise Broken(
                    f"result {i} has the gradient {later.max().item():.3g} with respect to {name} at "
                    f"{place_of(later)}, which comes later; allowed {allowed:.1g}"
                )


@check
def causal_flag(mechanism: Mechanism) -> None:
    """A value of `causal` that the mechanism does not have is refused with a UsageError."""
    if mechanism.causality is Causality.EITHER:
        raise Skipped("it takes causal=True and causal=False")
    wrong = mechanism.causality is Causality.NEVER
    q, k, v = tokens(4)
    for form, attend in (("fast form", mechanism), ("definition", mechanism.definition)):
        try:
            attend(q, k, v, causal=wrong)
        except UsageError:
            continue
        raise Broken(f"the {form} took causal={wrong} without a UsageError, but: {mechanism.causality.value}")


def _needs_causal(mechanism: Mechanism) -> None:
    if True not in modes(mechanism):
        raise Skipped("it has no causal form")
