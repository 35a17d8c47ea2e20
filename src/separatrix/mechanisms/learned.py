"""Modules that learn extras from tokens, each in the parametrisation of its source paper.

This file needs torch, and is imported when the first module is made. A model combines a mechanism with these
modules; mechanisms themselves hold no weights.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from separatrix.mechanisms._methods import upcast
from separatrix.mechanisms.extras import TokenSizes

GLA_RANK = 16
"""The inner width of GLA's gates."""
GLA_TEMPERATURE = 16
"""GLA's gates are `sigmoid(...)^(1/16)`, so that they start near 1."""
MIN_RIDGE = 0.25
"""The least ridge of MesaNet."""
MIN_STEP, MAX_STEP, STEP_FLOOR = 1e-3, 1e-1, 1e-4
"""Initial step sizes of Mamba-2 and Gated DeltaNet: log-uniform between the first two."""


class FromTokens(nn.Module):
    """Maps tokens (batch, tokens, model) to an extra."""

    def __init__(self, sizes: TokenSizes) -> None:
        super().__init__()
        self.heads = sizes.heads

    def forward(self, x: Tensor) -> Tensor:
        """Return the extra for these tokens."""
        raise NotImplementedError

    def __call__(self, x: Tensor) -> Tensor:
        extra: Tensor = super().__call__(x)
        return extra

    def split_heads(self, x: Tensor) -> Tensor:
        """Reshape (batch, tokens, heads · channels) to (batch, heads, tokens, channels), and upcast."""
        return upcast(x)[0].reshape(*x.shape[:-1], self.heads, -1).transpose(1, 2)


