"""Newer mechanisms against literal loops, written from the papers' formulas with plain numbers."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor

from separatrix.core.parameters import UsageError
from separatrix.mechanisms import Mechanism, mechanism_named
from separatrix.mechanisms.extras import (
    CHANNEL_STEP_GATES,
    DIFFERENCE,
    FACTOR_BETAS,
    FORGET_GATES,
    FURTHER_KEYS,
    FURTHER_VALUES,
    INPUT_GATES,
    LEVEL_SCALES,
    RATES,
    REMOVAL,
    REPLACEMENT,
    RIDGES,
    SIGMOID_GATES,
    SLOPES,
    TokenSizes,
)

Row = list[float]
Rows = list[Row]


def tokens(n: int = 11, width: int = 4, features: int = 3) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(n)
    q, k, v = (
        torch.randn(2, 3, n, each, generator=generator, dtype=torch.float64) for each in (width, width, features)
    )
    return q, k, v


def drawn(mechanism: Mechanism, q: Tensor, k: Tensor, v: Tensor) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(3)
    return {each.name: each.draw(mechanism.sizes(q, k, v), generator) for each in mechanism.extras}


def same(ours: Tensor, theirs: Tensor, bound: float = 1e-12) -> None:
    torch.testing.assert_close(ours, theirs, rtol=bound, atol=bound)


def dot(x: Row, y: Row) -> float:
    return sum(a * b for a, b in zip(x, y, strict=True))


def unit(x: Row) -> Row:
    return [each / math.sqrt(dot(x, x)) for each in x]


def mixed(weights: Row, v: Rows) -> Row:
    return [dot(weights, list(column)) for column in zip(*v[: len(weights)], strict=True)]


def write(state: Rows, key: Row, value: Row, beta: float) -> Rows:
    """`(I - beta k kᵀ) S + beta k vᵀ`, number by number."""
    width = len(key)
    turned = [[(i == j) - beta * key[i] * key[j] for j in range(width)] for i in range(width)]
    return [
        [sum(turned[i][j] * state[j][f] for j in range(width)) + beta * key[i] * value[f] for f in range(len(value))]
        for i in range(width)
    ]


def fox(q: Rows, k: Rows, v: Rows, last: bool, extras: dict[str, Any]) -> Rows:
    gates = [math.exp(each[0]) for each in extras["log_gates"]]
    out = []
    for i, query in enumerate(q):
        scores = [math.exp(dot(query, k[j])) * math.prod(gates[j + 1 : i + 1]) for j in range(i + 1)]
        out.append(mixed([each / sum(scores) for each in scores], v))
    return out


def alibi(q: Rows, k: Rows, v: Rows, last: bool, extras: dict[str, Any]) -> Rows:
    out = []
    for i, query in enumerate(q):
        scores = [math.exp(dot(query, k[j]) - extras["slopes"] * (i - j)) for j in range(i + 1)]
        out.append(mixed([each / sum(scores) for each in scores], v))
    return out


def kda(q: Rows, k: Rows, v: Rows, last: bool, extras: dict[str, Any]) -> Rows:
    state, out = [[0.0] * len(v[0]) for _ in k[0]], []
    for t, query in enumerate(q):
        state = [[math.exp(log) * x for x in row] for log, row in zip(extras["log_gates"][t], state, strict=True)]
        state = write(state, unit(k[t]), v[t], extras["beta"][t][0])
        out.append(mixed(query, state))
    return out


def deltaproduct(q: Rows, k: Rows, v: Rows, last: bool, extras: dict[str, Any]) -> Rows:
    state, out = [[0.0] * len(v[0]) for _ in k[0]], []
    for t, query in enumerate(q):
        width, features = len(k[t]), len(v[t])
        for j, beta in enumerate(extras["beta"][t]):
            key = [*extras["further_keys"][t], *k[t]][j * width : (j + 1) * width]
            value = [*extras["further_values"][t], *v[t]][j * features : (j + 1) * features]
            state = write(state, unit(key), value, beta)
        out.append(mixed(query, state))
    return out


def rwkv7(q: Rows, k: Rows, v: Rows, last: bool, extras: dict[str, Any]) -> Rows:
    state, out = [[0.0] * len(v[0]) for _ in k[0]], []
    for t, query in enumerate(q):
        removed = unit([x * scale for x, scale in zip(k[t], extras["removal"], strict=True)])
        said = [dot(removed, list(column)) for column in zip(*state, strict=True)]
        for i, rate in enumerate(extras["rates"][t]):
            written = k[t][i] * (1 + (rate - 1) * extras["replacement"][i])
            gate = math.exp(extras["log_gates"][t][i])
            state[i] = [
                gate * old - rate * removed[i] * taken + written * value
                for old, taken, value in zip(state[i], said, v[t], strict=True)
            ]
        out.append(mixed(query, state))
    return out


def eliminated(matrix: Rows, columns: Rows) -> Rows:
    """`matrix⁻¹ columns`, by elimination."""
    rows = [[*left, *right] for left, right in zip(matrix, columns, strict=True)]
    for i, pivot in enumerate(rows):
        rows[i] = [x / pivot[i] for x in pivot]
        for j, row in enumerate(rows):
            if j != i:
                rows[j] = [x - row[i] * y for x, y in zip(row, rows[i], strict=True)]
    return [row[len(matrix) :] for row in rows]


def mesanet(q: Rows, k: Rows, v: Rows, last: bool, extras: dict[str, Any]) -> Rows:
    gates, betas = ([each[0] for each in extras[name]] for name in ("log_gates", "beta"))
    keys, width, out = [unit(key) for key in k], range(len(k[0])), []
    for t, query in enumerate(q):
        weights = [betas[s] * math.prod(math.exp(x) for x in gates[s + 1 : t + 1]) for s in range(t + 1)]
        fitted = [
            [
                sum(w * keys[s][i] * keys[s][j] for s, w in enumerate(weights)) + (i == j) * extras["ridges"][i]
                for j in width
            ]
            for i in width
        ]
        seen = [[sum(w * keys[s][i] * v[s][f] for s, w in enumerate(weights)) for f in range(len(v[0]))] for i in width]
        out.append(mixed(query, eliminated(fitted, seen)))
    return out


def log_linear(q: Rows, k: Rows, v: Rows, last: bool, extras: dict[str, Any]) -> Rows:
    """A walk down the Fenwick tree: each segment ends where the one after it begins."""
    out = []
    for t, query in enumerate(q):
        scales, segments, end = extras["level_scales"][t], [(0, range(t, t + 1))], t
        while end:
            length = end & -end
            segments.append((length.bit_length(), range(end - length, end)))
            end -= length
        weights = [0.0] * (t + 1)
        for level, segment in segments:
            for s in segment:
                kept = math.exp(sum(gate[0] for gate in extras["log_gates"][s + 1 : t + 1]))
                weights[s] = scales[min(level, len(scales) - 1)] * kept * dot(query, k[s])
        out.append(mixed(weights, v))
    return out


def multiscale_retention(q: Rows, k: Rows, v: Rows, last: bool, extras: dict[str, Any]) -> Rows:
    out = []
    for i, query in enumerate(q):
        decays = [extras["decay"] ** (i - j) for j in range(i + 1)]
        below = math.sqrt(sum(decays) * len(query))
        row = [dot(query, k[j]) * decay / below for j, decay in enumerate(decays)]
        out.append(mixed([each / max(abs(sum(row)), 1.0) for each in row], v))
    return out


def softpick(q: Rows, k: Rows, v: Rows, causal: bool, extras: dict[str, Any]) -> Rows:
    out = []
    for i, query in enumerate(q):
        scores = [math.exp(dot(query, key)) - 1 for key in k[: i + 1 if causal else None]]
        below = sum(abs(each) for each in scores)
        out.append(mixed([max(each, 0.0) / below for each in scores], v))
    return out


def softmax_sink(q: Rows, k: Rows, v: Rows, causal: bool, extras: dict[str, Any]) -> Rows:
    out = []
    for i, query in enumerate(q):
        scores = [math.exp(dot(query, key)) for key in k[: i + 1 if causal else None]]
        below = sum(scores) + math.exp(extras["sink"])
        out.append(mixed([each / below for each in scores], v))
    return out


def differential(q: Rows, k: Rows, v: Rows, causal: bool, extras: dict[str, Any]) -> Rows:
    half, out = (len(q[0]) + 1) // 2, []
    for i, query in enumerate(q):
        seen = k[: i + 1 if causal else None]
        one = [math.exp(dot(query[:half], key[:half])) for key in seen]
        two = [math.exp(dot(query[half:], key[half:])) for key in seen]
        weights = [a / sum(one) - extras["lam"] * b / sum(two) for a, b in zip(one, two, strict=True)]
        out.append(mixed(weights, v))
    return out


LITERAL: dict[str, Callable[..., Rows]] = {
    "fox": fox,
    "alibi": alibi,
    "kda": kda,
    "deltaproduct": deltaproduct,
    "deltaproduct:factors=1": deltaproduct,
    "deltaproduct:factors=4": deltaproduct,
    "rwkv7": rwkv7,
    "mesanet": mesanet,
    "log-linear": log_linear,
    "log-linear:levels=3": log_linear,
    "multiscale-retention": multiscale_retention,
    "softpick": softpick,
    "softmax-sink": softmax_sink,
    "differential": differential,
}


def literal(spelling: str, q: Tensor, k: Tensor, v: Tensor, causal: bool, extras: dict[str, Tensor]) -> Tensor:
    out = torch.zeros(*q.shape[:-1], v.shape[-1], dtype=v.dtype)
    for b, h in product(range(q.shape[0]), range(q.shape[1])):
        given = {name: (x[b, h] if x.ndim == 4 else x[h]).tolist() for name, x in extras.items()}
        rows = LITERAL[spelling](*(x[b, h].tolist() for x in (q, k, v)), causal, given)
        out[b, h] = torch.tensor(rows, dtype=v.dtype)
    return out


@pytest.mark.parametrize("spelling", LITERAL)
@pytest.mark.parametrize("width", [1, 4, 5])
def test_mechanisms_are_their_formulas(spelling: str, width: int) -> None:
    mechanism: Any = mechanism_named(spelling)
    for n, causal in product((1, 11, 21), (True, False)):
        if not causal and mechanism.causality.name == "ALWAYS":
            continue
        q, k, v = tokens(n, width)
        extras = drawn(mechanism, q, k, v)
        expected = literal(spelling, q, k, v, causal, extras)
        same(mechanism.definition(q, k, v, causal=causal, **extras), expected)
        same(mechanism(q, k, v, causal=causal, **extras), expected)
        if hasattr(mechanism, "unrolled"):
            same(mechanism.unrolled(q, k, v, **extras), expected)
            for chunk in (1, 2, 7, 16, 100):
                same(mechanism.chunked(q, k, v, chunk, **extras)[0], expected)


@pytest.mark.parametrize("spelling", ["fox", "alibi", "softmax-sink", "differential", "softpick"])
def test_blocks_of_queries_are_the_whole(spelling: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = mechanism_named(spelling)
    q, k, v = tokens(40)
    extras = drawn(mechanism, q, k, v)
    monkeypatch.setattr("separatrix.mechanisms._blocks.MAX_SCORES", 40 * 6 * 7)
    same(mechanism(q, k, v, causal=True, **extras), mechanism.definition(q, k, v, causal=True, **extras))


@pytest.mark.parametrize("name", ["rwkv7", "log-linear"])
def test_gates_may_be_shut_where_something_stays(name: str) -> None:
    """Places go on after a reset, and a gate of RWKV-7 is none: what is taken back stays, negated."""
    mechanism: Any = mechanism_named(name)
    q, k, v = tokens(21)
    extras = drawn(mechanism, q, k, v)
    extras["log_gates"][..., (7, 8, 15), :] = -torch.inf
    expected = literal(name, q, k, v, True, extras)
    same(mechanism.definition(q, k, v, causal=True, **extras), expected)
    for chunk in (1, 7, 8, 100):
        same(mechanism.chunked(q, k, v, chunk, **extras)[0], expected)
    leaves = [x.clone().requires_grad_() for x in (q, k, v, *extras.values())]
    out = mechanism(*leaves[:3], causal=True, **dict(zip(extras, leaves[3:], strict=True)))
    for slope in torch.autograd.grad(out.square().sum(), leaves):
        assert slope.isfinite().all()


def test_mesanet_is_ridge_regression() -> None:
    """The fit by least squares on keys and values, with rows of the root of the ridge below."""
    mesanet = mechanism_named("mesanet:gate=1,ridge=1/4,unit_keys=no")
    q, k, v = tokens(30)
    found = mesanet(q, k, v, causal=True)
    for n in (1, 3, 30):
        keys = torch.cat([k[..., :n, :], 0.5 * torch.eye(4, dtype=k.dtype).expand(2, 3, 4, 4)], dim=-2)
        values = torch.cat([v[..., :n, :], torch.zeros(2, 3, 4, 3, dtype=v.dtype)], dim=-2)
        fitted = torch.linalg.lstsq(keys, values).solution
        same(found[..., n - 1, :], (q[..., n - 1, None, :] @ fitted)[..., 0, :], 1e-11)


def test_mesanet_without_stiffness_says_what_it_was_told() -> None:
    """Asked for a key it gives its value, while keys are fewer than they are wide."""
    mesanet = mechanism_named("mesanet:gate=1,ridge=1/10000000000")
    _, k, v = tokens(4)
    for t in range(4):
        asked = torch.nn.functional.normalize(k[..., t : t + 1, :], dim=-1).expand_as(k)
        same(mesanet(asked, k, v, causal=True)[..., 3, :], v[..., t, :], 1e-6)


def test_levels_hold_as_many_tokens_as_the_paper_says() -> None:
    """Weights of one level alone count its tokens: a power of two, or none."""
    n, levels = 37, 8
    mechanism: Any = mechanism_named(f"log-linear:gate=1,levels={levels}")
    one = torch.ones(1, 1, n, 1, dtype=torch.float64)
    for level in range(levels):
        scales = torch.zeros(1, 1, n, levels, dtype=torch.float64)
        scales[..., level] = 1
        found = mechanism(one, one, one, causal=True, level_scales=scales).flatten().tolist()
        digit = 1 << level >> 1
        assert found == [1 if level == 0 else t & digit for t in range(n)]


def test_a_log_linear_state_has_a_fixed_size_and_holds_any_length() -> None:
    mechanism: Any = mechanism_named("log-linear:levels=4")
    q, k, v = tokens(100)
    out, state = mechanism.chunked(q[..., :77, :], k[..., :77, :], v[..., :77, :], 10)
    assert mechanism.state_bytes(state) == 8 * (2 * 3 * 3 * 4 * 3 + 2)
    more, _ = mechanism.chunked(q[..., 77:, :], k[..., 77:, :], v[..., 77:, :], 9, state=state)
    same(torch.cat([out, more], dim=-2), mechanism.definition(q, k, v, causal=True))


def test_decays_of_heads_are_those_of_the_paper() -> None:
    q, k, v = tokens(9)
    found = mechanism_named("multiscale-retention")(q, k, v, causal=True)
    decays = torch.tensor([31 / 32, 63 / 64, 127 / 128], dtype=torch.float64)
    same(found, literal("multiscale-retention", q, k, v, True, {"decay": decays}))
    rows = mechanism_named("multiscale-retention")(100 * q, k, torch.ones_like(v), causal=True)
    assert (rows.abs() <= 1 + 1e-12).all()


@pytest.mark.parametrize("name", ["fox", "kda", "mesanet"])
def test_nothing_is_seen_across_a_reset(name: str) -> None:
    mechanism: Any = mechanism_named(name)
    q, k, v = tokens(21)
    extras = drawn(mechanism, q, k, v)
    extras["log_gates"][..., (7, 8, 15), :] = -torch.inf
    expected = literal(name, q, k, v, True, extras)
    for attend in (mechanism, mechanism.definition):
        found = attend(q, k, v, causal=True, **extras)
        same(found, expected)
        after = {each: x[..., 15:, :] if x.ndim == 4 else x for each, x in extras.items()}
        same(found[..., 15:, :], attend(*(x[..., 15:, :] for x in (q, k, v)), causal=True, **after))
        leaves = [x.clone().requires_grad_() for x in (q, k, v, *extras.values())]
        out = attend(*leaves[:3], causal=True, **dict(zip(extras, leaves[3:], strict=True)))
        for slope in torch.autograd.grad(out.square().sum(), leaves):
            assert slope.isfinite().all()


def test_long_forgetting_loses_no_digits() -> None:
    """Sums of log gates of -100,000 and more: what is near keeps float32's digits."""
    fox = mechanism_named("fox")
    q, k, v = tokens(400)
    gates = torch.full((2, 3, 400, 1), -500.0)
    gates[..., 350:, :] = -0.01
    exact = fox(q, k, v, causal=True, log_gates=gates.double())
    found = fox(q.float(), k.float(), v.float(), causal=True, log_gates=gates)
    assert (found - exact).abs().max() < 1e-4 * exact.abs().max()
    same(found[..., 100, :], v[..., 100, :].float(), 1e-6)


