"""What a mechanism is: how tokens attend.

A mechanism maps `(q, k, v, counts=None, causal=False)` to the attended values, with shapes
`(batch, heads, tokens, width)` as in `torch.nn.functional.scaled_dot_product_attention`. Logits are
plain inner products `<q, k>`: there is no hidden `1/sqrt(width)`. `counts[..., i]` says that key i
stands for that many equal tokens, so a group of a billion tokens costs one. `first` is the place of the
first query among the keys, `present` says which keys are there (both in `_places`), and what else a
mechanism takes it declares as `extras`.

Every mechanism has a `definition`, to be read against its formula, and is called in its fast form;
the two must agree. A mechanism whose score is a scalar function of the logit is a `ScoreMechanism`
and is open to the exact engines as well.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from separatrix.core.documents import register_json
from separatrix.core.numbers.logforms import Flint, LogForm
from separatrix.core.parameters import Parametrised
from separatrix.core.tensors import Float, Tensor, torch
from separatrix.mechanisms._places import AskedLast, Causality, Present, check_request, placed, seen_keys
from separatrix.mechanisms._recomputed import Out, joined_by_rows, recomputed, recomputed_by_rows
from separatrix.mechanisms._request import filled, form, widened
from separatrix.mechanisms.decoding import (
    CACHE,
    FAR,
    STATE,
    WINDOW,
    Answered,
    Kept,
    Past,
    bytes_of,
    decode_from_cache,
)
from separatrix.mechanisms.extras import Extra, Sizes
from separatrix.mechanisms.weights import mark

Floats = NDArray[np.float64] | np.float64
Queries = Float[Tensor, "batch heads queries width"]
Keys = Float[Tensor, "batch heads keys width"]
Values = Float[Tensor, "batch heads keys features"]
Counts = Float[Tensor, "... keys"]
Attended = Float[Tensor, "batch heads queries features"]

BLOCK = 1 << 22
"""Scores held at once by a streamed mechanism."""


class Mechanism(Parametrised, ABC):
    """How tokens attend. Subclasses give the class variables, `definition`, and perhaps a fast form."""

    formula: ClassVar[str]
    source: ClassVar[str]
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
    mixes_heads: ClassVar[bool] = False
    """Whether heads are something to each other."""
    linear_in_values: ClassVar[bool] = True
    """Whether attending to a mixture of values gives the mixture of the results."""
    twice_differentiable: ClassVar[bool | None] = True
    """Whether the definition has second derivatives and forward mode; None where nobody claims it."""
    fixed_width: ClassVar[int | None] = None
    """The only width of queries and keys that it takes, as learned maps have one."""
    fixed_features: ClassVar[int | None] = None
    """The only width of values that it takes."""
    fixed_heads: ClassVar[int | None] = None
    """The only number of heads that it takes."""
    streams: ClassVar[bool] = True
    """Whether the fast form needs memory linear, not quadratic, in the tokens."""
    extras: ClassVar[tuple[Extra, ...]] = ()
    """What it takes beside q, k and v, each by its name."""
    takes_first: ClassVar[bool] = False
    """Whether its forms understand `first`; if not, queries of zeros are put before the first."""
    takes_present: ClassVar[bool] = False
    """Whether its forms understand `present`; if not, they are called with the present tokens alone."""
    accumulates: ClassVar[bool] = True
    """Whether 16-bit numbers are to be made float32; a kernel that adds up in float32 needs no help."""
    answers_few: ClassVar[bool] = True
    """Whether it may be called with fewer queries than keys, from place `first` on."""

    @property
    def normalised(self) -> bool:
        """Whether the weights of every query row add up to 1."""
        return True

    @property
    def fixed_state(self) -> bool:
        """Whether a state whose size stops growing is all that it needs of the tokens before."""
        return False

    def readable(self, tokens: int, stream: str = "keys") -> tuple[range, ...]:
        """The places, of so many tokens read, that a later causal query can still read.

        `stream` is `keys`, `values` or the name of a per-token extra. Numbering the places that are left
        from 0 again must not change what queries see: a window drops what lies behind it, blocks are dropped
        whole.
        """
        return (range(tokens),)

    def example_state(self, tokens: int, k: Keys, v: Values) -> tuple[Tensor, ...]:
        """Tensors as large as the state after so many tokens that are like the one of k and v."""
        raise NotImplementedError(f"{self.name} keeps no state")

    def kept_after(self, tokens: int, heads: int, width: int, features: int, dtype: torch.dtype) -> Kept:
        """What must be kept of one sequence of so many tokens to decode the next one, exactly.

        Per-token extras count as well, in float32 at least, since models learn them from their tokens. Where
        there is no causal form, nothing is decoded: it is the keys and values that a new pass needs.

        **Arguments:**

        - `tokens`: how many have been read.
        - `heads`: those that have keys and values of their own.
        - `width`: of a key.
        - `features`: of a value.
        - `dtype`: of keys and values.
        """
        k, v = (torch.zeros(1, heads, 1, size, dtype=dtype) for size in (width, features))
        if self.fixed_state:
            with torch.no_grad():
                return Kept(bytes_of(self.example_state(tokens, k, v)), STATE)
        sizes, wide = self.sizes(k, k, v), max(4, dtype.itemsize)
        streams = {"keys": width * dtype.itemsize, "values": features * dtype.itemsize}
        streams |= {extra.name: wide * extra.shape(sizes)[-1] for extra in self.extras if extra.per_token}
        kept = sum(
            heads * size * len(part) for name, size in streams.items() for part in self.readable(tokens, name)
        )
        return Kept(kept, WINDOW if sum(map(len, self.readable(FAR))) < FAR else CACHE)

    def decode(
        self,
        past: Past | None,
        q: Queries,
        k: Keys,
        v: Values,
        present: Present | None = None,
        *,
        skipped: int = 0,
        **extras: Any,
    ) -> tuple[Answered, Past]:
        """Read tokens after those of `past`: what they get, causal, and what later tokens need.

        **Arguments:**

        - `past`: what the call before returned; None at the beginning.
        - `present`: which of the new tokens are there.
        - `skipped`: so many of the first new tokens ask nothing, though they are read.
        """
        return decode_from_cache(self, past, q, k, v, present, skipped, extras)

    def attend_kept(
        self,
        q: Queries,
        k: Keys,
        v: Values,
        first: int,
        present: Present | None,
        read: Tensor,
        extras: dict[str, Any],
    ) -> Attended:
        """What queries from place `first` on get from the keys that are kept, of all that were `read`."""
        # The last token sees all others, and without a mask that is cheaper.
        causal = not (q.shape[-2] == 1 and self.permutation_equivariant)
        return self(q, k, v, causal=causal, first=first, present=present, **extras)

    def __init__(self, /, **parameters: object) -> None:
        self.parameters = self.schema.read(parameters, self.name)

    @property
    def spelled(self) -> str:
        """The mechanism as it is named on the command line, `power:beta=4`, with a mark of its weights."""
        shown = ",".join(f"{name}={value}" for name, value in self.parameters.chosen().items())
        return (f"{self.name}:{shown}" if shown else self.name) + mark(self.held_weights)

    @property
    def held_weights(self) -> Mapping[str, Any]:
        """The numbers that it computes with beside its parameters, if it holds any."""
        return {}

    def __repr__(self) -> str:
        return f"<mechanism {self.spelled}>"

    def recomputed(self, part: Callable[..., Out], *inputs: Tensor | None) -> Out:
        """`part(*inputs)`, which backward computes again, unless weights are held that learn beside it."""
        if any(weight.requires_grad for weight in self.held_weights.values()):
            return part(*inputs)
        return recomputed(part, *inputs)

    def recomputed_by_rows(
        self, part: Callable[..., Tensor], blocks: Sequence[range], rows: Tensor, *inputs: Tensor | None
    ) -> Tensor:
        """`part` for each block of rows; backward computes it again unless held weights learn beside it."""
        learns = any(weight.requires_grad for weight in self.held_weights.values())
        return (joined_by_rows if learns else recomputed_by_rows)(part, blocks, rows, *inputs)

    @abstractmethod
    def definition(
        self,
        q: Queries,
        k: Keys,
        v: Values,
        counts: Counts | None = None,
        causal: bool = False,
        *,
        first: int = 0,
        present: Present | None = None,
        **extras: Any,
    ) -> Attended:
        """The formula, written to be checked and not to be fast."""

    def __call__(
        self,
        q: Queries,
        k: Keys,
        v: Values,
        counts: Counts | None = None,
        causal: bool = False,
        *,
        first: int = 0,
        present: Present | None = None,
        **extras: Any,
    ) -> Attended:
        """The fast form; the definition unless a mechanism has a better one."""
        return placed(
            self,
            lambda q, k, v, counts, options, given: self.definition(
                q, k, v, counts, causal, **options, **given
            ),
            *(q, k, v, counts, causal, first, present, extras),
        )

    @property
    def fitted(self) -> Callable[..., Attended]:
        """The mechanism for tokens of any size: itself, unless tokens have to be made to fit."""
        return self

    @property
    def magnified_by_fitting(self) -> float:
        """How many times rounding is magnified where tokens are made to fit."""
        return 1.0

    @property
    def token_extras(self) -> list[str]:
        """The names of the extras of which there is one for each token."""
        return [extra.name for extra in self.extras if extra.per_token]

    def sizes(self, q: Queries, k: Keys, v: Values) -> Sizes:
        """The sizes that the shapes of its extras are made of."""
        return Sizes(k.shape[0], k.shape[1], k.shape[-2], k.shape[-1], v.shape[-1])

    def order_free(self, length: int, width: int) -> bool:
        """Whether the order of so many tokens of this width is nothing to it."""
        return self.permutation_equivariant

    def past_order_free(self, length: int, width: int) -> bool:
        """Whether to a query after so many tokens their order is nothing."""
        return self.order_free(length, width)

    def asked_last(self, length: int, width: int) -> AskedLast:
        """How a query that stands after so many tokens is asked what it sees."""
        return AskedLast.PLACED if self.takes_first else AskedLast.AFTER_OTHERS

    @property
    def holds_scores(self) -> bool:
        """Whether a number is held for each query and key: several inputs at once are then no faster."""
        return not self.streams

    def free_of_coordinates(self, length: int, width: int) -> bool:
        """Whether the order of the coordinates of such tokens is nothing to it."""
        return self.coordinate_free

    def sensitivity(self, q: Queries, k: Keys, causal: bool = False, order: int = 0) -> float:
        """How many times the formula magnifies rounding on these tokens, in its derivatives of this order."""
        return 1.0


class ScoreMechanism(Mechanism):
    """Attention by a scalar kernel: `u = g(<q,k>)`, `f = u / <u, 1>`, output `f v`.

    Where the scores of a row add up to 0, as those of a kernel with g(0) = 0 do on keys of zeros, there is no
    normaliser, and the output is 0: what nothing was seen of says nothing.
    g is positive and does not decrease on positive logits; the exact engines rely on both.
    """

    family = "score kernel"
    coordinate_free = True
    takes_first = True
    takes_present = True

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

    @form
    def definition(
        self, q: Queries, k: Keys, v: Values, counts: Counts | None = None, causal: bool = False, **more: Any
    ) -> Attended:
        scores, total = self._scores(q, k, counts, seen_keys(range(q.shape[-2]), k, causal, **more))
        return divided(scores, total) @ v

    @form
    def __call__(
        self, q: Queries, k: Keys, v: Values, counts: Counts | None = None, causal: bool = False, **more: Any
    ) -> Attended:
        """The definition, a block of queries at a time: memory stays linear in the tokens."""
        return by_blocks_of_queries(partial(self._rows, causal, more), q, k, v, counts)

    def _rows(
        self,
        causal: bool,
        places: dict[str, Any],
        rows: range,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        counts: Tensor | None,
    ) -> Tensor:
        """What the queries of these rows read."""
        scores, total = self._scores(q, k, counts, seen_keys(rows, k, causal, **places))
        return divided(scores @ v, total)

    def _scores(
        self, q: Queries, k: Keys, counts: Counts | None, seen: Tensor | None
    ) -> tuple[Float[Tensor, "batch heads queries keys"], Float[Tensor, "batch heads queries 1"]]:
        """The scores of the keys in sight, 0 elsewhere, and their sum."""
        logits = q @ k.mT
        scores = self.score(logits if seen is None else logits.where(seen, 1))
        if counts is not None:
            scores = scores * counts[..., None, :]
        scores = scores if seen is None else scores.where(seen, 0)
        return scores, scores.sum(-1, keepdim=True)


def blocks_of_queries(q: Queries, k: Keys) -> list[range]:
    """The queries, in blocks whose scores fit the streaming budget."""
    step = max(1, BLOCK // max(1, k.shape[-2] * k.shape[0] * k.shape[1]))
    return [range(start, min(start + step, q.shape[-2])) for start in range(0, q.shape[-2], step)]


def by_blocks_of_queries(
    attend: Callable[..., Attended], q: Queries, k: Keys, v: Values, *more: Tensor | None
) -> Attended:
    """`attend(rows, queries of these rows, k, v, *more)` a block of queries at a time, end to end.

    Backward computes each block again, unless there is only one: memory stays linear in the tokens.
    """
    blocks = blocks_of_queries(q, k)
    if len(blocks) < 2:
        return attend(range(q.shape[-2]), q, k, v, *more)
    return recomputed_by_rows(attend, blocks, q, k, v, *more)


def divided(weighted: Tensor, total: Tensor) -> Tensor:
    """`weighted / total`, and 0 where the total is 0."""
    return weighted / divisor(total)


def divisor(total: Tensor) -> Tensor:
    """Return the totals to divide by: infinity instead of 0, so that an empty row is 0."""
    # Twice as fast as `masked_fill(total == 0, inf)`, which is visible in the time of a single head.
    return torch.where(total.bool(), total, torch.inf)


register_json(Mechanism, str, lambda mechanism: mechanism.spelled)

__all__ = [
    "BLOCK",
    "AskedLast",
    "Attended",
    "Causality",
    "Counts",
    "Floats",
    "Keys",
    "Mechanism",
    "Present",
    "Queries",
    "ScoreMechanism",
    "Values",
    "blocks_of_queries",
    "by_blocks_of_queries",
    "check_request",
    "divided",
    "divisor",
    "filled",
    "form",
    "seen_keys",
    "widened",
]