class LowRank(FromTokens):
    """`W2 W1 x + b`, for each channel of each head, with inner width `rank`."""

    def __init__(self, sizes: TokenSizes, rank: int, bias: bool = False) -> None:
        super().__init__(sizes)
        self.down = nn.Linear(sizes.model, rank, bias=False)
        self.up = nn.Linear(rank, sizes.heads * sizes.width, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        """Return numbers per token and channel."""
        return self.split_heads(self.up(self.down(x)))


class LowRankGates(LowRank):
    """`log a = logsigmoid(W2 W1 x + b) / 16`, W1 to 16 numbers: GLA, arXiv 2312.06635, section 4.4.

    Weights and bias start as those of `nn.Linear` do, as in flash-linear-attention.
    """

    def __init__(self, sizes: TokenSizes) -> None:
        super().__init__(sizes, GLA_RANK, bias=True)

    def forward(self, x: Tensor) -> Tensor:
        """Return logs of gates per token and channel."""
        return functional.logsigmoid(super().forward(x)) / GLA_TEMPERATURE


class LowRankStepGates(LowRank):
    """`log a = -A softplus(W2 W1 x + b)`, W1 to the width of a head: KDA, arXiv 2510.26692.

    As in flash-linear-attention A, one per head and stored as its logarithm, starts uniform between 1 and 16,
    and b at 0.
    """

    def __init__(self, sizes: TokenSizes) -> None:
        super().__init__(sizes, sizes.width)
        # As a logarithm, so that the rate stays positive under any update.
        self.log_rate = nn.Parameter((1 + 15 * torch.rand(sizes.heads)).log())
        self.bias = nn.Parameter(torch.zeros(sizes.heads, 1, sizes.width))

    def forward(self, x: Tensor) -> Tensor:
        """Return logs of gates per token and channel."""
        return -self.log_rate.exp()[:, None, None] * functional.softplus(super().forward(x) + self.bias)


class StepGates(FromTokens):
    """`log a = -A softplus(W x + b)`: Mamba-2, arXiv 2405.21060, and Gated DeltaNet, arXiv 2412.06464.

    A, stored as its logarithm, starts uniform between `low` and `high` (1 and 16 in Mamba-2, 0 and 16 in
    Gated DeltaNet); b starts such that `softplus(b)` is log-uniform between 0.001 and 0.1. The program of
    Mamba-2 also multiplies the values by the step size, which is not done here.
    """

    def __init__(self, sizes: TokenSizes, low: float, high: float) -> None:
        super().__init__(sizes)
        self.step = nn.Linear(sizes.model, sizes.heads, bias=False)
        # A rate of 0, possible with low = 0, has no logarithm.
        rate = low + (high - low) * torch.rand(sizes.heads).clamp(min=1e-6)
        self.log_rate = nn.Parameter(rate.log())
        span = math.log(MAX_STEP / MIN_STEP)
        first = (math.log(MIN_STEP) + span * torch.rand(sizes.heads)).exp().clamp(min=STEP_FLOOR)
        # The inverse of softplus.
        self.bias = nn.Parameter(first + torch.log(-torch.expm1(-first)))

    def forward(self, x: Tensor) -> Tensor:
        """Return logs of gates per token and head."""
        steps = functional.softplus(self.split_heads(self.step(x)) + self.bias[:, None, None])
        return -self.log_rate.exp()[:, None, None] * steps


class ForgetGates(FromTokens):
    """`log a = logsigmoid(W x + b)`, b from 0: Forgetting Transformer, arXiv 2503.02130."""

    def __init__(self, sizes: TokenSizes) -> None:
        super().__init__(sizes)
        self.gate = nn.Linear(sizes.model, sizes.heads)
        nn.init.zeros_(self.gate.bias)

    def forward(self, x: Tensor) -> Tensor:
        """Return logs of gates per token and head."""
        return functional.logsigmoid(self.split_heads(self.gate(x)))


class RwkvAdapter(FromTokens):
    """`b + W2 f(W1 x)` for each channel of each head, for the gates and rates of RWKV-7, arXiv 2503.14456.

    As in its program W1 starts at 0, W2 orthogonal with a tenth of its usual size, and the inner width is
    `1.8 sqrt(model)` in steps of 32, at least 32. `initial` is (offset, slope, wave): b starts at
    `offset + slope s + wave w |w|`, with s from 0 to 1 along all channels and w from -1 to 1 in each head.
    """

    def __init__(self, sizes: TokenSizes, initial: tuple[float, float, float]) -> None:
        super().__init__(sizes)
        channels = sizes.heads * sizes.width
        inner = max(32, 32 * round(1.8 * math.sqrt(sizes.model) / 32))
        self.down = nn.Parameter(torch.zeros(inner, sizes.model))
        wider = math.sqrt(max(1.0, inner / channels))
        self.up = nn.Parameter(nn.init.orthogonal_(torch.empty(inner, channels), gain=0.1 * wider).mT.clone())
        line = torch.linspace(-1, 1, sizes.width).repeat(sizes.heads)
        offset, slope, wave = initial
        self.bias = nn.Parameter(offset + slope * torch.linspace(0, 1, channels) + wave * line * line.abs())

    def adapt(self, inner: Tensor) -> Tensor:
        """Return `b + W2 inner` for inner = `f(W1 x)`."""
        return self.split_heads(functional.linear(inner, self.up, self.bias.to(inner)))


class SigmoidGates(RwkvAdapter):
    """`log w = -sigmoid(b + W2 tanh(W1 x)) / sqrt(e)`, between -0.61 and 0: RWKV-7, arXiv 2503.14456.

    b starts as in the first layer of its program: slow channels first, fast ones last.
    """

    def __init__(self, sizes: TokenSizes) -> None:
        super().__init__(sizes, (-5.5, 6.0, 2.5))

    def forward(self, x: Tensor) -> Tensor:
        """Return logs of gates per token and channel."""
        return -math.exp(-0.5) * self.adapt(functional.linear(x, self.down).tanh()).sigmoid()


class SigmoidRates(RwkvAdapter):
    """`a = sigmoid(b + W2 W1 x)`: the rates of learning in context of RWKV-7, arXiv 2503.14456."""

    def __init__(self, sizes: TokenSizes) -> None:
        super().__init__(sizes, (-0.39, 0.4, 0.3))

    def forward(self, x: Tensor) -> Tensor:
        """Return rates per token and channel."""
        return self.adapt(functional.linear(x, self.down)).sigmoid()


class Constant(FromTokens):
    """A learned tensor that does not depend on the tokens."""

    def __init__(self, sizes: TokenSizes, initial: Tensor) -> None:
        super().__init__(sizes)
        self.weight = nn.Parameter(initial)

    def forward(self, x: Tensor) -> Tensor:
        """Return the tensor, whatever the tokens."""
        return self.weight


class RemovalScales(Constant):
    """One number per channel, from 0.76 down to 0.66 along all heads: the ξ of RWKV-7, arXiv 2503.14456."""

    def __init__(self, sizes: TokenSizes) -> None:
        slope = torch.linspace(0, 1, sizes.heads * sizes.width)
        super().__init__(sizes, (0.71 - 0.1 * (slope - 0.5)).reshape(sizes.heads, sizes.width))


class Ridges(Constant):
    """`Λ = 1/4 + softplus(p)`, which starts at 1: MesaNet, arXiv 2506.05233."""

    def __init__(self, sizes: TokenSizes) -> None:
        # The inverse of softplus, at the distance from the least ridge to 1.
        start = math.log(math.expm1(1 - MIN_RIDGE))
        super().__init__(sizes, torch.full((sizes.heads, sizes.width), start))

    def forward(self, x: Tensor) -> Tensor:
        """Return the diagonal of Λ for each head, whatever the tokens."""
        return MIN_RIDGE + functional.softplus(self.weight)


class Projection(Constant):
    """A matrix that starts as N(0, 1/rank): the random one of Linformer's theorem, arXiv 2006.04768.

    It is made for `sizes.tokens` tokens; fewer use its first columns.
    """

    def __init__(self, sizes: TokenSizes) -> None:
        super().__init__(sizes, torch.randn(sizes.rank, sizes.tokens) / math.sqrt(sizes.rank))

    def forward(self, x: Tensor) -> Tensor:
        """Return one column for each token."""
        return self.weight[:, : x.shape[-2]]


class SinkLogits(FromTokens):
    """One logit per head that starts at 0, the zero sink of StreamingLLM, arXiv 2309.17453.

    It is learned as in gpt-oss, which starts it as N(0, 0.02²) in the transformers library.
    """

    def __init__(self, sizes: TokenSizes) -> None:
        super().__init__(sizes)
        self.logits = nn.Parameter(torch.zeros(sizes.heads))

    def forward(self, x: Tensor) -> Tensor:
        """Return the logits, whatever the tokens."""
        return self.logits


class LevelScales(FromTokens):
    """`λ = softplus(c W x)` for each level, c one number per head and level that starts at 1.

    Log-linear attention, arXiv 2506.04761, as in flash-linear-attention.
    """

    def __init__(self, sizes: TokenSizes) -> None:
        super().__init__(sizes)
        self.scales = nn.Linear(sizes.model, sizes.heads * sizes.rank, bias=False)
        self.levels = nn.Parameter(torch.ones(sizes.heads, 1, sizes.rank))

    def forward(self, x: Tensor) -> Tensor:
        """Return the weight of each level per token and head."""
        return functional.softplus(self.levels * self.split_heads(self.scales(x)))


class PerHead(FromTokens):
    """`W x + offset`, `channels` for each head; W starts as that of `nn.Linear` does.

    The further keys and values of DeltaProduct, arXiv 2502.10297, without its short convolution and SiLU; and
    the second keys and values of 2-simplicial attention, arXiv 2507.02754, whose program adds the constants
    1/width to the keys and 1 to the values.
    """

    def __init__(self, sizes: TokenSizes, channels: int, offset: float = 0.0) -> None:
        super().__init__(sizes)
        self.offset = offset
        limit = 1 / math.sqrt(sizes.model)
        self.weight = nn.Parameter(torch.empty(sizes.heads * channels, sizes.model).uniform_(-limit, limit))

    def forward(self, x: Tensor) -> Tensor:
        """Return channels per token and head."""
        return self.split_heads(functional.linear(x, self.weight)) + self.offset


class SigmoidStrength(FromTokens):
    """`beta = largest sigmoid(W x)`: DeltaNet, arXiv 2406.06484; largest = 2 as in arXiv 2411.12537.

    With 2, the state's transition may have negative eigenvalues. DeltaProduct, arXiv 2502.10297, uses 2, and
    one strength for each of a token's `writes`. PaTH, arXiv 2505.16381, uses 2 and a bias, and MesaNet, arXiv
    2506.05233, a bias; here both start at 0.
    """

    def __init__(self, sizes: TokenSizes, largest: float = 1.0, writes: int = 1, bias: bool = False) -> None:
        super().__init__(sizes)
        self.largest = largest
        self.strength = nn.Linear(sizes.model, sizes.heads * writes, bias=bias)
        if bias:
            nn.init.zeros_(self.strength.bias)

    def forward(self, x: Tensor) -> Tensor:
        """Return the strength of a write per token and head."""
        return self.largest * self.split_heads(self.strength(x)).sigmoid()


class FixedDecays(FromTokens):
    """`1 - 2^(-5-h)` for head h = 0, 1, ...: RetNet, arXiv 2307.08621, whose decays are not learned."""

    def forward(self, x: Tensor) -> Tensor:
        """Return the decay of each head, whatever the tokens, in float64: they are close to 1."""
        return 1 - 2.0 ** (-5 - torch.arange(self.heads, dtype=torch.float64, device=x.device))


class FixedSlopes(FromTokens):
    """`2^(-8h/heads)` for head h = 1, 2, ...: ALiBi, arXiv 2108.12409, whose slopes are not learned."""

    def forward(self, x: Tensor) -> Tensor:
        """Return the slope of each head, whatever the tokens."""
        heads = torch.arange(1, self.heads + 1, dtype=torch.float64, device=x.device)
        return 2.0 ** (-8 * heads / self.heads)


class DifferenceOfExponentials(FromTokens):
    """`lam = exp(<a,b>) - exp(<c,d>) + 0.8` for all heads: Differential Transformer, arXiv 2410.05258.

    The four vectors are as wide as half a head and start as N(0, 0.1²). The constant of the authors' program
    is 0.8 - 0.6 exp(-0.3 l) in layer l = 0, 1, ..., from 0.2 towards 0.8; here it is 0.8 in all of them,
    since a layer does not know its number.
    """

    def __init__(self, sizes: TokenSizes) -> None:
        super().__init__(sizes)
        self.vectors = nn.Parameter(0.1 * torch.randn(4, -(-sizes.width // 2)))

    def forward(self, x: Tensor) -> Tensor:
        """Return the same number for every head, whatever the tokens."""
        a, b, c, d = self.vectors
        lam: Tensor = (a * b).sum().exp() - (c * d).sum().exp() + 0.8
        return lam.expand(self.heads)
