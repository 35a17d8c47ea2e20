"""Attention as a layer: padded, cached, differentiated, saved, and equal for a seed, for every mechanism."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from separatrix.core.parameters import UsageError
from separatrix.layers import Attention, Cache
from separatrix.layers.parts import RMSNorm, ShortConvolution, rotate
from separatrix.mechanisms import MECHANISMS, Causality, examples, mechanism_named
from separatrix.mechanisms.features.hedgehog import Hedgehog

SPELLINGS = [
    *(each.spelled for each in examples()),
    "window:size=3",
    "window-global:size=3,globals=2",
    "strided:stride=3",
    "window-linear:size=3",
    "topk:k=2",
    "causal-linear:normalised=yes",
    "hedgehog:softmax=yes",
]
CAUSAL = [each for each in SPELLINGS if mechanism_named(each).causality is not Causality.NEVER]
CACHED = [each for each in CAUSAL if mechanism_named(each).length_free]
LEARNING = [each for each in SPELLINGS if mechanism_named(each).extras]
OPTIONS: dict[str, Any] = {"rope": 10000, "conv": 3, "qk_norm": True}
NARROW, WIDE = {**OPTIONS, "key_width": 2}, {"key_width": 6}
WIDTH, HEADS, LONGEST = 12, 3, 16


def layer(spelling: Any, seed: int = 0, double: bool = True, **options: Any) -> Attention:
    torch.manual_seed(seed)
    if isinstance(spelling, str):
        named = mechanism_named(spelling)
        options = {"causal": named.causality is not Causality.NEVER, **options}
        if named.name == "linformer":
            options["length"] = LONGEST
    made = Attention(spelling, WIDTH, HEADS, **options)
    return made.double() if double else made


def tokens(n: int = 9, batch: int = 2, seed: int = 0) -> Tensor:
    return torch.randn(batch, n, WIDTH, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def same(ours: Tensor, theirs: Tensor, bound: float = 1e-8) -> None:
    torch.testing.assert_close(ours, theirs, rtol=bound, atol=bound)


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("options", [{}, OPTIONS, NARROW, WIDE], ids=["plain", "all", "narrow", "wide"])
def test_it_is_projections_around_the_mechanism(spelling: str, options: dict[str, Any]) -> None:
    """Against the same computation, written out for each part."""
    made, x, width = layer(spelling, **options), tokens(), options.get("key_width", 4)
    given = x @ made.project.weight.T
    if made.convolve is not None:
        taps, mixed = made.convolve.weight[:, 0], torch.zeros_like(given)
        for t in range(9):
            for back in range(min(3, t + 1)):
                mixed[:, t] += taps[:, 2 - back] * given[:, t - back]
        given = mixed
    sizes = (HEADS * width, HEADS * width, WIDTH)
    q, k, v = (part.reshape(2, 9, HEADS, -1).transpose(1, 2) for part in given.split(sizes, dim=-1))
    if made.rope is not None:
        q, k = (x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt() for x in (q, k))
        half = width // 2
        turns = torch.polar(
            torch.ones(9, half, dtype=torch.float64),
            torch.arange(9.0, dtype=torch.float64)[:, None] * torch.tensor([1.0, 0.01][:half], dtype=torch.float64),
        )
        q, k = (torch.complex(x[..., :half], x[..., half:]) * turns for x in (q, k))
        q, k = (torch.cat([x.real, x.imag], dim=-1) for x in (q, k))
    extras = {name: module(x) for name, module in made.learned.items()}
    assert set(extras) == {each.name for each in made.mechanism.extras}
    out = made.mechanism.definition(q / width**0.5, k, v, causal=made.causal, **extras)
    out = out / (out.square().mean(-1, keepdim=True) + 1e-6).sqrt()
    same(made(x)[0], out.transpose(1, 2).reshape(2, 9, WIDTH) @ made.back.weight.T, 1e-6)


@pytest.mark.parametrize("spelling", CACHED)
@pytest.mark.parametrize("options", [{}, OPTIONS, NARROW], ids=["plain", "all", "narrow"])
def test_prompt_and_steps_are_the_whole(spelling: str, options: dict[str, Any]) -> None:
    made, x = layer(spelling, **options), tokens(12)
    whole, after = made(x)
    cache, rows = None, []
    for here in (slice(0, 5), slice(5, 9), slice(9, 10), slice(10, 11), slice(11, 12)):
        out, cache = made(x[:, here], cache=cache)
        rows.append(out)
    same(torch.cat(rows, dim=1), whole, 1e-7)
    assert cache.lengths.tolist() == [12, 12]
    assert cache.state_bytes == after.state_bytes
    for one, other in zip(cache.tensors(), after.tensors(), strict=True):
        same(one, other, 1e-7)


@pytest.mark.parametrize("spelling", sorted(set(CAUSAL) - set(CACHED)))
def test_who_minds_the_length_reads_a_token_as_the_last_so_far(spelling: str) -> None:
    made, x = layer(spelling), tokens(12)
    out, cache = made(x[:, :7])
    same(out, made(x[:, :7])[0], 1e-12)
    for t in range(7, 12):
        out, cache = made(x[:, t : t + 1], cache=cache)
        same(out[:, 0], made(x[:, : t + 1])[0][:, -1], 1e-7)
        assert t == 11 or not torch.allclose(out[:, 0], made(x)[0][:, t])


@pytest.mark.parametrize("spelling", CACHED)
def test_a_padded_prompt_and_then_steps_are_each_row_alone(spelling: str) -> None:
    """Absent tokens are as if they had never been, for places, convolution and state; NaN stands there."""
    made, x = layer(spelling, **OPTIONS), tokens(12)
    present = torch.tensor([[True] * 12, [False] * 3 + [True] * 2 + [False, True, False] + [True] * 4])
    spoiled = x.masked_fill(~present[..., None], torch.nan)
    cache, rows = None, []
    for here in (slice(0, 5), slice(5, 9), slice(9, 10), slice(10, 12)):
        out, cache = made(spoiled[:, here], present[:, here], cache)
        rows.append(out)
    found = torch.cat(rows, dim=1)
    same(found, made(spoiled, present)[0], 1e-7)
    for element, there in enumerate(present):
        alone, _ = made(x[element : element + 1, there])
        same(found[element : element + 1, there], alone, 1e-7)
    assert (found[~present] == 0).all()
    assert cache.lengths.tolist() == [12, 7]


@pytest.mark.parametrize("spelling", [each for each in SPELLINGS if each not in CAUSAL or "softmax" in each])
def test_padding_without_causal(spelling: str) -> None:
    made, x = layer(spelling, causal=False), tokens()
    present = torch.tensor([[True] * 9, [True] * 6 + [False] * 3])
    found, cache = made(x, present)
    assert cache is None
    same(found[1:, :6], made(x[1:, :6])[0], 1e-7)


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("last", [1, 4])
def test_the_last_tokens_get_alone_what_they_get_among_all(spelling: str, last: int) -> None:
    made, x = layer(spelling, **OPTIONS), tokens()
    present = torch.ones(2, 9, dtype=torch.bool)
    present[0, 3], present[1, :2] = False, False
    for there in (None, present):
        (whole, after), (some, then) = made(x, there), made(x, there, last=last)
        same(some, whole[:, 9 - last :])
        for one, other in zip(after.tensors() if after else (), then.tensors() if then else (), strict=True):
            same(one, other)


def test_no_more_can_be_last_than_there_are() -> None:
    for last in (10, -1, True, 1.0):
        with pytest.raises(UsageError, match=f"last={last} must be a number of tokens, from 0 to the 9 of x"):
            layer("softmax")(tokens(), last=last)


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_no_tokens_change_nothing(spelling: str) -> None:
    """Neither before the others nor between them, nor in a batch of none."""
    made, x = layer(spelling, conv=3), tokens()
    whole, _ = made(x)
    out, cache = made(x[:, :0])
    assert out.shape == (2, 0, WIDTH)
    assert made(x[:0], torch.ones(0, 9, dtype=torch.bool))[0].shape == (0, 9, WIDTH)
    assert made.causal is False or made.state_bytes(0) == 0
    if spelling in CACHED:
        early, cache = made(x[:, :4], cache=cache)
        none, cache = made(x[:, 4:4], torch.ones(2, 0, dtype=torch.bool), cache)
        late, _ = made(x[:, 4:], cache=cache)
        same(torch.cat([early, none, late], dim=1), whole, 1e-7)


@pytest.mark.parametrize("spelling", CAUSAL)
def test_no_token_hears_the_future(spelling: str) -> None:
    made, x = layer(spelling, **OPTIONS), tokens()
    other = x.clone()
    other[:, 6:] = tokens(3, seed=1)
    found, changed = made(x)[0], made(other)[0]
    same(found[:, :6], changed[:, :6])
    assert not torch.allclose(found[:, 8], changed[:, 8])


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_gradients_reach_every_parameter(spelling: str) -> None:
    made = layer(spelling, **OPTIONS)
    for weight in made.parameters():
        if not weight.any():  # what starts at 0, as in RWKV-7, hides what it is multiplied by
            torch.nn.init.normal_(weight, std=0.1)
    out, _ = made(tokens())
    assert out.isfinite().all()
    out.square().sum().backward()
    for name, weight in made.named_parameters():
        assert weight.grad is not None, name
        assert weight.grad.isfinite().all(), name
        if spelling != "hardmax" or name not in ("query_norm.weight", "key_norm.weight"):  # steps are flat
            assert (weight.grad != 0).any(), name


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_initial_weights_are_equal_for_a_seed(spelling: str) -> None:
    """Whatever the mechanism, and so is what is drawn after it."""
    reference = layer("softmax", **OPTIONS).state_dict()
    expected = torch.rand(3)
    found = layer(spelling, **OPTIONS).state_dict()
    assert torch.equal(torch.rand(3), expected)
    assert [name for name in found if not name.startswith(("learned", "attend", "own"))] == [*reference]
    for name, weight in reference.items():
        assert torch.equal(found[name], weight)
    names = list(found)
    assert names[: len(reference)] == [*reference]


def test_other_seeds_have_other_extras() -> None:
    one, other, again = (layer("gla", seed).state_dict()["learned.log_gates.up.weight"] for seed in (0, 1, 0))
    assert torch.equal(one, again)
    assert not torch.equal(one, other)


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_state_dict_is_all_there_is(spelling: str) -> None:
    made, other = layer(spelling, 0, **OPTIONS), layer(spelling, 1, **OPTIONS)
    x = tokens()
    assert not torch.equal(made(x)[0], other(x)[0])
    other.load_state_dict(made.state_dict())
    assert torch.equal(made(x)[0], other(x)[0])
    assert torch.equal(deepcopy(made)(x)[0], made(x)[0])


@pytest.mark.parametrize("spelling", CAUSAL)
def test_autocast_gives_its_dtype_and_a_close_result(spelling: str) -> None:
    made, x = layer(spelling, double=False, **OPTIONS), tokens().float()
    whole, _ = made(x)
    with torch.autocast("cpu", torch.bfloat16):
        out, cache = made(x[:, :8])
        last, _ = made(x[:, 8:], cache=cache)
    assert (out.dtype, last.dtype) == (torch.bfloat16, torch.bfloat16)
    found = torch.cat([out, last], dim=1).float()
    assert found.isfinite().all()
    if spelling in ("softmax", "elu", "gla", "delta", "retention", "window:size=3"):
        assert (found - whole).norm() < 0.05 * whole.norm()


@pytest.mark.parametrize("spelling", ["softmax", "gated-delta", "elu"])
def test_bfloat16_layers(spelling: str) -> None:
    made = layer(spelling, double=False, **OPTIONS).bfloat16()
    out, cache = made(tokens().bfloat16())
    assert out.dtype is torch.bfloat16
    assert made(tokens(1).bfloat16(), cache=cache)[0].dtype is torch.bfloat16


def test_queries_are_scaled_by_the_layer() -> None:
    x = tokens()
    plain, scaled = layer("softmax", scale=1.0), layer("softmax")
    assert scaled.scale == 0.5
    with torch.no_grad():
        plain.project.weight[:WIDTH] *= 0.5
    same(plain(x)[0], scaled(x)[0])


def test_the_output_norm_can_be_left_out() -> None:
    made, x = layer("causal-linear", out_norm=False), tokens()
    assert "out_norm.weight" not in made.state_dict()
    q, k, v = (
        part.reshape(2, 9, HEADS, 4).transpose(1, 2) for part in (x @ made.project.weight.T).split(WIDTH, dim=-1)
    )
    out = (q @ k.mT / 2).tril() @ v
    same(made(x)[0], out.transpose(1, 2).reshape(2, 9, WIDTH) @ made.back.weight.T)


@pytest.mark.parametrize("spelling", ["elu", "hedgehog", "identity-features:normalised=no"])
def test_gradients_pass_through_the_sums_of_a_feature_map_wherever_they_are_first_looked_at(spelling: str) -> None:
    made, x = layer(spelling), tokens().requires_grad_()
    (wanted,) = torch.autograd.grad(made(x)[0][:, 8:].square().sum(), x)
    _, cache = made(x[:, :8])
    with torch.no_grad():
        assert cache.state_bytes == 2 * made.state_bytes(8)
    (found,) = torch.autograd.grad(made(x[:, 8:], cache=cache)[0].square().sum(), x)
    same(found, wanted, 1e-7)


def test_what_is_carried_is_predicted() -> None:
    for spelling in CACHED:
        made = layer(spelling)
        sizes = [made.state_bytes(n) for n in (64, 65, 300)]
        if made.mechanism.fixed_state:
            assert sizes[0] == sizes[2], spelling
        elif made.mechanism.name in ("window", "window-global", "simplicial"):
            assert sizes[2] <= 8 + 67 * 2 * WIDTH * 8, spelling
        else:
            assert sizes[1] - sizes[0] >= 2 * WIDTH * 8, spelling
    softmax = layer("softmax", conv=3)
    assert softmax.state_bytes(10) == 8 + 10 * 2 * WIDTH * 8 + 2 * 3 * WIDTH * 8
    assert softmax.parameter_count == 4 * WIDTH**2 + 3 * 3 * WIDTH + 4
    assert layer("elu", key_width=2).state_bytes(10) == 8 + HEADS * 2 * (4 + 1) * 8
    narrow = layer("causal-linear", key_width=2)
    assert narrow.state_bytes(10) == 8 + HEADS * 2 * 4 * 8
    assert narrow.parameter_count == 2 * HEADS * 2 * WIDTH + 2 * WIDTH**2 + 4
    with pytest.raises(UsageError, match="not causal has no state"):
        layer("softmax", causal=False).state_bytes(3)


class Weighted(nn.Module):
    """Softmax with a learned temperature, as a user writes it."""

    def __init__(self, sharpness: float = 1.0) -> None:
        super().__init__()
        self.sharpness = nn.Parameter(torch.tensor(sharpness))

    def forward(self, q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
        logits = self.sharpness * (q @ k.mT)
        if causal:
            logits = logits.masked_fill(torch.ones_like(logits).triu(1) > 0, -torch.inf)
        return logits.softmax(-1) @ v


def test_a_module_is_a_part_of_the_layer_and_trains() -> None:
    mine = Weighted(2.0)
    made, x = layer(mine), tokens()
    assert made.attend is mine
    assert made.state_dict()["attend.sharpness"] == 2
    before = made(x)[0]
    before.square().sum().backward()
    assert mine.sharpness.grad is not None
    assert mine.sharpness.grad != 0
    with torch.no_grad():
        mine.sharpness += 1
    after, _ = made(x)
    assert not torch.allclose(before, after)
    out, _ = made(x[:, 8:], cache=made(x[:, :8])[1])
    same(out, after[:, 8:])
    copied = deepcopy(made)
    assert torch.equal(copied(x)[0], after)
    assert copied.attend is copied.mechanism.attend
    assert copied.attend is not mine
    softmax = layer("softmax")
    for name, weight in softmax.state_dict().items():
        assert torch.equal(made.state_dict()[name], weight)
    with torch.no_grad():
        mine.sharpness.fill_(1)
    same(made(x)[0], softmax(x)[0])


def test_a_class_draws_from_a_generator_of_its_own() -> None:
    class Drawn(Weighted):
        def __init__(self) -> None:
            super().__init__(float(torch.rand(())))

    assert torch.equal(layer(Drawn).back.weight, layer("softmax").back.weight)


def test_a_parameter_of_a_mechanism_trains() -> None:
    weight = nn.Parameter(torch.eye(4, dtype=torch.float64))
    made = layer(Hedgehog.with_weight(weight))
    assert any(each is weight for each in made.parameters())
    made(tokens())[0].sum().backward()
    assert weight.grad is not None


def test_a_mechanism_may_be_named_as_module_and_attribute() -> None:
    torch.manual_seed(0)
    made = Attention(f"{MECHANISMS['softmax'].__module__}:Softmax", WIDTH, HEADS).double()
    assert torch.equal(made(tokens())[0], layer("softmax")(tokens())[0])


@pytest.mark.parametrize(
    ("mechanism", "width", "heads", "options", "complaint"),
    [
        ("softmax", 10, 3, {}, "width=10 cannot be divided among heads=3; it must be a multiple"),
        ("softmax", 10, 2, {"rope": 10000}, "width=10 with heads=2 leaves a head 5, which is odd"),
        ("softmax", 12, 3, {"rope": 10000, "key_width": 3}, "pairs of channels; key_width=3 is odd"),
        ("softmax", 12, 3, {"key_width": 0}, "key_width=0 must be a whole number, 1 or more"),
        ("softmax", 12, 3, {"rope": True}, "rope=True is no base of rotary positions"),
        ("softmax", 12, 3, {"rope": -1.0}, "rope=-1.0 is no base"),
        ("softmax", 12, 3, {"rope": float("inf")}, "rope=inf is no base"),
        ("softmax", 12, 3, {"scale": float("nan")}, "scale=nan is no number to multiply queries by"),
        ("softmax", 12, 3, {"scale": "wide"}, "scale=wide is no number"),
        ("softmax", 12, 3, {"causal": "no"}, "causal=no must be True or False"),
        ("softmax", 12, 0, {}, "heads=0 must be a whole number, 1 or more"),
        ("softmax", 12, 3, {"conv": 0}, "conv=0 must be a whole number, 1 or more"),
        ("softmx", 12, 3, {}, "softmx.*did you mean softmax"),
        ("linformer", 12, 3, {}, "linformer has no causal form; make the layer with causal=False"),
        ("linformer", 12, 3, {"causal": False}, "linformer learns E for each token; give the maximal"),
        ("delta", 12, 3, {"causal": False}, "delta only looks back; make the layer with causal=True"),
        (3, 12, 3, {}, "int is not callable"),
    ],
)
def test_what_is_no_layer_is_said_in_one_line(
    mechanism: Any, width: int, heads: int, options: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(UsageError, match=complaint) as told:
        Attention(mechanism, width, heads, **options)
    assert "\n" not in str(told.value)


def test_what_is_no_input_is_said_in_one_line() -> None:
    made, x = layer("softmax"), tokens()
    with pytest.raises(UsageError, match=r"x must have shape \(batch, tokens, 12\), not float64 of shape"):
        made(x[..., :5])
    for present in (torch.ones(2, 8, dtype=torch.bool), torch.ones(2, 9)):
        with pytest.raises(UsageError, match=r"present must be bool of shape \(2, 9\), batch and tokens, not"):
            made(x, present)
    _, cache = made(x)
    with pytest.raises(UsageError, match="cache must be what this layer returned for a batch of 1"):
        made(x[:1], cache=cache)
    other = layer("gla")(x)[1]
    shaped = Attention("softmax", WIDTH, 2).double()(x)[1]
    for wrong in (other, shaped, layer("softmax", conv=3)(x)[1]):
        with pytest.raises(UsageError, match="not one of another mechanism or sizes"):
            made(x, cache=wrong)
    with pytest.raises(UsageError, match="not one of another mechanism or sizes"):
        layer("gla")(x, cache=cache)
    with pytest.raises(UsageError, match="not causal has no cache"):
        layer("softmax", causal=False)(x, cache=cache)
    with pytest.raises(UsageError, match="x has 17 tokens; this layer was made for length=16"):
        layer("linformer")(tokens(17))


def test_a_convolution_skips_absent_tokens() -> None:
    torch.manual_seed(0)
    mix, x = ShortConvolution(4, 3).double(), torch.randn(1, 7, 4, dtype=torch.float64)
    present = torch.tensor([[True, False, True, True, False, True, False]])
    found, tail = mix(x.masked_fill(~present[..., None], 0), None, present)
    alone, last = mix(x[:, present[0]])
    same(found[:, present[0]], alone)
    assert torch.equal(tail, last)
    assert torch.equal(tail, x[:, [3, 5]])
    nothing, kept = mix(x[:, :0], tail)
    assert nothing.shape == (1, 0, 4)
    assert torch.equal(kept, tail)


def test_rotation_depends_on_differences_of_places_alone() -> None:
    q, k = torch.randn(2, 1, 1, 6, 4, dtype=torch.float64)
    places = torch.arange(6)[None]
    near, far = (rotate(q, places + n, 100.0) @ rotate(k, places + n, 100.0).mT for n in (0, 1000))
    same(near, far)
    assert not torch.allclose(near, q @ k.mT)


def test_norms_keep_the_dtype() -> None:
    x = 1000 * torch.randn(3, 8)
    assert RMSNorm(8)(x.half()).dtype is torch.float16
    same(RMSNorm(8)(x).square().mean(-1), torch.ones(3), 1e-5)


def test_a_cache_counts_all_its_tensors() -> None:
    cache = Cache(torch.zeros(2, dtype=torch.long), state=(torch.zeros(3),), extras={"a": torch.zeros(5)})
    assert cache.state_bytes == 16 + 12 + 20
    assert replace(cache, tail=torch.zeros(1, 2, 3)).state_bytes == 48 + 24


@pytest.mark.parametrize(
    "name", ["delta:beta=2", "retention:decay=0.5", "gla:gate=0.9", "rwkv7:rate=0.25", "mesanet:ridge=2"]
)
def test_a_constant_in_the_place_of_what_is_learned_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="would have no effect; leave it out"):
        Attention(name, 16, 2)
    Attention(name.partition(":")[0], 16, 2)
