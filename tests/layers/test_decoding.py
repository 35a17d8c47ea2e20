"""Decoding with what mechanisms keep: equal to reading all tokens at once, and as large as predicted."""

from __future__ import annotations

from itertools import cycle
from typing import Any

import pytest
import torch
from torch import Tensor

from separatrix.layers import Attention, Model
from separatrix.mechanisms import Causality, Mechanism, examples, mechanism_named
from separatrix.mechanisms.decoding import CACHE, STATE, WINDOW, NewTokens, Past, bytes_of

BOUNDED = [
    "window:size=1",
    "window:size=2",
    "window:size=5",
    "window-global:size=3,globals=2",
    "window-global:size=4,globals=0",
    "window-global:size=1,globals=3",
    "block-random:block=3,random=0",
    "block-routing:block=4,k=1",
    "simplicial:window=6,second_window=3",
    "simplicial:window=2,second_window=5",
    "rotary:inner=window:size=5",
    "rotary:inner=window-global:size=3",
    "rotary:inner=simplicial:window=4",
    "rotary:inner=block-random:random=0",
    "alibi:inner=window:size=5",
    "alibi:inner=window-global:size=3",
    "alibi:inner=block-random:random=0",
]
"""Mechanisms whose cache stops growing."""
FOLDED = {
    "rotary:inner=gla": "gla",
    "rotary:inner=elu": "elu",
    "rotary:inner=linear": "linear",
    "rotary:inner=retention": "retention",
    "rotary:inner=multiscale-retention": "multiscale-retention",
    "rotary:inner=delta": "delta",
    "rotary:inner=log-linear": "log-linear",
    "rotary:inner=window-linear:size=3": "window-linear:size=3",
    "rotary:inner=hedgehog": "hedgehog",
    "alibi:inner=elu": "elu",
    "alibi:inner=linear": "linear",
    "alibi:inner=identity-features:normalised=no": "identity-features:normalised=no",
    "alibi:inner=exp-features": "exp-features",
    "alibi:inner=exp-features:normalised=no": "exp-features:normalised=no",
    "alibi:inner=hedgehog": "hedgehog",
    "alibi:inner=based": "based",
    "alibi:inner=favor:features=16": "favor:features=16",
}
"""Positions around mechanisms of fixed state, and the mechanism inside, whose state is enough."""
UNBOUNDED = ["alibi:inner=power:beta=2", "alibi:inner=topk:k=2", "alibi:inner=strided:stride=3", "rotary:inner=fox"]
CAUSAL = [each.spelled for each in examples() if each.causality is not Causality.NEVER]
SPELLINGS = [*CAUSAL, *BOUNDED, *FOLDED, *UNBOUNDED, "strided:stride=3", "block-random:block=3", "window-linear:size=3"]
LENGTH_FREE = [each for each in SPELLINGS if mechanism_named(each).length_free]
HEADS, WIDTH, LENGTH = 3, 4, 31
RUNS = (3, 1, 1, 6, 1, 8, 1)


def drawn(mechanism: Mechanism, length: int, batch: int = 2) -> tuple[Tensor, Tensor, Tensor, dict[str, Tensor]]:
    generator = torch.Generator().manual_seed(0)
    q, k, v = torch.randn(3, batch, HEADS, length, WIDTH, generator=generator, dtype=torch.float64)
    sizes = mechanism.sizes(q, k, v)
    return q, k, v, {extra.name: extra.draw(sizes, generator) for extra in mechanism.extras}


def in_runs(
    mechanism: Mechanism, q: Tensor, k: Tensor, v: Tensor, extras: Any, present: Tensor | None = None
) -> tuple[Tensor, Past]:
    """What tokens get that are read a few at a time, and what is kept in the end."""
    rows, start, past, streams = [], 0, None, mechanism.token_extras
    for size in cycle(RUNS):
        here = slice(start, min(start + size, q.shape[-2]))
        some = {name: x[..., here, :] if name in streams else x for name, x in extras.items()}
        there = None if present is None else present[:, here]
        out, past = mechanism.decode(past, NewTokens(*(x[..., here, :] for x in (q, k, v)), there, extras=some))
        rows.append(out)
        start = here.stop
        if start == q.shape[-2]:
            return torch.cat(rows, dim=-2), past
    raise AssertionError


