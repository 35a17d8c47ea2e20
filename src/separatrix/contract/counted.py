"""A key with a count is that many equal keys."""

from __future__ import annotations

from itertools import product

import torch
from torch import Tensor

from separatrix.contract._base import Broken, Skipped, check
from separatrix.contract.calls import FORMS, defined, fast
from separatrix.contract.inputs import modes, require_equal, sizes, tokens, trial
from separatrix.core.parameters import UsageError
from separatrix.mechanisms import Causality, Mechanism

MANY = (1e3, 1e7, 1e10, 1e15)
"""Counts that nobody repeats literally: there a count splits into two."""


@check("cross", "prefix")
def counts(mechanism: Mechanism) -> None:
    """A key with a count is that many equal keys; who takes no counts refuses them."""
    if not mechanism.takes_counts:
        _require_refusal(mechanism, True)
        raise Skipped("it takes no counts, and refuses them")
    if mechanism.causality is Causality.ALWAYS:
        raise Broken("it takes counts and only looks back, but counted tokens have no order")
    if mechanism.causality is Causality.EITHER:
        _require_refusal(mechanism, False)
    q, k, v, bound = trial(mechanism, False, 11, 4)
    times = torch.tensor([1, 3, 2, 5])
    literal = _repeated(mechanism, q, k, v, times)
    for form, attend in FORMS.items():
        what = f"counts 1, 3, 2, 5 differ from literal repetition in the {form}"
        require_equal(attend(mechanism, q, k, v, times.double()), literal, bound, what)
    each = torch.tensor([1, 3, 2, 5]).repeat(*q.shape[:2], 1) + _numbered(q)
    each[..., 0] = 1
    found = fast(mechanism, q, k, v, each.double())
    for batch, head in product(*map(range, q.shape[:2])):
        one = slice(batch, batch + 1)
        literal = _repeated(mechanism, q[one], k[one], v[one], each[batch, head])
        what = f"counts of each head's own differ from literal repetition in batch {batch}, head {head}"
        require_equal(found[one, head], literal[:, head], bound, what)


@check("counts")
def counts_split(mechanism: Mechanism) -> None:
    """A key with a count of a + b is two keys with counts a and b, also where these are very large."""
    if not mechanism.takes_counts:
        raise Skipped("it takes no counts")
    for many in MANY:
        q, k, v, bound = trial(mechanism, False, 11, 4)
        whole = many * torch.tensor([5, 3, 2, 7], dtype=q.dtype)
        parts = many * torch.tensor([2, 3, 3, 2, 7], dtype=q.dtype)
        twice = torch.tensor([0, 0, 1, 2, 3])
        for form, attend in FORMS.items():
            found = attend(mechanism, q, k, v, whole)
            split = attend(mechanism, q, k[..., twice, :], v[..., twice, :], parts)
            what = f"a key with a count of {5 * many:g} is not two with {2 * many:g} and {3 * many:g}"
            require_equal(found, split, bound, f"{what} in the {form}")


def _numbered(q: Tensor) -> Tensor:
    """A number for every head of every batch element."""
    batch, heads = q.shape[:2]
    return torch.arange(batch * heads).reshape(batch, heads, 1)


def _repeated(mechanism: Mechanism, q: Tensor, k: Tensor, v: Tensor, times: Tensor) -> Tensor:
    """The definition on keys and values that are literally repeated."""
    return defined(mechanism, q, k.repeat_interleave(times, dim=-2), v.repeat_interleave(times, dim=-2))


def _require_refusal(mechanism: Mechanism, all_modes: bool) -> None:
    """Counts must be refused with a UsageError: in causal mode, or in all modes."""
    q, k, v = tokens(4, shape=sizes(mechanism))
    for causal in modes(mechanism) if all_modes else (True,):
        try:
            fast(mechanism, q, k, v, torch.full((4,), 2.0, dtype=q.dtype), causal)
        except UsageError:
            continue
        why = "it says it takes no counts" if all_modes else "counted tokens have no order"
        raise Broken(f"counts were accepted with causal={causal}, but {why}: expected a UsageError")
