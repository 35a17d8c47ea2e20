"""Results are finite, repeatable and of the right shape, and inputs and global state are not changed."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from itertools import product
from typing import Any

import numpy as np
import torch
from torch import Tensor

from separatrix.contract._base import Broken, Skipped, check
from separatrix.contract.calls import FORMS, call_fast, random_extras
from separatrix.contract.comparisons import require_close, require_finite, rounding_bound
from separatrix.contract.inputs import LENGTH, Tokens, causal_modes, draw_tokens, fit_narrow, fit_shape
from separatrix.contract.trials import draw_trial, find_refused_formats, supported_narrow_formats
from separatrix.mechanisms import Mechanism, ScoreMechanism
from separatrix.mechanisms.custom import CustomMechanism

LARGE = 1e4
CALLS = 100
"""The number of calls after which the same tokens have to give the same result."""
FLOAT16_OVERFLOW_LOGIT = 30.0
"""A logit of ordinary size whose exponential is above the range of float16."""


@check("")
def form(mechanism: Mechanism) -> None:
    """The result has the shape of the queries with the features of the values, and their dtype."""
    for causal, dtype in product(causal_modes(mechanism), (torch.float64, torch.float32)):
        _require_form(mechanism, causal, dtype)


@check("form")
def form_in_16_bits(mechanism: Mechanism) -> None:
    """bfloat16 and float16 tokens give results of that shape and dtype, if torch has the operations."""
    for causal, dtype in product(causal_modes(mechanism), supported_narrow_formats(mechanism)):
        _require_form(mechanism, causal, dtype)
    for reason in find_refused_formats(mechanism).values():
        raise Skipped(reason)


def _require_form(mechanism: Mechanism, causal: bool, dtype: torch.dtype) -> None:
    inputs = draw_tokens(dtype=dtype, shape=fit_shape(mechanism))
    out = call_fast(mechanism, *inputs, causal=causal)
    shape = (*inputs.q.shape[:-1], inputs.v.shape[-1])
    if out.shape != shape:
        raise Broken(f"wrong shape: {tuple(out.shape)}, expected {shape} (causal={causal})")
    if out.dtype is not dtype:
        raise Broken(f"wrong dtype: {out.dtype} from {dtype} tokens (causal={causal}); use .to(v.dtype)")


@check("form")
def inputs_kept(mechanism: Mechanism) -> None:
    """Neither form writes into its inputs, or returns their memory."""
    shape = fit_shape(mechanism)
    for causal, (form, call) in product(causal_modes(mechanism), FORMS.items()):
        inputs, copies = (draw_tokens(shape=shape) for _ in range(2))
        out = call(mechanism, *inputs, causal=causal)
        for letter, x, copy in zip("qkv", inputs, copies, strict=True):
            # Writing into the result would then change the input.
            if out.untyped_storage().data_ptr() == x.untyped_storage().data_ptr():
                raise Broken(f"the {form} returned the memory of {letter} (causal={causal}); return a clone")
            if not torch.equal(x, copy):
                gap = (x - copy).abs().max().item()
                raise Broken(f"the {form} changed {letter} in place by {gap:.3g} (causal={causal})")
    if mechanism.takes_counts and False in causal_modes(mechanism):
        for form, call in FORMS.items():
            inputs = draw_tokens(shape=shape)
            counts = torch.full((inputs.k.shape[-2],), 2.0, dtype=inputs.k.dtype)
            call(mechanism, *inputs, counts)
            if not bool((counts == 2).all()):
                raise Broken(f"the {form} changed counts in place")


@check("inputs_kept")
def poisoned_memory(mechanism: Mechanism) -> None:
    """No uninitialised memory is read: the result is the same if new memory is filled with NaN."""
    for causal, length in product(causal_modes(mechanism), (1, 13, 66)):
        inputs, tolerance = draw_trial(mechanism, causal, length)
        usual = call_fast(mechanism, *inputs, causal=causal)
        with _fill_new_memory_with_nan():
            actual = call_fast(mechanism, *inputs, causal=causal)
        message = f"uninitialised memory is read ({length} tokens, causal={causal}); use torch.zeros, not empty"
        if bool(usual.isfinite().all()):
            require_finite(actual, message)
        # A result that differs from call to call is the fault of `repeatable`.
        if torch.equal(usual, call_fast(mechanism, *inputs, causal=causal)):
            require_close(actual.nan_to_num(), usual.nan_to_num(), tolerance, message)


@check("poisoned_memory")
def repeatable(mechanism: Mechanism) -> None:
    """The same tokens give the same result bit for bit, and no global generator is used."""
    inputs, other_inputs = (draw_tokens(shape=fit_shape(mechanism), seed=seed) for seed in (1, 2))
    for causal in causal_modes(mechanism):
        for form, call in FORMS.items():
            first, second = (call(mechanism, *inputs, causal=causal) for _ in range(2))
            _require_same(first, second, f"the same tokens gave two results, {{}} apart (causal={causal})")
            for seed in (1, 2):
                torch.manual_seed(seed)
                before = _generator_states()
                again = call(mechanism, *inputs, causal=causal)
                message = f"the {form} depends on torch's global generator: results {{}} apart"
                _require_same(first, again, f"{message} (causal={causal}); pass a torch.Generator")
                _require_same_generators(before, f"the {form}", f"causal={causal}")
            if _seeds_python(partial(call, mechanism, *inputs, causal=causal)):
                raise Broken(f"the {form} seeds the global generator of Python (causal={causal})")
            # Other numbers at the same address: a cache keyed by the address or by `id` shows.
            reused = inputs.map(torch.clone)
            call(mechanism, *reused, causal=causal)
            for x, other in zip(reused, other_inputs, strict=True):
                x.copy_(other)
            actual = call(mechanism, *reused, causal=causal)
            reference = call(mechanism, *draw_tokens(shape=fit_shape(mechanism), seed=2), causal=causal)
            message = f"the {form} remembers the previous numbers of a tensor that was overwritten: {{}} apart"
            _require_same(actual, reference, message)
        # Longer inputs may take another branch.
        for length in (130, 520):
            long_inputs, before = draw_tokens(length, shape=fit_narrow(mechanism)), _generator_states()
            with torch.no_grad():
                call_fast(mechanism, *long_inputs, causal=causal)
            _require_same_generators(before, "the fast form", f"{length} tokens, causal={causal}")
        first = call_fast(mechanism, *inputs, causal=causal)
        with torch.no_grad():
            for _ in range(CALLS):
                again = call_fast(mechanism, *inputs, causal=causal)
        _require_same(first, again, f"the same tokens gave another result {CALLS} calls later, {{}} apart")


def _seeds_python(call: Callable[[], Tensor]) -> bool:
    """Return whether a call leaves Python's generator in the same state whatever its state was before."""
    before, states = random.getstate(), set()
    try:
        for seed in (1, 2):
            random.seed(seed)
            call()
            states.add(random.getstate())
    finally:
        random.setstate(before)
    return len(states) == 1


