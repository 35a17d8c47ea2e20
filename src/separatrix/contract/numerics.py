"""Results are finite, repeatable, of the promised form, and leave their inputs alone."""

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
from separatrix.contract.calls import FORMS, drawing, fast
from separatrix.contract.inputs import (
    LENGTH,
    few,
    formats_refused,
    modes,
    narrow_formats,
    require_equal,
    require_finite,
    rounding,
    sizes,
    tokens,
    trial,
)
from separatrix.mechanisms import Mechanism, ScoreMechanism
from separatrix.mechanisms.custom import CustomMechanism

LARGE = 1e4
CALLS = 100
"""So many calls later the same tokens give the same result."""
MODERATE = 30.0
"""Logits of this size are ordinary, and their exponentials are beyond float16."""


@check("")
def form(mechanism: Mechanism) -> None:
    """The result has the shape of the queries with the features, and the dtype, of the values."""
    for causal, dtype in product(modes(mechanism), (torch.float64, torch.float32)):
        _require_form(mechanism, causal, dtype)


@check("form")
def form_in_16_bits(mechanism: Mechanism) -> None:
    """bfloat16 and float16 tokens give results of that form, too, where there are such operations."""
    for causal, dtype in product(modes(mechanism), narrow_formats(mechanism)):
        _require_form(mechanism, causal, dtype)
    for why in formats_refused(mechanism).values():
        raise Skipped(why)


def _require_form(mechanism: Mechanism, causal: bool, dtype: torch.dtype) -> None:
    q, k, v = tokens(dtype=dtype, shape=sizes(mechanism))
    out = fast(mechanism, q, k, v, causal=causal)
    expected = (*q.shape[:-1], v.shape[-1])
    if out.shape != expected:
        raise Broken(f"wrong shape: {tuple(out.shape)}, promised {expected} (causal={causal})")
    if out.dtype is not dtype:
        raise Broken(f"wrong dtype: {out.dtype} from {dtype} tokens (causal={causal})")


@check("form")
def inputs_kept(mechanism: Mechanism) -> None:
    """Neither the fast form nor the definition writes into its inputs, or returns their memory."""
    for causal in modes(mechanism):
        for name, attend in FORMS.items():
            given, kept = (tokens(shape=sizes(mechanism)) for _ in range(2))
            out = attend(mechanism, *given, causal=causal)
            for letter, now, before in zip("qkv", given, kept, strict=True):
                if out.untyped_storage().data_ptr() == now.untyped_storage().data_ptr():
                    raise Broken(f"the {name} returned the memory of {letter} (causal={causal})")
                if not torch.equal(now, before):
                    gap = (now - before).abs().max().item()
                    raise Broken(f"the {name} changed {letter} in place by {gap:.3g} (causal={causal})")
    if mechanism.takes_counts and False in modes(mechanism):
        for name, attend in FORMS.items():
            q, k, v = tokens(shape=sizes(mechanism))
            times = torch.full((k.shape[-2],), 2.0, dtype=k.dtype)
            attend(mechanism, q, k, v, times)
            if not bool((times == 2).all()):
                raise Broken(f"the {name} changed counts in place")


@check("inputs_kept")
def poisoned_memory(mechanism: Mechanism) -> None:
    """Nothing uninitialised is read: the result is the same when fresh memory is full of NaN."""
    for causal in modes(mechanism):
        for length in (1, 13, 66):
            q, k, v, bound = trial(mechanism, causal, length)
            plain = fast(mechanism, q, k, v, causal=causal)
            with _poison():
                found = fast(mechanism, q, k, v, causal=causal)
            what = f"uninitialised memory is read ({length} tokens, causal={causal})"
            if bool(plain.isfinite().all()):
                require_finite(found, what)
            if torch.equal(plain, fast(mechanism, q, k, v, causal=causal)):
                require_equal(found.nan_to_num(), plain.nan_to_num(), bound, what)