def test_slopes_are_those_of_the_paper() -> None:
    """Eight heads: a half, a quarter, ..., 1/256; and a constant gate is a slope."""
    q, k, v = (x.repeat(1, 3, 1, 1)[:, :8] for x in tokens())
    alibi, expected = mechanism_named("alibi"), [2.0**-h for h in range(1, 9)]
    assert SLOPES.default(alibi, q, k, v).tolist() == expected
    assert SLOPES.make_module(replace(SIZES, heads=8))(torch.zeros(1, 1, 16)).tolist() == expected
    found = alibi(q, k, v, causal=True, slopes=torch.full((8,), -math.log(0.9), dtype=torch.float64))
    same(found, mechanism_named("fox:gate=0.9")(q, k, v, causal=True))
    same(alibi(q, k, v, causal=True, slopes=torch.zeros(8)), mechanism_named("softmax")(q, k, v, causal=True))


def spun(x: Tensor, place: int, base: float) -> Tensor:
    """One token turned, by complex numbers."""
    pairs = x.shape[-1] // 2
    out = x.clone()
    for c in range(pairs):
        angle = place * base ** (-2 * c / x.shape[-1])
        number = complex(x[2 * c], x[2 * c + 1]) * complex(math.cos(angle), math.sin(angle))
        out[2 * c], out[2 * c + 1] = number.real, number.imag
    return out