@pytest.mark.parametrize("spelling", LENGTH_FREE)
def test_tokens_decoded_a_few_at_a_time_get_what_the_definition_gives(spelling: str) -> None:
    mechanism = mechanism_named(spelling)
    q, k, v, extras = drawn(mechanism, LENGTH)
    found, _ = in_runs(mechanism, q, k, v, extras)
    expected = mechanism.definition(q, k, v, causal=True, **extras)
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("spelling", LENGTH_FREE)
def test_absent_tokens_are_as_if_they_had_never_been(spelling: str) -> None:
    mechanism = mechanism_named(spelling)
    q, k, v, extras = drawn(mechanism, LENGTH)
    present = torch.rand(2, LENGTH, generator=torch.Generator().manual_seed(1)) > 0.35
    present[1, :4] = False
    spoiled_k, spoiled_v = (x.masked_fill(~present[:, None, :, None], torch.nan) for x in (k, v))
    if not mechanism.takes_present or mechanism.token_extras:  # who computes extras from keys sees the spoiled
        spoiled_k, spoiled_v = k, v
    found, past = in_runs(mechanism, q, spoiled_k, spoiled_v, extras, present)
    assert past.lengths.tolist() == present.sum(-1).tolist()
    for element, there in enumerate(present):
        alone = [x[element : element + 1, :, there] for x in (q, k, v)]
        given = {
            name: x[element : element + 1, :, there] if name in mechanism.token_extras else x
            for name, x in extras.items()
        }
        expected = mechanism.definition(*alone, causal=True, **given)
        torch.testing.assert_close(found[element : element + 1, :, there], expected, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_cache_holds_exactly_the_predicted_bytes(spelling: str) -> None:
    """Of all its tensors, after several numbers of tokens; in three formats, with rope and convolution."""
    shapes: list[tuple[torch.dtype, int, dict[str, Any]]] = [
        (torch.float64, 1, {}),
        (torch.float32, 3, {"rope": 100.0, "conv": 3, "key_width": 6}),
        (torch.bfloat16, 2, {}),
    ]
    for dtype, heads, options in shapes:
        torch.manual_seed(0)
        made = Attention(spelling, 4 * heads, heads, **options).to(dtype)
        x, cache, start = torch.randn(1, 15, 4 * heads, dtype=dtype), None, 0
        with torch.no_grad():
            for size in (1, 2, 11, 1):
                _, cache = made(x[:, start : start + size], cache=cache)
                start += size
                assert bytes_of(cache.tensors()) == made.state_bytes(start), (dtype, start)


@pytest.mark.parametrize(("dtype", "bound"), [(torch.float32, 1e-4), (torch.bfloat16, 0.06)])
@pytest.mark.parametrize("spelling", ["softmax", "gla", *BOUNDED, *FOLDED])
def test_decoding_in_other_formats_is_the_whole_within_rounding(
    spelling: str, dtype: torch.dtype, bound: float
) -> None:
    torch.manual_seed(0)
    made = Attention(spelling, 12, HEADS).to(dtype)
    x, cache, rows = torch.randn(2, LENGTH, 12, dtype=dtype), None, []
    with torch.no_grad():
        whole = made(x)[0]
        for t in range(LENGTH):
            out, cache = made(x[:, t : t + 1], cache=cache)
            rows.append(out)
    assert rows[0].dtype is dtype
    torch.testing.assert_close(torch.cat(rows, dim=1), whole, rtol=bound, atol=bound)


@pytest.mark.parametrize("spelling", BOUNDED)
def test_a_cache_keeps_what_can_still_be_read_and_nothing_else(spelling: str) -> None:
    """A token is kept if and only if its value moves what some later token gets, whatever comes."""
    mechanism = mechanism_named(spelling)
    q, k, v, extras = drawn(mechanism, 3 * LENGTH, batch=1)
    v.requires_grad_()
    out = mechanism.definition(q, k, v, causal=True, **extras)
    read = torch.stack(
        [
            torch.autograd.grad(out[..., t, :].sum(), v, retain_graph=True)[0][0, 0].abs().sum(-1) > 0
            for t in range(3 * LENGTH)
        ]
    )
    assert read.any()
    for tokens in (1, 4, 9, 16, LENGTH):
        later = read[tokens:, :tokens].any(0).nonzero()[:, 0].tolist()
        kept = [place for part in mechanism.readable(tokens, "values") for place in part]
        assert kept == later, (tokens, kept, later)
    assert mechanism.decoding_memory(10**15, HEADS, WIDTH, WIDTH, torch.float32).kind == WINDOW
    sizes = {mechanism.decoding_memory(96 * n, HEADS, WIDTH, WIDTH, torch.float32).bytes for n in (2, 30, 10**15)}
    assert len(sizes) == 1, "a cache that does not grow"


@pytest.mark.parametrize("spelling", ["strided:stride=3", "block-random:block=2", "block-routing:block=2,k=2"])
def test_what_may_be_read_at_any_time_is_never_dropped(spelling: str) -> None:
    mechanism = mechanism_named(spelling)
    assert mechanism.readable(10**9) == (range(10**9),)
    assert mechanism.decoding_memory(10**9, 1, 1, 1, torch.float32).kind == CACHE


@pytest.mark.parametrize(("spelling", "inner"), FOLDED.items())
def test_positions_around_a_fixed_state_need_no_more_than_it(spelling: str, inner: str) -> None:
    mechanism, alone = mechanism_named(spelling), mechanism_named(inner)
    assert mechanism.fixed_state
    for tokens in (7, 10**6):
        for dtype in (torch.bfloat16, torch.float64):
            kept = mechanism.decoding_memory(tokens, HEADS, WIDTH, WIDTH, dtype)
            assert kept == alone.decoding_memory(tokens, HEADS, WIDTH, WIDTH, dtype)
            assert kept.kind == STATE


def test_decayed_sums_bear_many_tokens() -> None:
    """Neither overflow nor loss of digits, though slope times place reaches 3,000."""
    mechanism = mechanism_named("alibi:inner=elu")
    q, k, v = torch.randn(3, 1, 1, 3000, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    slopes, past = torch.ones(1, dtype=torch.float64), None
    for here in (slice(0, 2990), *(slice(t, t + 1) for t in range(2990, 3000))):
        out, past = mechanism.decode(past, NewTokens(*(x[..., here, :] for x in (q, k, v)), extras={"slopes": slopes}))
    near = [x[..., 2900:, :] for x in (q, k, v)]  # e^-100 of what is older is left
    expected = mechanism.definition(*near, causal=True, slopes=slopes)[..., -1:, :]
    torch.testing.assert_close(out, expected, rtol=1e-12, atol=1e-13)
    assert past.state_bytes == mechanism.decoding_memory(3000, 1, 4, 4, torch.float64).layer_bytes


def test_a_windowed_cache_has_memory_of_its_own() -> None:
    """A view of the prompt's keys would keep all of them alive."""
    _, cache = Attention("window:size=4", 12, 3)(torch.randn(1, 500, 12))
    for kept in (cache.keys, cache.values):
        assert kept.untyped_storage().nbytes() == bytes_of([kept]) == 3 * 12 * 4


def test_a_model_carries_what_its_blocks_do() -> None:
    model = Model("window:size=4", 12, 3, depth=2, outputs=5, vocabulary=7, conv=2)
    _, caches = model(torch.zeros(1, 40, dtype=torch.long))
    assert model.state_bytes(40) == sum(each.state_bytes for each in caches) == model.state_bytes(4000)
