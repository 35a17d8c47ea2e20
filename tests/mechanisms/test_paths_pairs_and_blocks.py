"""PaTH, 2-simplicial attention, block routing and ALiBi around others, against literal loops."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor

from separatrix.core.parameters import UsageError
from separatrix.mechanisms import MECHANISMS, Causality, Mechanism, examples, mechanism_named
from separatrix.mechanisms.extras import DIRECTIONS, PATH_BETA, SECOND_KEYS, SECOND_VALUES, TokenSizes

Row = list[float]
Rows = list[Row]
SIZES = TokenSizes(batch=2, heads=3, tokens=9, width=4, features=5, model=16)


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


def dot(*rows: Row) -> float:
    return sum(math.prod(each) for each in zip(*rows, strict=True))


def softmax(logits: Row) -> Row:
    scores = [math.exp(each - max(logits)) for each in logits]
    return [each / sum(scores) for each in scores]


def path(q: Rows, k: Rows, v: Rows, causal: bool, extras: dict[str, Any]) -> Rows:
    """The product of matrices, number by number, from the key to the query."""
    out, width = [], range(len(k[0]))
    for i, query in enumerate(q):
        logits = []
        for j in range(i + 1):
            moved = k[j]
            for t in range(j + 1, i + 1):
                w, beta = extras["w"][t], extras["beta"][t][0]
                square = dot(w, w)
                matrix = [[(a == b) - beta * w[a] * w[b] / square for b in width] for a in width]
                moved = [dot(row, moved) for row in matrix]
            logits.append(dot(query, moved))
        out.append([dot(softmax(logits), list(column)) for column in zip(*v[: i + 1], strict=True)])
    return out


def simplicial(window: int, second_window: int) -> Callable[..., Rows]:
    def attended(q: Rows, k: Rows, v: Rows, causal: bool, extras: dict[str, Any]) -> Rows:
        out = []
        for i, query in enumerate(q):
            pairs = [
                (j, m)
                for j, m in product(range(len(k)), repeat=2)
                if abs(i - j) < window and abs(i - m) < second_window and (not causal or max(j, m) <= i)
            ]
            weights = softmax([dot(query, k[j], extras["second_keys"][m]) for j, m in pairs])
            second = extras["second_values"]
            out.append(
                [
                    sum(each * v[j][f] * second[m][f] for each, (j, m) in zip(weights, pairs, strict=True))
                    for f in range(len(v[0]))
                ]
            )
        return out

    return attended


def block_routing(block: int, number: int) -> Callable[..., Rows]:
    def attended(q: Rows, k: Rows, v: Rows, causal: bool, extras: dict[str, Any]) -> Rows:
        out = []
        starts = range(0, len(k), block)
        means = [[sum(x) / len(x) for x in zip(*k[start : start + block], strict=True)] for start in starts]
        for i, query in enumerate(q):
            others = [b for b in range(len(means)) if (b < i // block if causal else b != i // block)]
            others.sort(key=lambda b: -dot(query, means[b]))
            blocks = [i // block, *others[: number - 1]]
            seen = [j for j in range(len(k)) if j // block in blocks and (j <= i or not causal)]
            weights = softmax([dot(query, k[j]) for j in seen])
            out.append([sum(a * v[j][f] for a, j in zip(weights, seen, strict=True)) for f in range(len(v[0]))])
        return out

    return attended


LITERAL: dict[str, Callable[..., Rows]] = {
    "path": path,
    "simplicial": simplicial(512, 32),
    "simplicial:window=5,second_window=3": simplicial(5, 3),
    "simplicial:window=1,second_window=4": simplicial(1, 4),
    "block-routing": block_routing(64, 3),
    "block-routing:block=4,k=2": block_routing(4, 2),
    "block-routing:block=1,k=4": block_routing(1, 4),
    "block-routing:block=3,k=1": block_routing(3, 1),
}


def by_hand(
    loop: Callable[..., Rows], q: Tensor, k: Tensor, v: Tensor, causal: bool, extras: dict[str, Tensor]
) -> Tensor:
    out = torch.zeros(*q.shape[:-1], v.shape[-1], dtype=v.dtype)
    for b, h in product(range(q.shape[0]), range(q.shape[1])):
        given = {name: (x[b, h] if x.ndim == 4 else x[h]).tolist() for name, x in extras.items()}
        rows = loop(*(x[b, h].tolist() for x in (q, k, v)), causal, given)
        out[b, h] = torch.tensor(rows, dtype=v.dtype)
    return out


@pytest.mark.parametrize("spelling", LITERAL)
@pytest.mark.parametrize("width", [1, 4])
def test_mechanisms_are_their_formulas(spelling: str, width: int) -> None:
    mechanism = mechanism_named(spelling)
    for n, causal in product((1, 13), (True, False)):
        if not causal and mechanism.causality is Causality.ALWAYS:
            continue
        q, k, v = tokens(n, width)
        extras = drawn(mechanism, q, k, v)
        expected = by_hand(LITERAL[spelling], q, k, v, causal, extras)
        for attend in (mechanism, mechanism.definition):
            same(attend(q, k, v, causal=causal, **extras), expected)


@pytest.mark.parametrize("spelling", ["path", "block-routing:block=8,k=2", "simplicial:window=9"])
@pytest.mark.parametrize("rows", [1, 7])
def test_blocks_of_queries_are_the_whole(spelling: str, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = mechanism_named(spelling)
    q, k, v = tokens(75)
    extras = drawn(mechanism, q, k, v)
    monkeypatch.setattr("separatrix.mechanisms._blocks.MAX_SCORES", 75 * 6 * rows)
    expected = mechanism.definition(q, k, v, causal=True, **extras)
    same(mechanism(q, k, v, causal=True, **extras), expected)
    same(mechanism(q[..., 40:, :], k, v, causal=True, first=40, **extras), expected[..., 40:, :])


# PaTH.


def test_the_paths_of_keys_are_those_of_the_delta_rule() -> None:
    """Without softmax, with beta on the values and w the key, PaTH's logits make up the delta rule."""
    from separatrix.mechanisms.positional.path import build_chunks
    from separatrix.mechanisms.recurrent.delta import unit

    q, k, v = tokens(70)
    k, beta = unit(k), drawn(mechanism_named("path"), q, k, v)["beta"]
    logits = build_chunks(k, k, beta).logits(q, 0)[..., :70].tril()
    same(logits @ (beta * v), mechanism_named("delta")(q, k, v, causal=True, beta=beta), 1e-10)