def _require_same(first: Tensor, second: Tensor, message: str) -> None:
    if not torch.equal(first.nan_to_num(), second.nan_to_num()):
        raise Broken(message.format(f"{(first - second).abs().max().item():.3g}"))


def _require_same_generators(before: dict[str, bytes], noun: str, case: str) -> None:
    for library, state in _generator_states().items():
        if state != before[library]:
            raise Broken(f"{noun} changed the global generator of {library} ({case})")


def _generator_states() -> dict[str, bytes]:
    """Return the states of torch's and NumPy's generators; type checkers draw from Python's own."""
    _, keys, *rest = np.random.get_state()
    return {"torch": torch.get_rng_state().numpy().tobytes(), "numpy": np.asarray(keys).tobytes() + repr(rest).encode()}


@check("permutation")
def normalised(mechanism: Mechanism) -> None:
    """The weights of every row add up to 1, if the mechanism declares it."""
    if not mechanism.is_normalised:
        _require_normalised_nowhere(mechanism)
        raise Skipped("it does not declare that its weights add up to 1")
    if random_extras.get():  # a learned sink or difference may leave less than 1
        return
    cases = [(length, fit_shape(mechanism)) for length in (1, 2, 13, 66)]
    cases += [(length, fit_narrow(mechanism)) for length in (130, 520, 1030, 2500)]
    cases += [(13, fit_shape(mechanism, 1, 1, width, 2)) for width in (64, 128)]
    for causal, (length, shape) in product(causal_modes(mechanism), cases):
        (q, k, v), tolerance = draw_trial(mechanism, causal, length, shape=shape)
        ones = torch.ones_like(v)
        message = f"the weights of a row do not add up to 1 ({length} tokens, causal={causal})"
        require_close(call_fast(mechanism, q, k, ones, causal=causal), ones, tolerance, message)


