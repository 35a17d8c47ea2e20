"""Writing weights into a model: blocks that do nothing, heads given by matrices, tokens looked back at.

Matrices are (channels, width): what a channel of queries, keys or values is of a token of the stream.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from separatrix.core.tensors import Float, Tensor, torch
from separatrix.training.learning.witnesses._families import BILINEAR, family_of

if TYPE_CHECKING:
    from separatrix.layers import Attention, Model
    from separatrix.training.tasks import Setting

OPEN = 10.0
"""How far gates are opened: what a gate loses at each token is about exp(-OPEN)."""

STEADY = 100.0
"""A constant in one channel, large beside all others."""

FAR = 30.0
"""A constant beside which the rest of a key is short, so that scaling it to length 1 hardly changes it."""

Matrix = Float[Tensor, "channels width"]


def silence(model: Model) -> None:
    """Let every block add nothing to the stream: what it hears and what its MLP says are multiplied by 0.

    Norms weigh all channels alike, convolutions pass the token itself, gates are open, sinks are empty, the
    strength of a write is 1/2, the head says 0.
    """
    with torch.no_grad():
        for parameter in (*model.inputs.parameters(), *model.head.parameters()):
            parameter.zero_()
        for block in model.blocks:
            _silence_block(block)


def _silence_block(block: Any) -> None:
    attention = block.attention
    for parameter in (attention.project.weight, attention.back.weight):
        parameter.zero_()
    if attention.convolve is not None:
        attention.convolve.weight.zero_()
        attention.convolve.weight[..., -1] = 1
    if block.mlp is not None:
        for parameter in block.mlp[-1].parameters():
            parameter.zero_()
    for module in attention.learned.values():
        for name, parameter in module.named_parameters():
            if name in NEUTRAL:
                parameter.fill_(NEUTRAL[name])


NEUTRAL = {
    "up.weight": 0.0,
    "up.bias": OPEN,
    "step.weight": 0.0,
    "log_rate": -OPEN,
    "bias": 0.0,
    "strength.weight": 0.0,
    "strength.bias": 0.0,
    "gate.weight": 0.0,
    "gate.bias": OPEN,
    "scales.weight": 0.0,
    "logits": -OPEN,
}
"""Of `separatrix.mechanisms.learned`, by their names there: low-rank gates, steps, the strength of writes,
forget gates, the weights of levels, sinks."""


def write_head(
    attention: Attention,
    query: Matrix,
    key: Matrix,
    value: Matrix,
    back: Matrix,
    *,
    head: int = 0,
    gain: float = 1.0,
) -> None:
    """Give one head its maps: logits are `<query x, key y>`, without the scale of the layer.

    `query` and `key` have at most `key_width` rows and `value` at most width / heads; the others stay 0.
    `back` is (values, width): where in the stream each channel of the values goes. `gain` is what a norm
    divides x and y by, which is undone.

    Where it makes no difference all three are made equally large, so that noise of a size in proportion to
    the weights, as `learning.perturbed` adds, drowns none of them.
    """
    wide, values = attention.key_width, attention.width // attention.heads
    starts = (head * wide, (attention.heads + head) * wide, 2 * attention.heads * wide + head * values)
    query = query / attention.scale
    if family_of(attention.mechanism) in BILINEAR:
        size = (query.norm() / key.norm()).sqrt()
        query, key = query / size, key * size
    size = key.norm() / value.norm()
    value, back = value * size, back / size
    with torch.no_grad():
        for start, rows in zip(starts, (query, key, value), strict=True):
            attention.project.weight[start : start + len(rows)] = gain * rows
        attention.back.weight[:, head * values : head * values + len(back)] = back.T


def write_weakly(attention: Any, where: Any, strength: float = -OPEN) -> None:
    """Let a delta rule write with strength sigmoid(strength) the tokens that a map (1, width) takes to 1."""
    attention.learned["beta"].strength.weight[:] = strength * where


def look_back(attention: Any, part: int, tokens: int = 1, channel: int | None = None) -> None:
    """Let queries (part 0), keys (1) or values (2), or one channel of them, be of so many tokens before."""
    start = sum(attention.channels[:part])
    rows = slice(start, start + attention.channels[part])
    if channel is not None:
        rows = slice(start + channel, start + channel + 1)
    with torch.no_grad():
        attention.convolve.weight[rows] = 0
        attention.convolve.weight[rows, 0, attention.convolve.size - 1 - tokens] = 1


def chosen_channels(width: int, *channels: int) -> Matrix:
    """The map to some channels of the stream.

    >>> chosen_channels(3, 2, 0).tolist()
    [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """
    return torch.eye(width)[list(channels)]


@dataclass(frozen=True)
class Constant:
    """A channel of the stream that holds the same number in every token.

    Where there are norms the number is large: beside it the others hardly change the root mean square of a
    token, so that the norm is linear in them, up to |x|² / 2 STEADY².
    """

    setting: Setting
    channel: int

    @property
    def number(self) -> float:
        """What the channel holds."""
        return STEADY if self.setting.norm else 1.0

    @property
    def gain(self) -> float:
        """What a norm divides tokens by; 1 without norms."""
        return self.number / math.sqrt(self.setting.width) if self.setting.norm else 1.0

    @property
    def one(self) -> Float[Tensor, "1 width"]:
        """The map of every token to 1."""
        return chosen_channels(self.setting.width, self.channel) / self.number