def test_reflections_swap_cups() -> None:
    """A ball under one of five cups, then 200 swaps: the logit of each cup says whether it is there."""
    n, cups = 201, 5
    generator = torch.Generator().manual_seed(2)
    swaps = [torch.randperm(cups, generator=generator)[:2].tolist() for _ in range(n - 1)]
    k, w = (torch.zeros(1, 1, n, cups, dtype=torch.float64) for _ in "kw")
    k[..., 0, 3] = 1.0
    places = [3]
    for t, (a, b) in enumerate(swaps, 1):
        w[..., t, a], w[..., t, b] = 1.0, -1.0
        places.append({a: b, b: a}.get(places[-1], places[-1]))
    v = torch.zeros(1, 1, n, 1, dtype=torch.float64)
    v[..., 0, :] = 1.0
    beta = torch.full((1, 1, n, 1), 2.0, dtype=torch.float64)
    path_ = mechanism_named("path")
    found = [
        path_(60 * torch.eye(cups, dtype=torch.float64)[cup].expand_as(k), k, v, causal=True, w=w, beta=beta)
        for cup in range(cups)
    ]
    assert torch.stack(found)[:, 0, 0, :, 0].argmax(0).tolist()[1:] == places[1:]
    assert torch.stack(found).amax(0).min() > 1 - 1e-12


def test_path_finds_the_latest_of_alike_keys() -> None:
    v = tokens(6, 6)[2][:1, :1]
    k = 30 * torch.eye(6, dtype=torch.float64)[[0, 1, 0, 2, 1, 0]][None, None]
    found = mechanism_named("path")(k, k, v, causal=True)
    same(found, v)
    assert not torch.allclose(mechanism_named("softmax")(k, k, v, causal=True), v)


