"""Constructions defined by a few distinct tokens in exact numbers, from which everything else follows."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

from separatrix.constructions._base import (
    Construction,
    Exchangeable,
    Label,
    Tokens,
    reader_threshold,
    sign_vector_count,
)
from separatrix.core.parameters import natural
from separatrix.core.tensors import torch

Vector = tuple[Fraction | float, ...]
"""Coordinates: rationals, or floats if a construction is not rational."""

ONE, ZERO = Fraction(1), Fraction(0)


@dataclass(frozen=True)
class TokenGroup:
    """Equal tokens: their key, their value and their number."""

    key: Vector
    value: Vector
    count: int = 1


@dataclass(frozen=True)
class Description:
    """The distinct queries and token groups of one label, the special token first.

    A logit is `<query, key>` times the construction's unit of logits.
    """

    queries: tuple[Vector, ...]
    groups: tuple[TokenGroup, ...]
    """Those that have at least one token; others are left out."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "groups", tuple(group for group in self.groups if group.count > 0))

    def tensors(self, unit: float = 1.0) -> tuple[torch.Tensor, ...]:
        """Return queries, keys times the unit of logits, values and counts, in float64."""
        return (
            _to_tensor(self.queries),
            unit * _to_tensor(group.key for group in self.groups),
            _to_tensor(group.value for group in self.groups),
            _to_tensor((group.count,) for group in self.groups)[:, 0],
        )


def unit_vector(position: int, width: int, size: Fraction = ONE) -> Vector:
    """Return the vector with `size` at `position` and 0 elsewhere.

    >>> unit_vector(1, 3)
    (Fraction(0, 1), Fraction(1, 1), Fraction(0, 1))
    """
    return tuple(size if i == position else ZERO for i in range(width))


class ExactConstruction(Construction):
    """A construction that gives each label as a `Description`.

    Its reader has few signs, so the enumerating engines try them all. For mechanisms that see positions, the
    special token is at the requested position, and the query comes after all tokens.
    """

    n: int = natural(at_least=2, at_most=10**300)
    m: int = sign_vector_count()
    tau: Fraction = reader_threshold("1/2")
    rational: ClassVar[bool] = True
    """Whether every coordinate is a rational number."""

    exchangeable = Exchangeable.TOKENS
    has_certificates = True

    @abstractmethod
    def describe(self, label: Label) -> Description:
        """Return the tokens of D0 or D1."""

    @property
    def logit_base(self) -> int | None:
        """The unit of logits is the logarithm of this; None if logits are plain numbers."""
        return self.n

    @cached_property
    def descriptions(self) -> tuple[Description, Description]:
        """The descriptions of D0 and D1."""
        return self.describe(0), self.describe(1)

    @property
    def signs(self) -> int:
        return len(self.descriptions[0].groups[0].value)

    def dense_width(self) -> int:
        return self.signs + len(self.descriptions[0].groups[0].key)

    def group_count(self) -> int:
        return max(len(description.groups) for description in self.descriptions)

    @cached_property
    def _tables(self) -> tuple[tuple[torch.Tensor, ...], ...]:
        """Queries, keys, values and counts of D0 and of D1, in float64.

        They are kept, because engines ask for tokens repeatedly and fractions are slow to convert.
        """
        unit = 1.0 if self.logit_base is None else math.log(self.logit_base)
        return tuple(description.tensors(unit) for description in self.descriptions)

    def token_groups(self, label: Label, dtype: torch.dtype, spike: int = 0) -> Tokens:
        queries, keys, values, counts = (table.to(dtype) for table in self._tables[label])
        return Tokens(queries, keys, values, values.sum(-1), counts, last=True)

    def group_counts(self, label: Label) -> tuple[int, ...]:
        return tuple(group.count for group in self.descriptions[label].groups)

    def dense(self, label: Label, spike: int, dtype: torch.dtype) -> Tokens:
        groups = self.token_groups(label, dtype)
        assert groups.values is not None
        counts = torch.tensor(self.group_counts(label))
        # The special token is the first of the first group; rolling moves it to position `spike`.
        rows = torch.arange(len(counts)).repeat_interleave(counts).roll(spike)
        return Tokens(groups.queries, groups.keys[rows], groups.values[rows], groups.probe[rows], last=True)


def _to_tensor(rows: Iterable[Vector]) -> torch.Tensor:
    return torch.tensor([[float(x) for x in row] for row in rows], dtype=torch.float64)
