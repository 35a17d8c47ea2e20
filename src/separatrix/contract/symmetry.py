"""What must not matter: other batch elements, other heads, the order of tokens where that is claimed."""

from __future__ import annotations

import torch

from separatrix.contract._base import Broken, Skipped, check
from separatrix.contract.calls import fast
from separatrix.contract.inputs import BATCH, HEADS, LENGTH, few, modes, require_equal, sizes, trial
from separatrix.mechanisms import Causality, Mechanism

CROWDS = (4, 7, LENGTH, 16)
"""Numbers of batch elements, and of heads, beside the usual ones; as many as tokens, too."""
BATCHES = (*range(1, 17), 24, 32, 33, 48, 64)
"""Sizes of batches of which one element is looked at."""


@check()
def batch_independence(mechanism: Mechanism) -> None:
    """Changing one batch element changes no other, in batches of 2 to 16, nor do the others matter."""
    for size in (BATCH, 3, *CROWDS):
        _independence(mechanism, 0, size, "batch element")
    for causal in modes(mechanism):
        q, k, v, bound = trial(mechanism, causal, shape=sizes(mechanism, max(BATCHES)))
        alone = fast(mechanism, q[:1], k[:1], v[:1], causal=causal)
        for size in BATCHES:
            found = fast(mechanism, q[:size], k[:size], v[:size], causal=causal)[:1]
            what = f"the first batch element of {size} gives another result alone (causal={causal})"
            require_equal(found, alone, bound, what)


@check("batch_independence")
def head_independence(mechanism: Mechanism) -> None:
    """Changing one head changes no other, among 3 to 16."""
    if mechanism.mixes_heads:
        raise Skipped("it says that heads are something to each other")
    fixed = mechanism.fixed_heads
    if fixed == 1:
        raise Skipped("it takes one head")
    for size in (HEADS, *CROWDS) if fixed is None else (fixed,):
        _independence(mechanism, 1, size, "head")


@check("linear_in_values")
def permutation(mechanism: Mechanism) -> None:
    """Permuting the tokens permutes the result, where the mechanism claims it."""
    if not mechanism.permutation_equivariant:
        raise Skipped("it does not claim that the order of tokens is nothing to it")
    if mechanism.causality is Causality.ALWAYS:
        raise Broken("it claims that the order of tokens is nothing to it, and that it only looks back")
    for length, shape in ((LENGTH, sizes(mechanism)), (130, few(mechanism)), (520, few(mechanism))):
        q, k, v, bound = trial(mechanism, False, length, shape=shape)
        order = torch.randperm(length, generator=torch.Generator().manual_seed(3))
        expected = fast(mechanism, q, k, v)[..., order, :]
        found = fast(mechanism, q[..., order, :], k[..., order, :], v[..., order, :])
        require_equal(found, expected, bound, f"permuted tokens do not give the permuted result ({length})")


def _independence(mechanism: Mechanism, axis: int, size: int, noun: str) -> None:
    shape = sizes(mechanism, size, HEADS) if axis == 0 else sizes(mechanism, BATCH, size)
    for causal in modes(mechanism):
        q, k, v, bound = trial(mechanism, causal, shape=shape)
        before = fast(mechanism, q, k, v, causal=causal)
        if axis == 0:
            alone = fast(mechanism, q[-1:], k[-1:], v[-1:], causal=causal)
            what = f"the last batch element of {size} gives another result alone (causal={causal})"
            require_equal(before[-1:], alone, bound, what)
        for changed in dict.fromkeys((0, 1 % size, size // 2, size - 1)):
            others = torch.tensor([i for i in range(size) if i != changed])
            inputs = [x.clone() for x in (q, k, v)]
            for x in inputs:
                x.select(axis, changed).mul_(2).add_(0.5)
            after = fast(mechanism, inputs[0], inputs[1], inputs[2], causal=causal)
            require_equal(
                after.index_select(axis, others),
                before.index_select(axis, others),
                bound,
                f"changing {noun} {changed} of {size} changed another {noun} (causal={causal})",
            )