def test_alike_directions_and_full_reflections_keep_their_digits() -> None:
    """No product of reflections grows: 300 of almost the same in float32 are still within its rounding."""
    path_ = mechanism_named("path")
    q, k, v = tokens(300)
    w = tokens(1)[0] + 0.01 * k
    beta = torch.full((2, 3, 300, 1), 2.0, dtype=torch.float64)
    exact = path_.definition(q, k, v, causal=True, w=w, beta=beta)
    same(path_(q, k, v, causal=True, w=w, beta=beta), exact, 1e-11)
    single = [x.float() for x in (q, k, v)]
    assert (path_(*single, causal=True, w=w.float(), beta=beta.float()) - exact).abs().max() < 1e-3


# Block routing.


def test_a_tie_is_seen_with_what_it_ties_with() -> None:
    routing = mechanism_named("block-routing:block=2,k=2")
    k = torch.tensor([1.0, 5, 3, 3, 2, 4, 0, 1, 9, 9]).reshape(1, 1, 10, 1).double()
    eye = torch.eye(10, dtype=torch.float64)[None, None]
    weights = routing(torch.ones_like(k), k, eye, causal=True)[0, 0]
    assert (weights[7] > 0).int().tolist() == [1, 1, 1, 1, 1, 1, 1, 1, 0, 0]
    weights = routing(0.1 * torch.ones_like(k), k, eye)[0, 0]
    assert (weights[7] > 0).int().tolist() == [0, 0, 0, 0, 0, 0, 1, 1, 1, 1]


def test_a_block_is_found_by_its_mean_or_not_at_all() -> None:
    """One loud key among quiet ones is drowned by its block; softmax finds it."""
    n, block = 256, 16
    k = torch.zeros(1, 1, n, 2, dtype=torch.float64)
    k[..., 0] = 1.0
    k[..., :block, :] = 0.0
    k[..., 5, 0] = 12.0
    v = torch.zeros(1, 1, n, 1, dtype=torch.float64)
    v[..., 5, :] = 1.0
    q = torch.ones_like(k)
    assert mechanism_named("softmax")(q, k, v, causal=True)[0, 0, -1].item() > 0.9
    spelling = f"block-routing:block={block},k=2"
    assert mechanism_named(spelling)(q, k, v, causal=True)[0, 0, -1].item() == 0.0
    k[..., 5, 0] = 17.0
    assert mechanism_named(spelling)(q, k, v, causal=True)[0, 0, -1].item() > 0.9


# ALiBi and rotary positions around others.


def fading(weights: Callable[[Row, Row], Row]) -> Callable[..., Rows]:
    """`weights(logits, fades)` of the past, read out."""

    def attended(q: Rows, k: Rows, v: Rows, causal: bool, extras: dict[str, Any]) -> Rows:
        out = []
        for i, query in enumerate(q):
            logits = [dot(query, k[j]) for j in range(i + 1)]
            fades = [-extras["slopes"] * (i - j) for j in range(i + 1)]
            found = weights(logits, fades)
            out.append([dot(found, list(column)) for column in zip(*v[: i + 1], strict=True)])
        return out

    return attended


def divided(scores: Row) -> Row:
    return [each / sum(scores) for each in scores]


def elu(x: Row) -> Row:
    return [each + 1 if each > 0 else math.exp(each) for each in x]


def elu_alibi(q: Rows, k: Rows, v: Rows, causal: bool, extras: dict[str, Any]) -> Rows:
    out = []
    for i, query in enumerate(q):
        near = range(i + 1)
        scores = [dot(elu(query), elu(k[j])) * math.exp(-extras["slopes"] * (i - j)) for j in near]
        out.append([dot(divided(scores), list(column)) for column in zip(*v[: i + 1], strict=True)])
    return out


