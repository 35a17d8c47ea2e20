"""What a layer weighs: its parameters, and what it carries from token to token, both counted."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import nn

from separatrix.layers.cache import Cache
from separatrix.parameters import UsageError
from separatrix.tensors import Tensor


class Measured(nn.Module):
    """A module that knows what it weighs."""

    @property
    def parameter_count(self) -> int:
        """How many numbers are learned; a parameter that is used twice is counted once."""
        return sum(each.numel() for each in self.parameters())

    def example_input(self, tokens: int) -> Tensor:
        """One element of a batch that it can read."""
        raise NotImplementedError

    def state_bytes(self, tokens: int) -> int:
        """The bytes carried after so many tokens, for one element of a batch: measured on zeros."""
        if not tokens:
            return 0
        with torch.no_grad():
            _, cache = self(self.example_input(tokens))
        kept: Iterable[Cache | None] = [cache] if isinstance(cache, Cache) or cache is None else cache
        if None in (found := list(kept)):
            raise UsageError("what is not causal carries nothing from token to token")
        return sum(each.state_bytes for each in found if each is not None)

    def zeros(self, *shape: int) -> Tensor:
        """Zeros in the dtype and on the device of its first parameter."""
        return next(self.parameters()).new_zeros(shape)