@pytest.mark.parametrize("of", ["softmax", "delta", "window:size=3", "kda", "elu", "linformer:rank=3"])
@pytest.mark.parametrize("width", [4, 5])
def test_rotary_is_another_mechanism_on_turned_tokens(of: str, width: int) -> None:
    rotary, inner = mechanism_named(f"rotary:inner={of},base=100"), mechanism_named(of)
    q, k, v = tokens(9, width)
    extras = drawn(rotary, q, k, v)
    causal = inner.causality.name != "NEVER"
    turned = [x.clone() for x in (q, k)]
    for x, b, h, t in product(turned, range(2), range(3), range(9)):
        x[b, h, t] = spun(x[b, h, t], t, 100.0)
    expected = inner.definition(*turned, v, causal=causal, **extras)
    for attend in (rotary, rotary.definition):
        same(attend(q, k, v, causal=causal, **extras), expected)
    if of == "softmax":
        same(rotary(q[..., 6:, :], k, v, causal=True, first=6), expected[..., 6:, :])
    assert mechanism_named(rotary.spelled).parameters == rotary.parameters


def test_rotary_logits_depend_on_the_distance_alone() -> None:
    rotary = mechanism_named("rotary")
    q, k = (x[..., :1, :].expand(-1, -1, 12, -1) for x in tokens()[:2])
    eye = torch.eye(12, dtype=torch.float64).expand(2, 3, 12, 12)
    weights = rotary(q, k, eye)
    ratios = weights[..., 1:] / weights[..., :-1]
    for gap in range(-5, 6):
        along = ratios.diagonal(gap, -2, -1)
        same(along, along[..., :1].expand_as(along), 1e-10)
    assert not torch.allclose(weights, torch.full_like(weights, 1 / 12))


