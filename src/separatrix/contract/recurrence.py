"""For mechanisms with a state: every way to run it gives the same, and the state does not grow."""

from __future__ import annotations

import torch

from separatrix.contract._base import Broken, Skipped, check
from separatrix.contract.inputs import require_equal, tokens, trial
from separatrix.mechanisms import Mechanism
from separatrix.mechanisms.recurrent._base import RecurrentMechanism, bytes_of

CHUNKS = (1, 3, 16, 64)


@check
def chunks(mechanism: Mechanism) -> None:
    """Chunked, token by token and by definition give the same, for every chunk size and length."""
    stepped = _recurrent(mechanism)
    for dtype in (torch.float64, torch.float32):
        for length in (1, 7, 33, 65):
            q, k, v, bound = trial(mechanism, True, length, dtype=dtype)
            expected = mechanism.definition(q, k, v, causal=True)
            where = f"({length} tokens, {dtype})"
            what = f"token by token differs from the definition {where}"
            require_equal(stepped.unrolled(q, k, v), expected, bound, what)
            for chunk in CHUNKS:
                what = f"chunks of {chunk} differ from the definition {where}"
                require_equal(stepped.chunked(q, k, v, chunk)[0], expected, bound, what)


@check
def state_size(mechanism: Mechanism) -> None:
    """The bytes of the state, as measured, stop growing: a window may fill, the length must not matter."""
    stepped = _recurrent(mechanism)
    q, k, v = tokens(200)
    state, sizes = stepped.init_state(q, v), []
    for t in range(q.shape[-2]):
        state, _ = stepped.step(state, q[..., t, :], k[..., t, :], v[..., t, :])
        sizes.append(bytes_of(state))
    if max(sizes[100:]) > sizes[99]:
        raise Broken(f"the state grew from {sizes[99]} bytes at token 100 to {max(sizes[100:])} by token 200")


def _recurrent(mechanism: Mechanism) -> RecurrentMechanism:
    """The mechanism, if it has a state that can be stepped through."""
    if not isinstance(mechanism, RecurrentMechanism):
        raise Skipped("it has no state that is updated token by token")
    return mechanism
