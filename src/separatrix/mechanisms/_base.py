"""Base classes of mechanisms.

A mechanism maps `(q, k, v, counts=None, causal=False)` to the attended values, with shapes `(batch, heads,
tokens, width)` as in `torch.nn.functional.scaled_dot_product_attention`. Logits are plain inner products `<q,
k>`: there is no hidden `1/sqrt(width)`. `counts[..., i]` is the multiplicity of key i, so a group of a
billion equal tokens costs one. `first` is the position of the first query among the keys, and `present` marks
the keys that exist (see `_positions`). Further inputs are declared as `extras`.

Every mechanism has a `definition`, to be read against its formula, and is called in its fast form; the two
must agree. A mechanism whose score is a scalar function of the logit is a `ScoreMechanism`, which the exact
engines support as well.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from separatrix.core.documents import register_json
from separatrix.core.numbers.logforms import Flint, LogForm
from separatrix.core.parameters import Parametrised
from separatrix.core.registry import Described
from separatrix.core.tensors import Float, Tensor, torch
from separatrix.mechanisms._blocks import attend_by_blocks, divide
from separatrix.mechanisms._methods import attention_method
from separatrix.mechanisms._positions import Causality, LastQueryMode, call_with_positions
from separatrix.mechanisms._recompute import Out, concatenate_rows, recompute, recompute_by_rows
from separatrix.mechanisms._types import Attended, CallOptions, Counts, Floats, Keys, Present, Queries, Values
from separatrix.mechanisms.decoding import Answers, DecodingMemory, NewTokens, Past, decode_from_cache, predict_memory
from separatrix.mechanisms.extras import Extra, TokenSizes
from separatrix.mechanisms.weights import mark


class Mechanism(Described, Parametrised, ABC):
    """An attention mechanism. Subclasses set the class variables and define `definition` and a fast form."""

    formula: ClassVar[str]
    source: ClassVar[str]
    family: ClassVar[str]
    """score kernel, feature map, sparse, low rank, recurrent or hybrid."""
    example: ClassVar[dict[str, object]] = {}
    """Parameters for tables of all mechanisms; empty if the defaults will do."""
    causality: ClassVar[Causality] = Causality.EITHER
    permutation_equivariant: ClassVar[bool] = True
    """Whether permuting the tokens only permutes the output (without `causal`)."""
    coordinate_free: ClassVar[bool] = False
    """Whether permuting the coordinates of queries and keys alike changes nothing."""
    length_free: ClassVar[bool] = True
    """Whether a causal output is independent of the number of tokens that follow."""
    mixes_heads: ClassVar[bool] = False
    """Whether a head's output depends on other heads."""
    linear_in_values: ClassVar[bool] = True
    """Whether the output is linear in the values."""
    twice_differentiable: ClassVar[bool | None] = True
    """Whether the definition has second derivatives and forward mode; None if nobody claims it."""
    fixed_width: ClassVar[int | None] = None
    """The only width of queries and keys that is accepted, as by learned maps."""
    fixed_features: ClassVar[int | None] = None
    """The only width of values that is accepted."""
    fixed_heads: ClassVar[int | None] = None
    """The only number of heads that is accepted."""
    streams: ClassVar[bool] = True
    """Whether the fast form needs memory linear, not quadratic, in the tokens."""
    extras: ClassVar[tuple[Extra, ...]] = ()
    """Inputs beside q, k and v, each given by its name."""
    takes_first: ClassVar[bool] = False
    """Whether its methods support `first`; if not, queries of zeros are put before the first."""
    takes_present: ClassVar[bool] = False
    """Whether its methods support `present`; if not, they are called with the present tokens alone."""
    accumulates: ClassVar[bool] = True
    """Whether 16-bit numbers are converted to float32; a kernel that accumulates in float32 needs no help."""
    answers_few: ClassVar[bool] = True
    """Whether it may be called with fewer queries than keys, from position `first` on."""

    def __init__(self, /, **parameters: object) -> None:
        self.parameters = self.schema.read(parameters, self.name)

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
        """Compute the formula, written to be checked and not to be fast."""

    def __call__(
        self,
        q: Queries,
        k: Keys,
        v: Values,
        counts: Counts | None = None,
        causal: bool = False,
        *,
        first: int = 0,
        present: Tensor | None = None,  # of any shape: a wrong one is described, not refused by a type checker
        **extras: Any,
    ) -> Attended:
        """Compute the fast form."""
        return call_with_positions(self, self.fast_form, q, k, v, CallOptions(counts, causal, first, present), extras)

    def fast_form(self, q: Queries, k: Keys, v: Values, options: CallOptions, extras: dict[str, Any]) -> Attended:
        """Compute the fast form; the definition unless a mechanism has a better one."""
        return self.definition(q, k, v, options.counts, options.causal, **options.positions(), **extras)

    def check_lengths(self, queries: int, keys: int, options: CallOptions) -> None:
        """Raise a UsageError if the mechanism cannot be called with these numbers of tokens."""

    @property
    def spelled(self) -> str:
        """The name on the command line, `power:beta=4`, with a mark of its weights."""
        words = ",".join(f"{name}={value}" for name, value in self.parameters.non_default_values().items())
        return (f"{self.name}:{words}" if words else self.name) + mark(self.held_weights)

    def __repr__(self) -> str:
        return f"<mechanism {self.spelled}>"

    @property
    def is_normalised(self) -> bool:
        """Whether the weights of every query add up to 1."""
        return True

    @property
    def held_weights(self) -> Mapping[str, Any]:
        """The weights that it holds beside its parameters."""
        return {}

    @property
    def takes_counts(self) -> bool:
        """Whether keys can have multiplicities: counted tokens have no order."""
        return self.permutation_equivariant

    @property
    def _learns(self) -> bool:
        return any(weight.requires_grad for weight in self.held_weights.values())

    def recompute(self, part: Callable[..., Out], *inputs: Tensor | None) -> Out:
        """Return `part(*inputs)`, which backward computes again unless weights that it reads are trained."""
        return part(*inputs) if self._learns else recompute(part, *inputs)

    def recompute_by_rows(
        self, part: Callable[..., Tensor], blocks: Sequence[range], rows: Tensor, *inputs: Tensor | None
    ) -> Tensor:
        """Apply `part` to blocks of rows, which backward computes again unless held weights are trained."""
        return (concatenate_rows if self._learns else recompute_by_rows)(part, blocks, rows, *inputs)

    @property
    def attend_any_size(self) -> Callable[..., Attended]:
        """The mechanism for tokens of any size: itself, unless tokens have to be resized for it."""
        return self

    @property
    def resizing_error_factor(self) -> float:
        """The factor by which resizing tokens magnifies rounding errors."""
        return 1.0

    @property
    def token_extras(self) -> list[str]:
        """The names of the extras of which there is one for each token."""
        return [extra.name for extra in self.extras if extra.per_token]

    def sizes(self, q: Queries, k: Keys, v: Values) -> TokenSizes:
        """Return the sizes that determine the shapes of its extras."""
        return TokenSizes(k.shape[0], k.shape[1], k.shape[-2], k.shape[-1], v.shape[-1])

    def order_free(self, length: int, width: int) -> bool:
        """Return whether the order of tokens of this number and width has no effect."""
        return self.permutation_equivariant

    def past_order_free(self, length: int, width: int) -> bool:
        """Return whether the order of tokens has no effect on a query after them."""
        return self.order_free(length, width)

    def last_query_mode(self, length: int, width: int) -> LastQueryMode:
        """Return how to compute the output of a query after `length` tokens."""
        return LastQueryMode.AT_POSITION if self.takes_first else LastQueryMode.AFTER_OTHERS

    @property
    def holds_scores(self) -> bool:
        """Whether it holds a number for each query and key: then several inputs at once are no faster."""
        return not self.streams

    def free_of_coordinates(self, length: int, width: int) -> bool:
        """Return whether the order of the coordinates of tokens has no effect."""
        return self.coordinate_free

    def sensitivity(self, q: Queries, k: Keys, causal: bool = False, order: int = 0) -> float:
        """Return the factor by which the formula magnifies rounding errors, in derivatives of this order."""
        return 1.0

    @property
    def fixed_state(self) -> bool:
        """Whether decoding needs only a state whose size stops growing."""
        return False

    def readable(self, tokens: int, stream: str = "keys") -> tuple[range, ...]:
        """Return the positions, among `tokens` tokens, that a later causal query can still read.

        `stream` is `keys`, `values` or the name of a per-token extra. Renumbering the remaining positions
        from 0 must not change what queries see: a window drops tokens behind it, blocks are dropped as a
        whole.
        """
        return (range(tokens),)

    def example_state(self, tokens: int, k: Keys, v: Values) -> tuple[Tensor, ...]:
        """Return tensors as large as the state after `tokens` tokens of the sizes of k and v."""
        raise NotImplementedError(f"{self.name} keeps no state")

    def decoding_memory(self, tokens: int, heads: int, width: int, features: int, dtype: torch.dtype) -> DecodingMemory:
        """Predict the exact memory that decoding the next token of one sequence needs.

        Per-token extras count as well, in float32 at least, since models learn them from their tokens.
        Without a causal form, nothing is decoded: the keys and values are counted that a new pass needs.

        **Arguments:**

        - `tokens`: the number of tokens read.
        - `heads`: the number of heads with keys and values of their own.
        - `width`: of a key.
        - `features`: of a value.
        - `dtype`: of keys and values.
        """
        return predict_memory(self, tokens, heads, width, features, dtype)

    def decode(self, past: Past | None, new: NewTokens) -> tuple[Answers, Past]:
        """Read tokens after those of `past`; return their causal outputs, and the memory for later tokens.

        `past` is the memory that the previous call returned, None at the beginning: a cache of keys and values,
        unless a mechanism has a state.
        """
        return decode_from_cache(self, past, new)

    def attend_to_cache(
        self, q: Queries, k: Keys, v: Values, options: CallOptions, lengths: Tensor, extras: dict[str, Any]
    ) -> Attended:
        """Attend with the latest queries to the cached keys, of `lengths` that were read."""
        # The last token sees all others, and without a mask that is cheaper.
        causal = not (q.shape[-2] == 1 and self.permutation_equivariant)
        return self(q, k, v, causal=causal, **options.positions(), **extras)