def test_two_reflections_are_a_rotation() -> None:
    """DeltaProduct turns a plane by any angle, token after token, and keeps its length; delta cannot."""
    n, angle = 24, 2 * math.pi / 24
    product_: Any = mechanism_named("deltaproduct:factors=2,beta=2")
    k = torch.zeros(1, 1, n, 2, dtype=torch.float64)
    k[..., 0] = 1
    k[..., 1:, :] = torch.tensor([math.cos(angle / 2), math.sin(angle / 2)], dtype=torch.float64)
    further = torch.zeros_like(k)
    further[..., 1:, 0] = 1
    v = torch.zeros(1, 1, n, 1, dtype=torch.float64)
    v[..., 0, :] = 1
    beta = torch.full((1, 1, n, 2), 2.0, dtype=torch.float64)
    beta[..., 0, :] = torch.tensor([0.0, 1.0])
    axes = torch.eye(2, dtype=torch.float64)
    held = torch.cat(
        [product_(axis.expand_as(k), k, v, causal=True, beta=beta, further_keys=further)[0, 0] for axis in axes], dim=-1
    )
    turns = angle * torch.arange(n, dtype=torch.float64)
    same(held, torch.stack([turns.cos(), turns.sin()], dim=-1))


@pytest.mark.parametrize("spelling", ["delta", "gated-delta:gate=1", "kda:gate=1"])
def test_runs_of_reflections_are_short(spelling: str) -> None:
    """Keys alike and betas of 2: long runs would be off by hundreds of roundings."""
    mechanism: Any = mechanism_named(spelling)
    q, k, v = (x[:1, :1].abs() + 0.1 for x in tokens(1030))
    beta = torch.full((1, 1, 1030, 1), 2.0, dtype=torch.float64)
    exact = mechanism.definition(q, k, v, causal=True, beta=beta)
    gap = mechanism.chunked(q, k, v, 512, beta=beta)[0] - exact
    assert gap.abs().max() < 128 * torch.finfo(torch.float64).eps * exact.abs().max()


