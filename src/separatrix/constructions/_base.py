"""What a construction is: two token families, D0 and D1, that a mechanism should tell apart."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from separatrix.core.documents import register_json
from separatrix.core.parameters import Parameters, Parametrised
from separatrix.core.tensors import Float, Tensor, torch

if TYPE_CHECKING:
    import numpy as np

Label = Literal[0, 1]
"""Which of the two families: D0 or D1."""


@dataclass(frozen=True)
class Tokens:
    """What goes into attention. With `counts`, row i stands for `counts[i]` equal tokens.

    `values` is None where token i carries the i-th unit vector (the plain case): then what the
    reader sees of it is its sign alone.
    """

    queries: Float[Tensor, "queries width"]
    keys: Float[Tensor, "keys width"]
    values: Float[Tensor, "keys features"] | None
    probe: Float[Tensor, " keys"]
    """What each key adds to the pre-activation by which margins are measured."""
    counts: Float[Tensor, " keys"] | None = None
    last: bool = False
    """Whether a query is asked after all tokens, where a mechanism sees places; else at every place."""


class Exchangeable(Enum):
    """What the tokens become when the special one stands at another place."""

    NOT = "other tokens: the answer depends on the place"
    TOKENS = "the same tokens in another order; features of their values, whose signs are alike, swap names"
    COORDINATES = "as TOKENS, and coordinates of queries and keys swap names with them"


class Presence(Enum):
    """When a kind of query row exists."""

    ALWAYS = "always"
    MATES = "if a block has more than one token"
    OTHER = "one for each block without the spike; its own sign matters"


@dataclass(frozen=True)
class QueryRow:
    """One kind of query row: its logit on ordinary keys, and what other keys have on top of it.

    The four are numbers of any one kind: float arrays, or exact sums of logarithms.
    """

    name: str
    presence: Presence
    base: Any
    spike: Any
    mate: Any
    own: Any


@dataclass(frozen=True)
class Amplitudes:
    """What a key adds to a pre-activation: `a y_1 [spike] + b y_block + c y_d`, against `tau`.

    `a` is a pair, for D0 and D1. All in units in which the threshold is `tau`.
    """

    a: tuple[Any, Any]
    b: Any
    c: Any
    tau: Any


@dataclass(frozen=True)
class Probe:
    """How margins are measured: `offset + a f(spike)`, the largest over the rows."""

    offset: Any
    a: tuple[Any, Any]


@dataclass(frozen=True)
class BlockModel:
    """The shape every closed form here shares: attention over blocks of equal tokens.

    Keys lie in `blocks + 1` blocks of `size` tokens, and one block holds the spike. The rows of D0
    and of D1 say how the queries score them.
    """

    blocks: Any
    size: Any
    amplitudes: Amplitudes
    probe: Probe
    rows: tuple[tuple[QueryRow, ...], tuple[QueryRow, ...]]
    off: Any = 0.0
    """In float64: how far logits and steps may be off, relatively, beyond the few roundings of a product."""


class Construction(Parametrised, ABC):
    """A pair of token families with validated parameters."""

    title: ClassVar[str]
    provenance: ClassVar[str]
    description: ClassVar[str]
    example: ClassVar[dict[str, object]]
    """The parameters of the reference point, for tables of all constructions."""
    variants: ClassVar[tuple[dict[str, object], ...]] = ({},)
    """Changes to the example that get a column of their own in tables."""
    section: ClassVar[tuple[int, ...]] = (1000,)
    """That of docs/theory.md, by which constructions are listed; those without one come last, by name."""
    step_name: ClassVar[str] = "its step"
    """What `step` is called where it is said that n is rounded to a multiple of it."""
    special: ClassVar[str] = ""
    """What its first token is called in a sentence, as `the spike`; empty where it has no name."""
    has_certificates: ClassVar[bool] = False
    """Whether the certificate checker knows the construction."""

    @property
    def exchangeable(self) -> Exchangeable:
        """Whether all places are alike, so that draws of the reader's signs may share one."""
        return Exchangeable.NOT

    @property
    @abstractmethod
    def step(self) -> int:
        """What n must be a multiple of."""

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = parameters

    @classmethod
    def read(cls, values: Mapping[str, object]) -> Construction:
        """The construction from `name=value` pairs, or a UsageError of one line."""
        return cls(cls.schema.read(values))

    @property
    def n(self) -> int:
        """The number of tokens."""
        return int(self.parameters.n)

    @property
    def m(self) -> int:
        """The number of the reader's sign vectors."""
        return int(self.parameters.m)

    @property
    @abstractmethod
    def threshold(self) -> float:
        """The reader's tau, in the units of the tokens."""

    @property
    @abstractmethod
    def unit(self) -> float:
        """One unit of margin in the units of the tokens: sqrt(log n), or 1."""

    @property
    @abstractmethod
    def signs(self) -> int:
        """The length of a sign vector."""

    @abstractmethod
    def dense_width(self) -> int:
        """The numbers kept per token by `dense`."""

    @property
    def has_groups(self) -> bool:
        """Whether tokens fall into groups of equal ones."""
        return True

    @abstractmethod
    def group_count(self) -> int:
        """The number of distinct tokens."""

    @abstractmethod
    def dense(self, label: Label, spike: int, dtype: torch.dtype) -> Tokens:
        """All n tokens of D0 or D1 with the spike at token `spike`."""

    @abstractmethod
    def groups(self, label: Label, dtype: torch.dtype, spike: int = 0) -> Tokens:
        """The distinct tokens with their counts; the order of tokens is lost, which is the point.

        The place of the spike is seen in them only where coordinates tell (`Exchangeable.COORDINATES`).
        """

    def group_counts(self, label: Label) -> tuple[int, ...]:
        """How many tokens each group has, exactly, in the order of `groups`."""
        counts = self.groups(label, torch.float64).counts
        assert counts is not None
        return tuple(map(int, counts.tolist()))

    def group_signs(
        self, rng: np.random.Generator, columns: int, counts: np.ndarray[Any, Any]
    ) -> np.ndarray[Any, Any]:
        """For unit-vector values: the mean sign of each group, one column a sign vector."""
        raise NotImplementedError

    @classmethod
    def amplitudes(cls, values: Mapping[str, Any]) -> Amplitudes:
        """The amplitudes of the closed form alone, in the arithmetic of `values`."""
        raise NotImplementedError

    @classmethod
    def block_model(cls, values: Mapping[str, Any], log: Callable[[Any], Any]) -> BlockModel | None:
        """The closed form in any arithmetic, or None where these parameters have none.

        `values` are the parameters in that arithmetic, `log` the logarithm a logit is made of.
        """
        return None


register_json(Construction, str, lambda construction: construction.name)
