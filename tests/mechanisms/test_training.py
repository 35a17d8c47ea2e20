"""Training: backward computes parts again, with the right gradients, in memory linear in the tokens."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
import torch
from torch import Tensor

from separatrix.analysis.costs.cost import peak_bytes
from separatrix.mechanisms import Causality, Mechanism, _blocks, _running_sums, examples, mechanism_named
from separatrix.mechanisms._recompute import recompute
from separatrix.mechanisms.features import _base as features_base
from separatrix.mechanisms.features.elu import elu_plus_one
from separatrix.mechanisms.features.hedgehog import Hedgehog
from separatrix.mechanisms.recurrent._base import RecurrentMechanism

MECHANISMS = [each.spelled for each in examples() if each.name != "nystrom"]
"""All but one whose inverse magnifies rounding, and whose parts are torch's own."""
JUMPING = {"hardmax", "topk"}
"""Weights that jump: a derivative of the second order says nothing about them."""

FUSED = {
    "softmax",
    "logn-softmax",
    "differential",
    "linformer",
    "rotary",
    "block-random",
    "block-routing",
    "strided",
    "window",
    "window-global",
}
"""What calls torch's fused softmax, which cannot be differentiated twice."""


@pytest.fixture
def in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few tokens at a time, so that short inputs have many parts."""
    monkeypatch.setattr(_blocks, "MAX_SCORES", 1000)
    monkeypatch.setattr(_running_sums, "MAX_CACHED_NUMBERS", 1)
    monkeypatch.setattr(features_base, "MAX_CACHED_NUMBERS", 100)
    monkeypatch.setattr(RecurrentMechanism, "tokens_per_run", lambda self, k: 16)


def mode(mechanism: Mechanism) -> bool:
    return mechanism.causality is not Causality.NEVER


def tokens(n: int, width: int = 4, dtype: torch.dtype = torch.float64) -> list[Tensor]:
    drawn = torch.Generator().manual_seed(n)
    return [torch.rand(2, 2, n, width, generator=drawn, dtype=torch.float64).to(dtype) for _ in range(3)]


def with_extras(mechanism: Mechanism, q: Tensor, k: Tensor, v: Tensor) -> dict[str, Tensor]:
    drawn, sizes = torch.Generator().manual_seed(3), mechanism.sizes(q, k, v)
    return {extra.name: extra.draw(sizes, drawn) for extra in mechanism.extras}


def slopes(attend: Any, q: Tensor, k: Tensor, v: Tensor, extras: dict[str, Tensor], **more: Any) -> Any:
    """The gradients of the outputs, weighted by random numbers, with respect to every input."""
    inputs = [x.detach().clone().requires_grad_() for x in (q, k, v, *extras.values())]
    out = attend(*inputs[:3], **dict(zip(extras, inputs[3:], strict=True)), **more)
    weights = torch.randn(out.shape, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    found = torch.autograd.grad((out * weights).sum(), inputs, create_graph=True, materialize_grads=True)
    return inputs, found


SLOW = {"entmax", "sparsemax", "path", "kda", "deltaproduct"}
STREAMING = [
    pytest.param(spelling, marks=[pytest.mark.exhaustive] if spelling in SLOW else [])
    for spelling in MECHANISMS
    if mechanism_named(spelling).streams
]


@pytest.mark.usefixtures("in_parts")
@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("spelling", MECHANISMS)
def test_gradients_are_those_of_the_definition(spelling: str, gaps: bool) -> None:
    mechanism = mechanism_named(spelling)
    q, k, v = tokens(70)
    more: dict[str, Any] = {"causal": mode(mechanism)}
    if gaps:
        more["present"] = torch.rand(2, 70, generator=torch.Generator().manual_seed(5)) > 0.2
    if gaps and mechanism.causality is Causality.NEVER:
        pytest.skip("tried without gaps: the present tokens are attended alone")
    extras = with_extras(mechanism, q, k, v)
    (_, ours), (_, theirs) = (slopes(form, q, k, v, extras, **more) for form in (mechanism, mechanism.definition))
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-8)


@pytest.mark.usefixtures("in_parts")
@pytest.mark.parametrize("spelling", [each for each in MECHANISMS if each not in JUMPING | FUSED])
def test_second_derivatives_are_those_of_the_definition(spelling: str) -> None:
    mechanism = mechanism_named(spelling)
    for one, other in zip(*map(curvature, (mechanism, mechanism), (False, True)), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-7)


@pytest.mark.usefixtures("in_parts")
@pytest.mark.parametrize("spelling", sorted(FUSED))
def test_fused_softmax_says_that_it_has_no_second_derivative(spelling: str) -> None:
    with pytest.raises(RuntimeError, match=r"derivative for aten::_scaled_dot_product.* is not implemented"):
        curvature(mechanism_named(spelling), fast=True)


def curvature(mechanism: Mechanism, fast: bool) -> tuple[Tensor, ...]:
    """The gradient of the size of the gradient."""
    q, k, v = tokens(40, width=2)
    form = mechanism if fast else mechanism.definition
    inputs, first = slopes(form, q, k, v, with_extras(mechanism, q, k, v), causal=mode(mechanism))
    return torch.autograd.grad(sum(x.square().sum() for x in first), inputs, materialize_grads=True)


RECURRENT = [each for each in MECHANISMS if isinstance(mechanism_named(each), RecurrentMechanism)]


@pytest.mark.parametrize("spelling", RECURRENT)
def test_gradients_pass_through_states(spelling: str) -> None:
    """Into the state that reading begins with, and from the one that it ends with."""
    mechanism = mechanism_named(spelling)
    assert isinstance(mechanism, RecurrentMechanism)
    q, k, v = tokens(60)
    _, state = mechanism.chunked(*(x[..., :20, :] for x in (q, k, v)))

    def read(chunk: int) -> Any:
        inputs = [x.detach().clone().requires_grad_(x.is_floating_point()) for x in (q, k, v, *state)]
        later = (x[..., 20:, :] for x in inputs[:3])
        out, after = mechanism.chunked(*later, chunk, state=tuple(inputs[3:]))
        size = out.square().sum() + sum(x.square().sum() for x in after)
        wanted = [x for x in inputs if x.requires_grad]
        found = torch.autograd.grad(size, wanted, materialize_grads=True)
        # What holds nothing yet may be what nothing can ever be in, as a level that is not reached.
        return [slope * (x != 0) for slope, x in zip(found, wanted, strict=True)]

    for one, other in zip(read(7), read(1000), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("gaps", [False, pytest.param(True, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("spelling", STREAMING)
def test_memory_of_backward_is_linear_in_the_tokens(spelling: str, gaps: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted as torch makes and frees tensors, forward and backward together."""
    monkeypatch.setattr(_blocks, "MAX_SCORES", 1 << 15)
    mechanism, peaks = mechanism_named(spelling), []
    if gaps and not mechanism.takes_present:
        pytest.skip("the present tokens are attended alone")
    for n in (1024, 2048) if mechanism.family == "sparse" else (512, 1024):
        q, k, v = (x[:1, :1].clone().requires_grad_() for x in tokens(n, width=16, dtype=torch.float32))
        present = torch.rand(1, n, generator=torch.Generator().manual_seed(5)) > 0.1 if gaps else None

        def train(q: Tensor = q, k: Tensor = k, v: Tensor = v, present: Any = present) -> None:
            out = mechanism(q, k, v, causal=mode(mechanism), present=present)
            torch.autograd.grad(out.sum(), (q, k, v), allow_unused=True)

        peaks.append(peak_bytes(train))
    assert peaks[1] < 2.2 * peaks[0]


