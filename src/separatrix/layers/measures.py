"""The size of a layer: its parameters, and its state while decoding."""

from __future__ import annotations

from torch import nn


class Measured(nn.Module):
    """A module that reports its size."""

    @property
    def parameter_count(self) -> int:
        """The number of learned numbers; a parameter that is used twice is counted once."""
        return sum(weight.numel() for weight in self.parameters())

    def state_bytes(self, tokens: int) -> int:
        """Return the bytes of the state after this many tokens, for one sequence without padding."""
        raise NotImplementedError
