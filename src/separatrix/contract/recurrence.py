"""Tokens read one after the other, in chunks, from a state or a cache, and among absent tokens."""

from __future__ import annotations

import torch
from torch import Tensor

from separatrix.contract._base import Broken, Skipped, check
from separatrix.contract.calls import call_definition, call_fast, make_extras, random_extras
from separatrix.contract.comparisons import require_close, require_finite
from separatrix.contract.inputs import Shape, Tokens, causal_modes, draw_tokens, fit_narrow, fit_shape
from separatrix.contract.trials import draw_trial
from separatrix.mechanisms import Mechanism
from separatrix.mechanisms.decoding import bytes_of
from separatrix.mechanisms.recurrent._base import RecurrentMechanism, State

CHUNKS = (1, 3, 16, 64)
LONG_CHUNKS = (50, 100, 128, 256)
FULL_AFTER, LAST = 100, 1100
"""The state may fill up until the first of these tokens, as a window does; it is observed until the last."""
PROMPTS = ((13, 1), (13, 8), (66, 63), (140, 128))
"""Numbers of tokens, and how many of them are read at once, before the others one by one."""
STEP_LENGTH = 3
"""The number of tokens read per step, besides 1, if keys and values are cached."""
PADDING_VALUE = 50.0
"""Stands in absent tokens: large enough that any use of it shows."""
NO_PRESENT = "it does not take present: the contract would call it with the present tokens alone"


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
    if random_extras.get():  # they change the numbers in the state, not its size
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


@check("chunks", "prefix", "layout")
def decoding(mechanism: Mechanism) -> None:
    """Reading a prompt at once and the rest token by token gives the same as reading all tokens at once."""
    if True not in causal_modes(mechanism):
        raise Skipped("it has no causal form")
    if not mechanism.length_free:
        raise Skipped("it declares that causal results depend on the number of tokens that follow")
    if not isinstance(mechanism, RecurrentMechanism) and not mechanism.takes_first:
        raise Skipped("it has no state and does not take first: queries of zeros are put before the others")
    for length, prompt in PROMPTS:
        shape = fit_narrow(mechanism) if length > 100 else fit_shape(mechanism)
        inputs, tolerance = draw_trial(mechanism, True, length, shape=shape)
        with torch.no_grad():
            reference = call_fast(mechanism, *inputs, causal=True)
            if isinstance(mechanism, RecurrentMechanism):
                actual = _decode_with_state(mechanism, inputs, prompt)
            else:
                actual = _decode_with_keys(mechanism, inputs, prompt, 1)
                by_steps = _decode_with_keys(mechanism, inputs, prompt, STEP_LENGTH)
                message = f"{prompt} tokens at once and then {STEP_LENGTH} at a time differ from all {length}"
                require_close(by_steps, reference, tolerance, message)
        message = f"{prompt} tokens at once and then one by one differ from all {length} at once"
        require_close(actual, reference, tolerance, message)


def _decode_with_state(mechanism: RecurrentMechanism, inputs: Tokens, prompt: int) -> Tensor:
    """Read the prompt in one chunk, then step; raise Broken if a step changes the state it is given."""
    extras, per_token = make_extras(mechanism, *inputs), mechanism.token_extras
    prompt_extras = {name: x[..., :prompt, :] if name in per_token else x for name, x in extras.items()}
    out, state = mechanism.chunked(*inputs.rows(slice(prompt)), **prompt_extras)
    parts = [out]
    for t in range(prompt, inputs.k.shape[-2]):
        step_extras = {name: x[..., t, :] if name in per_token else x for name, x in extras.items()}
        before: State = tuple(part.clone() for part in state)
        next_state, out = mechanism.step(state, *inputs.rows(t), **step_extras)
        # A caller may keep a state to continue from it twice, as beam search does.
        if not all(torch.equal(part, copy) for part, copy in zip(state, before, strict=True)):
            raise Broken(f"step changed the state that it was given (token {t}); return a new one")
        parts.append(out[..., None, :].to(inputs.v.dtype))
        state = next_state
    return torch.cat(parts, dim=-2)


def _decode_with_keys(mechanism: Mechanism, inputs: Tokens, prompt: int, step_length: int) -> Tensor:
    """Read the prompt at once, then a few queries at a time, at their position among all keys so far."""
    q, k, v = inputs
    parts = [call_fast(mechanism, *inputs.rows(slice(prompt)), causal=True)]
    for t in range(prompt, k.shape[-2], step_length):
        stop = t + step_length
        past = k[..., :stop, :], v[..., :stop, :]
        parts.append(call_fast(mechanism, q[..., t:stop, :], *past, causal=True, first=t))
    return torch.cat(parts, dim=-2)


@check("decoding")
def absent_tokens(mechanism: Mechanism) -> None:
    """Absent tokens change nothing, whatever numbers stand in their place."""
    if not mechanism.takes_present:
        raise Skipped(NO_PRESENT)
    for causal in causal_modes(mechanism):
        for length in (13, 70):
            inputs, tolerance = draw_trial(mechanism, causal, length, shape=fit_shape(mechanism, 3, 2))
            # Holes at random places, padding on the right, and padding on the left.
            present = torch.rand(3, length, generator=torch.Generator().manual_seed(6)) < 0.7
            present[1] = torch.arange(length) < length - 5
            present[2] = torch.arange(length) >= 5
            absent = ~present[:, None, :, None]
            padded = Tokens(*(x.masked_fill(absent, PADDING_VALUE) for x in inputs))
            actual = call_fast(mechanism, *padded, causal=causal, present=present)
            for i, mask in enumerate(present):
                positions = mask.nonzero()[:, 0]
                alone = inputs.element(i).rows(positions)
                reference = call_fast(mechanism, *alone, causal=causal, positions=positions)
                message = f"present tokens among absent ones give different results alone (causal={causal})"
                require_close(actual[i : i + 1][..., positions, :], reference, tolerance, message)


@check("absent_tokens")
def nobody_present(mechanism: Mechanism) -> None:
    """Results and gradients are finite if no token is present, or none that a query sees."""
    if not mechanism.takes_present:
        raise Skipped(NO_PRESENT)
    present = torch.ones(3, 6, dtype=torch.bool)
    present[0], present[1, :2] = False, False
    for causal in causal_modes(mechanism):
        inputs = draw_tokens(6, shape=fit_shape(mechanism, 3, 2)).map(torch.Tensor.requires_grad_)
        out = call_fast(mechanism, *inputs, causal=causal, present=present)
        case = f"queries that see no present token (causal={causal})"
        require_finite(out, case)
        if not out.requires_grad:
            continue
        gradients = torch.autograd.grad(out.square().sum(), inputs, allow_unused=True)
        for letter, gradient in zip("qkv", gradients, strict=True):
            if gradient is not None:
                require_finite(gradient, f"the gradient of {letter} with {case}")
