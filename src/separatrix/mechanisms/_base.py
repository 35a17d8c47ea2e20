"""What a mechanism is: how tokens attend.

A mechanism maps `(q, k, v, counts=None, causal=False)` to the attended values, with shapes
`(batch, heads, tokens, width)` as in `torch.nn.functional.scaled_dot_product_attention`. Logits are
plain inner products `<q, k>`: there is no hidden `1/sqrt(width)`. `counts[..., i]` says that key i
stands for that many equal tokens, so a group of a billion tokens costs one.

Every mechanism has a `definition`, to be read against its formula, and is called in its fast form;
the two must agree. A mechanism whose score is a scalar function of the logit is a `ScoreMechanism`
and is open to the exact engines as well.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from separatrix.numbers.logforms import Flint, LogForm
from separatrix.parameters import Parameters, UsageError
from separatrix.tensors import Float, Tensor, torch

Floats = NDArray[np.float64] | np.float64
Queries = Float[Tensor, "batch heads queries width"]
Keys = Float[Tensor, "batch heads keys width"]
Values = Float[Tensor, "batch heads keys features"]
Counts = Float[Tensor, "... keys"]
Attended = Float[Tensor, "batch heads queries features"]

BLOCK = 1 << 22
"""Scores held at once by a streamed mechanism."""


class NoParameters(Parameters):
    """The parameters of mechanisms that take none."""

    owner = "this mechanism"


class Causality(Enum):
    """Whether a mechanism can look ahead."""

    EITHER = "with causal=True a query sees only keys up to its own place, else all"
    ALWAYS = "only the past is ever seen; causal=False is refused"
    NEVER = "all keys are seen; causal=True is refused"


class Mechanism(ABC):
    """How tokens attend. Subclasses give the class variables, `definition`, and perhaps a fast form."""

    name: ClassVar[str]
    formula: ClassVar[str]
    source: ClassVar[str]
    schema: ClassVar[type[Parameters]] = NoParameters
    family: ClassVar[str]
    """score kernel, feature map, sparse, low rank, recurrent or hybrid."""
    example: ClassVar[dict[str, object]] = {}
    """Parameters for tables of all mechanisms; empty where the defaults will do."""
    causality: ClassVar[Causality] = Causality.EITHER
    permutation_equivariant: ClassVar[bool] = True
    """Whether permuting the tokens only permutes the result (without `causal`)."""
    coordinate_free: ClassVar[bool] = False
    """Whether reordering the coordinates of queries and keys alike changes nothing."""
    takes_counts: ClassVar[bool] = True
    """Whether a key can stand for many."""
    length_free: ClassVar[bool] = True
    """Whether a causal result does not depend on how many tokens follow."""
    streams: ClassVar[bool] = True
    """Whether the fast form needs memory linear, not quadratic, in the tokens."""

    parameters: Any

    @property
    def normalised(self) -> bool:
        """Whether the weights of every query row add up to 1."""
        return True

    def __init__(self, /, **parameters: object) -> None:
        self.parameters = self.schema.read(parameters, self.name)

    @property
    def spelled(self) -> str:
        """The mechanism as it is named on the command line, `power:beta=4`."""
        shown = ",".join(f"{name}={value}" for name, value in self.parameters.chosen().items())
        return f"{self.name}:{shown}" if shown else self.name

    def __repr__(self) -> str:
        return f"<mechanism {self.spelled}>"

    @abstractmethod
    def definition(
        self, q: Queries, k: Keys, v: Values, counts: Counts | None = None, causal: bool = False
    ) -> Attended:
        """The formula, written to be checked and not to be fast."""

    def __call__(
        self, q: Queries, k: Keys, v: Values, counts: Counts | None = None, causal: bool = False
    ) -> Attended:
        """The fast form; the definition unless a mechanism has a better one."""
        return self.definition(q, k, v, counts, causal)

    def sensitivity(self, q: Queries, k: Keys, causal: bool = False, order: int = 0) -> float:
        """How many times the formula magnifies rounding on these tokens, in its derivatives of this order."""
        return 1.0


class ScoreMechanism(Mechanism):
    """Attention by a scalar kernel: `u = g(<q,k>)`, `f = u / <u, 1>`, output `f v`.

    g is positive and does not decrease on positive logits; the exact engines rely on both.
    """

    family = "score kernel"
    coordinate_free = True

    @property
    def roundings(self) -> float:
        """A bound on the relative error of `log_ratio`, in units of rounding, for exact base and step."""
        return 4.0

    @abstractmethod
    def score(self, logits: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        """g, elementwise."""

    @abstractmethod
    def log_ratio(self, base: Floats, step: Floats) -> Floats:
        """`log(g(base + step) / g(base))` in float64, accurate for small steps too."""

    @abstractmethod
    def ratio(self, base: LogForm, step: LogForm) -> Flint:
        """`g(base + step) / g(base)`: a rational where it is one, else a ball."""

    def definition(
        self, q: Queries, k: Keys, v: Values, counts: Counts | None = None, causal: bool = False
    ) -> Attended:
        check_request(self, counts, causal)
        scores = self.score(q @ k.mT)
        if counts is not None:
            scores = scores * counts[..., None, :]
        if causal:
            scores = scores.tril()
        return (scores / scores.sum(-1, keepdim=True)) @ v

    def __call__(
        self, q: Queries, k: Keys, v: Values, counts: Counts | None = None, causal: bool = False
    ) -> Attended:
        """The definition, a block of queries at a time: memory stays linear in the tokens."""
        check_request(self, counts, causal)
        dtype, (q, k, v) = v.dtype, widened(q, k, v)
        step = max(1, BLOCK // (k.shape[-2] * k.shape[0] * k.shape[1]))
        out = []
        for start in range(0, q.shape[-2], step):
            scores = self.score(q[..., start : start + step, :] @ k.mT)
            if counts is not None:
                scores = scores * counts[..., None, :]
            if causal:
                scores = scores.tril(start)
            out.append((scores @ v) / scores.sum(-1, keepdim=True))
        return torch.cat(out, dim=-2).to(dtype)


def check_request(mechanism: Mechanism, counts: Counts | None, causal: bool) -> None:
    """Refuse what a mechanism does not do, in one line."""
    if causal and mechanism.causality is Causality.NEVER:
        raise UsageError(f"{mechanism.name} has no causal form; call it with causal=False")
    if not causal and mechanism.causality is Causality.ALWAYS:
        raise UsageError(f"{mechanism.name} only looks back; call it with causal=True")
    if counts is not None and not mechanism.takes_counts:
        raise UsageError(f"{mechanism.name} depends on the order of tokens, so it does not take counts")
    if counts is not None and causal:
        raise UsageError("counts and causal do not go together: counted tokens have no order")


def widened(*tensors: Tensor) -> tuple[Tensor, ...]:
    """16-bit numbers are added up in float32, as fused kernels do; the result is rounded once."""
    return tuple(x.float() if x.dtype.itemsize < 4 else x for x in tensors)


def divided(weighted: Tensor, total: Tensor) -> Tensor:
    """`weighted / total`, and 0 where the total is 0."""
    return weighted / total.masked_fill(total == 0, torch.inf)
