"""Tokens that come one after the other, and tokens that are absent, give what they give at once and alone."""

from __future__ import annotations

import torch
from torch import Tensor

from separatrix.contract._base import Broken, Skipped, check
from separatrix.contract.calls import extras_of, fast
from separatrix.contract.inputs import few, modes, require_equal, require_finite, sizes, tokens, trial
from separatrix.mechanisms import Mechanism
from separatrix.mechanisms.recurrent._base import RecurrentMechanism, State

PROMPTS = ((13, 1), (13, 8), (66, 63), (140, 128))
"""Numbers of tokens, and how many of them are read at once, before the others come one by one."""
SEVERAL = 3
"""So many tokens come together, too, where keys and values are kept."""


@check("chunks", "prefix", "layout")
def decoding(mechanism: Mechanism) -> None:
    """A prompt read at once and the rest token by token give what all tokens give at once."""
    if True not in modes(mechanism):
        raise Skipped("it has no causal form")
    if not mechanism.length_free:
        raise Skipped("it says that causal results depend on how many tokens follow")
    if not isinstance(mechanism, RecurrentMechanism) and not mechanism.takes_first:
        raise Skipped("it has no state and does not take first: queries of zeros are put before")
    for length, prompt in PROMPTS:
        shape = few(mechanism) if length > 100 else sizes(mechanism)
        q, k, v, bound = trial(mechanism, True, length, shape=shape)
        with torch.no_grad():
            expected = fast(mechanism, q, k, v, causal=True)
            if isinstance(mechanism, RecurrentMechanism):
                found = _by_state(mechanism, q, k, v, prompt)
            else:
                found = _by_keys(mechanism, q, k, v, prompt, 1)
                several = _by_keys(mechanism, q, k, v, prompt, SEVERAL)
                what = f"{prompt} tokens at once and then {SEVERAL} by {SEVERAL} differ from all {length}"
                require_equal(several, expected, bound, what)
        what = f"{prompt} tokens at once and then one by one differ from all {length} at once"
        require_equal(found, expected, bound, what)


def _by_state(mechanism: RecurrentMechanism, q: Tensor, k: Tensor, v: Tensor, prompt: int) -> Tensor:
    """The prompt in one run, then steps from the state after it, which must stay as it is."""
    extras, streams = extras_of(mechanism, q, k, v), mechanism.token_extras
    early = {name: x[..., :prompt, :] if name in streams else x for name, x in extras.items()}
    out, state = mechanism.chunked(q[..., :prompt, :], k[..., :prompt, :], v[..., :prompt, :], **early)
    found = [out]
    for t in range(prompt, k.shape[-2]):
        some = {name: x[..., t, :] if name in streams else x for name, x in extras.items()}
        before: State = tuple(part.clone() for part in state)
        after, attended = mechanism.step(state, q[..., t, :], k[..., t, :], v[..., t, :], **some)
        if not all(torch.equal(now, then) for now, then in zip(state, before, strict=True)):
            raise Broken(f"a step changed the state that it was given (token {t})")
        found.append(attended[..., None, :].to(v.dtype))
        state = after
    return torch.cat(found, dim=-2)


def _by_keys(mechanism: Mechanism, q: Tensor, k: Tensor, v: Tensor, prompt: int, step: int) -> Tensor:
    """The prompt at once, then so many queries after the others at their place among all keys so far."""
    found = [fast(mechanism, q[..., :prompt, :], k[..., :prompt, :], v[..., :prompt, :], causal=True)]
    for t in range(prompt, k.shape[-2], step):
        so_far = k[..., : t + step, :], v[..., : t + step, :]
        found.append(fast(mechanism, q[..., t : t + step, :], *so_far, causal=True, first=t))
    return torch.cat(found, dim=-2)


@check("decoding")
def absent_tokens(mechanism: Mechanism) -> None:
    """Absent tokens are as if they had never been, whatever stands in their place."""
    if not mechanism.takes_present:
        raise Skipped("it does not take present: it gets the present tokens alone")
    for causal in modes(mechanism):
        for length in (13, 70):
            q, k, v, bound = trial(mechanism, causal, length, shape=sizes(mechanism, 3, 2))
            present = torch.rand(3, length, generator=torch.Generator().manual_seed(6)) < 0.7
            present[1] = torch.arange(length) < length - 5
            present[2] = torch.arange(length) >= 5
            filled = [x.masked_fill(~present[:, None, :, None], 50.0) for x in (q, k, v)]
            found = fast(mechanism, filled[0], filled[1], filled[2], causal=causal, present=present)
            for i, there in enumerate(present):
                kept, one = there.nonzero()[:, 0], slice(i, i + 1)
                alone = [x[one][..., kept, :] for x in (q, k, v)]
                expected = fast(mechanism, alone[0], alone[1], alone[2], causal=causal, kept=kept)
                what = f"present tokens among absent ones differ from these alone (causal={causal})"
                require_equal(found[one][..., kept, :], expected, bound, what)


@check("absent_tokens")
def nobody_present(mechanism: Mechanism) -> None:
    """Where no token is present, or none that a query sees, results and gradients are finite."""
    if not mechanism.takes_present:
        raise Skipped("it does not take present: it gets the present tokens alone")
    present = torch.ones(3, 6, dtype=torch.bool)
    present[0], present[1, :2] = False, False
    for causal in modes(mechanism):
        leaves = [x.requires_grad_() for x in tokens(6, shape=sizes(mechanism, 3, 2))]
        out = fast(mechanism, leaves[0], leaves[1], leaves[2], causal=causal, present=present)
        require_finite(out, f"queries that see no present token (causal={causal})")
        if not out.requires_grad:
            continue
        slopes = torch.autograd.grad(out.square().sum(), leaves, allow_unused=True)
        for letter, slope in zip("qkv", slopes, strict=True):
            if slope is not None:
                what = f"the gradient of {letter} with queries that see no present token (causal={causal})"
                require_finite(slope, what)