@check("poisoned_memory")
def repeatable(mechanism: Mechanism) -> None:
    """The same tokens give the same result bit for bit, and no random numbers that others share are used."""
    q, k, v = tokens(shape=sizes(mechanism))
    for causal in modes(mechanism):
        for name, attend in FORMS.items():
            first, second = (attend(mechanism, q, k, v, causal=causal) for _ in range(2))
            _require_same(first, second, f"the same tokens gave two results, {{}} apart (causal={causal})")
            for seed in (1, 2):
                torch.manual_seed(seed)
                before = _generators()
                again = attend(mechanism, q, k, v, causal=causal)
                what = f"the {name} depends on torch's global generator: results {{}} apart (causal={causal})"
                _require_same(first, again, what)
                for whose, state in _generators().items():
                    if state != before[whose]:
                        raise Broken(f"the {name} moved the global generator of {whose} (causal={causal})")
            if _seeds_python(partial(attend, mechanism, q, k, v, causal=causal)):
                raise Broken(f"the {name} seeds the global generator of Python (causal={causal})")
            held = [x.clone() for x in (q, k, v)]
            attend(mechanism, held[0], held[1], held[2], causal=causal)
            for x, other in zip(held, tokens(shape=sizes(mechanism), seed=2), strict=True):
                x.copy_(other)
            now = attend(mechanism, held[0], held[1], held[2], causal=causal)
            fresh = attend(mechanism, *tokens(shape=sizes(mechanism), seed=2), causal=causal)
            _require_same(now, fresh, f"the {name} remembers what memory held before: {{}} apart")
        _require_own_generators(mechanism, causal)
        first = fast(mechanism, q, k, v, causal=causal)
        with torch.no_grad():
            for _ in range(CALLS):
                again = fast(mechanism, q, k, v, causal=causal)
        _require_same(first, again, f"the same tokens gave another result {CALLS} calls later, {{}} apart")


def _require_own_generators(mechanism: Mechanism, causal: bool) -> None:
    """On longer inputs, too, no random numbers are drawn that others share."""
    for length in (130, 520):
        given, before = tokens(length, shape=few(mechanism)), _generators()
        with torch.no_grad():
            fast(mechanism, *given, causal=causal)
        for whose, state in _generators().items():
            if state != before[whose]:
                what = f"the fast form moved the global generator of {whose} ({length} tokens"
                raise Broken(f"{what}, causal={causal})")


def _seeds_python(call: Callable[[], Tensor]) -> bool:
    """Whether Python's generator is left in one state whatever it was in."""
    before, after = random.getstate(), set()
    try:
        for seed in (1, 2):
            random.seed(seed)
            call()
            after.add(random.getstate())
    finally:
        random.setstate(before)
    return len(after) == 1


def _require_same(first: Tensor, second: Tensor, what: str) -> None:
    if not torch.equal(first.nan_to_num(), second.nan_to_num()):
        raise Broken(what.format(f"{(first - second).abs().max().item():.3g}"))


def _generators() -> dict[str, object]:
    """The states of the generators that numerical code shares; type checkers draw from Python's own."""
    return {
        "torch": torch.get_rng_state().numpy().tobytes(),
        "numpy": str(np.random.get_state()),
    }


@check("permutation")
def normalised(mechanism: Mechanism) -> None:
    """The weights of every row add up to 1, where the mechanism says so."""
    if not mechanism.is_normalised:
        _require_nowhere_normalised(mechanism)
        raise Skipped("it does not say that its weights add up to 1")
    if drawing():  # a sink or a difference that is learned leaves less than 1
        return
    usual = sizes(mechanism)
    shapes = [(length, usual) for length in (1, 2, 13, 66)]
    shapes += [(length, few(mechanism)) for length in (130, 520, 1030, 2500)]
    shapes += [(13, sizes(mechanism, 1, 1, width, 2)) for width in (64, 128)]
    for causal in modes(mechanism):
        for length, shape in shapes:
            q, k, v, bound = trial(mechanism, causal, length, shape=shape)
            ones = torch.ones_like(v)
            what = f"the weights of a row do not add up to 1 ({length} tokens, causal={causal})"
            require_equal(fast(mechanism, q, k, ones, causal=causal), ones, bound, what)


