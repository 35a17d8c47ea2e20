"""What stands between a projection and a mechanism: norm, rotary places, short convolution."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from separatrix.core.tensors import Bool, Float, Int64, Tensor
from separatrix.mechanisms._methods import upcast

Tokens = Float[Tensor, "batch tokens channels"]
Heads = Float[Tensor, "batch heads tokens width"]


def keeping_size(linear: nn.Linear) -> nn.Linear:
    """The map with initial weights N(0, 1 / inputs): numbers of root mean square 1 come out so.

    Those of `nn.Linear` make numbers 1.7 times smaller, and logits of queries and keys that come from two$
    such maps 9 times: attention then starts so flat that some mechanisms do not begin to learn.
    """
    nn.init.normal_(linear.weight, std=linear.in_features**-0.5)
    return linear


class RMSNorm(nn.Module):
    """`x / sqrt(mean x² + 1e-6) · weight` over the last dimension, added up in float32: arXiv 1910.07467."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Float[Tensor, "*tokens width"]) -> Float[Tensor, "*tokens width"]:
        """The tokens at root mean square 1, in their own dtype."""
        wide = upcast(x)[0]
        size = (wide.square().mean(-1, keepdim=True) + 1e-6).rsqrt()
        return (wide * size * self.weight).to(x.dtype)


def rotated(x: Heads, places: Int64[Tensor, "batch tokens"], base: float) -> Heads:
    """Rotary positions: channels i and i + width/2 turned by `place · base^(-2i/width)`; arXiv 2104.09864.

    Which channels make a pair is as in GPT-NeoX and Llama; the paper pairs neighbours.
    """
    half = x.shape[-1] // 2
    rates = base ** (-torch.arange(half, dtype=torch.float64, device=x.device) / half)
    angles = places[:, None, :, None] * rates
    cos, sin = angles.cos(), angles.sin()
    wide = upcast(x)[0]
    cos, sin = cos.to(wide), sin.to(wide)
    one, other = wide[..., :half], wide[..., half:]
    return torch.cat([one * cos - other * sin, one * sin + other * cos], dim=-1).to(x.dtype)


class ShortConvolution(nn.Module):
    """`y_t = sum_{i < size} w_i x_{t-i}` for each channel: a token mixes with those just before it.

    Weights start as those of `nn.Conv1d` do, without a bias; nothing is applied after it. Absent tokens are
    skipped, as if they had never been.
    """

    def __init__(self, channels: int, size: int) -> None:
        super().__init__()
        self.size = size
        self.weight = nn.Parameter(torch.empty(channels, 1, size).uniform_(-1, 1) / size**0.5)

    def _mixed(self, x: Tokens) -> Tokens:
        """Every token with those before it, summed shift by shift: twice as fast as a grouped convolution."""
        wide, count = upcast(x)[0], x.shape[1] - self.size + 1
        first, *others = self.weight[:, 0].to(wide).unbind(-1)
        mixed = wide[:, :count] * first
        for shift, weight in enumerate(others, 1):
            mixed = torch.addcmul(mixed, wide[:, shift : shift + count], weight)
        return mixed.to(x.dtype)

    def forward(
        self, x: Tokens, tail: Tokens | None = None, present: Bool[Tensor, "batch tokens"] | None = None
    ) -> tuple[Tokens, Tokens]:
        """The tokens mixed, and the last ones of those that came in; `tail` are those before, else zeros."""
        batch, _, channels = x.shape
        before = x.new_zeros(batch, self.size - 1, channels) if tail is None else tail.to(x.dtype)
        if not x.shape[1]:
            return x, before
        x, order = torch.cat([before, x], dim=1), None
        if present is not None:
            order = functional.pad(present.long(), (self.size - 1, 0), value=1).argsort(stable=True)
            x = x.gather(1, order[..., None].expand(x.shape))
        mixed = self._mixed(x)
        kept = x[:, x.shape[1] - self.size + 1 :]
        if order is not None:
            mixed = functional.pad(mixed, (0, 0, self.size - 1, 0))
            mixed = torch.zeros_like(mixed).scatter(1, order[..., None].expand(mixed.shape), mixed)
            mixed = mixed[:, self.size - 1 :]
        return mixed, kept