def test_reflections_keep_their_rounding() -> None:
    """By the definition itself: at beta 2 float32 drifts on and on, at beta 1 it does not."""

    def drift(beta: int, n: int) -> float:
        mechanism = mechanism_named(f"deltaproduct:factors=3,beta={beta}")
        q, k, v = (x.float() for x in tokens(1024))
        exact = mechanism.definition(q.double(), k.double(), v.double(), causal=True)[..., :n, :]
        gap = mechanism.definition(q, k, v, causal=True)[..., :n, :] - exact
        return (gap.abs().max() / exact.abs().max()).item()

    assert drift(2, 1024) > 2 * drift(2, 64)
    assert drift(1, 1024) < 1.5 * drift(1, 64)


def test_beta_of_two_keeps_parity_at_any_length() -> None:
    delta: Any = mechanism_named("delta")
    n = 3000
    bits = torch.randint(0, 2, (n,), generator=torch.Generator().manual_seed(1)).double()
    one, start = (torch.ones(1, 1, n + 1, 1, dtype=torch.float64), torch.zeros(1, 1, n + 1, 1, dtype=torch.float64))
    start[..., 0, :] = 1
    beta = torch.cat([torch.ones(1), 2 * bits]).reshape(1, 1, n + 1, 1).double()
    found = delta(one, one, start, causal=True, beta=beta).flatten()
    same(found[1:], (-1.0) ** bits.cumsum(0))


