"""Constructions given by a few distinct tokens in exact numbers; everything else follows from those."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

from separatrix.constructions._base import Construction, Exchangeable, Label, Tokens
from separatrix.constructions._blocks import THRESHOLD, at_least, at_most
from separatrix.core.parameters import Constraint, Exact, Natural, Parameters
from separatrix.core.tensors import torch

Vector = tuple[Fraction | float, ...]
"""Coordinates: rationals, or floats where a construction is not rational."""

ONE, ZERO, HALF = Fraction(1), Fraction(0), Fraction(1, 2)


@dataclass(frozen=True)
class Kind:
    """Equal tokens: their key, what they carry, and how many they are."""

    key: Vector
    value: Vector
    count: int = 1


@dataclass(frozen=True)
class Description:
    """One label: the distinct queries and the kinds of token, the special one first.

    A logit is `<query, key>` times the construction's unit of logits.
    """

    queries: tuple[Vector, ...]
    kinds: tuple[Kind, ...]

    def tensors(self, unit: float = 1.0) -> tuple[torch.Tensor, ...]:
        """Queries, keys times the unit of logits, values and counts, in float64."""
        return (
            _table(self.queries),
            unit * _table(kind.key for kind in self.kinds),
            _table(kind.value for kind in self.kinds),
            _table((kind.count,) for kind in self.kinds)[:, 0],
        )


def unit_vector(place: int, width: int) -> Vector:
    """A unit vector: 1 at `place`, else 0.

    >>> unit_vector(1, 3)
    (Fraction(0, 1), Fraction(1, 1), Fraction(0, 1))
    """
    return tuple(ONE if i == place else ZERO for i in range(width))


def present(kinds: Iterable[Kind]) -> tuple[Kind, ...]:
    """The kinds of which there is at least one token."""
    return tuple(kind for kind in kinds if kind.count > 0)


class ExactParameters(Parameters):
    """n tokens, m sign vectors, and the reader's threshold."""

    n: Natural
    m: Natural
    tau: Exact = HALF

    constraints: ClassVar[tuple[Constraint, ...]] = (
        at_least("n", 2),
        at_most("n", 10**300),
        at_least("m", 1),
        at_most("m", 10**30),
        THRESHOLD,
    )


class ExactConstruction(Construction):
    """A construction that gives each label as a `Description`.

    Its reader has few signs, so the enumerating engines try them all. Where a mechanism sees places,
    the special token stands at the place asked for, and the query comes after all tokens.
    """

    parameters: ExactParameters
    unit = 1.0
    rational: ClassVar[bool] = True
    """Whether every coordinate is a rational number."""

    exchangeable = Exchangeable.TOKENS

    @property
    def step(self) -> int:
        return 1

    @abstractmethod
    def describe(self, label: Label) -> Description:
        """The tokens of D0 or D1."""

    @property
    def logit_base(self) -> int | None:
        """Logits are in units of the logarithm of this; None: they are plain numbers."""
        return self.n

    @cached_property
    def descriptions(self) -> tuple[Description, Description]:
        """The descriptions of D0 and D1."""
        return self.describe(0), self.describe(1)

    @property
    def tau(self) -> Fraction:
        """The reader's threshold, exactly."""
        return Fraction(self.parameters.filled()["tau"])

    @property
    def threshold(self) -> float:
        return float(self.tau)

    @property
    def signs(self) -> int:
        return len(self.descriptions[0].kinds[0].value)

    def dense_width(self) -> int:
        return self.signs + len(self.descriptions[0].kinds[0].key)

    def group_count(self) -> int:
        return max(len(description.kinds) for description in self.descriptions)

    @cached_property
    def _tables(self) -> tuple[tuple[torch.Tensor, ...], ...]:
        """Queries, keys, values and counts of D0 and of D1, in float64."""
        unit = 1.0 if self.logit_base is None else math.log(self.logit_base)
        return tuple(description.tensors(unit) for description in self.descriptions)

    def groups(self, label: Label, dtype: torch.dtype, spike: int = 0) -> Tokens:
        queries, keys, values, counts = (table.to(dtype) for table in self._tables[label])
        return Tokens(queries, keys, values, values.sum(-1), counts, last=True)

    def group_counts(self, label: Label) -> tuple[int, ...]:
        return tuple(kind.count for kind in self.descriptions[label].kinds)

    def dense(self, label: Label, spike: int, dtype: torch.dtype) -> Tokens:
        few = self.groups(label, dtype)
        assert few.values is not None
        counts = torch.tensor(self.group_counts(label))
        rows = torch.arange(len(counts)).repeat_interleave(counts).roll(spike)
        return Tokens(few.queries, few.keys[rows], few.values[rows], few.probe[rows], last=True)


def _table(rows: Iterable[Vector]) -> torch.Tensor:
    return torch.tensor([[float(x) for x in row] for row in rows], dtype=torch.float64)