def _require_nowhere_normalised(mechanism: Mechanism) -> None:
    """Who says nothing, and whose weights did not add up to 1, has none that do for other sizes."""
    if not isinstance(mechanism, CustomMechanism) or mechanism.said_normalised is not None:
        return
    causal = modes(mechanism)[-1]
    for queries, keys in ((64, 64), (128, 128), *(() if causal else ((4, LENGTH),))):
        q, k, v = tokens(queries, keys, shape=few(mechanism))
        with torch.no_grad():
            try:
                sums = fast(mechanism, q, k, torch.ones_like(v), causal=causal)
            except Exception:  # such sizes are asked for elsewhere
                continue
        if bool(((sums - 1).abs() <= rounding(q.dtype)).all()):
            raise Broken(
                f"the weights of a row add up to 1 for {queries} queries and {keys} keys and not for "
                f"{LENGTH} of both (causal={causal}); if that is meant, say normalised = False"
            )


@check()
def finite(mechanism: Mechanism) -> None:
    """Finite on logits of 1e4, values of 1e4, equal tokens, one token, tokens of zeros."""
    shape = sizes(mechanism)
    q, k, v = tokens(shape=shape)
    top = (q @ k.mT).max().item()
    one = tokens(1, shape=shape)
    equal = [x[..., :1, :].expand_as(x) for x in (q, k, v)]
    cases = {
        "ordinary tokens": (q, k, v),
        "logits of 1e4": (q * (LARGE / top), k, v),
        "values of 1e4": (q, k, v * LARGE),
        "equal tokens": (equal[0], equal[1], equal[2]),
        "one token": one,
        "one token, logits up to 1e4": (one[0] * (LARGE / top), *one[1:]),
        "keys of zeros": (q, torch.zeros_like(k), v),
        "tokens of zeros": (torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)),
    }
    _require_finite(mechanism, cases)


@check("repeatable", "form_in_16_bits")
def finite_in_16_bits(mechanism: Mechanism) -> None:
    """In 16 bits finite on logits of 30, whose exponentials are beyond float16."""
    q, k, v = tokens(shape=sizes(mechanism))
    top = (q @ k.mT).max().item()
    moderate = {f"logits of {MODERATE:g}": (q * (MODERATE / top), k, v)}
    _require_finite(mechanism, moderate, narrow_formats(mechanism))


@check("finite")
def finite_signed(mechanism: Mechanism) -> None:
    """Finite on Gaussian tokens and logits of both signs up to 1e4, unless the kernel needs positive ones."""
    shape = sizes(mechanism)
    q, k, v = tokens(shape=shape)
    top = (q @ k.mT).max().item()
    signed = tokens(signed=True, shape=shape)
    signed_top = (signed[0] @ signed[1].mT).abs().max().item()
    cases = {
        "Gaussian tokens": signed,
        "Gaussian tokens scaled to logits of 1e4": (signed[0] * (LARGE / signed_top), *signed[1:]),
        "logits of -1e4": (q * (-LARGE / top), k, v),
    }
    try:
        _require_finite(mechanism, cases)
    except Broken:
        reason = _zero_normaliser(mechanism)
        if reason is None:
            raise
        raise Skipped(reason) from None


def _require_finite(
    mechanism: Mechanism,
    cases: dict[str, tuple[Tensor, Tensor, Tensor]],
    dtypes: tuple[torch.dtype, ...] = (torch.float64, torch.float32),
) -> None:
    for causal in modes(mechanism):
        for dtype in dtypes:
            for what, (q, k, v) in cases.items():
                out = fast(mechanism, q.to(dtype), k.to(dtype), v.to(dtype), causal=causal)
                require_finite(out, f"{what} ({dtype}, causal={causal})")


def _zero_normaliser(mechanism: Mechanism) -> str | None:
    """Why a row may rightly have no answer: a kernel that is not positive at negative logits."""
    if not isinstance(mechanism, ScoreMechanism):
        return None
    scores = mechanism.score(torch.linspace(-LARGE, -0.01, 10_000, dtype=torch.float64))
    if bool((scores > 0).all()):
        return None
    return "its kernel is not positive at negative logits, so a row of signed logits may have no normaliser"


@contextmanager
def _poison() -> Iterator[None]:
    """Let torch.empty and its kin give memory full of NaN."""
    before = torch.get_deterministic_debug_mode()
    memory: Any = import_module("torch.utils.deterministic")
    fill = memory.fill_uninitialized_memory
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            torch.use_deterministic_algorithms(True, warn_only=True)
            memory.fill_uninitialized_memory = True
            yield
        finally:
            memory.fill_uninitialized_memory = fill
            torch.set_deterministic_debug_mode(before)
