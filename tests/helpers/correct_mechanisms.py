"""Attention of many kinds, with nothing wrong: the contract must not accuse it."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from broken_mechanisms import Sound


def _masked(logits: Tensor, causal: bool = True) -> Tensor:
    future = torch.ones_like(logits, dtype=torch.bool).triu(1)
    return logits.masked_fill(future, -torch.inf) if causal else logits


def causal_alone(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Causal, and there is no word for it."""
    return _masked(q @ k.mT).softmax(-1) @ v


def causal_by_order(q: Tensor, k: Tensor, v: Tensor, causal: bool = True) -> Tensor:
    """Causal, and anything else is refused."""
    if not causal:
        raise NotImplementedError("this kernel is causal")
    return causal_alone(q, k, v)


def named_as_in_torch(q: Tensor, k: Tensor, v: Tensor, is_causal: bool = False) -> Tensor:
    return nn.functional.scaled_dot_product_attention(q, k, v, is_causal=is_causal)


def squashed(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """A recurrence that is not linear in the values: `S_t = tanh(S_{t-1} / 2 + k_t v_tᵀ)`."""
    state = torch.zeros(*k.shape[:2], k.shape[-1], v.shape[-1], dtype=v.dtype)
    out = []
    for t in range(k.shape[-2]):
        state = torch.tanh(state / 2 + k[..., t, :, None] * v[..., t, None, :])
        out.append((q[..., t, None, :] @ state)[..., 0, :])
    return torch.stack(out, dim=-2)


class SquashedValues(Sound):
    """A mechanism that says that it is not linear in the values, nor normalised."""

    linear_in_values = False

    @property
    def is_normalised(self) -> bool:
        return False

    def definition(self, q: Tensor, k: Tensor, v: Tensor, *more: Any, **options: Any) -> Tensor:
        return super().definition(q, k, v.tanh(), *more, **options)


class Fused(torch.autograd.Function):
    """Softmax attention with a hand-written backward that cannot be differentiated again."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        weights = _masked(q @ k.mT).softmax(-1)
        ctx.save_for_backward(q, k, v, weights)
        return weights @ v

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor, ...]:
        return _slopes(*ctx.saved_tensors, slope)


class FusedWithoutAWord(Fused):
    """The same, and nobody says that its second derivative would be wrong: the weights are saved."""

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor, ...]:
        return _slopes(*ctx.saved_tensors, slope)


def _slopes(q: Tensor, k: Tensor, v: Tensor, weights: Tensor, slope: Tensor) -> tuple[Tensor, ...]:
    of_weights = slope @ v.mT
    of_logits = weights * (of_weights - (of_weights * weights).sum(-1, keepdim=True))
    return of_logits @ k, of_logits.mT @ q, weights.mT @ slope


def fused(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return Fused.apply(q, k, v)


def fused_without_a_word(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return FusedWithoutAWord.apply(q, k, v)


def fused_that_says_so(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return Fused.apply(q, k, v)


fused_that_says_so.twice_differentiable = False  # type: ignore[attr-defined]
fused_that_says_so.causality = "always"  # type: ignore[attr-defined]


class Projected(nn.Module):
    """Learned maps of one width for queries, keys and values."""

    def __init__(self, width: int = 24) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            self.maps = nn.ModuleList(nn.Linear(width, width) for _ in range(3))
        self.drop = nn.Dropout(0.3)

    def forward(self, q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
        q, k, v = (each(x) for each, x in zip(self.maps, (q, k, v), strict=True))
        return self.drop(_masked(q @ k.mT / math.sqrt(q.shape[-1]), causal).softmax(-1)) @ v


class TemperaturePerHead(nn.Module):
    """Weights for a fixed number of heads, said by an attribute."""

    fixed_heads = 4

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.linspace(0.5, 1.5, 4)[:, None, None])

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return (self.scale * (q @ k.mT)).softmax(-1) @ v


class HeadsAndWidth(nn.Module):
    """A map for each head: both sizes are fixed, and it does not say so."""

    def __init__(self) -> None:
        super().__init__()
        drawn = torch.Generator().manual_seed(0)
        self.mix = nn.Parameter(torch.randn(6, 12, 12, generator=drawn) / 6)

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return ((q @ self.mix) @ k.mT).softmax(-1) @ v


def rotated(q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
    """Rotary positions: the width must be even."""
    if q.shape[-1] % 2:
        raise ValueError("rotary positions need an even width")
    return _masked(_turned(q) @ _turned(k).mT, causal).softmax(-1) @ v


def _turned(x: Tensor) -> Tensor:
    half = x.shape[-1] // 2
    speed = 100.0 ** -(torch.arange(half, dtype=torch.float64) / half)
    angle = torch.arange(x.shape[-2], dtype=torch.float64)[:, None] * speed
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    one, other = x[..., :half], x[..., half:]
    return torch.cat([one * cos - other * sin, one * sin + other * cos], -1)


def hotter_with_length(q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
    """The number of all tokens sets the temperature, and it says so."""
    return _masked(math.log(1 + k.shape[-2]) * (q @ k.mT), causal).softmax(-1) @ v


hotter_with_length.length_free = False  # type: ignore[attr-defined]


def gates(q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
    """Sigmoid attention, which nothing normalises."""
    return _masked(q @ k.mT - 2, causal).sigmoid() @ v


def random_features(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Features from a generator of its own."""
    drawn = torch.Generator().manual_seed(1)
    waves = torch.randn(q.shape[-1], 8, generator=drawn, dtype=torch.float64).to(q.dtype)
    q, k = (nn.functional.softplus(x @ waves) + 0.1 for x in (q, k))
    return q @ (k.mT @ v) / (q @ k.sum(-2)[..., None])


def counted(q: Tensor, k: Tensor, v: Tensor, counts: Tensor | None = None, causal: bool = False) -> Tensor:
    logits = _masked(q @ k.mT, causal)
    return (logits if counts is None else logits + counts.log()[..., None, :]).softmax(-1) @ v


def windowed(q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
    """A window of 64 tokens, which small inputs do not fill."""
    far = (torch.arange(q.shape[-2])[:, None] - torch.arange(k.shape[-2])).abs() >= 64
    return _masked((q @ k.mT).masked_fill(far, -1e4), causal).softmax(-1) @ v


def without_weight(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Linear attention that nothing normalises: a key of zeros is none."""
    return q @ (k.mT @ v)


def window_of_128(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """A window that is wider than most inputs, on both sides."""
    far = (torch.arange(q.shape[-2])[:, None] - torch.arange(k.shape[-2])).abs() > 128
    return (q @ k.mT).masked_fill(far, -torch.inf).softmax(-1) @ v


def queries_in_the_state(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """A recurrence whose state takes the queries in: it cannot be asked for one query alone."""
    state, out = torch.zeros_like(v[..., 0, :]), []
    for t in range(v.shape[-2]):
        gate = k[..., t, :].sum(-1, keepdim=True).sigmoid()
        state = torch.tanh(gate * state + v[..., t, :] * q[..., t, :].mean(-1, keepdim=True))
        out.append(state)
    return torch.stack(out, dim=-2)


def without_counts(q: Tensor, k: Tensor, v: Tensor, counts: Tensor | None = None, causal: bool = False) -> Tensor:
    """Takes the usual arguments, and says that it does not do one of them."""
    if counts is not None:
        raise NotImplementedError("counts are not supported")
    return _masked(q @ k.mT, causal).softmax(-1) @ v


def largest_four(q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
    """Softmax over the four largest logits: in 16 bits the choice among nearly equal ones is another."""
    logits = _masked(q @ k.mT, causal)
    least = logits.topk(min(4, logits.shape[-1]), -1).values[..., -1:]
    return logits.masked_fill(logits < least, -torch.inf).softmax(-1) @ v


def the_largest(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """The value of the key with the largest logit: neither queries nor keys have a gradient but 0."""
    logits = q @ k.mT
    chosen = nn.functional.one_hot(logits.argmax(-1), logits.shape[-1]).to(v.dtype)
    return chosen @ v + 0 * (q.sum() + k.sum())


def within_blocks(q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
    """Each block of 64 tokens by itself, and a query for every key."""
    if q.shape[-2] != k.shape[-2]:
        raise ValueError("self-attention only")
    block = torch.arange(k.shape[-2]) // 64
    return _masked((q @ k.mT).masked_fill(block[:, None] != block, -torch.inf), causal).softmax(-1) @ v


def causal_within_blocks(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return within_blocks(q, k, v, causal=True)


def balanced(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Sinkhorn's: columns and rows are normalised in turn, so that queries are something to each other."""
    logits = q @ k.mT
    for _ in range(3):
        logits = logits - logits.logsumexp(-2, keepdim=True)
        logits = logits - logits.logsumexp(-1, keepdim=True)
    return logits.exp() @ v


def long_convolution(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """A decaying filter along the values, by Fourier transforms, and a gate of the query."""
    length, wide = v.shape[-2], v.double() if v.dtype is torch.float64 else v.float()
    filtered = 0.9 ** torch.arange(length, dtype=wide.dtype)
    waves = torch.fft.rfft(wide, 2 * length, dim=-2) * torch.fft.rfft(filtered, 2 * length)[:, None]
    out = torch.fft.irfft(waves, 2 * length, dim=-2)[..., :length, :]
    return (out * q.to(wide.dtype).sum(-1, keepdim=True).sigmoid()).to(v.dtype) + 0 * k.sum()


def block_by_block(q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
    """Softmax in blocks of keys with a running largest logit, added up in float32 and rounded once."""
    wide = torch.promote_types(v.dtype, torch.float32)
    top = torch.full((*q.shape[:-1], 1), -torch.inf, dtype=wide)
    whole, out = torch.zeros_like(top), torch.zeros(*q.shape[:-1], v.shape[-1], dtype=wide)
    place = torch.arange(q.shape[-2])[:, None]
    for start in range(0, k.shape[-2], 48):
        logits = q.to(wide) @ k[..., start : start + 48, :].to(wide).mT
        if causal:
            logits = logits.masked_fill(start + torch.arange(logits.shape[-1]) > place, -torch.inf)
        higher = torch.maximum(top, logits.amax(-1, keepdim=True).detach())
        scores, less = (logits - higher).exp(), (top - higher).exp()
        whole = less * whole + scores.sum(-1, keepdim=True)
        out, top = less * out + scores @ v[..., start : start + 48, :].to(wide), higher
    return (out / whole).to(v.dtype)


def state_in_float32(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """A recurrence that forgets nothing, whose state has enough bits and whose results are rounded."""
    wide = torch.promote_types(v.dtype, torch.float32)
    state, out = torch.zeros(*k.shape[:2], k.shape[-1], v.shape[-1], dtype=wide), []
    for t in range(k.shape[-2]):
        state = state + k[..., t, :, None].to(wide) * v[..., t, None, :].to(wide)
        out.append((q[..., t, None, :].to(wide) @ state)[..., 0, :] / (t + 1))
    return torch.stack(out, dim=-2).to(v.dtype)


def fading(q: Tensor, k: Tensor, v: Tensor, *, is_causal: bool = False) -> Tensor:
    """ALiBi: logits less a share of the distance, another one for each head; causal by keyword alone."""
    slopes = 2.0 ** -(1 + torch.arange(q.shape[1], dtype=torch.float64) % 8)
    far = (torch.arange(q.shape[-2])[:, None] - torch.arange(k.shape[-2])).abs()
    return _masked(q @ k.mT - (slopes[:, None, None] * far).to(q.dtype), is_causal).softmax(-1) @ v


@cache
def _future(length: int) -> Tensor:
    return torch.ones(length, length, dtype=torch.bool).triu(1)


def with_a_kept_mask(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Causal, with masks that are made once."""
    return (q @ k.mT).masked_fill(_future(k.shape[-2]), -torch.inf).softmax(-1) @ v


def padded_to_64(q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
    """A kernel for blocks of 64 keys, whose last one is filled up with keys that are masked."""
    length = k.shape[-2]
    k, v = (nn.functional.pad(x, (0, 0, 0, -length % 64)) for x in (k, v))
    nobody = torch.arange(k.shape[-2]) >= length
    return _masked(q @ k.mT, causal).masked_fill(nobody, -torch.inf).softmax(-1) @ v


def with_its_weights(q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> tuple[Tensor, Tensor]:
    """The result, and the weights beside it."""
    weights = _masked(q @ k.mT, causal).softmax(-1)
    return weights @ v, weights


def by_angle(q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
    """Cosine attention, where short tokens are not made longer."""
    q, k = (x / (x.square().sum(-1, keepdim=True) + 0.1).sqrt() for x in (q, k))
    return _masked(4 * (q @ k.mT), causal).softmax(-1) @ v


def with_einsum(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """A window that only looks back, by sums of products, in float32 at the least."""
    wide = torch.promote_types(v.dtype, torch.float32)
    logits = torch.einsum("bhid,bhjd->bhij", q.to(wide), k.to(wide)) / q.shape[-1]
    back = torch.arange(q.shape[-2])[:, None] - torch.arange(k.shape[-2])
    logits = logits.masked_fill((back < 0) | (back >= 100), -torch.inf)
    return torch.einsum("bhij,bhjf->bhif", logits.softmax(-1), v.to(wide)).to(v.dtype)


def empty_window(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """A window of three keys: of more queries than keys the last ones see none, and have no answer."""
    far = (torch.arange(q.shape[-2])[:, None] - torch.arange(k.shape[-2])).abs() >= 3
    return (q @ k.mT).masked_fill(far, -torch.inf).softmax(-1) @ v


def talking_heads(q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
    """A little of the next head's logits beside each head's own, as it says."""
    logits = q @ k.mT
    return _masked(logits + 0.1 * logits.roll(1, 1), causal).softmax(-1) @ v


talking_heads.mixes_heads = True  # type: ignore[attr-defined]


def by_distance(q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
    """The distance of keys, for which torch has no operation in 16 bits."""
    return _masked(-(torch.cdist(q, k) ** 2), causal).softmax(-1) @ v


def largest_eight(q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
    """Softmax over the logits that are not below the eighth largest: in 16 bits there may be nine of them."""
    logits = _masked(q @ k.mT, causal)
    least = logits.topk(min(8, logits.shape[-1]), -1).values[..., -1:]
    return logits.masked_fill(logits < least, -torch.inf).softmax(-1) @ v


def largest_128(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """As many keys as small inputs have: of many tokens some count for nothing, by what they are."""
    logits = q @ k.mT
    values, places = logits.topk(min(128, logits.shape[-1]), -1)
    return torch.zeros_like(logits).scatter(-1, places, values.softmax(-1)) @ v


CORRECT: list[Callable[..., Any]] = [
    causal_alone,
    causal_by_order,
    named_as_in_torch,
    squashed,
    SquashedValues,
    fused,
    fused_without_a_word,
    fused_that_says_so,
    Projected,
    TemperaturePerHead,
    HeadsAndWidth,
    rotated,
    hotter_with_length,
    gates,
    random_features,
    counted,
    without_counts,
    windowed,
    without_weight,
    window_of_128,
    queries_in_the_state,
    largest_four,
    the_largest,
    within_blocks,
    causal_within_blocks,
    balanced,
    long_convolution,
    block_by_block,
    state_in_float32,
    fading,
    with_a_kept_mask,
    padded_to_64,
    with_its_weights,
    by_angle,
    with_einsum,
    empty_window,
    talking_heads,
    by_distance,
    largest_eight,
    largest_128,
]
"""What must pass."""
