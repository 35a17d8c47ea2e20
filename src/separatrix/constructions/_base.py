"""The base class of constructions: pairs of token families, D0 and D1, to be told apart."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import Any, ClassVar, Literal, Self

import numpy as np

from separatrix.core.documents import register_json
from separatrix.core.numbers import format_exact
from separatrix.core.parameters import Constraint, Parameters, Parametrised, exact, natural
from separatrix.core.parameters.declared import REQUIRED, Number
from separatrix.core.registry import Described
from separatrix.core.tensors import Float, Tensor, torch

Label = Literal[0, 1]
"""The number of a token family: 0 for D0, 1 for D1."""

MIN_AMPLITUDE, MAX_AMPLITUDE = Fraction(1, 10**6), 10**6
"""Amplitudes beyond these are slips: n to their power is not a usable number."""


def amplitude(default: str | Number = REQUIRED) -> Any:
    """Declare a positive amplitude."""
    return exact(default, at_least=MIN_AMPLITUDE, at_most=MAX_AMPLITUDE)


def amplitude_or_zero(default: str | Number = REQUIRED) -> Any:
    """Declare an amplitude that may be 0."""
    return exact(default, at_least=0, at_most=MAX_AMPLITUDE)


def reader_threshold(default: str | Number | None) -> Any:
    """Declare the reader's threshold, which may be very small: a tuned one can be."""
    return exact(default, at_least=Fraction(1, 10**100), at_most=MAX_AMPLITUDE)


def sign_vector_count() -> Any:
    """Declare m, the number of the reader's sign vectors."""
    return natural(at_least=1, at_most=10**30)


GROWING_SPIKE = Constraint(
    ("a0", "a1"),
    lambda p: p.a0 < p.a1,
    lambda p: f"a0={format_exact(p.a0)} must be smaller than a1={format_exact(p.a1)}",
)


@dataclass(frozen=True)
class Tokens:
    """The input of attention. With `counts`, row i stands for `counts[i]` equal tokens.

    `values` is None if token i carries the i-th unit vector (the plain case): the reader then sees only the
    token's sign.
    """

    queries: Float[Tensor, "queries width"]
    keys: Float[Tensor, "keys width"]
    values: Float[Tensor, "keys features"] | None
    probe: Float[Tensor, " keys"]
    """The contribution of each key to the pre-activation by which margins are measured."""
    counts: Float[Tensor, " keys"] | None = None
    last: bool = False
    """Whether the query comes after all tokens for mechanisms that see positions; else one is at every
    position."""


class Exchangeable(Enum):
    """The effect on the tokens of moving the special token to another position."""

    NOT = "other tokens: the answer depends on the position"
    TOKENS = "the same tokens in another order; features of values, whose signs are alike, swap names"
    COORDINATES = "as TOKENS, and coordinates of queries and keys swap names with them"


class Presence(Enum):
    """The condition under which a kind of query row exists."""

    ALWAYS = "always"
    MATES = "if a block has more than one token"
    OTHER = "one for each block without the spike; the sign of that block matters"


@dataclass(frozen=True)
class QueryRow:
    """One kind of query row: its logit on ordinary keys, and the additional logits of other keys.

    The four logits are numbers of one kind: float arrays, or exact sums of logarithms.
    """

    name: str
    presence: Presence
    base: Any
    spike: Any
    mate: Any
    own: Any
    """Added for keys of the row's own block, for rows of `Presence.OTHER`."""


@dataclass(frozen=True)
class Amplitudes:
    """The contribution of a key to a pre-activation: `a y_1 [spike] + b y_block + c y_d`, against `tau`.

    `a` is a pair, for D0 and D1. All are in units in which the threshold is `tau`.
    """

    a: tuple[Any, Any]
    b: Any
    c: Any
    tau: Any


@dataclass(frozen=True)
class Probe:
    """The quantity that margins are differences of: the largest `offset + a f(spike)` over the rows."""

    offset: Any
    a: tuple[Any, Any]


