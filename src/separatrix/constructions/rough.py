"""The spike outside the paper's regime: ragged blocks, several spikes, noisy entries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

from separatrix.constructions._base import GROWING_SPIKE, BlockModel, Exchangeable, Label, amplitude_or_zero
from separatrix.constructions._blocks import EXAMPLE
from separatrix.constructions.spike import Spike
from separatrix.core.parameters import Constraint, natural
from separatrix.core.tensors import Float, Tensor, torch


class Rough(Spike):
    """The spike with ragged blocks, several spikes, or noise on every entry.

    The matrix of `spike` for any n: the d-2 blocks are as equal as n allows. `spikes` tokens, evenly apart,
    carry a0 or a1 in column 1 instead of one. Every entry gets Gaussian noise of standard deviation `noise`
    (in units of sqrt(log n), so entries are unbounded), drawn from `seed` and the same in D0 and D1. Form and
    threshold are as in `spike`. There is no closed form: answers are sampled over literal tokens.
    """

    name = "rough"
    section = (7, 5)
    provenance = "[ours] docs/theory.md 7.5: the spike outside its hypotheses"
    example: ClassVar[dict[str, object]] = {**EXAMPLE, "n": 1003, "spikes": 3, "noise": "0.02"}
    variants: ClassVar[tuple[dict[str, object], ...]] = ({},)
    has_certificates = False
    has_groups = False
    step = 1
    exchangeable = Exchangeable.NOT
    spikes: int = natural(1, at_least=1, at_most=10**6)
    noise: Fraction = amplitude_or_zero(0)
    seed: int = natural(0, at_least=0, at_most=2**63 - 1)
    relations = (
        GROWING_SPIKE,
        Constraint(
            ("n", "spikes"), lambda p: p.spikes <= p.n, lambda p: f"spikes={p.spikes} do not fit into n={p.n} tokens"
        ),
    )

    @cached_property
    def _without_spikes(self) -> Float[Tensor, "n d"]:
        """The matrix without spikes: the same for all positions of the spikes."""
        positions = torch.arange(self.n)
        tokens = torch.zeros(self.n, self.d, dtype=torch.float64)
        tokens[positions, positions * (self.d - 2) // self.n + 1] = float(self.b)
        tokens[:, -1] = float(self.c)
        if self.noise:
            # Drawn in float64 and cast in `matrix`, so that every dtype gets the same noise.
            generator = torch.Generator().manual_seed(self.seed)
            tokens += float(self.noise) * torch.randn(tokens.shape, generator=generator, dtype=torch.float64)
        return self.unit * tokens

    def matrix(self, label: Label, spike: int, dtype: torch.dtype) -> Float[Tensor, "n d"]:
        tokens = self._without_spikes.clone()
        rows = (spike + torch.arange(self.spikes) * self.n // self.spikes) % self.n
        tokens[rows, 0] += self.spike(label) * self.unit
        return tokens.to(dtype)

    @classmethod
    def block_model(cls, values: Mapping[str, Any], log: Callable[[Any], Any]) -> BlockModel | None:
        return None
