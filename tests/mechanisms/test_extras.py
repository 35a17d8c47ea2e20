"""What mechanisms take beside q, k and v: against literal loops, padded, decoded, differentiated, refused."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor

from separatrix.core.parameters import UsageError
from separatrix.mechanisms import MECHANISMS, Causality, Mechanism, examples, mechanism_named
from separatrix.mechanisms.custom import wrap
from separatrix.mechanisms.extras import (
    BETA,
    CHANNEL_GATES,
    CHANNEL_STEP_GATES,
    DECAY,
    DELTA_GATES,
    DIFFERENCE,
    DIRECTIONS,
    FACTOR_BETAS,
    FORGET_GATES,
    FURTHER_KEYS,
    FURTHER_VALUES,
    HEAD_GATES,
    KEY_MAP,
    KEY_PROJECTION,
    PATH_BETA,
    QUERY_MAP,
    SECOND_KEYS,
    SECOND_VALUES,
    SINK,
    SLOPES,
    VALUE_PROJECTION,
    TokenSizes,
)
from separatrix.mechanisms.learned import SigmoidStrength
from separatrix.mechanisms.recurrent._base import RecurrentMechanism

SPELLINGS = [
    *(each.spelled for each in examples()),
    "window:size=3",
    "window-global:size=3,globals=2",
    "strided:stride=3",
    "block-random:block=2,random=1",
    "window-linear:size=3",
    "linformer:rank=3",
    "nystrom:landmarks=3",
    "topk:k=2",
    "causal-linear:normalised=yes",
    "elu:normalised=no",
    "hedgehog:softmax=yes,normalised=no",
    "power:beta=1/2",
    "delta:unit_keys=no,beta=1/2",
    "deltaproduct:factors=3",
    "log-linear:levels=3",
    "multiscale-retention:normalised=no",
    "softmax-sink:sink=none",
    "rotary:inner=kda",
    "alibi:inner=softmax-sink",
    "alibi:inner=hedgehog",
    "alibi:inner=window:size=3",
    "simplicial:window=4,second_window=3",
    "block-routing:block=3,k=2",
]
RECURRENT = [each for each in SPELLINGS if isinstance(mechanism_named(each), RecurrentMechanism)]
CACHED = [
    each
    for each in SPELLINGS
    if mechanism_named(each).causality is not Causality.NEVER and mechanism_named(each).length_free
]
WITH_EXTRAS = [each for each in SPELLINGS if mechanism_named(each).extras]
GATED = ["gla", "ssd", "gated-delta", "kda", "rwkv7", "mesanet", "log-linear"]
TRUE, FALSE = True, False


def tokens(
    n: int = 9, batch: int = 2, heads: int = 3, width: int = 4, features: int = 5, **options: Any
) -> tuple[Tensor, Tensor, Tensor]:
    """Positive tokens, as every kernel bears them."""
    generator = torch.Generator().manual_seed(n)
    options = {"dtype": torch.float64, **options}
    return tuple(  # type: ignore[return-value]
        (torch.rand(batch, heads, n, each, generator=generator, dtype=torch.float64) + 0.1).to(**options)
        for each in (width, width, features)
    )


def drawn(mechanism: Mechanism, q: Tensor, k: Tensor, v: Tensor, seed: int = 3) -> dict[str, Tensor]:
    """Every extra of a mechanism from its domain."""
    generator = torch.Generator().manual_seed(seed)
    return {each.name: each.draw(mechanism.sizes(q, k, v), generator) for each in mechanism.extras}


def modes(mechanism: Mechanism) -> Iterator[bool]:
    yield from [False] * (mechanism.causality is not Causality.ALWAYS)
    yield from [True] * (mechanism.causality is not Causality.NEVER)


def forms(mechanism: Mechanism) -> list[Any]:
    return [mechanism, mechanism.definition]


def same(ours: Tensor, theirs: Tensor, bound: float = 1e-12) -> None:
    torch.testing.assert_close(ours, theirs, rtol=bound, atol=bound)


def of_tokens(mechanism: Mechanism, extras: dict[str, Tensor], places: slice | Tensor) -> dict[str, Tensor]:
    """Extras for some of the tokens: what goes with each, and the first columns of a projection."""
    streams = {each.name for each in mechanism.extras if each.per_token}
    count = len(places) if isinstance(places, Tensor) else places.stop - (places.start or 0)
    return {
        name: x[..., places, :] if name in streams else x[:, :count] if name in "EF" else x
        for name, x in extras.items()
    }


# Literal loops, written from the formulas with plain numbers, one token, head and channel at a time.


def literal(name: str, q: Tensor, k: Tensor, v: Tensor, extras: dict[str, Tensor]) -> Tensor:
    batch, heads, n, width = k.shape
    out = torch.zeros_like(v)
    for b, h in product(range(batch), range(heads)):
        state = [[0.0] * v.shape[-1] for _ in range(width)]
        for t in range(n):
            key, value = k[b, h, t].tolist(), v[b, h, t].tolist()
            if name == "retention":
                gate = [extras["decay"][h].item()] * width
            elif name == "delta":
                gate = [1.0] * width
            else:
                gate = extras["log_gates"][b, h, t].exp().expand(width).tolist()
            beta = extras["beta"][b, h, t].item() if "beta" in extras else 1.0
            if "delta" in name:
                length = sum(x * x for x in key) ** 0.5
                key = [x / length for x in key]
                held = [sum(key[i] * state[i][j] for i in range(width)) for j in range(len(value))]
                held = [gate[0] * x for x in held]
                value = [new - old for new, old in zip(value, held, strict=True)]
            for i, j in product(range(width), range(len(value))):
                state[i][j] = gate[i] * state[i][j] + beta * key[i] * value[j]
            for j in range(len(value)):
                out[b, h, t, j] = sum(q[b, h, t, i].item() * state[i][j] for i in range(width))
    return out


@pytest.mark.parametrize("name", ["gla", "ssd", "delta", "gated-delta", "retention"])
@pytest.mark.parametrize("resets", [False, True])
def test_recurrences_are_their_formulas(name: str, resets: bool) -> None:
    mechanism: Any = mechanism_named(name)
    q, k, v = tokens(21)
    q, k = q - 0.6, k - 0.6
    extras = drawn(mechanism, q, k, v)
    if resets and "log_gates" in extras:
        shut = torch.rand(extras["log_gates"].shape, generator=torch.Generator().manual_seed(1)) < 0.3
        extras["log_gates"] = extras["log_gates"].masked_fill(shut, -torch.inf)
    if resets and "decay" in extras:
        extras["decay"][1] = 0
    expected = literal(name, q, k, v, extras)
    same(mechanism.definition(q, k, v, causal=True, **extras), expected)
    same(mechanism(q, k, v, causal=True, **extras), expected)
    same(mechanism.unrolled(q, k, v, **extras), expected)
    for chunk in (1, 2, 7, 16, 100):
        same(mechanism.chunked(q, k, v, chunk, **extras)[0], expected)


@pytest.mark.parametrize("name", GATED)
def test_gradients_of_resets_are_finite_and_agree(name: str) -> None:
    mechanism: Any = mechanism_named(name)
    q, k, v = tokens(12)
    extras = drawn(mechanism, q, k, v)
    extras["log_gates"][..., ::4, :] = -torch.inf
    found = []
    for attend in (mechanism, mechanism.definition, lambda *x, causal, **more: mechanism.unrolled(*x, **more)):
        leaves = [x.clone().requires_grad_() for x in (q, k, v, *extras.values())]
        given = dict(zip(extras, leaves[3:], strict=True))
        out = attend(*leaves[:3], causal=True, **given)
        found.append(torch.autograd.grad(out.square().sum(), leaves))
    for one, two, three in zip(*found, strict=True):
        assert one.isfinite().all()
        same(one, two, 1e-10)
        same(one, three, 1e-10)


@pytest.mark.parametrize("spelling", RECURRENT)
@pytest.mark.parametrize("given", [FALSE, TRUE])
def test_a_prompt_and_then_tokens_are_the_whole(spelling: str, given: bool) -> None:
    """Chunked to a state, chunked from it, then token by token."""
    mechanism: Any = mechanism_named(spelling)
    q, k, v = tokens(20)
    extras = drawn(mechanism, q, k, v) if given else {}
    whole = mechanism.definition(q, k, v, causal=True, **extras)
    state, rows = None, []
    for here in (slice(0, 7), slice(7, 15)):
        some = of_tokens(mechanism, extras, here)
        out, state = mechanism.chunked(*(x[..., here, :] for x in (q, k, v)), 3, state=state, **some)
        rows.append(out)
    for t in range(15, 20):
        some = of_tokens(mechanism, extras, slice(t, t + 1))
        streams = {each.name for each in mechanism.extras if each.per_token}
        some = {name: x[..., 0, :] if name in streams else x for name, x in some.items()}
        state, out = mechanism.step(state, *(x[..., t, :] for x in (q, k, v)), **some)
        rows.append(out[..., None, :])
    same(torch.cat(rows, dim=-2), whole, 1e-11)


@pytest.mark.parametrize("spelling", CACHED)
@pytest.mark.parametrize("given", [FALSE, TRUE])
def test_queries_after_a_cache_are_the_last_rows(spelling: str, given: bool) -> None:
    """Queries from position `first` on, with all keys up to theirs, as a model decodes with a cache."""
    mechanism = mechanism_named(spelling)
    q, k, v = tokens(11)
    extras = drawn(mechanism, q, k, v) if given else {}
    whole = mechanism.definition(q, k, v, causal=True, **extras)
    for attend, (first, stop) in product(forms(mechanism), ((0, 5), (5, 9), (9, 11), (10, 11), (1, 11))):
        past = (x[..., :stop, :] for x in (k, v))
        some = of_tokens(mechanism, extras, slice(0, stop))
        found = attend(q[..., first:stop, :], *past, causal=True, first=first, **some)
        same(found, whole[..., first:stop, :], 1e-11)


def test_one_query_with_nine_keys_reads_all_of_them() -> None:
    q, k, v = tokens(9)
    softmax = mechanism_named("softmax")
    same(softmax(q[..., 8:, :], k, v, causal=True, first=8), softmax(q[..., 8:, :], k, v))


PADDINGS = {
    "right": [[1] * 9, [1] * 5 + [0] * 4, [1] * 5 + [0] * 4, [1] + [0] * 8],
    "left": [[1] * 9, [0] * 4 + [1] * 5, [0] * 8 + [1], [0] * 2 + [1] * 7],
    "holes": [[1, 0, 1, 1, 0, 0, 1, 1, 1], [0, 1] * 4 + [0], [1] * 9, [0] * 3 + [1] * 3 + [0] * 3],
}


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("padding", PADDINGS)
def test_a_padded_batch_is_its_rows_alone(spelling: str, padding: str) -> None:
    """In every form and mode, with extras and without, whatever stands in absent places: NaN here."""
    mechanism = mechanism_named(spelling)
    present = torch.tensor(PADDINGS[padding], dtype=torch.bool)
    q, k, v = tokens(9, batch=4)
    spoiled = [x.masked_fill(~present[:, None, :, None], torch.nan) for x in (q, k, v)]
    for attend, causal, given in product(forms(mechanism), modes(mechanism), (False, True)):
        extras = drawn(mechanism, q, k, v) if given else {}
        found = attend(*spoiled, causal=causal, present=present, **extras)
        for element, there in enumerate(present):
            places = there.nonzero()[:, 0]
            alone = (x[element : element + 1][..., places, :] for x in (q, k, v))
            some = of_tokens(mechanism, extras, places)
            some = {name: x[element : element + 1] if x.ndim == 4 else x for name, x in some.items()}
            expected = mechanism.definition(*alone, causal=causal, **some)
            same(found[element : element + 1][..., places, :], expected, 1e-10)


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_who_sees_nobody_gets_zero_and_gradients_are_finite(spelling: str) -> None:
    mechanism = mechanism_named(spelling)
    present = torch.tensor([[False] * 6, [False, False, True, True, False, True]])
    for attend, causal in product(forms(mechanism), modes(mechanism)):
        leaves = [x.requires_grad_() for x in tokens(6)]
        out = attend(*leaves, causal=causal, present=present)
        assert (out[0] == 0).all()
        if causal:
            assert (out[1, :, :2] == 0).all()
        for slope in torch.autograd.grad(out.square().sum(), leaves):
            assert slope.isfinite().all()
            assert (slope[0] == 0).all()


@pytest.mark.parametrize("spelling", CACHED)
def test_a_padded_cache_is_decoded(spelling: str) -> None:
    """One new query, a batch whose prompts were padded on the left."""
    mechanism = mechanism_named(spelling)
    present = torch.tensor([[True] * 9, [False] * 4 + [True] * 5])
    q, k, v = tokens(9)
    whole = mechanism.definition(q, k, v, causal=True, present=present)
    for attend in forms(mechanism):
        found = attend(q[..., 7:, :], k, v, causal=True, first=7, present=present)
        same(found, whole[..., 7:, :], 1e-11)


@pytest.mark.parametrize("spelling", [each for each in RECURRENT if "window" not in each])
def test_absent_tokens_leave_the_state_alone(spelling: str) -> None:
    mechanism: Any = mechanism_named(spelling)
    present = torch.tensor([[True] * 3 + [False] * 2 + [True] * 4] * 2)
    q, k, v = tokens(9)
    _, expected = mechanism.chunked(*(x[..., present[0], :] for x in (q, k, v)))
    for chunk in (1, 4, 9):
        _, found = mechanism.chunked(q, k, v, chunk, present=present)
        for one, other in zip(found, expected, strict=True):
            same(one, other)
    same(
        mechanism.unrolled(q, k, v, present=present)[..., present[0], :],
        mechanism.unrolled(*(x[..., present[0], :] for x in (q, k, v))),
    )


@pytest.mark.parametrize("spelling", ["softmax", "elu", "hardmax", "linear", "power:beta=2", "favor"])
def test_counts_and_absent_keys(spelling: str) -> None:
    mechanism = mechanism_named(spelling)
    q, k, v = tokens(5)
    counts, present = torch.tensor([2.0, 3, 1, 4, 1]), torch.tensor([[True, False, True, True, False]] * 2)
    there = present[0]
    expected = mechanism.definition(q, k[..., there, :], v[..., there, :], counts[there])
    for attend in forms(mechanism):
        same(attend(q, k, v, counts, present=present), expected, 1e-11)


@pytest.mark.parametrize("spelling", WITH_EXTRAS)
def test_the_default_is_what_stands_in(spelling: str) -> None:
    mechanism = mechanism_named(spelling)
    q, k, v = tokens()
    causal = mechanism.causality is Causality.ALWAYS
    extras = {each.name: each.default(mechanism, q, k, v) for each in mechanism.extras}
    for extra in mechanism.extras:
        assert extras[extra.name].shape == extra.shape(mechanism.sizes(q, k, v))
        assert bool(extra.domain.contains(extras[extra.name]).all())
    other = drawn(mechanism, q, k, v)
    for attend in forms(mechanism):
        plain = attend(q, k, v, causal=causal)
        assert torch.equal(attend(q, k, v, causal=causal, **extras), plain)
        assert torch.equal(attend(q, k, v, causal=causal, **dict.fromkeys(extras)), plain)
        for name in extras:
            assert not torch.allclose(attend(q, k, v, causal=causal, **{name: other[name]}), plain)


@pytest.mark.parametrize("spelling", WITH_EXTRAS)
def test_the_fast_form_is_the_definition_on_drawn_extras(spelling: str) -> None:
    mechanism = mechanism_named(spelling)
    for n, causal in product((1, 2, 33, 70), modes(mechanism)):
        q, k, v = tokens(n)
        extras = drawn(mechanism, q, k, v)
        assert all(bool(each.domain.contains(extras[each.name]).all()) for each in mechanism.extras)
        expected = mechanism.definition(q, k, v, causal=causal, **extras)
        same(mechanism(q, k, v, causal=causal, **extras), expected, 1e-10)


@pytest.mark.parametrize("spelling", WITH_EXTRAS)
def test_gradients_on_drawn_extras(spelling: str) -> None:
    mechanism = mechanism_named(spelling)
    q, k, v = tokens(5, batch=1, heads=2, width=2, features=2)
    extras = drawn(mechanism, q, k, v)
    leaves = tuple(x.requires_grad_() for x in (q, k, v, *extras.values()))
    for attend, causal in product(forms(mechanism), modes(mechanism)):

        def attended(*x: Tensor, attend: Any = attend, causal: bool = causal) -> Tensor:
            out: Tensor = attend(*x[:3], causal=causal, **dict(zip(extras, x[3:], strict=True)))
            return out

        assert torch.autograd.gradcheck(attended, leaves)


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_autocast_changes_neither_dtype_nor_digits(spelling: str) -> None:
    mechanism = mechanism_named(spelling)
    for causal in modes(mechanism):
        q, k, v = tokens(20, dtype=torch.float32)
        plain = mechanism(q, k, v, causal=causal)
        with torch.autocast("cpu", torch.bfloat16):
            for attend in forms(mechanism):
                found = attend(q, k, v, causal=causal)
                assert found.dtype == torch.float32
                same(found, plain, 1e-4)
            mixed = mechanism(q.bfloat16(), k.bfloat16(), v, causal=causal)
            assert mixed.dtype == torch.float32
            assert mechanism(q, k, v.bfloat16(), causal=causal).dtype == torch.bfloat16


@pytest.mark.parametrize("name", ["delta", "gated-delta"])
def test_zero_keys_have_moderate_gradients(name: str) -> None:
    mechanism: Any = mechanism_named(name)
    q, k, v = tokens(6)
    k[..., 2:4, :] = 0
    k.requires_grad_()
    for attend in (mechanism, mechanism.definition):
        (slope,) = torch.autograd.grad(attend(q, k, v, causal=True).sum(), k)
        assert slope.abs().max() < 100


@pytest.mark.parametrize(
    ("spelling", "extras", "line"),
    [
        ("gla", {"gates": 0}, "gla does not take gates; beside q, k and v it takes log_gates"),
        ("softmax", {"beta": 0}, "softmax does not take beta; beside q, k and v it takes nothing"),
        (
            "gla",
            {"log_gates": torch.zeros(2, 3, 9, 1)},
            "log_gates of gla must have shape (2, 3, 9, 4), not (2, 3, 9, 1)",
        ),
        ("ssd", {"log_gates": torch.ones(2, 3, 9, 1)}, "log_gates of ssd must be at most 0, as logs of [0, 1]"),
        ("delta", {"beta": torch.full((2, 3, 9, 1), 2.5)}, "beta of delta must be between 0 and 2"),
        ("delta", {"beta": torch.full((2, 3, 9, 1), torch.nan)}, "beta of delta must be between 0 and 2"),
        (
            "delta",
            {"beta": torch.ones(2, 3, 9, 1, dtype=torch.long)},
            "beta of delta must be a tensor of floats of shape (2, 3, 9, 1), not int64 of shape (2, 3, 9, 1)",
        ),
        ("delta", {"beta": 0.5}, "beta of delta must be a tensor of floats of shape (2, 3, 9, 1), not float"),
        ("retention", {"decay": torch.full((3,), 1.5)}, "decay of retention must be between 0 and 1"),
        ("retention", {"decay": torch.ones(2)}, "decay of retention must have shape (3,), not (2,)"),
        ("hedgehog", {"W_q": torch.zeros(4, 4)}, "W_q of hedgehog must have shape (3, 4, 4), not (4, 4)"),
        ("linformer:rank=3", {"F": torch.zeros(9, 3)}, "F of linformer must have shape (3, 9), not (9, 3)"),
        ("softmax", {"first": -1}, "first=-1 is not a position; it is the number of keys before the first query"),
        ("softmax", {"first": True}, "first=True is not a position; it is the number of keys before the first query"),
        ("nystrom", {"first": 2}, "nystrom has no causal form, so queries have no position; leave first out"),
        (
            "softmax",
            {"present": torch.ones(2, 9)},
            "present must be bool of shape (2, 9), batch and keys, not float32 of shape (2, 9)",
        ),
        (
            "delta",
            {"present": torch.ones(9, dtype=torch.bool)},
            "present must be bool of shape (2, 9), batch and keys, not bool of shape (9,)",
        ),
    ],
)
def test_bad_extras_get_one_line(spelling: str, extras: dict[str, Any], line: str) -> None:
    mechanism = mechanism_named(spelling)
    causal = mechanism.causality is Causality.ALWAYS
    for attend in forms(mechanism):
        with pytest.raises(UsageError) as caught:
            attend(*tokens(), causal=causal, **extras)
        assert str(caught.value) == line


def test_a_step_checks_its_extras() -> None:
    delta: Any = mechanism_named("delta")
    q, k, v = (x[..., 0, :] for x in tokens())
    state = delta.init_state(*(x[..., None, :] for x in (q, v)))
    with pytest.raises(UsageError, match="beta of delta must be between 0 and 2"):
        delta.step(state, q, k, v, beta=torch.full((2, 3, 1), 3.0))
    with pytest.raises(UsageError, match="delta does not take gate"):
        delta.advance(state, *tokens(), gate=0)


@pytest.mark.parametrize("spelling", RECURRENT)
def test_a_padded_prompt_and_then_tokens_are_each_row_alone(spelling: str) -> None:
    """Elements of a batch whose states hold different tokens; some are absent later, too."""
    mechanism: Any = mechanism_named(spelling)
    q, k, v = tokens(16)
    present = torch.tensor([[True] * 16, [False] * 4 + [True] * 3 + [False] * 2 + [True] * 4 + [False, True, True]])
    for chunk in (1, 3, 10):
        found, state = mechanism.chunked(*(x[..., :10, :] for x in (q, k, v)), chunk, present=present[:, :10])
        rows, state = mechanism.chunked(*(x[..., 10:14, :] for x in (q, k, v)), state=state, present=present[:, 10:14])
        found = torch.cat([found, rows], dim=-2)
        for t in (14, 15):
            state, out = mechanism.step(state, *(x[..., t, :] for x in (q, k, v)))
            found = torch.cat([found, out[..., None, :]], dim=-2)
        for element, there in enumerate(present):
            alone = (x[element : element + 1, :, there] for x in (q, k, v))
            same(found[element : element + 1, :, there], mechanism.definition(*alone, causal=True), 1e-11)


def test_a_recurrence_that_cannot_skip_is_given_the_others_alone() -> None:
    class Counting(type(mechanism_named("causal-linear"))):  # type: ignore[misc]
        name, takes_present = "counting", False

    q, k, v = tokens()
    present = torch.ones(2, 9, dtype=torch.bool).tril()
    with pytest.raises(UsageError, match="counting has no state that skips absent tokens"):
        Counting().chunked(q, k, v, present=present)
    found, expected = (each(q, k, v, causal=True, present=present) for each in (Counting(), Counting.__base__()))
    same(found, expected.where(present[:, None, :, None], 0))


def plain(q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
    logits = q @ k.mT
    if causal:
        logits = logits.masked_fill(torch.ones_like(logits, dtype=torch.bool).triu(1), -torch.inf)
    return logits.softmax(-1) @ v


def test_a_callable_that_takes_no_places_is_given_what_it_can_bear() -> None:
    mine, softmax = wrap(plain, "mine"), mechanism_named("softmax")
    q, k, v = tokens(9)
    present = torch.tensor([[True] * 9, [False] * 3 + [True] * 6])
    same(mine(q[..., 6:, :], k, v, causal=True, first=6), softmax(q, k, v, causal=True)[..., 6:, :])
    for causal in (False, True):
        there = present[:, None, :, None]
        expected = softmax(q, k, v, causal=causal, present=present).where(there, 0)
        same(mine(q, k, v, causal=causal, present=present), expected)
    with pytest.raises(UsageError, match="takes present only with a query for each key"):
        mine(q[..., :2, :], k, v, present=present)
    with pytest.raises(UsageError, match="mine does not take beta"):
        mine(q, k, v, beta=v)


def test_a_callable_that_takes_counts_has_them_cut_as_well() -> None:
    def counted(q: Tensor, k: Tensor, v: Tensor, counts: Tensor | None = None) -> Tensor:
        return mechanism_named("softmax")(q, k, v, counts)

    q, k, v = tokens(5)
    present = torch.tensor([[True, False, True, True, False], [True] * 5])
    for counts in (torch.tensor([2.0, 3, 1, 4, 1]), torch.arange(1.0, 31).reshape(2, 3, 5)):
        expected = mechanism_named("softmax")(q, k, v, counts, present=present)
        same(wrap(counted, "mine")(q, k, v, counts, present=present), expected.where(present[:, None, :, None], 0))


def test_a_callable_gets_the_places_and_extras_that_it_takes() -> None:
    seen: dict[str, Any] = {}

    def attend(q: Any, k: Any, v: Any, causal: bool = False, first: int = 0, present: Any = None, **_: Any) -> Any:
        seen.update(first=first, present=present)
        return mechanism_named("softmax")(q, k, v, causal=causal, first=first, present=present)

    q, k, v = tokens(9)
    present = torch.tensor([[True] * 9, [False] * 3 + [True] * 6])
    mine = wrap(attend, "mine")
    mine(q[..., 6:, :], k, v, causal=True, first=6, present=present)
    assert (seen["first"], seen["present"] is present) == (6, True)

    def weighted(q: Tensor, k: Tensor, v: Tensor, *, beta: Tensor, scale: float = 1.0) -> Tensor:
        return scale * plain(q, k, beta * v)

    weighted.extras = (BETA_OF_ONE,)  # type: ignore[attr-defined]
    own: Any = wrap(weighted, "own")
    assert own.extras == (BETA_OF_ONE,)
    same(own(q, k, v), plain(q, k, v))
    same(own(q, k, v, scale=2.0), 2 * plain(q, k, v))
    beta = drawn(own, q, k, v)["beta"]
    same(own(q, k, v, beta=beta), plain(q, k, beta * v))
    here = present[1]
    alone = (x[1:, :, here] for x in (q, k, v, beta))
    found = own(q, k, v, beta=beta, present=present)[1:, :, here]
    q_1, k_1, v_1, beta_1 = alone
    same(found, plain(q_1, k_1, beta_1 * v_1))
    with pytest.raises(UsageError, match="beta of own must be between 0 and 2"):
        own(q, k, v, beta=3 + beta)
    with pytest.raises(UsageError, match="beta of own must have shape"):
        own(q, k, v, beta=beta[0], present=present)
    with pytest.raises(UsageError, match="does not declare scale"):
        own(q, k, v, scale=v, present=present)


BETA_OF_ONE = replace(BETA, compute_default=lambda mechanism, q, k, v: k.new_ones(*k.shape[:-1], 1))


SIZES = TokenSizes(batch=2, heads=3, tokens=9, width=4, features=5, rank=6, model=16)
BUILT_IN = {
    "channel gates": CHANNEL_GATES,
    "head gates": HEAD_GATES,
    "delta gates": DELTA_GATES,
    "beta": BETA,
    "decay": DECAY,
    "query map": QUERY_MAP,
    "key map": KEY_MAP,
    "key projection": KEY_PROJECTION,
    "value projection": VALUE_PROJECTION,
    "sink": SINK,
    "channel step gates": CHANNEL_STEP_GATES,
    "forget gates": FORGET_GATES,
    "further keys": FURTHER_KEYS,
    "further values": FURTHER_VALUES,
    "factor betas": FACTOR_BETAS,
    "difference": DIFFERENCE,
    "slopes": SLOPES,
    "directions": DIRECTIONS,
    "path betas": PATH_BETA,
    "second keys": SECOND_KEYS,
    "second values": SECOND_VALUES,
}


@pytest.mark.parametrize("name", BUILT_IN)
def test_what_is_learned_has_shape_and_range(name: str) -> None:
    extra = BUILT_IN[name]
    torch.manual_seed(0)
    learned, x = extra.make_module(SIZES), torch.randn(2, 9, 16)
    found = learned(x)
    for each in (found, extra.draw(SIZES, torch.Generator().manual_seed(0))):
        assert each.shape == extra.shape(SIZES)
        assert bool(extra.domain.contains(each).all())
    weights = list(learned.parameters())
    assert bool(weights) == (extra not in (DECAY, SLOPES))
    if weights:
        for slope in torch.autograd.grad(found.square().sum() + found.sum(), weights):
            assert (slope != 0).any()
    again = extra.make_module(SIZES)
    again.load_state_dict(learned.state_dict())
    assert torch.equal(again(x), found)
    with torch.autocast("cpu", torch.bfloat16):
        assert learned(x).dtype == found.dtype
    if extra.per_token:
        same(learned(x[:, :4]), found[..., :4, :], 1e-6)


def test_learned_gates_are_those_of_their_papers() -> None:
    torch.manual_seed(0)
    x = torch.randn(2, 9, 16)
    gla = CHANNEL_GATES.make_module(SIZES)
    down, up, bias = (gla.state_dict()[name] for name in ("down.weight", "up.weight", "up.bias"))
    assert down.shape == (16, 16)
    logits = ((x @ down.T) @ up.T + bias).reshape(2, 9, 3, 4)
    same(gla(x), torch.log(torch.sigmoid(logits) ** (1 / 16)).permute(0, 2, 1, 3), 1e-5)
    for extra, low in ((HEAD_GATES, 1), (DELTA_GATES, 0)):
        many = extra.make_module(replace(SIZES, heads=4000))
        rate, bias = many.state_dict()["log_rate"].exp(), many.state_dict()["bias"]
        assert low <= rate.min() < low + 0.1
        assert 15.9 < rate.max() <= 16.001
        first = torch.log1p(bias.exp())
        assert 0.00099 < first.min() < 0.00101
        assert 0.099 < first.max() < 0.101
        assert abs(first.log10().mean() + 2) < 0.05
        few = extra.make_module(SIZES)
        step, rate, bias = (few.state_dict()[name] for name in ("step.weight", "log_rate", "bias"))
        gates = torch.exp(-rate.exp() * torch.log1p((x @ step.T + bias).exp()))
        same(few(x).exp()[..., 0], gates.permute(0, 2, 1), 1e-5)
    beta = BETA.make_module(SIZES)
    same(beta(x)[..., 0], torch.sigmoid(x @ beta.state_dict()["strength.weight"].T).permute(0, 2, 1), 1e-6)
    same(SigmoidStrength(SIZES, largest=2.0)(0 * x), torch.ones(2, 3, 9, 1))
    assert DECAY.make_module(SIZES)(x).tolist() == [1 - 1 / 32, 1 - 1 / 64, 1 - 1 / 128]
    assert torch.equal(QUERY_MAP.make_module(SIZES)(x), torch.eye(4).expand(3, 4, 4))
    assert (SINK.make_module(SIZES)(x) == 0).all()
    projection = KEY_PROJECTION.make_module(replace(SIZES, rank=100, tokens=2000))(torch.zeros(1, 2000, 16))
    assert abs(projection.std() - 0.1) < 0.001


def test_extras_are_listed_without_torch() -> None:
    program = """
import sys
from separatrix.mechanisms import MECHANISMS
from separatrix.mechanisms.extras import BETA, TokenSizes
names = sorted({extra.name for each in MECHANISMS.values() for extra in each.extras})
print(*names, BETA.shape(TokenSizes(2, 3, 9, 4, 5))[2], "torch" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [
        *("E", "F", "W_k", "W_q", "beta", "decay", "further_keys", "further_values", "lam", "level_scales"),
        *("log_gates", "rates", "removal", "replacement", "ridges", "second_keys", "second_values", "sink"),
        *("slopes", "w", "9", "False"),
    ]


def test_every_mechanism_is_tried() -> None:
    assert {mechanism_named(each).name for each in SPELLINGS} == set(MECHANISMS)