@dataclass(frozen=True)
class BlockModel:
    """The common shape of the closed forms: attention over blocks of equal tokens.

    Keys lie in `blocks + 1` blocks of `size` tokens, and one block holds the spike. `rows` has the query rows
    of D0 and of D1, which score the keys.
    """

    blocks: Any
    size: Any
    amplitudes: Amplitudes
    probe: Probe
    rows: tuple[tuple[QueryRow, ...], tuple[QueryRow, ...]]
    off: Any = 0.0
    """The relative float64 error of logits and steps, beyond the few roundings of a product."""


class Construction(Described, Parametrised, ABC):
    """A pair of token families with validated parameters."""

    provenance: ClassVar[str]
    example: ClassVar[dict[str, object]] = {"n": 1000, "m": 12}
    """The parameters of the reference point, for tables of all constructions."""
    variants: ClassVar[tuple[dict[str, object], ...]] = ({},)
    """Changes to the example; each gets a column of its own in tables."""
    section: ClassVar[tuple[int, ...]] = (1000,)
    """The section of docs/theory.md, by which constructions are listed; those without one come last."""
    step_name: ClassVar[str] = "its step"
    """The name of `step` in messages about rounding n to a multiple of it."""
    special: ClassVar[str] = ""
    """The name of the first token in a sentence, such as `the spike`; empty if it has none."""
    has_certificates: ClassVar[bool] = False
    """Whether the certificate checker supports the construction."""

    n: int
    """The number of tokens."""
    m: int
    """The number of the reader's sign vectors."""
    tau: Fraction
    """The reader's threshold, exactly, in the units of the amplitudes."""

    @property
    def exchangeable(self) -> Exchangeable:
        """Whether all positions are alike, so that draws of the reader's signs may share one."""
        return Exchangeable.NOT

    @property
    def step(self) -> int:
        """The number that n must be a multiple of."""
        return 1

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = parameters

    @classmethod
    def read(cls, values: Mapping[str, object]) -> Self:
        """Return the construction for `name=value` pairs, or raise a UsageError of one line."""
        return cls(cls.schema.read(values))

    @property
    def threshold(self) -> float:
        """The reader's threshold in the units of the tokens."""
        return float(self.tau) * self.unit

    @property
    def unit(self) -> float:
        """One unit of margin in the units of the tokens: sqrt(log n), or 1."""
        return 1.0

    @property
    @abstractmethod
    def signs(self) -> int:
        """The length of a sign vector."""

    @abstractmethod
    def dense_width(self) -> int:
        """Return how many numbers `dense` keeps per token."""

    @property
    def has_groups(self) -> bool:
        """Whether tokens fall into groups of equal ones."""
        return True

    @abstractmethod
    def group_count(self) -> int:
        """Return the number of distinct tokens."""

    @abstractmethod
    def dense(self, label: Label, spike: int, dtype: torch.dtype) -> Tokens:
        """Return all n tokens of D0 or D1 with the spike at token `spike`."""

    @abstractmethod
    def token_groups(self, label: Label, dtype: torch.dtype, spike: int = 0) -> Tokens:
        """Return the distinct tokens with their counts, which do not tell the order of the tokens.

        The position of the spike affects them only through coordinates (`Exchangeable.COORDINATES`).
        """

    def group_counts(self, label: Label) -> tuple[int, ...]:
        """Return the exact number of tokens in each group, in the order of `token_groups`."""
        counts = self.token_groups(label, torch.float64).counts
        assert counts is not None
        return tuple(map(int, counts.tolist()))

    def query_counts(self, label: Label) -> tuple[int, ...]:
        """Return how many output rows each query of `token_groups` stands for."""
        return (1,) * len(self.token_groups(label, torch.float64).queries)

    def group_signs(self, rng: np.random.Generator, columns: int, counts: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """For unit-vector values: draw the mean sign of each group, one column per sign vector."""
        raise NotImplementedError

    @classmethod
    def amplitudes(cls, values: Mapping[str, Any]) -> Amplitudes:
        """Return the amplitudes of the closed form alone, in the arithmetic of `values`."""
        raise NotImplementedError

    @classmethod
    def block_model(cls, values: Mapping[str, Any], log: Callable[[Any], Any]) -> BlockModel | None:
        """Return the closed form in any arithmetic, or None if these parameters have none.

        `values` are the parameters in that arithmetic; `log` is its logarithm, of which logits are multiples.
        """
        return None


register_json(Construction, str, lambda construction: construction.name)