class ScoreMechanism(Mechanism):
    """Attention by a scalar kernel: `u = g(<q,k>)`, `f = u / <u, 1>`, output `f v`.

    If the scores of a row add up to 0, as those of a kernel with g(0) = 0 do on keys of zeros, there is no
    normaliser, and the output is 0. g is positive and does not decrease on positive logits; the exact engines
    rely on both.
    """

    family = "score kernel"
    coordinate_free = True
    takes_first = True
    takes_present = True
    homogeneous: ClassVar[bool] = False
    """Whether g is a power, so that a positive factor common to all logits of a query cancels."""

    @property
    def polynomial_degree(self) -> int | None:
        """The degree of g if it is a polynomial that is not computed in rationals."""
        return None

    @property
    def roundings(self) -> float:
        """A bound on the relative error of `log_ratio`, in units of rounding, for exact base and step."""
        return 4.0

    @abstractmethod
    def score(self, logits: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        """Return g, elementwise."""

    @abstractmethod
    def log_ratio(self, base: Floats, step: Floats) -> Floats:
        """Return `log(g(base + step) / g(base))` in float64, accurate for small steps too."""

    @abstractmethod
    def ratio(self, base: LogForm, step: LogForm) -> Flint:
        """Return `g(base + step) / g(base)`: a rational if it is one, else a ball."""

    @attention_method
    def definition(self, q: Queries, k: Keys, v: Values, options: CallOptions) -> Attended:
        visible = options.visible_keys(range(q.shape[-2]), k)
        scores, total = self._scores(q, k, options.counts, visible)
        return divide(scores, total) @ v

    @attention_method
    def __call__(self, q: Queries, k: Keys, v: Values, options: CallOptions) -> Attended:
        """Compute the definition in blocks of queries: memory stays linear in the tokens."""

        def attend(rows: range, q: Tensor, k: Tensor, v: Tensor, counts: Tensor | None) -> Tensor:
            scores, total = self._scores(q, k, counts, options.visible_keys(rows, k))
            # Dividing the product takes one division per feature instead of one per key.
            return divide(scores @ v, total)

        return attend_by_blocks(attend, q, k, v, options.counts)

    def _scores(
        self, q: Queries, k: Keys, counts: Counts | None, visible: Tensor | None
    ) -> tuple[Float[Tensor, "batch heads queries keys"], Float[Tensor, "batch heads queries 1"]]:
        """Return the scores of the visible keys, 0 elsewhere, and their sum."""
        logits = q @ k.mT
        # Hidden logits become 1, where every kernel and its slope are finite: masking an infinite score
        # afterwards would leave gradients that are not numbers.
        scores = self.score(logits if visible is None else logits.where(visible, 1))
        if counts is not None:
            scores = scores * counts[..., None, :]
        scores = scores if visible is None else scores.where(visible, 0)
        return scores, scores.sum(-1, keepdim=True)


register_json(Mechanism, str, lambda mechanism: mechanism.spelled)