def test_a_part_is_computed_again_when_its_gradient_is_due() -> None:
    calls = []

    def part(x: Tensor, nothing: None, y: Tensor) -> tuple[Tensor, Tensor]:
        calls.append(torch.is_grad_enabled())
        return x * y, x.square()

    x, y = torch.tensor(3.0, requires_grad=True), torch.tensor(2.0)
    product, square = recompute(part, x, None, y)
    assert calls == [False]
    assert torch.autograd.grad(square, x, retain_graph=True) == (torch.tensor(6.0),)
    assert torch.autograd.grad(product + square, x) == (torch.tensor(8.0),)
    assert calls == [False, True, True]
    with torch.no_grad():
        recompute(part, x, None, y)
    recompute(part, x.detach(), None, y)
    assert calls[3:] == [False, True]


def test_inputs_changed_before_backward_are_noticed() -> None:
    x = torch.ones(2, requires_grad=True)
    y = 2 * x
    out = recompute(torch.sin, y)
    y.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


def test_a_gate_that_comes_from_the_key_counts_once_in_second_derivatives() -> None:
    """An input that another input was made from is not differentiated through it."""
    k = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(lambda k: recompute(torch.mul, k, k.sin()), k)


@pytest.mark.usefixtures("in_parts")
def test_gradients_of_what_was_attended_under_autocast_are_in_full_precision() -> None:
    mechanism = mechanism_named("ssd")
    q, k, v = (x.requires_grad_() for x in tokens(200, dtype=torch.float32))
    expected = torch.autograd.grad(mechanism(q, k, v, causal=True).sum(), (q, k, v))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        attended = mechanism(q, k, v, causal=True)
    for one, other in zip(torch.autograd.grad(attended.sum(), (q, k, v)), expected, strict=True):
        torch.testing.assert_close(one, other)


