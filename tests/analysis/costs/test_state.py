"""What is kept from token to token, against literal counts; operations in the same setting."""

from __future__ import annotations

import pytest
import torch

from separatrix.analysis.costs.cost import count_operations, decoding_state
from separatrix.analysis.laws.costs import counted_lengths, fit_operations, operations_law
from separatrix.mechanisms import Causality, examples, mechanism_named
from separatrix.mechanisms.decoding import CACHE, STATE, WINDOW

HEADS, WIDTH = 3, 8
STATES = [each for each in examples() if each.family == "recurrent"]
FEATURES = [each for each in examples() if each.family == "feature map"]


@pytest.mark.parametrize("mechanism", STATES, ids=lambda each: each.spelled)
def test_a_state_is_as_large_after_300_tokens_as_it_is_predicted_after_a_million(mechanism):
    some = torch.rand(1, HEADS, 300, WIDTH) / WIDTH
    state = mechanism.init_state(some, some)
    for t in range(300):
        state, _ = mechanism.step(state, *(some[..., t, :] for _ in "qkv"))
    stepped = sum(part.numel() * part.element_size() for part in state)
    assert decoding_state(mechanism, 10**6, HEADS, WIDTH, torch.float32).bytes == stepped
    assert decoding_state(mechanism, 10**6, HEADS, WIDTH, torch.bfloat16).bytes == stepped, "float32 at least"


def test_a_state_that_grows_is_followed_until_it_does_not():
    """By the closed form, and by the general one, which reads tokens until nothing grows."""
    mechanism = mechanism_named("window-linear:size=100")
    one = torch.zeros(1, HEADS, 1, WIDTH)
    for tokens in (1, 30, 99, 100, 101, 10**6):
        held = min(tokens, 100)
        literal = 4 * HEADS * (WIDTH * (WIDTH + 1) + held * 2 * WIDTH) + 4 * held
        assert decoding_state(mechanism, tokens, HEADS, WIDTH, torch.float32).bytes == literal
        followed = super(type(mechanism), mechanism).example_state(tokens, one, one)
        assert sum(part.numel() * 4 for part in followed) == literal


@pytest.mark.parametrize(("dtype", "size"), [(torch.bfloat16, 2), (torch.float32, 4), (torch.float64, 8)])
def test_a_cache_has_a_key_and_a_value_for_every_token_that_can_still_be_read(dtype, size):
    per_token = sum(size for _ in range(HEADS) for _ in range(2) for _ in range(WIDTH))
    found = decoding_state(mechanism_named("softmax"), 50, HEADS, WIDTH, dtype)
    assert (found.bytes, found.kind) == (50 * per_token, CACHE)
    found = decoding_state(mechanism_named("window:size=7"), 50, HEADS, WIDTH, dtype)
    assert (found.bytes, found.kind) == (6 * per_token, WINDOW), "the next token is the seventh"
    assert decoding_state(mechanism_named("window:size=7"), 4, HEADS, WIDTH, dtype).bytes == 4 * per_token
    found = decoding_state(mechanism_named("window-global:size=7,globals=3"), 50, HEADS, WIDTH, dtype)
    assert found.bytes == (3 + 6) * per_token


def test_extras_of_each_token_are_kept_with_its_key():
    gate, wide = 4, 4  # learned in float32, whatever the format of keys
    assert decoding_state(mechanism_named("fox"), 50, HEADS, WIDTH, torch.bfloat16).bytes == 50 * HEADS * (
        2 * WIDTH * 2 + gate
    )
    assert decoding_state(mechanism_named("path"), 50, HEADS, WIDTH, torch.bfloat16).bytes == 50 * HEADS * (
        2 * WIDTH * 2 + WIDTH * wide + gate
    )
    pairs = mechanism_named("simplicial:window=9,second_window=4")
    assert decoding_state(pairs, 50, HEADS, WIDTH, torch.bfloat16).bytes == HEADS * WIDTH * (8 * 2 * 2 + 3 * 2 * wide)


@pytest.mark.parametrize("mechanism", FEATURES, ids=lambda each: each.spelled)
def test_feature_maps_need_no_more_than_sums_of_the_shape_of_their_features(mechanism):
    found = decoding_state(mechanism, 10**6, HEADS, WIDTH, torch.bfloat16)
    if not mechanism.permutation_equivariant:
        assert found.kind == CACHE
        return
    features = mechanism.compute_features(torch.rand(1, 1, 1, WIDTH), "key").shape[-1]
    assert found.kind == STATE
    assert found.bytes >= HEADS * features * (WIDTH + 1) * 4
    assert decoding_state(mechanism, 2 * 10**6, HEADS, WIDTH, torch.bfloat16) == found


@pytest.mark.parametrize("mechanism", examples(), ids=lambda each: each.spelled)
def test_operations_and_what_is_kept_are_about_the_same_causal_use(mechanism):
    """From a fixed state or a window a token costs the same at every length, so a pass is not quadratic."""
    exponent, _ = fit_operations(mechanism, 131_072, 16)
    state = decoding_state(mechanism, 131_072, 1, 16, torch.float32)
    assert exponent is not None
    if state.kind in (STATE, WINDOW):
        assert exponent < 1.2, state
    if exponent > 1.5:
        assert state.kind == CACHE


def test_linear_attention_is_linear_where_it_is_causal():
    counted = count_operations(mechanism_named("linear"), (256, 512, 1024), 16)
    assert counted[1024] == 2 * counted[512] == 4 * counted[256]
    assert counted == count_operations(mechanism_named("identity-features"), (256, 512, 1024), 16)
    assert decoding_state(mechanism_named("linear"), 131_072, 12, 64, torch.bfloat16).bytes == 12 * 64 * 65 * 4


def test_who_has_no_causal_form_is_counted_without():
    without = [each for each in examples() if each.causality is Causality.NEVER]
    assert {each.name for each in without} == {"linformer", "nystrom"}
    for mechanism in without:
        assert all(count_operations(mechanism, (64, 128), 16).values())


def test_lengths_are_those_of_the_window_inside():
    inside, plain = (mechanism_named(name) for name in ("rotary:inner=window:size=512", "window:size=512"))
    assert counted_lengths(inside, 131_072) == counted_lengths(plain, 131_072) == (2048, 4096, 8192)
    assert counted_lengths(mechanism_named("favor:features=4096"), 131_072) == (256, 512, 1024)


def test_operations_grow_as_their_sums_do():
    counted = count_operations(mechanism_named("softmax"), (32, 64), 16)
    assert counted == {n: 2 * 2 * n * n * 16 for n in (32, 64)}, "two products, a product and a sum each"
    assert operations_law(mechanism_named("delta"), (256, 512, 1024)).exponent == pytest.approx(1, abs=1e-6)
    assert operations_law(mechanism_named("softmax"), (256, 512, 1024)).exponent == pytest.approx(2, abs=1e-6)
