"""The size of a layer: its parameters, and what it carries from token to token."""

from __future__ import annotations

from torch import nn


class Measured(nn.Module):
    """A module that knows its size."""

    @property
    def parameter_count(self) -> int:
        """How many numbers are learned; a parameter that is used twice is counted once."""
        return sum(weight.numel() for weight in self.parameters())

    def state_bytes(self, tokens: int) -> int:
        """The bytes carried after so many tokens, for one sequence without padding."""
        raise NotImplementedError
