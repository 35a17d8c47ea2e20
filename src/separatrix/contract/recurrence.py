"""Mechanisms with a state: every way to run them gives the same result, and the state does not grow."""

from __future__ import annotations

import torch

from separatrix.contract._base import Broken, Skipped, check
from separatrix.contract.calls import call_definition, has_random_extras, make_extras
from separatrix.contract.inputs import Shape, draw_tokens, draw_trial, fit_narrow, fit_shape, require_close
from separatrix.mechanisms import Mechanism
from separatrix.mechanisms.decoding import bytes_of
from separatrix.mechanisms.recurrent._base import RecurrentMechanism

CHUNKS = (1, 3, 16, 64)
LONG_CHUNKS = (50, 100, 128, 256)
FULL_AFTER, LAST = 100, 1100
"""The state may fill up until the first of these tokens, as a window does; it is observed until the last."""


@check("causality", "head_independence")
def chunks(mechanism: Mechanism) -> None:
    """Chunked and token-by-token results agree with the definition for every chunk size and length."""
    recurrent = _require_recurrent(mechanism)
    for dtype in (torch.float64, torch.float32):
        for length in (1, 7, 33, 65):
            _require_same_results(recurrent, length, dtype, CHUNKS, fit_shape(mechanism))
    _require_same_results(recurrent, 300, torch.float64, LONG_CHUNKS, fit_narrow(mechanism))


def _require_same_results(
    mechanism: RecurrentMechanism, length: int, dtype: torch.dtype, chunk_sizes: tuple[int, ...], shape: Shape
) -> None:
    inputs, tolerance = draw_trial(mechanism, True, length, dtype=dtype, shape=shape)
    extras = make_extras(mechanism, *inputs)
    reference = call_definition(mechanism, *inputs, causal=True)
    case = f"from the definition ({length} tokens, {dtype})"
    require_close(mechanism.unrolled(*inputs, **extras), reference, tolerance, f"token by token differs {case}")
    for chunk in chunk_sizes:
        actual = mechanism.chunked(*inputs, chunk, **extras)[0]
        require_close(actual, reference, tolerance, f"chunks of {chunk} differ {case}")


@check("chunks")
def state_size(mechanism: Mechanism) -> None:
    """The measured bytes of the state stop growing: a window may fill up, but the length has no effect."""
    recurrent = _require_recurrent(mechanism)
    if has_random_extras():  # they change the numbers in the state, not its size
        return
    inputs = draw_tokens(LAST, shape=fit_shape(mechanism))
    sizes: list[int] = []
    with torch.no_grad():
        state = recurrent.init_state(inputs.q, inputs.v)
        for t in range(LAST):
            state, _ = recurrent.step(state, *inputs.rows(t))
            sizes.append(bytes_of(state))
    full_size, largest = sizes[FULL_AFTER - 1], max(sizes[FULL_AFTER:])
    if largest > full_size:
        first = next(t for t in range(FULL_AFTER, LAST) if sizes[t] > full_size)
        raise Broken(
            f"the state grew from {full_size} bytes at token {FULL_AFTER} to {largest} by token {LAST}; "
            f"it grows at token {first + 1}"
        )


def _require_recurrent(mechanism: Mechanism) -> RecurrentMechanism:
    """Return the mechanism if it has a state that can be stepped; raise Skipped if not."""
    if not isinstance(mechanism, RecurrentMechanism):
        raise Skipped("it has no state that is updated token by token")
    return mechanism
