"""For mechanisms with a state: every way to run it gives the same, and the state does not grow."""

from __future__ import annotations

import torch
from torch import Tensor

from separatrix.contract._base import Broken, Skipped, check
from separatrix.contract.calls import chunked, defined, drawing, stepped
from separatrix.contract.inputs import few, require_equal, sizes, tokens, trial
from separatrix.mechanisms import Mechanism
from separatrix.mechanisms.decoding import bytes_of
from separatrix.mechanisms.recurrent._base import RecurrentMechanism

CHUNKS = (1, 3, 16, 64)
LONG_CHUNKS = (50, 100, 128, 256)
FILLED, LAST = 100, 1100
"""A window may fill for so many tokens; the state is looked at up to the last."""


@check("causality", "head_independence")
def chunks(mechanism: Mechanism) -> None:
    """Chunked, token by token and by definition give the same, for every chunk size and length."""
    recurrent = _recurrent(mechanism)
    for dtype in (torch.float64, torch.float32):
        for length in (1, 7, 33, 65):
            _require_alike(recurrent, length, dtype, CHUNKS, sizes(mechanism))
    _require_alike(recurrent, 300, torch.float64, LONG_CHUNKS, few(mechanism))


def _require_alike(
    mechanism: RecurrentMechanism,
    length: int,
    dtype: torch.dtype,
    chunk_sizes: tuple[int, ...],
    shape: tuple[int, int, int, int],
) -> None:
    q, k, v, bound = trial(mechanism, True, length, dtype=dtype, shape=shape)
    expected = defined(mechanism, q, k, v, causal=True)
    where = f"({length} tokens, {dtype})"
    what = f"token by token differs from the definition {where}"
    require_equal(stepped(mechanism, q, k, v), expected, bound, what)
    for chunk in chunk_sizes:
        what = f"chunks of {chunk} differ from the definition {where}"
        require_equal(chunked(mechanism, q, k, v, chunk), expected, bound, what)


@check("chunks")
def state_size(mechanism: Mechanism) -> None:
    """The bytes of the state, as measured, stop growing: a window may fill, the length must not matter."""
    recurrent = _recurrent(mechanism)
    if drawing():  # what is written is as large as before
        return
    q, k, v = tokens(LAST, shape=sizes(mechanism))
    sizes_seen: list[int] = []
    with torch.no_grad():
        state = recurrent.init_state(q, v)
        for t in range(LAST):
            state, _ = recurrent.step(state, *at(t, q, k, v))
            sizes_seen.append(bytes_of(state))
    full, most = sizes_seen[FILLED - 1], max(sizes_seen[FILLED:])
    if most > full:
        grown = next(t for t in range(FILLED, LAST) if sizes_seen[t] > full)
        raise Broken(
            f"the state grew from {full} bytes at token {FILLED} to {most} by token {LAST}; "
            f"it grows at token {grown + 1}"
        )


def at(t: int, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """One token."""
    return q[..., t, :], k[..., t, :], v[..., t, :]


def _recurrent(mechanism: Mechanism) -> RecurrentMechanism:
    """The mechanism, if it has a state that can be stepped through."""
    if not isinstance(mechanism, RecurrentMechanism):
        raise Skipped("it has no state that is updated token by token")
    return mechanism
