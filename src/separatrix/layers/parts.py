"""The base class of layers, and those between a projection and a mechanism: norm, rotation, short convolution."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from separatrix.core.tensors import Bool, Float, Int64, Tensor
from separatrix.mechanisms._methods import upcast

Tokens = Float[Tensor, "batch tokens channels"]
TokenMask = Bool[Tensor, "batch tokens"]
Heads = Float[Tensor, "batch heads tokens width"]


class Measured(nn.Module):
    """A module that reports its size."""

    @property
    def parameter_count(self) -> int:
        """The number of learned numbers; a parameter that is used twice is counted once."""
        return sum(weight.numel() for weight in self.parameters())

    def state_bytes(self, tokens: int) -> int:
        """Return the bytes of the state after this many tokens, for one sequence without padding."""
        raise NotImplementedError


def init_to_keep_size(linear: nn.Linear) -> nn.Linear:
    """Initialise weights with N(0, 1 / inputs), which keeps a root mean square of 1; return the map."""
    # The default of nn.Linear makes numbers 1.7 times smaller, and logits after two such maps in a row 9
    # times: attention then starts so flat that some mechanisms do not begin to learn.
    nn.init.normal_(linear.weight, std=linear.in_features**-0.5)
    return linear


class RMSNorm(nn.Module):
    """`x / sqrt(mean x² + 1e-6) · weight` over the last dimension, summed in float32: arXiv 1910.07467."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Float[Tensor, "*tokens width"]) -> Float[Tensor, "*tokens width"]:
        """Normalise the tokens to a root mean square of 1, in their own dtype."""
        wide = upcast(x)[0]
        size = (wide.square().mean(-1, keepdim=True) + 1e-6).rsqrt()
        return (wide * size * self.weight).to(x.dtype)


def rotate(x: Heads, positions: Int64[Tensor, "batch tokens"], base: float) -> Heads:
    """Rotate channels i and i + width/2 by `position · base^(-2i/width)`: rotary positions, arXiv 2104.09864.

    The pairs are those of GPT-NeoX and Llama; the paper pairs neighbouring channels.
    """
    pairs = x.shape[-1] // 2
    # In float64: the angle of a late position has few correct digits after the point in float32.
    rates = base ** (-torch.arange(pairs, dtype=torch.float64, device=x.device) / pairs)
    angles = positions[:, None, :, None] * rates
    cos, sin = angles.cos(), angles.sin()
    wide = upcast(x)[0]
    cos, sin = cos.to(wide), sin.to(wide)
    first, second = wide[..., :pairs], wide[..., pairs:]
    return torch.cat([first * cos - second * sin, first * sin + second * cos], dim=-1).to(x.dtype)


class ShortConvolution(nn.Module):
    """`y_t = sum_{i < size} w_i x_{t-i}` for each channel, without bias and activation.

    The initial weights are those of `nn.Conv1d`. Absent tokens are skipped.
    """

    def __init__(self, channels: int, size: int) -> None:
        super().__init__()
        self.size = size
        self.weight = nn.Parameter(torch.empty(channels, 1, size).uniform_(-1, 1) / size**0.5)

    def _convolve(self, x: Tokens) -> Tokens:
        wide, count = upcast(x)[0], x.shape[1] - self.size + 1
        # A sum over shifts is twice as fast as a grouped convolution.
        first, *weights = self.weight[:, 0].to(wide).unbind(-1)
        out = wide[:, :count] * first
        for shift, weight in enumerate(weights, 1):
            out = torch.addcmul(out, wide[:, shift : shift + count], weight)
        return out.to(x.dtype)

    def forward(
        self, x: Tokens, tail: Tokens | None = None, present: Bool[Tensor, "batch tokens"] | None = None
    ) -> tuple[Tokens, Tokens]:
        """Return the convolved tokens, and the tail for later ones; `tail` is that of earlier tokens."""
        batch, _, channels = x.shape
        before = x.new_zeros(batch, self.size - 1, channels) if tail is None else tail.to(x.dtype)
        if not x.shape[1]:
            return x, before
        x, order = torch.cat([before, x], dim=1), None
        if present is not None:
            # Absent tokens are sorted to the front (0 before 1), so that present ones are neighbours.
            order = functional.pad(present.long(), (self.size - 1, 0), value=1).argsort(stable=True)
            x = x.gather(1, order[..., None].expand(x.shape))
        out = self._convolve(x)
        tail = x[:, x.shape[1] - self.size + 1 :]
        if order is not None:
            out = functional.pad(out, (0, 0, self.size - 1, 0))
            out = torch.zeros_like(out).scatter(1, order[..., None].expand(out.shape), out)
            out = out[:, self.size - 1 :]
        return out, tail
