"""A key with a count of n gives the same as n equal keys."""

from __future__ import annotations

from itertools import product

import torch

from separatrix.contract._base import Broken, Skipped, check
from separatrix.contract.calls import FORMS, call_definition, call_fast
from separatrix.contract.comparisons import require_close
from separatrix.contract.inputs import Tokens, causal_modes, draw_tokens, fit_shape
from separatrix.contract.trials import draw_trial
from separatrix.core.parameters import UsageError
from separatrix.mechanisms import Causality, Mechanism

COUNTS = torch.tensor([1, 3, 2, 5])
LARGE_FACTORS = (1e3, 1e7, 1e10, 1e15)
"""Factors of counts too large to repeat keys literally; there, a key is split into two."""


@check("cross", "prefix")
def counts(mechanism: Mechanism) -> None:
    """A key with a count equals that many equal keys; a mechanism without counts refuses them."""
    if not mechanism.takes_counts:
        _require_refusal(mechanism, causal_modes(mechanism), "its signature or takes_counts excludes them")
        raise Skipped("it does not accept counts, and refuses them")
    if mechanism.causality is Causality.ALWAYS:
        raise Broken("it accepts counts and is always causal, but counted tokens have no order")
    if mechanism.causality is Causality.EITHER:
        _require_refusal(mechanism, (True,), "counted tokens have no order")
    inputs, tolerance = draw_trial(mechanism, False, 11, 4)
    reference = call_definition(mechanism, *_repeat_keys(inputs, COUNTS))
    for form, call in FORMS.items():
        message = f"counts 1, 3, 2, 5 differ from repeated keys in the {form}"
        require_close(call(mechanism, *inputs, COUNTS.double()), reference, tolerance, message)
    batch, heads = inputs.q.shape[:2]
    # Different counts for every head, some of them 1: a form that uses those of another head shows.
    counts_by_head = COUNTS + torch.arange(batch * heads).reshape(batch, heads, 1)
    counts_by_head[..., 0] = 1
    actual = call_fast(mechanism, *inputs, counts_by_head.double())
    for i, head in product(range(batch), range(heads)):
        repeated = _repeat_keys(inputs.element(i), counts_by_head[i, head])
        reference = call_definition(mechanism, *repeated)
        message = f"counts that differ between heads differ from repeated keys in batch {i}, head {head}"
        require_close(actual[i : i + 1, head], reference[:, head], tolerance, message)


@check("counts")
def counts_split(mechanism: Mechanism) -> None:
    """A key with a count of a + b equals two keys with counts a and b, for very large counts as well."""
    if not mechanism.takes_counts:
        raise Skipped("it does not accept counts")
    for factor in LARGE_FACTORS:
        (q, k, v), tolerance = draw_trial(mechanism, False, 11, 4)
        whole_counts = factor * torch.tensor([5, 3, 2, 7], dtype=q.dtype)
        split_counts = factor * torch.tensor([2, 3, 3, 2, 7], dtype=q.dtype)
        duplicated = torch.tensor([0, 0, 1, 2, 3])
        for form, call in FORMS.items():
            actual = call(mechanism, q, k, v, whole_counts)
            reference = call(mechanism, q, k[..., duplicated, :], v[..., duplicated, :], split_counts)
            message = (
                f"a key with a count of {5 * factor:g} differs from two with {2 * factor:g} and "
                f"{3 * factor:g} in the {form}"
            )
            require_close(actual, reference, tolerance, message)


def _repeat_keys(inputs: Tokens, counts: torch.Tensor) -> Tokens:
    """Repeat each key and value as often as its count says."""
    q, k, v = inputs
    return Tokens(q, k.repeat_interleave(counts, dim=-2), v.repeat_interleave(counts, dim=-2))


def _require_refusal(mechanism: Mechanism, modes: tuple[bool, ...], reason: str) -> None:
    """Raise Broken unless counts are refused with a UsageError in these modes."""
    inputs = draw_tokens(4, shape=fit_shape(mechanism))
    for causal in modes:
        try:
            call_fast(mechanism, *inputs, torch.full((4,), 2.0, dtype=inputs.q.dtype), causal)
        except UsageError:
            continue
        raise Broken(f"counts were accepted with causal={causal}, but {reason}; raise a UsageError")