def test_softpick_bears_large_and_vanishing_logits() -> None:
    softpick = mechanism_named("softpick")
    v = torch.eye(3, dtype=torch.float64)[None, None]
    for logits, expected in (
        ([0.0, 0.0, 0.0], [0.0, 0.0, 0.0]),
        ([-5.0, -1e4, -1.0], [0.0, 0.0, 0.0]),
        ([1e4, 1e4, -1e4], [0.5, 0.5, 0.0]),
        ([1e-12, -1e-12, 2e-12], [0.25, 0.0, 0.5]),
    ):
        k = torch.tensor(logits, dtype=torch.float64).reshape(1, 1, 3, 1).requires_grad_()
        out = softpick(torch.ones(1, 1, 1, 1, dtype=torch.float64), k, v)
        same(out.flatten(), torch.tensor(expected, dtype=torch.float64))
        (slope,) = torch.autograd.grad(out.square().sum(), k)
        assert slope.isfinite().all()


@pytest.mark.parametrize(
    ("spelling", "line"),
    [
        ("softmax-sink:sink=1e7", "sink=10000000 is out of range; sink must be none, or -1e6 to 1e6"),
        ("softmax-sink:sink=some", "sink=some is not a number"),
        ("differential:lam=1e7", "lam=10000000 is out of range; lam must be -1e6 to 1e6"),
        ("rotary:base=0", "base=0 is out of range; base must be 1 to 1e12"),
        ("fox:gate=0", "gate=0 is out of range; gate must be key, or above 0, up to 1"),
    ],
)
def test_parameters_out_of_range(spelling: str, line: str) -> None:
    with pytest.raises(UsageError) as caught:
        mechanism_named(spelling)
    assert str(caught.value) == line


@pytest.mark.parametrize("spelling", ["rotary", "rotary:inner=kda", "rotary:inner=power:beta=4"])
def test_rotary_is_the_same_after_a_journey(spelling: str) -> None:
    rotary = pickle.loads(pickle.dumps(mechanism_named(spelling)))
    assert rotary.spelled == spelling
    q, k, v = tokens()
    same(rotary(q, k, v, causal=True), mechanism_named(spelling)(q, k, v, causal=True))