def test_parts_are_computed_again_in_full_precision_under_autocast() -> None:
    x, y = (each[0, 0].requires_grad_() for each in tokens(4, dtype=torch.float32)[:2])
    out = recompute(torch.matmul, x, y)
    expected = torch.autograd.grad((x @ y).square().sum(), (x, y))
    slope = 2 * (x @ y).detach()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = torch.autograd.grad(out, (x, y), slope)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
@pytest.mark.usefixtures("in_parts")
@pytest.mark.parametrize("spelling", ["ssd", "elu", "relu", "fox"])
def test_transforms_of_torch_see_every_operation(spelling: str) -> None:
    mechanism = mechanism_named(spelling)
    q, k, v = tokens(40)

    def total(k: Tensor) -> Tensor:
        return mechanism(q, k, v, causal=True).square().sum()

    leaf = k.clone().requires_grad_()
    (expected,) = torch.autograd.grad(total(leaf), leaf)
    torch.testing.assert_close(torch.func.grad(total)(k), expected)
    slope = torch.func.jvp(total, (k,), (torch.ones_like(k),))[1]
    torch.testing.assert_close(slope, expected.sum())


@pytest.mark.usefixtures("in_parts")
def test_held_weights_have_gradients() -> None:
    q, k, v = tokens(100)
    weight = torch.eye(4, dtype=torch.float64, requires_grad=True)
    mechanism = Hedgehog.with_weight(weight)
    one, other = (
        torch.autograd.grad(form(q, k, v, causal=True).square().sum(), weight)[0]
        for form in (mechanism, mechanism.definition)
    )
    torch.testing.assert_close(one, other)


COMPILED = """
import sys, torch
from separatrix.mechanisms import Causality, mechanism_named

for spelling in sys.argv[1:]:
    mechanism = mechanism_named(spelling)
    causal = mechanism.causality is not Causality.NEVER
    drawn = torch.Generator().manual_seed(0)
    # In float64, so that the two forms may differ by next to nothing.
    inputs = [torch.rand(2, 2, 140, 4, generator=drawn, dtype=torch.float64).requires_grad_() for _ in "qkv"]
    attend = lambda q, k, v: mechanism(q, k, v, causal=causal)
    torch._dynamo.reset()
    found = []
    whole = spelling != "linformer"  # which draws numbers with a generator of its own: no part of a graph
    for form in (torch.compile(attend, backend="aot_eager", fullgraph=whole), attend):
        out = form(*inputs)
        found.append((out, *torch.autograd.grad(out.square().sum(), inputs)))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)
    print(spelling)
"""


