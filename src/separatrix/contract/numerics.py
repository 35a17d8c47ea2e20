"""Results are finite, repeatable, of the promised form, and leave their inputs alone."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import torch
from torch import Tensor

from separatrix.contract._base import Broken, Skipped, check
from separatrix.contract.inputs import FEATURES, modes, require_equal, require_finite, tokens, trial
from separatrix.mechanisms import Mechanism, ScoreMechanism

LARGE = 1e4


@check
def form(mechanism: Mechanism) -> None:
    """The result has the shape of the queries with the features, and the dtype, of the values."""
    for causal in modes(mechanism):
        for dtype in (torch.float64, torch.float32, torch.bfloat16):
            q, k, v = tokens(dtype=dtype)
            out = mechanism(q, k, v, causal=causal)
            expected = (*q.shape[:-1], FEATURES)
            if out.shape != expected:
                raise Broken(f"wrong shape: {tuple(out.shape)}, promised {expected} (causal={causal})")
            if out.dtype is not dtype:
                raise Broken(f"wrong dtype: {out.dtype} from {dtype} tokens (causal={causal})")


@check
def inputs_kept(mechanism: Mechanism) -> None:
    """Neither the fast form nor the definition writes into its inputs."""
    for causal in modes(mechanism):
        for name, attend in (("fast form", mechanism), ("definition", mechanism.definition)):
            given, kept = tokens(), tokens()
            attend(*given, causal=causal)
            for letter, now, before in zip("qkv", given, kept, strict=True):
                if not torch.equal(now, before):
                    gap = (now - before).abs().max().item()
                    raise Broken(f"the {name} changed {letter} in place by {gap:.3g} (causal={causal})")


@check
def repeatable(mechanism: Mechanism) -> None:
    """The same tokens give the same result, bit for bit."""
    for causal in modes(mechanism):
        q, k, v = tokens()
        first, second = (mechanism(q, k, v, causal=causal) for _ in range(2))
        if not torch.equal(first.nan_to_num(), second.nan_to_num()):
            gap = (first - second).abs().max().item()
            raise Broken(f"the same tokens gave two results, {gap:.3g} apart (causal={causal})")


@check
def normalised(mechanism: Mechanism) -> None:
    """The weights of every row add up to 1, where the mechanism says so."""
    if not mechanism.normalised:
        raise Skipped("it does not say that its weights add up to 1")
    for causal in modes(mechanism):
        for length in (1, 2, 13, 66):
            q, k, v, bound = trial(mechanism, causal, length)
            ones = torch.ones_like(v)
            what = f"the weights of a row do not add up to 1 ({length} tokens, causal={causal})"
            require_equal(mechanism(q, k, ones, causal=causal), ones, bound, what)


@check
def finite(mechanism: Mechanism) -> None:
    """Finite on logits of 1e4, values of 1e4, equal tokens and a single token."""
    q, k, v = tokens()
    top = (q @ k.mT).max().item()
    equal = [x[..., :1, :].expand_as(x) for x in (q, k, v)]
    cases = {
        "logits of 1e4": (q * (LARGE / top), k, v),
        "values of 1e4": (q, k, v * LARGE),
        "equal tokens": (equal[0], equal[1], equal[2]),
        "one token": tokens(1),
        "one token, logits up to 1e4": (tokens(1)[0] * (LARGE / top), *tokens(1)[1:]),
    }
    _require_finite(mechanism, cases)


@check
def finite_signed(mechanism: Mechanism) -> None:
    """Finite on Gaussian tokens and logits of both signs up to 1e4, unless the kernel needs positive ones."""
    q, k, v = tokens()
    top = (q @ k.mT).max().item()
    signed = tokens(signed=True)
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


@check
def poisoned_memory(mechanism: Mechanism) -> None:
    """Nothing uninitialised is read: the result is the same when fresh memory is full of NaN."""
    for causal in modes(mechanism):
        for length in (1, 13, 66):
            q, k, v, bound = trial(mechanism, causal, length)
            with _poison():
                found = mechanism(q, k, v, causal=causal)
            what = f"uninitialised memory is read ({length} tokens, causal={causal})"
            require_finite(found, what)
            require_equal(found, mechanism(q, k, v, causal=causal), bound, what)


def _require_finite(mechanism: Mechanism, cases: dict[str, tuple[Tensor, Tensor, Tensor]]) -> None:
    for causal in modes(mechanism):
        for dtype in (torch.float64, torch.float32):
            for what, (q, k, v) in cases.items():
                out = mechanism(q.to(dtype), k.to(dtype), v.to(dtype), causal=causal)
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
