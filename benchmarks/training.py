"""Forward and backward, as models train: time as a ratio to torch's fused causal softmax, memory in inputs.

Memory is the most bytes of tensors alive at once that forward and backward made, counted as torch makes and
frees them (`separatrix.analysis.costs.memory`): the output, its gradient and those of q, k and v are five
inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from benchmarks._base import Measurement, at_most, ratio, require
from separatrix.analysis.costs.memory import peak_bytes
from separatrix.mechanisms import Causality, Mechanism, _base, examples, mechanism_named

BATCH, HEADS, WIDTH = 16, 4, 32
TIMED, HELD, GROWN, CHECKED = 512, 1024, 2048, 150
SMALL = 1 << 15
SLOWEST = {
    "causal-linear": 0.4,
    "retention": 0.7,
    "delta": 1.0,
    "gated-delta": 1.5,
    "gla": 2.0,
    "based": 4.0,
}
"""How many times as long as torch's fused causal softmax each may take, at 512 tokens."""
LEAN = ("gla", "ssd", "delta", "gated-delta", "retention")
MOST = 8.0
"""How many inputs these may hold, at 1,024 tokens."""

Attend = Callable[[Tensor, Tensor, Tensor], Tensor]


def measure() -> Iterator[Measurement]:
    """All lines of this file. Gradients are first compared with those of the definition."""
    yield from times()
    yield from memory()
    yield growth()


def times() -> Iterator[Measurement]:
    """The time of a training step's attention, against softmax."""

    def fused(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return scaled_dot_product_attention(q, k, v, is_causal=True)

    for name, limit in SLOWEST.items():
        slower = partial(slower_than, fused, mechanism_named(name))
        yield at_most(f"{name}: forward and backward over SDPA's, n={TIMED}", slower, "x", limit)


def slower_than(fused: Attend, mechanism: Mechanism) -> float:
    """How many times as long a mechanism takes whose gradients are right."""
    check_gradients(mechanism)
    inputs = tokens(TIMED)
    return ratio(lambda: trained(causal(mechanism), *inputs), lambda: trained(fused, *inputs), repeats=9)


def memory() -> Iterator[Measurement]:
    """The peak of a training step's attention."""
    q, k, v = tokens(HELD)
    for name in LEAN:
        attend = causal(mechanism_named(name))
        held = peak_bytes(lambda attend=attend: trained(attend, q, k, v))  # type: ignore[misc]
        inputs = held / (q.numel() * q.element_size())
        yield at_most(f"{name}: peak of backward over one input, n={HELD:,}", inputs, "x", MOST)


def growth() -> Measurement:
    """The peak at twice the tokens, over all mechanisms that say that theirs is linear in them.

    Blocks of scores are made smaller for it, so that a few tokens have many.
    """
    grown, block = {}, _base.BLOCK
    _base.BLOCK = SMALL
    for mechanism in examples():
        if mechanism.streams:
            peaks = []
            for length in (GROWN, 2 * GROWN):
                x = tokens(length, batch=1, heads=1)
                peaks.append(peak_bytes(lambda x=x, m=mechanism: trained(causal(m), *x)))  # type: ignore[misc]
            grown[mechanism.spelled] = peaks[1] / peaks[0]
    _base.BLOCK = block
    worst = max(grown, key=lambda name: grown[name])
    what = f"peak of backward at twice the tokens, the largest of {len(grown)} mechanisms: {worst}"
    return at_most(what, grown[worst], "x", 2.1)


def causal(mechanism: Mechanism) -> Attend:
    """Its causal form, if it has one."""
    past = mechanism.causality is not Causality.NEVER
    return lambda q, k, v: mechanism(q, k, v, causal=past)


def tokens(length: int, batch: int = BATCH, heads: int = HEADS) -> tuple[Tensor, Tensor, Tensor]:
    """Positive tokens of moderate logits, as every mechanism can bear."""
    generator = torch.Generator().manual_seed(0)
    q, k, v = (
        (torch.rand(batch, heads, length, WIDTH, generator=generator) / 3).requires_grad_() for _ in "qkv"
    )
    return q, k, v


def trained(attend: Attend, *inputs: Tensor) -> tuple[Tensor, ...]:
    """The gradients of the sum of the outputs."""
    out = attend(*inputs)
    return torch.autograd.grad(out, inputs, torch.ones_like(out), materialize_grads=True)


def check_gradients(mechanism: Mechanism) -> None:
    """The gradients of the fast form are those of the definition."""
    inputs = tokens(CHECKED, batch=2, heads=2)
    found = trained(causal(mechanism), *inputs)
    expected = trained(lambda q, k, v: mechanism.definition(q, k, v, causal=True), *inputs)
    for one, other in zip(found, expected, strict=True):
        agrees = torch.allclose(one, other, rtol=1e-3, atol=1e-4 * float(other.abs().max()))
        require(agrees, f"the gradients of {mechanism.spelled} against those of its definition")