@pytest.mark.exhaustive
@pytest.mark.long
def test_torch_compiles_mechanisms_of_every_family() -> None:
    """As one graph, forward and backward, by torch's tracing without its C++ compiler, which may be missing.

    There torch decides what backward computes again. In a process of its own: what checks shapes in tests is
    nothing that torch can trace.
    """
    names = ["softmax", "relu", "fox", "elu", "window", "linformer", "retention", "ssd", "delta", "gla"]
    done = subprocess.run([sys.executable, "-c", COMPILED, *names], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == names


def test_second_derivatives_by_queries_alone() -> None:
    """The state after a run of delta does not depend on its queries."""
    q, k, v = tokens(20)
    q.requires_grad_()
    delta = mechanism_named("delta")
    (slope,) = torch.autograd.grad(delta(q, k, v, causal=True).square().sum(), q, create_graph=True)
    expected = delta.definition(q, k, v, causal=True).square().sum()
    (literal,) = torch.autograd.grad(expected, q, create_graph=True)
    (twice,), (literal_twice,) = (torch.autograd.grad(x.square().sum(), q) for x in (slope, literal))
    assert torch.allclose(twice, literal_twice)


@pytest.mark.parametrize("name", ["delta", "gated-delta", "causal-linear", "gla"])
def test_batched_gradients(name: str) -> None:
    inputs = [x.requires_grad_() for x in tokens(6)]
    out = mechanism_named(name)(*inputs, causal=True)
    slopes = torch.eye(out.numel(), dtype=out.dtype).reshape(-1, *out.shape)[:5]
    batched = torch.autograd.grad(out, inputs, slopes, is_grads_batched=True, retain_graph=True)
    for number, slope in enumerate(slopes):
        one_by_one = torch.autograd.grad(out, inputs, slope, retain_graph=True)
        for all_rows, row in zip(batched, one_by_one, strict=True):
            assert torch.allclose(all_rows[number], row)


def test_the_features_of_elu_are_differentiated_through_vmap() -> None:
    x = torch.linspace(-2, 2, 8, dtype=torch.float64).reshape(2, 4)
    slope = torch.func.grad(lambda x: torch.func.vmap(elu_plus_one)(x).sum())(x)
    assert torch.allclose(slope, x.clamp(max=0).exp())


@pytest.mark.parametrize("recorded", [True, False], ids=["grad", "no grad"])
@pytest.mark.parametrize("shared", ["heads", "batch", "counts"])
@pytest.mark.parametrize("name", ["elu", "identity-features:normalised=no", "relu-features", "delta", "gated-delta"])
def test_keys_that_several_heads_share(name: str, shared: str, recorded: bool) -> None:
    mechanism = mechanism_named(name)
    recurrent = isinstance(mechanism, RecurrentMechanism)
    q, k, v = tokens(9)
    counts = None
    if shared == "heads":
        k, v = k[:, :1], v[:, :1]
    elif shared == "batch":
        k, v = k[:1], v[:1]
    elif recurrent:
        pytest.skip("a recurrence takes no counts")
    else:
        k, counts = k[:1, :1], torch.arange(1, 37, dtype=torch.float64).reshape(2, 2, 9)
    whole = [x.expand(2, 2, -1, -1) for x in (q, k, v)]
    options: dict[str, Any] = {"causal": True} if recurrent else {"counts": counts}
    with torch.set_grad_enabled(recorded):
        q = q.requires_grad_(recorded)
        out = mechanism(q, k, v, **options)
    assert torch.allclose(out, mechanism.definition(*whole, **options))
