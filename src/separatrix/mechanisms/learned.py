"""The modules that learn extras from tokens, each in the parametrisation of its source paper.

This file needs torch, and is imported when the first of them is made. A model wraps a mechanism and these
modules; mechanisms themselves hold no weights.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from separatrix.mechanisms._request import widened
from separatrix.mechanisms.extras import Sizes

LOW_RANK = 16
"""The inner width of GLA's gates."""
TEMPERATURE = 16
"""GLA's: gates are `sigmoid(...)^(1/16)`, so that they start near 1."""
SHORTEST, LONGEST, FLOOR = 1e-3, 1e-1, 1e-4
"""Initial step sizes of Mamba-2 and Gated DeltaNet: log-uniform between the first two."""


class FromTokens(nn.Module):
    """Maps tokens (batch, tokens, model) to an extra."""

    def forward(self, x: Tensor) -> Tensor:
        """The extra for these tokens."""
        raise NotImplementedError

    def __call__(self, x: Tensor) -> Tensor:
        found: Tensor = super().__call__(x)
        return found


def _by_head(x: Tensor, heads: int) -> Tensor:
    """(batch, tokens, heads · channels) as (batch, heads, tokens, channels), 16-bit numbers as float32."""
    return widened(x)[0].reshape(*x.shape[:-1], heads, -1).transpose(1, 2)


class LowRankGates(FromTokens):
    """`log a = logsigmoid(W2 W1 x + b) / 16`, W1 to 16 numbers: GLA, arXiv 2312.06635, section 4.4.

    Weights and bias start as those of `nn.Linear` do, as in flash-linear-attention.
    """

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.heads = sizes.heads
        self.down = nn.Linear(sizes.model, LOW_RANK, bias=False)
        self.up = nn.Linear(LOW_RANK, sizes.heads * sizes.width)

    def forward(self, x: Tensor) -> Tensor:
        """Logs of gates per token and channel."""
        return functional.logsigmoid(_by_head(self.up(self.down(x)), self.heads)) / TEMPERATURE


class StepGates(FromTokens):
    """`log a = -A softplus(W x + b)`: Mamba-2, arXiv 2405.21060, and Gated DeltaNet, arXiv 2412.06464.

    A, kept as its logarithm, starts uniform between `low` and `high` (1 and 16 in Mamba-2, 0 and 16 in
    Gated DeltaNet); b starts such that `softplus(b)` is log-uniform between 0.001 and 0.1. The program of
    Mamba-2 also multiplies the values by the step size, which is not done here.
    """

    def __init__(self, sizes: Sizes, low: float, high: float) -> None:
        super().__init__()
        self.heads = sizes.heads
        self.step = nn.Linear(sizes.model, sizes.heads, bias=False)
        rate = low + (high - low) * torch.rand(sizes.heads).clamp(min=1e-6)
        self.log_rate = nn.Parameter(rate.log())
        span = math.log(LONGEST / SHORTEST)
        first = (math.log(SHORTEST) + span * torch.rand(sizes.heads)).exp().clamp(min=FLOOR)
        self.bias = nn.Parameter(first + torch.log(-torch.expm1(-first)))

    def forward(self, x: Tensor) -> Tensor:
        """Logs of gates per token and head."""
        steps = functional.softplus(_by_head(self.step(x), self.heads) + self.bias[:, None, None])
        return -self.log_rate.exp()[:, None, None] * steps


class SigmoidStrength(FromTokens):
    """`beta = largest sigmoid(W x)`: DeltaNet, arXiv 2406.06484; largest = 2 as in arXiv 2411.12537.

    With 2, the state's transition may have negative eigenvalues.
    """

    def __init__(self, sizes: Sizes, largest: float = 1.0) -> None:
        super().__init__()
        self.heads, self.largest = sizes.heads, largest
        self.strength = nn.Linear(sizes.model, sizes.heads, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """The strength of a write per token and head."""
        return self.largest * _by_head(self.strength(x), self.heads).sigmoid()


class FixedDecays(FromTokens):
    """`1 - 2^(-5-h)` for head h = 0, 1, ...: RetNet, arXiv 2307.08621, whose decays are not learned."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.heads = sizes.heads

    def forward(self, x: Tensor) -> Tensor:
        """The decay of each head, whatever the tokens, in float64: they are close to 1."""
        return 1 - 2.0 ** (-5 - torch.arange(self.heads, dtype=torch.float64, device=x.device))


class IdentityMaps(FromTokens):
    """One matrix per head that starts at the identity: Hedgehog, arXiv 2402.04347, without its bias."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.eye(sizes.width).repeat(sizes.heads, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        """The maps, whatever the tokens."""
        return self.weight


class Projection(FromTokens):
    """A matrix that starts as N(0, 1/rank): the random one of Linformer's theorem, arXiv 2006.04768.

    It is made for `sizes.tokens` tokens; fewer use its first columns.
    """

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(sizes.rank, sizes.tokens) / math.sqrt(sizes.rank))

    def forward(self, x: Tensor) -> Tensor:
        """The columns of as many tokens as there are."""
        return self.weight[:, : x.shape[-2]]


class SinkLogits(FromTokens):
    """One logit per head that starts at 0, the zero sink of StreamingLLM, arXiv 2309.17453."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.logits = nn.Parameter(torch.zeros(sizes.heads))

    def forward(self, x: Tensor) -> Tensor:
        """The logits, whatever the tokens."""
        return self.logits
