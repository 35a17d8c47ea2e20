"""Independence of other batch elements and heads, and permutation equivariance where that is declared."""

from __future__ import annotations

import torch

from separatrix.contract._base import Broken, Skipped, check
from separatrix.contract.calls import call_fast
from separatrix.contract.comparisons import require_close
from separatrix.contract.inputs import BATCH, HEADS, LENGTH, Tokens, causal_modes, fit_narrow, fit_shape
from separatrix.contract.trials import draw_trial
from separatrix.mechanisms import Causality, Mechanism

COUNTS = (4, 7, LENGTH, 16)
"""Numbers of batch elements, and of heads. With LENGTH of them, swapped axes have a valid shape, so that only
the values show the mistake."""
BATCHES = (*range(1, 17), 24, 32, 33, 48, 64)
"""Batch sizes in which the first element is compared with the same element alone."""


@check()
def batch_independence(mechanism: Mechanism) -> None:
    """Changing a batch element changes no other; the first and last give the same result alone."""
    for count in (BATCH, 3, *COUNTS):
        _require_independence(mechanism, 0, count, "batch element")
    for causal in causal_modes(mechanism):
        inputs, tolerance = draw_trial(mechanism, causal, shape=fit_shape(mechanism, max(BATCHES)))
        alone = call_fast(mechanism, *inputs.element(0), causal=causal)
        for size in BATCHES:
            batch = Tokens(*(x[:size] for x in inputs))
            actual = call_fast(mechanism, *batch, causal=causal)[:1]
            message = f"the first batch element of {size} gives a different result alone (causal={causal})"
            require_close(actual, alone, tolerance, message)


@check("batch_independence")
def head_independence(mechanism: Mechanism) -> None:
    """Changing a head changes no other, among 3 to 16 heads."""
    if mechanism.mixes_heads:
        raise Skipped("it declares that heads depend on each other")
    fixed = mechanism.fixed_heads
    if fixed == 1:
        raise Skipped("it has a single head")
    for count in (HEADS, *COUNTS) if fixed is None else (fixed,):
        _require_independence(mechanism, 1, count, "head")


@check("linear_in_values")
def permutation(mechanism: Mechanism) -> None:
    """Permuting the tokens permutes the result, if the mechanism declares it."""
    if not mechanism.permutation_equivariant:
        raise Skipped("it does not declare that it is permutation equivariant")
    if mechanism.causality is Causality.ALWAYS:
        raise Broken("it declares that it is permutation equivariant and always causal, which is impossible")
    narrow = fit_narrow(mechanism)
    for length, shape in ((LENGTH, fit_shape(mechanism)), (130, narrow), (520, narrow)):
        inputs, tolerance = draw_trial(mechanism, False, length, shape=shape)
        order = torch.randperm(length, generator=torch.Generator().manual_seed(3))
        reference = call_fast(mechanism, *inputs)[..., order, :]
        actual = call_fast(mechanism, *inputs.rows(order))
        message = f"permuted tokens do not give the permuted result ({length} tokens)"
        require_close(actual, reference, tolerance, message)


def _require_independence(mechanism: Mechanism, axis: int, count: int, noun: str) -> None:
    """Change some elements along an axis one at a time; raise Broken if the result of another one changes."""
    shape = fit_shape(mechanism, count, HEADS) if axis == 0 else fit_shape(mechanism, BATCH, count)
    for causal in causal_modes(mechanism):
        inputs, tolerance = draw_trial(mechanism, causal, shape=shape)
        before = call_fast(mechanism, *inputs, causal=causal)
        if axis == 0:
            alone = call_fast(mechanism, *inputs.element(count - 1), causal=causal)
            message = f"the last batch element of {count} gives a different result alone (causal={causal})"
            require_close(before[-1:], alone, tolerance, message)
        for i in dict.fromkeys((0, 1 % count, count // 2, count - 1)):
            rest = torch.tensor([other for other in range(count) if other != i])
            changed_inputs = inputs.map(torch.clone)
            for x in changed_inputs:
                x.select(axis, i).mul_(2).add_(0.5)
            after = call_fast(mechanism, *changed_inputs, causal=causal)
            message = f"changing {noun} {i} of {count} changed another {noun} (causal={causal})"
            require_close(after.index_select(axis, rest), before.index_select(axis, rest), tolerance, message)
