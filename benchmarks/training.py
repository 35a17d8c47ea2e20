"""Forward and backward passes: time relative to torch's fused causal softmax, memory in units of one input.

Memory is the largest number of bytes of tensors that are alive at the same time and were made by forward and
backward (`separatrix.analysis.costs.cost`): the output, its gradient and those of q, k and v are five
inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from benchmarks._base import Measurement, at_most, ratio, require
from separatrix.analysis.costs.cost import peak_bytes
from separatrix.mechanisms import Causality, Mechanism, _blocks, examples, mechanism_named

BATCH, HEADS, WIDTH = 16, 4, 32
TIMED_TOKENS, MEMORY_TOKENS, GROWTH_TOKENS, CHECKED_TOKENS = 512, 1024, 2048, 150
SMALL_BLOCK = 1 << 15
MAX_TIMES = {"causal-linear": 0.4, "retention": 0.7, "delta": 1.0, "gated-delta": 1.5, "gla": 2.0, "based": 4.0}
"""The largest time of each mechanism relative to torch's fused causal softmax, at 512 tokens."""
LEAN = ("gla", "ssd", "delta", "gated-delta", "retention")
MAX_INPUTS = 8.0
"""The largest peak of the lean mechanisms in units of one input, at 1,024 tokens."""

Attend = Callable[[Tensor, Tensor, Tensor], Tensor]


def measure() -> Iterator[Measurement]:
    """Yield the measurements of this file. Gradients are first compared with those of the definition."""
    yield from measure_times()
    yield from measure_memory()
    yield measure_growth()


def measure_times() -> Iterator[Measurement]:
    """Measure the time of attention in a training step, relative to softmax."""

    def fused(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return scaled_dot_product_attention(q, k, v, is_causal=True)

    for name, limit in MAX_TIMES.items():
        relative_time = partial(time_against, fused, mechanism_named(name))
        yield at_most(f"{name}: forward and backward over SDPA's, n={TIMED_TOKENS}", relative_time, "x", limit)


def time_against(fused: Attend, mechanism: Mechanism) -> float:
    """Return the time of a mechanism relative to another, after its gradients are checked."""
    check_gradients(mechanism)
    inputs = random_tokens(TIMED_TOKENS)
    attend = causal_form(mechanism)
    return ratio(lambda: gradients(attend, *inputs), lambda: gradients(fused, *inputs), repeats=9)


def measure_memory() -> Iterator[Measurement]:
    """Measure the peak memory of attention in a training step."""
    q, k, v = random_tokens(MEMORY_TOKENS)
    for name in LEAN:
        attend = causal_form(mechanism_named(name))
        peak = peak_bytes(lambda attend=attend: gradients(attend, q, k, v))  # type: ignore[misc]
        inputs = peak / (q.numel() * q.element_size())
        yield at_most(f"{name}: peak of backward over one input, n={MEMORY_TOKENS:,}", inputs, "x", MAX_INPUTS)


def measure_growth() -> Measurement:
    """Measure the peak at twice the tokens, over all mechanisms whose memory should be linear in them."""
    growth, block = {}, _blocks.MAX_SCORES
    # Smaller blocks of scores, so that a few tokens already have many.
    _blocks.MAX_SCORES = SMALL_BLOCK
    for mechanism in examples():
        if mechanism.streams:
            peaks = []
            for length in (GROWTH_TOKENS, 2 * GROWTH_TOKENS):
                x = random_tokens(length, batch=1, heads=1)
                peaks.append(peak_bytes(lambda x=x, m=mechanism: gradients(causal_form(m), *x)))  # type: ignore[misc]
            growth[mechanism.spelled] = peaks[1] / peaks[0]
    _blocks.MAX_SCORES = block
    worst = max(growth, key=lambda name: growth[name])
    title = f"peak of backward at twice the tokens, the largest of {len(growth)} mechanisms: {worst}"
    return at_most(title, growth[worst], "x", 2.1)


def causal_form(mechanism: Mechanism) -> Attend:
    """Return the causal form of a mechanism, or the mechanism itself if it has none."""
    causal = mechanism.causality is not Causality.NEVER
    return lambda q, k, v: mechanism(q, k, v, causal=causal)


def random_tokens(length: int, batch: int = BATCH, heads: int = HEADS) -> tuple[Tensor, Tensor, Tensor]:
    """Return positive tokens with moderate logits, which are valid for every mechanism."""
    generator = torch.Generator().manual_seed(0)
    q, k, v = ((torch.rand(batch, heads, length, WIDTH, generator=generator) / 3).requires_grad_() for _ in "qkv")
    return q, k, v


def gradients(attend: Attend, *inputs: Tensor) -> tuple[Tensor, ...]:
    """Return the gradients of the sum of the outputs."""
    out = attend(*inputs)
    return torch.autograd.grad(out, inputs, torch.ones_like(out), materialize_grads=True)


def check_gradients(mechanism: Mechanism) -> None:
    """Require that the gradients of the fast form are those of the definition."""
    inputs = random_tokens(CHECKED_TOKENS, batch=2, heads=2)
    actual = gradients(causal_form(mechanism), *inputs)
    expected = gradients(lambda q, k, v: mechanism.definition(q, k, v, causal=True), *inputs)
    for gradient, reference in zip(actual, expected, strict=True):
        agrees = torch.allclose(gradient, reference, rtol=1e-3, atol=1e-4 * float(reference.abs().max()))
        require(agrees, f"the gradients of {mechanism.spelled} against those of its definition")