FADED: dict[str, Callable[..., Rows]] = {
    "softmax": fading(lambda z, fades: softmax([a + b for a, b in zip(z, fades, strict=True)])),
    "softmax:temperature=2": fading(lambda z, fades: softmax([a / 2 + b for a, b in zip(z, fades, strict=True)])),
    "power:beta=2": fading(lambda z, fades: divided([a**2 * math.exp(b) for a, b in zip(z, fades, strict=True)])),
    "sigmoid:bias=0": fading(lambda z, fades: [1 / (1 + math.exp(-a - b)) for a, b in zip(z, fades, strict=True)]),
    "relu": fading(lambda z, fades: [max(a + b, 0) / len(z) for a, b in zip(z, fades, strict=True)]),
    "window:size=3": fading(
        lambda z, fades: [0.0] * max(0, len(z) - 3) + softmax([a + b for a, b in zip(z, fades, strict=True)][-3:])
    ),
    "elu": elu_alibi,
}


@pytest.mark.parametrize("inner", FADED)
def test_alibi_fades_logits_or_scores(inner: str) -> None:
    alibi = mechanism_named(f"alibi:inner={inner}")
    q, k, v = tokens(13)
    extras = drawn(alibi, q, k, v)
    expected = by_hand(FADED[inner], q, k, v, True, extras)
    for attend in (alibi, alibi.definition):
        same(attend(q, k, v, causal=True, **extras), expected)
        same(attend(q[..., 9:, :], k, v, causal=True, first=9, **extras), expected[..., 9:, :])
    assert pickle.loads(pickle.dumps(alibi)).spelled == alibi.spelled


FADING = ("score kernel", "feature map", "sparse")
TOKEN_CHOSEN = ("block-routing", "simplicial")


@pytest.mark.parametrize("inner", [each.spelled for each in examples() if "," not in each.spelled])
def test_alibi_is_for_every_kernel(inner: str) -> None:
    """Slopes of 0 change nothing, large ones leave the token alone; the rest is refused in one line."""
    of = mechanism_named(inner)
    if of.family not in FADING or of.name in TOKEN_CHOSEN:
        with pytest.raises(UsageError) as caught:
            mechanism_named(f"alibi:inner={inner}")
        line = "alibi fades the logits or scores of a kernel, a feature map or a pattern of positions; "
        assert str(caught.value) == f"{line}{inner} ({of.family}) is none of these"
        return
    alibi = mechanism_named(f"alibi:inner={inner}")
    q, k, v = (x.abs() + 0.1 for x in tokens(9))
    extras = drawn(alibi, q, k, v)
    extras.pop("slopes")
    expected = of(q, k, v, causal=True, **extras)
    same(alibi(q, k, v, causal=True, slopes=torch.zeros(3), **extras), expected)
    assert not torch.allclose(alibi(q, k, v, causal=True, **extras)[..., 4:, :], expected[..., 4:, :])
    if alibi.is_normalised:
        same(alibi(q, k, v, causal=True, slopes=torch.full((3,), 1e4), **extras), v)
    here = torch.tensor([[True] * 9, [True, False, True, True, False, True, True, True, False]])
    found = alibi(q, k, v, causal=True, present=here, **extras)[1][:, here[1]]
    alone = alibi(*(x[1:, :, here[1]] for x in (q, k, v)), causal=True, **extras)[0]
    if of.length_free:
        same(found, alone)


def test_faded_scores_are_retention() -> None:
    q, k, v = tokens(70)
    decay = torch.tensor([0.5, 0.9, 1.0], dtype=torch.float64)
    alibi = mechanism_named("alibi:inner=identity-features:normalised=no")
    expected = mechanism_named("retention")(q, k, v, causal=True, decay=decay)
    for attend in (alibi, alibi.definition):
        same(attend(q, k, v, causal=True, slopes=-decay.log()), expected, 1e-11)


@pytest.mark.parametrize("inner", ["elu", "favor", "window:size=64", "sparsemax"])
def test_far_places_cost_no_digits(inner: str) -> None:
    """At place 3,000 a slope of 0.7 makes numbers of 2,000, whose rounding would show in float32."""
    alibi = mechanism_named(f"alibi:inner={inner}")
    q, k, v = (x[:1] / 2 for x in tokens(3000))
    slopes = torch.full((3,), 0.7)
    exact = alibi(q[..., -40:, :], k[..., -40:, :], v[..., -40:, :], causal=True, slopes=slopes)
    found = alibi(q.float(), k.float(), v.float(), causal=True, slopes=slopes)
    assert (found[..., -1, :] - exact[..., -1, :]).abs().max() < 2e-6


