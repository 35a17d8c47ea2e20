"""The spike outside the paper's regime: ragged blocks, several spikes, noisy entries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

from separatrix.constructions._base import BlockModel, Exchangeable, Label
from separatrix.constructions._blocks import EXAMPLE, WHOLE_BLOCKS
from separatrix.constructions.spike import Spike, SpikeParameters
from separatrix.core.parameters import Constraint, Exact, Natural, between
from separatrix.core.tensors import Float, Tensor, torch


class RoughParameters(SpikeParameters):
    """As SpikeParameters for any n, with the number of spikes and the noise on every entry."""

    owner = "rough"
    spikes: Natural = 1
    noise: Exact = Fraction(0)
    seed: Natural = 0
    constraints: ClassVar[tuple[Constraint, ...]] = (
        *(each for each in SpikeParameters.constraints if each is not WHOLE_BLOCKS),
        between("noise", 0, 10**6),
        between("seed", 0, 2**63 - 1),
        between("spikes", 1, 10**6),
        Constraint(
            ("n", "spikes"),
            lambda p: p.spikes <= p.n,
            lambda p: f"spikes={p.spikes} do not fit into n={p.n} tokens",
        ),
    )


class Rough(Spike):
    """The spike's matrix with its regularities broken, for sampled engines."""

    name = "rough"
    title = "The spike with ragged blocks, several spikes, or noise on every entry."
    section = (7, 5)
    provenance = "[ours] docs/theory.md 7.5: the spike outside its hypotheses"
    description = (
        "The matrix of `spike` for any n: the d-2 blocks are as equal as n allows. `spikes` tokens, "
        "evenly apart, carry a0 or a1 in column 1 instead of one. Every entry gets Gaussian noise of "
        "standard deviation `noise` (in units of sqrt(log n), so entries are unbounded), drawn from "
        "`seed` and the same in D0 and D1. Form and threshold are as in `spike`. There is no closed form: "
        "answers are sampled over literal tokens."
    )
    schema = RoughParameters
    example: ClassVar[dict[str, object]] = {**EXAMPLE, "n": 1003, "spikes": 3, "noise": "0.02"}
    variants: ClassVar[tuple[dict[str, object], ...]] = ({},)
    has_certificates = False
    parameters: RoughParameters
    has_groups = False
    step = 1
    exchangeable = Exchangeable.NOT

    @cached_property
    def _without_spikes(self) -> Float[Tensor, "n d"]:
        """The matrix without spikes: the same wherever they are."""
        p, places = self.parameters, torch.arange(self.n)
        tokens = torch.zeros(self.n, p.d, dtype=torch.float64)
        tokens[places, places * (p.d - 2) // self.n + 1] = float(p.b)
        tokens[:, -1] = float(p.c)
        if p.noise:
            drawn = torch.Generator().manual_seed(p.seed)
            tokens += float(p.noise) * torch.randn(tokens.shape, generator=drawn, dtype=torch.float64)
        return self.unit * tokens

    def matrix(self, label: Label, spike: int, dtype: torch.dtype) -> Float[Tensor, "n d"]:
        spikes, tokens = self.parameters.spikes, self._without_spikes.clone()
        spiked = (spike + torch.arange(spikes) * self.n // spikes) % self.n
        tokens[spiked, 0] += self.spike(label) * self.unit
        return tokens.to(dtype)

    @classmethod
    def block_model(cls, values: Mapping[str, Any], log: Callable[[Any], Any]) -> BlockModel | None:
        return None
