"""What is kept from token to token, against literal counts."""

from __future__ import annotations

import pytest
import torch

from separatrix.contract.lattice import EDGES, with_state
from separatrix.costs.cost import operations
from separatrix.costs.state import CACHE, STATE, SUMS, kept, state_bytes
from separatrix.laws.costs import operations_law
from separatrix.mechanisms import Causality, examples, mechanism_named

HEADS, WIDTH = 3, 8
STATES = [each for each in examples() if each.family == "recurrent"]
FEATURES = [each for each in examples() if each.family == "feature map"]


@pytest.mark.parametrize("mechanism", STATES, ids=lambda each: each.spelled)
def test_a_state_is_as_large_after_300_tokens_as_it_is_said_to_be_after_a_million(mechanism):
    some = torch.rand(1, HEADS, 300, WIDTH) / WIDTH
    stepped = state_bytes(mechanism, (300,), some, some, some)[300]
    assert kept(mechanism, 10**6, HEADS, WIDTH, torch.float32).bytes == stepped
    assert kept(mechanism, 10**6, HEADS, WIDTH, torch.bfloat16).bytes == stepped, "float32 at least"


def test_a_state_that_grows_is_followed_until_it_does_not():
    mechanism = mechanism_named("window-linear:size=100")
    some = torch.rand(1, HEADS, 400, WIDTH)
    stepped = state_bytes(mechanism, (30, 400), some, some, some)
    assert kept(mechanism, 10**6, HEADS, WIDTH, torch.float32).bytes == stepped[400]
    assert kept(mechanism, 30, HEADS, WIDTH, torch.float32).bytes == stepped[30] < stepped[400]


@pytest.mark.parametrize(("dtype", "size"), [(torch.bfloat16, 2), (torch.float32, 4), (torch.float64, 8)])
def test_a_cache_has_a_key_and_a_value_for_every_token_and_head(dtype, size):
    literal = sum(size for _ in range(50) for _ in range(HEADS) for _ in range(2) for _ in range(WIDTH))
    found = kept(mechanism_named("softmax"), 50, HEADS, WIDTH, dtype)
    assert (found.bytes, found.kind) == (literal, CACHE)
    seen = kept(mechanism_named("window:size=7"), 50, HEADS, WIDTH, dtype)
    assert seen.bytes == literal * 7 // 50


@pytest.mark.parametrize("mechanism", FEATURES, ids=lambda each: each.spelled)
def test_feature_maps_need_no_more_than_sums_of_the_shape_of_their_features(mechanism):
    found = kept(mechanism, 10**6, HEADS, WIDTH, torch.bfloat16)
    if not mechanism.permutation_equivariant:
        assert found.kind == CACHE
        return
    features = mechanism.features(torch.rand(1, 1, 1, WIDTH), "key").shape[-1]
    assert found.kind == SUMS
    assert found.bytes >= HEADS * features * (WIDTH + 1) * 4
    assert kept(mechanism, 2 * 10**6, HEADS, WIDTH, torch.bfloat16) == found


@pytest.mark.parametrize("name", ["window:size=5", "simplicial:window=6,second_window=3"])
def test_a_query_sees_what_is_within_reach_and_nothing_before_it(name):
    mechanism = mechanism_named(name)
    q, k, v = torch.rand(3, 1, 1, 20, 4, dtype=torch.float64)
    out = mechanism(q, k, v, causal=True)[..., -1, :]
    for back in range(20):
        other = v.clone()
        other[..., 19 - back, :] += 1
        moved = not torch.equal(mechanism(q, k, other, causal=True)[..., -1, :], out)
        assert moved == (back < mechanism.reach), back


def test_who_else_gives_the_same_from_a_state_does_so_and_has_one():
    named = [edge.general for edge in EDGES if with_state(edge.general)]
    assert {"linear", "identity-features:normalised=no"} <= {*named}
    q, k, v = torch.rand(3, 1, 2, 70, 4, dtype=torch.float64)
    for name in named:
        one, other = mechanism_named(name), mechanism_named(with_state(name))
        assert kept(other, 99, 1, 4, torch.float32).kind == STATE
        if one.causality is not Causality.NEVER:
            torch.testing.assert_close(one(q, k, v, causal=True), other(q, k, v, causal=True))


def test_operations_grow_as_their_sums_do():
    counted = operations(mechanism_named("softmax"), (32, 64), 16)
    assert counted == {n: 2 * 2 * n * n * 16 for n in (32, 64)}, "two products, a product and a sum each"
    assert operations_law(mechanism_named("delta"), (256, 512, 1024)).exponent == pytest.approx(1, abs=1e-6)
    assert operations_law(mechanism_named("softmax"), (256, 512, 1024)).exponent == pytest.approx(2, abs=1e-6)