@pytest.mark.parametrize("inner", [each.spelled for each in examples() if "," not in each.spelled])
def test_rotary_is_for_every_mechanism(inner: str) -> None:
    """Any mechanism sees tokens that are turned back as it would see them unturned."""
    rotary, of = mechanism_named(f"rotary:inner={inner}"), mechanism_named(inner)
    causal = of.causality is not Causality.NEVER
    q, k, v = (x.abs() + 0.1 for x in tokens(9))
    extras = drawn(rotary, q, k, v)
    angles = -torch.arange(9, dtype=torch.float64)[:, None] * torch.tensor([1.0, 0.01], dtype=torch.float64)
    turns = torch.polar(torch.ones_like(angles), angles)
    back = [
        torch.view_as_real(torch.view_as_complex(x.reshape(*x.shape[:-1], 2, 2)) * turns).flatten(-2) for x in (q, k)
    ]
    expected = of(q, k, v, causal=causal, **extras)
    for attend in (rotary, rotary.definition):
        same(attend(*back, v, causal=causal, **extras), expected, 1e-9)


def test_every_family_is_asked() -> None:
    asked = {each.family for each in examples() if "," not in each.spelled}
    assert asked == {each.family for each in MECHANISMS.values()}


@pytest.mark.parametrize(
    ("spelling", "line"),
    [
        ("path:beta=3", "beta=3 is out of range; beta must be 0 to 2"),
        ("simplicial:window=0", "window=0 is out of range; window must be 1 or more"),
        ("simplicial:second=two", "second=two is not one of key or one"),
        ("block-routing:block=0", "block=0 is out of range; block must be 1 or more"),
        ("block-routing:k=0", "k=0 is out of range; k must be 1 or more"),
    ],
)
def test_parameters_out_of_range(spelling: str, line: str) -> None:
    with pytest.raises(UsageError) as caught:
        mechanism_named(spelling)
    assert str(caught.value) == line


@pytest.mark.parametrize(
    ("name", "extra", "line"),
    [
        ("path", {"beta": torch.full((2, 3, 11, 1), 2.5)}, "beta of path must be between 0 and 2"),
        ("path", {"w": torch.ones(2, 3, 11, 1)}, "w of path must have shape (2, 3, 11, 4), not (2, 3, 11, 1)"),
        (
            "simplicial",
            {"second_values": torch.ones(2, 3, 11, 4)},
            "second_values of simplicial must have shape (2, 3, 11, 3), not (2, 3, 11, 4)",
        ),
        ("alibi:inner=elu", {"slopes": -torch.ones(3)}, "slopes of alibi must be 0 or more, and finite"),
    ],
)
def test_wrong_extras_are_refused_in_one_line(name: str, extra: dict[str, Tensor], line: str) -> None:
    with pytest.raises(UsageError) as caught:
        mechanism_named(name)(*tokens(), causal=True, **extra)
    assert str(caught.value) == line


def test_what_is_learned_is_as_in_the_papers() -> None:
    torch.manual_seed(0)
    x = torch.randn(2, 9, 16)
    directions = DIRECTIONS.make_module(SIZES)
    weights = directions.state_dict()
    assert weights["down.weight"].shape == (32, 16)
    expected = (x @ weights["down.weight"].T @ weights["up.weight"].T).reshape(2, 9, 3, 4)
    same(directions(x), expected.permute(0, 2, 1, 3), 1e-5)
    betas = PATH_BETA.make_module(SIZES)
    assert (betas.state_dict()["strength.bias"] == 0).all()
    same(betas(0 * x), torch.ones(2, 3, 9, 1))
    assert betas(100 * x).max() > 1.9
    for extra, offset in ((SECOND_KEYS, 1 / 4), (SECOND_VALUES, 1.0)):
        learned = extra.make_module(SIZES)
        same(learned(0 * x), torch.full(extra.shape(SIZES), offset))
        weight = learned.state_dict()["weight"]
        same(learned(x).transpose(1, 2).flatten(2), x @ weight.T + offset, 1e-5)
