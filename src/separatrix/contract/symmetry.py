"""What must not matter: other batch elements, other heads, the order of tokens where that is claimed."""

from __future__ import annotations

import torch

from separatrix.contract._base import Broken, Skipped, check
from separatrix.contract.inputs import BATCH, HEADS, LENGTH, modes, require_equal, trial
from separatrix.mechanisms import Causality, Mechanism


@check
def permutation(mechanism: Mechanism) -> None:
    """Permuting the tokens permutes the result, where the mechanism claims it."""
    if not mechanism.permutation_equivariant:
        raise Skipped("it does not claim that the order of tokens is nothing to it")
    if mechanism.causality is Causality.ALWAYS:
        raise Broken("it claims that the order of tokens is nothing to it, and that it only looks back")
    q, k, v, bound = trial(mechanism, False)
    order = torch.randperm(LENGTH, generator=torch.Generator().manual_seed(3))
    expected = mechanism(q, k, v)[..., order, :]
    found = mechanism(q[..., order, :], k[..., order, :], v[..., order, :])
    require_equal(found, expected, bound, "permuted tokens do not give the permuted result")


@check
def batch_independence(mechanism: Mechanism) -> None:
    """Changing one batch element changes no other."""
    _independence(mechanism, 0, BATCH, "batch element")


@check
def head_independence(mechanism: Mechanism) -> None:
    """Changing one head changes no other."""
    _independence(mechanism, 1, HEADS, "head")


def _independence(mechanism: Mechanism, axis: int, size: int, noun: str) -> None:
    for causal in modes(mechanism):
        q, k, v, bound = trial(mechanism, causal)
        before = mechanism(q, k, v, causal=causal)
        for changed in range(size):
            others = torch.tensor([i for i in range(size) if i != changed])
            inputs = [x.clone() for x in (q, k, v)]
            for x in inputs:
                x.select(axis, changed).mul_(2).add_(0.5)
            after = mechanism(inputs[0], inputs[1], inputs[2], causal=causal)
            require_equal(
                after.index_select(axis, others),
                before.index_select(axis, others),
                bound,
                f"changing {noun} {changed} changed another {noun} (causal={causal})",
            )
