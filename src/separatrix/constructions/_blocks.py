"""Tokens in d-2 blocks of t, one of them spiked: what `spike` and `cross` share."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, ClassVar

from separatrix.constructions._base import Amplitudes, Construction, Exchangeable, Label, Probe
from separatrix.core.numbers import format_exact
from separatrix.core.parameters import Constraint, Exact, Natural, Parameters, is_absent
from separatrix.core.tensors import Float, Tensor, torch


def at_least(name: str, least: int) -> Constraint:
    """`name` is `least` or more."""
    return Constraint(
        (name,),
        lambda p: getattr(p, name) >= least,
        lambda p: f"{name}={format_exact(getattr(p, name))} is too small; {name} must be {least} or more",
    )


def at_most(name: str, most: int) -> Constraint:
    """`name` is `most` or less."""
    return Constraint(
        (name,),
        lambda p: getattr(p, name) <= most,
        lambda p: f"{name}={format_exact(getattr(p, name))} is too large; {name} must be {most:.0e} or less",
    )


SMALLEST, LARGEST = Fraction(1, 10**6), 10**6
"""Amplitudes beyond these are slips: n to their power is no number anybody can use."""


def amplitude(name: str, smallest: Fraction = SMALLEST) -> Constraint:
    """`name` is positive and neither minute nor enormous."""
    limits = f"{float(smallest):.0e} to {LARGEST:.0e}"
    return Constraint(
        (name,),
        lambda p: (getattr(p, name) >= smallest) & (getattr(p, name) <= LARGEST),
        lambda p: f"{name}={format_exact(getattr(p, name))} is out of range; {name} must be {limits}",
    )


THRESHOLD = amplitude("tau", Fraction(1, 10**100))
"""A tuned threshold may have to be very small."""


def _neighbours(n: int, step: int) -> str:
    below = n - n % step
    return " or ".join(f"n={value}" for value in (below, below + step) if value >= 3)


WHOLE_BLOCKS = Constraint(
    ("n", "d"),
    lambda p: p.n % (p.d - 2) == 0,
    lambda p: f"n={p.n} is not a multiple of d-2={p.d - 2}; try {_neighbours(p.n, p.d - 2)}",
)
GROWING_SPIKE = Constraint(
    ("a0", "a1"),
    lambda p: p.a0 < p.a1,
    lambda p: f"a0={format_exact(p.a0)} must be smaller than a1={format_exact(p.a1)}",
)


EXAMPLE: dict[str, object] = {"n": 1000, "d": 102, "m": 12, "a0": "0.01", "a1": "1.2", "b": "0.2", "c": "0.1"}
"""The usual point."""


class BlockParameters(Parameters):
    """n tokens of width d in d-2 equal blocks; the spike is a0 in D0 and a1 in D1."""

    n: Natural
    d: Natural
    m: Natural
    a0: Exact
    a1: Exact
    b: Exact
    c: Exact
    tau: Exact | None = None

    constraints: ClassVar[tuple[Constraint, ...]] = (
        at_least("n", 3),
        at_least("d", 4),
        at_least("m", 1),
        at_least("a0", 0),
        at_most("m", 10**30),
        *map(amplitude, ("a1", "b", "c")),
        THRESHOLD,
        GROWING_SPIKE,
        WHOLE_BLOCKS,
    )

    @classmethod
    def derive(cls, values: dict[str, Any]) -> dict[str, Any]:
        """tau is c + 1/10 unless it is given."""
        if is_absent(values["tau"]):
            values["tau"] = values["c"] + Fraction(1, 10)
        return values


class BlockConstruction(Construction):
    """Dense tokens and groups of the spiked block matrix A."""

    parameters: BlockParameters
    step_name = "d−2"
    special = "the spike"

    @property
    def exchangeable(self) -> Exchangeable:
        """Blocks are equal, and a block is known by its column alone."""
        return Exchangeable.TOKENS

    @property
    def step(self) -> int:
        return int(self.parameters.d) - 2

    @property
    def unit(self) -> float:
        return math.sqrt(math.log(self.n))

    @property
    def threshold(self) -> float:
        return float(self.parameters.filled()["tau"]) * self.unit

    @property
    def signs(self) -> int:
        return int(self.parameters.d)

    def dense_width(self) -> int:
        return int(self.parameters.d)

    def group_count(self) -> int:
        return int(self.parameters.d) - 1

    @property
    def block_size(self) -> int:
        """t, the tokens in a block."""
        return self.n // (self.parameters.d - 2)

    def matrix(self, label: Label, spike: int, dtype: torch.dtype) -> Float[Tensor, "n d"]:
        """The n-by-d matrix A of D0 or D1."""
        d, block = self.parameters.d, torch.arange(self.n) // self.block_size
        tokens = torch.zeros(self.n, d, dtype=dtype)
        tokens[torch.arange(self.n), block + 1] = float(self.parameters.b) * self.unit
        tokens[:, d - 1] = float(self.parameters.c) * self.unit
        tokens[spike, 0] = self.spike(label) * self.unit
        return tokens

    def group_matrix(self, label: Label, dtype: torch.dtype, spike: int) -> tuple[Tensor, Tensor]:
        """The distinct rows of A (the spike, its mates, one for each other block), and their counts."""
        d, size = self.parameters.d, self.block_size
        mates = int(size > 1)
        rows = torch.zeros(1 + mates + (d - 3), d, dtype=dtype)
        block = torch.cat([torch.zeros(1 + mates, dtype=torch.long), torch.arange(1, d - 2)])
        block = (block + spike // size) % (d - 2)
        rows[torch.arange(len(rows)), block + 1] = float(self.parameters.b) * self.unit
        rows[:, d - 1] = float(self.parameters.c) * self.unit
        rows[0, 0] = self.spike(label) * self.unit
        counts = torch.tensor([float(count) for count in self.group_counts(label)], dtype=dtype)
        return rows, counts

    def group_counts(self, label: Label) -> tuple[int, ...]:
        size = self.block_size
        return 1, *([size - 1] if size > 1 else []), *[size] * (self.parameters.d - 3)

    def spike(self, label: Label) -> float:
        """The spike's amplitude, a0 or a1."""
        return float(self.parameters.a1 if label else self.parameters.a0)

    @classmethod
    def amplitudes(cls, values: Mapping[str, Any]) -> Amplitudes:
        return Amplitudes((values["a0"], values["a1"]), values["b"], values["c"], values["tau"])

    @classmethod
    def probe(cls, values: Mapping[str, Any]) -> Probe:
        """With all signs + the block signs give b and the last column c, whatever the attention."""
        return Probe(values["b"] + values["c"], (values["a0"], values["a1"]))