def test_rotary_of_nothing_says_so() -> None:
    with pytest.raises(UsageError, match=r"there is no mechanism softmaxx \(did you mean softmax\?\)"):
        mechanism_named("rotary:inner=softmaxx")


SIZES = TokenSizes(batch=2, heads=3, tokens=9, width=4, features=5, rank=3, model=16)


def test_what_is_learned_is_as_in_the_papers() -> None:
    torch.manual_seed(0)
    x = torch.randn(2, 9, 16)
    forget = FORGET_GATES.make_module(SIZES)
    weights = forget.state_dict()
    assert (weights["gate.bias"] == 0).all()
    same(forget(x)[..., 0].exp(), torch.sigmoid(x @ weights["gate.weight"].T).permute(0, 2, 1), 1e-5)
    steps = CHANNEL_STEP_GATES.make_module(SIZES)
    weights = steps.state_dict()
    assert weights["down.weight"].shape == (4, 16)
    assert (weights["bias"] == 0).all()
    logits = ((x @ weights["down.weight"].T) @ weights["up.weight"].T).reshape(2, 9, 3, 4)
    rate = weights["log_rate"].exp()[:, None]
    assert ((rate >= 1) & (rate <= 16)).all()
    same(steps(x), (-rate * torch.log1p(logits.exp())).permute(0, 2, 1, 3), 1e-5)
    betas = FACTOR_BETAS.make_module(SIZES)
    same(betas(0 * x), torch.ones(2, 3, 9, 3))
    assert betas(100 * x).max() > 1.9
    for extra, channels in ((FURTHER_KEYS, 8), (FURTHER_VALUES, 10)):
        assert extra.make_module(SIZES)(x).shape == (2, 3, 9, channels)
        assert extra.make_module(replace(SIZES, rank=1))(x).shape == (2, 3, 9, 0)
    gates = SIGMOID_GATES.make_module(SIZES)
    weights = gates.state_dict()
    assert weights["down"].shape == (32, 16)
    start = [-6 + 6 * c / 11 + 0.5 + 2.5 * wave for c, wave in enumerate([-1, -1 / 9, 1 / 9, 1] * 3)]
    expected = torch.tensor(start).sigmoid().reshape(3, 1, 4) * -math.exp(-0.5)
    same(gates(x), expected.expand(2, 3, 9, 4), 1e-5)
    gates.load_state_dict({**weights, "down": torch.randn(32, 16)})
    inner = torch.tanh(x @ gates.state_dict()["down"].T) @ weights["up"].T + weights["bias"]
    expected = torch.exp(-math.exp(-0.5) * inner.sigmoid()).reshape(2, 9, 3, 4)
    same(gates(x).exp(), expected.permute(0, 2, 1, 3), 1e-5)
    start = [-0.19 + 0.3 * wave + 0.4 * (c / 11 - 0.5) for c, wave in enumerate([-1, -1 / 9, 1 / 9, 1] * 3)]
    expected = torch.tensor(start).sigmoid().reshape(3, 1, 4).expand(2, 3, 9, 4)
    same(RATES.make_module(SIZES)(x), expected, 1e-5)
    removal = REMOVAL.make_module(SIZES)(x)
    assert removal.flatten().tolist() == pytest.approx([0.76 - 0.1 * c / 11 for c in range(12)], abs=1e-6)
    same(REPLACEMENT.make_module(SIZES)(x), torch.full((3, 4), 1.02))
    same(RIDGES.make_module(SIZES)(x), torch.ones(3, 4), 1e-6)
    same(INPUT_GATES.make_module(SIZES)(0 * x), torch.full((2, 3, 9, 1), 0.5))
    scales = LEVEL_SCALES.make_module(SIZES)
    weights = scales.state_dict()
    assert (weights["levels"] == 1).all()
    logits = (x @ weights["scales.weight"].T).reshape(2, 9, 3, 3).permute(0, 2, 1, 3)
    same(scales(x), torch.log1p(logits.exp()), 1e-5)
    difference = DIFFERENCE.make_module(SIZES)
    a, b, c, d = difference.state_dict()["vectors"].tolist()
    expected = math.exp(dot(a, b)) - math.exp(dot(c, d)) + 0.8
    assert difference(x).tolist() == pytest.approx([expected] * 3, abs=1e-6)