def _require_normalised_nowhere(mechanism: Mechanism) -> None:
    """Raise Broken if the weights of a callable add up to 1 for other sizes than those it was probed with."""
    if not isinstance(mechanism, CustomMechanism) or mechanism.said_normalised is not None:
        return
    causal = causal_modes(mechanism)[-1]
    for queries, keys in ((64, 64), (128, 128), *(() if causal else ((4, LENGTH),))):
        q, k, v = draw_tokens(queries, keys, shape=fit_narrow(mechanism))
        with torch.no_grad():
            try:
                sums = call_fast(mechanism, q, k, torch.ones_like(v), causal=causal)
            except Exception:  # other checks test these sizes
                continue
        if bool(((sums - 1).abs() <= rounding_bound(q.dtype)).all()):
            raise Broken(
                f"the weights of a row add up to 1 for {queries} queries and {keys} keys, but not for "
                f"{LENGTH} of both (causal={causal}); if that is intended, declare normalised = False"
            )


@check()
def finite(mechanism: Mechanism) -> None:
    """Finite on logits of 1e4, values of 1e4, equal tokens, one token, and tokens of zeros."""
    shape = fit_shape(mechanism)
    inputs, single = draw_tokens(shape=shape), draw_tokens(1, shape=shape)
    q, k, v = inputs
    scale = LARGE / _largest_logit(inputs)
    cases = {
        "ordinary tokens": inputs,
        "logits of 1e4": Tokens(q * scale, k, v),
        "values of 1e4": Tokens(q, k, v * LARGE),
        "equal tokens": inputs.map(lambda x: x[..., :1, :].expand_as(x)),
        "one token": single,
        "one token, logits up to 1e4": Tokens(single.q * scale, single.k, single.v),
        "keys of zeros": Tokens(q, torch.zeros_like(k), v),
        "tokens of zeros": inputs.map(torch.zeros_like),
    }
    _require_finite_results(mechanism, cases)


@check("repeatable", "form_in_16_bits")
def finite_in_16_bits(mechanism: Mechanism) -> None:
    """Finite in 16 bits on logits of 30, whose exponentials are above the range of float16."""
    inputs = draw_tokens(shape=fit_shape(mechanism))
    q = inputs.q * (FLOAT16_OVERFLOW_LOGIT / _largest_logit(inputs))
    cases = {f"logits of {FLOAT16_OVERFLOW_LOGIT:g}": inputs._replace(q=q)}
    _require_finite_results(mechanism, cases, supported_narrow_formats(mechanism))


@check("finite")
def finite_signed(mechanism: Mechanism) -> None:
    """Finite on Gaussian tokens and logits of both signs up to 1e4, unless the kernel needs positive ones."""
    shape = fit_shape(mechanism)
    positive, signed = draw_tokens(shape=shape), draw_tokens(is_signed=True, shape=shape)
    cases = {
        "Gaussian tokens": signed,
        "Gaussian tokens scaled to logits of 1e4": signed._replace(q=signed.q * (LARGE / _largest_logit(signed))),
        "logits of -1e4": positive._replace(q=positive.q * (-LARGE / _largest_logit(positive))),
    }
    try:
        _require_finite_results(mechanism, cases)
    except Broken:
        if _has_positive_kernel(mechanism):
            raise
        raise Skipped("its kernel is not positive at negative logits, so the scores of a row may add up to 0") from None


def _largest_logit(inputs: Tokens) -> float:
    return (inputs.q @ inputs.k.mT).abs().max().item()


def _require_finite_results(
    mechanism: Mechanism, cases: dict[str, Tokens], dtypes: tuple[torch.dtype, ...] = (torch.float64, torch.float32)
) -> None:
    for causal, dtype, (case, inputs) in product(causal_modes(mechanism), dtypes, cases.items()):
        out = call_fast(mechanism, *inputs.to(dtype), causal=causal)
        require_finite(out, f"{case} ({dtype}, causal={causal})")


def _has_positive_kernel(mechanism: Mechanism) -> bool:
    """Return whether every row must have a normaliser: unless a kernel is not positive at negative logits."""
    if not isinstance(mechanism, ScoreMechanism):
        return True
    scores = mechanism.score(torch.linspace(-LARGE, -0.01, 10_000, dtype=torch.float64))
    return bool((scores > 0).all())


@contextmanager
def _fill_new_memory_with_nan() -> Iterator[None]:
    """Fill the results of torch.empty and similar functions with NaN within the block."""
    before = torch.get_deterministic_debug_mode()
    options: Any = import_module("torch.utils.deterministic")
    is_filled = options.fill_uninitialized_memory
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns of every operation that is not deterministic
        try:
            # Unlike `use_deterministic_algorithms`, this does not import torch's compiler, a second of work.
            torch.set_deterministic_debug_mode("warn")
            options.fill_uninitialized_memory = True
            yield
        finally:
            options.fill_uninitialized_memory = is_filled
            torch.set_deterministic_debug_mode(before)
