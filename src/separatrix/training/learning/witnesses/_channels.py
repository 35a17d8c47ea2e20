"""Maps to channels of the stream, as matrices (channels, width), and a channel with a constant."""

from __future__ import annotations

import math
from dataclasses import dataclass

from separatrix.core.tensors import Float, Tensor, torch
from separatrix.training.tasks import Setting

LARGE_CONSTANT = 100.0
"""A constant in one channel, large compared to all others."""

Matrix = Float[Tensor, "channels width"]


def select_channels(width: int, *channels: int) -> Matrix:
    """Return the map to some channels of the stream.

    >>> select_channels(3, 2, 0).tolist()
    [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """
    return torch.eye(width)[list(channels)]


@dataclass(frozen=True)
class ConstantChannel:
    """A channel of the stream that holds the same number in every token.

    With norms the number is large: the other channels then hardly change the root mean square of a token, so
    that the norm is linear in them, up to |x|² / 2 LARGE_CONSTANT².
    """

    setting: Setting
    channel: int

    @property
    def number(self) -> float:
        """The number in the channel."""
        return LARGE_CONSTANT if self.setting.norm else 1.0

    @property
    def gain(self) -> float:
        """The factor by which a norm divides tokens; 1 without norms."""
        return self.number / math.sqrt(self.setting.width) if self.setting.norm else 1.0

    @property
    def unit(self) -> Float[Tensor, "1 width"]:
        """The map of every token to 1."""
        return select_channels(self.setting.width, self.channel) / self.number
