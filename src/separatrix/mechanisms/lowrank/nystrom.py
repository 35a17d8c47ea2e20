"""Nyströmformer: softmax through landmarks."""

from __future__ import annotations

from typing import Any, ClassVar

from separatrix.core.parameters import Constraint, Natural, Parameters
from separatrix.core.tensors import Float, Tensor, functional, torch
from separatrix.mechanisms._base import (
    Attended,
    Causality,
    Counts,
    Keys,
    Mechanism,
    Queries,
    Values,
    form,
    widened,
)

Tokens = Float[Tensor, "batch heads tokens width"]
Landmarks = Float[Tensor, "batch heads landmarks width"]
Matrix = Float[Tensor, "batch heads rows columns"]
RightSide = Float[Tensor, "batch heads rows sides"]
Solution = Float[Tensor, "batch heads columns sides"]


class NystromParameters(Parameters):
    """How many landmarks."""

    owner = "nystrom"
    landmarks: Natural = 64
    constraints: ClassVar[tuple[Constraint, ...]] = (
        Constraint(
            ("landmarks",),
            lambda p: 1 <= p.landmarks <= 1 << 16,
            lambda p: f"landmarks={p.landmarks} is out of range; there must be 1 to {1 << 16}",
        ),
    )


class Nystrom(Mechanism):
    """`softmax(q k'ᵀ) softmax(q' k'ᵀ)⁺ softmax(q' kᵀ) v`, with landmarks q', k' [rec].

    Landmarks are means of consecutive segments, whose lengths differ by at most one. With as many as
    there are tokens this is softmax: `S S⁺ S = S`. The pseudo-inverse is exact; Nyströmformer iterates
    towards it, pads to a multiple of the landmarks, and adds a convolution of the values.

    Weights may be negative. They add up to 1 when the landmarks' matrix is invertible, else perhaps
    not, hence `normalised` is not claimed; and gradients then need its rank to stay what it is. Tokens
    that are much alike make that matrix nearly singular, and `sensitivity` says what it costs.

    >>> x = torch.eye(4).reshape(1, 1, 4, 4)
    >>> torch.allclose(Nystrom(landmarks=4)(x, x, x), x.softmax(-1), atol=1e-5)
    True
    """

    name = "nystrom"
    formula = "softmax(q k'^T) pinv(softmax(q' k'^T)) softmax(q' k^T) v, q' and k' segment means"
    source = "[rec] Nyströmformer, arXiv 2102.03902"
    family = "low rank"
    schema = NystromParameters
    parameters: NystromParameters
    causality = Causality.NEVER
    permutation_equivariant = False
    takes_counts = False

    @property
    def normalised(self) -> bool:
        return False

    def landmarks(self, x: Tokens) -> Landmarks:
        """Means of consecutive segments; the tokens themselves where these are no more."""
        count = min(self.parameters.landmarks, x.shape[-2])
        return torch.stack([segment.mean(-2) for segment in x.tensor_split(count, dim=-2)], dim=-2)

    @form
    def definition(
        self, q: Queries, k: Keys, v: Values, counts: Counts | None = None, causal: bool = False, **more: Any
    ) -> Attended:
        to_few, between, from_few = self._factors(q, k)
        weights: Tensor = to_few @ _solved(between, from_few)
        return weights @ v

    @form
    def __call__(
        self, q: Queries, k: Keys, v: Values, counts: Counts | None = None, causal: bool = False, **more: Any
    ) -> Attended:
        """From right to left, on a few summaries of the values: memory is linear in the tokens."""
        few_q, few_k = self.landmarks(q), self.landmarks(k)
        between = (few_q @ few_k.mT).softmax(-1)
        summaries = _solved(between, functional.scaled_dot_product_attention(few_q, k, v, scale=1.0))
        return functional.scaled_dot_product_attention(q, few_k, summaries, scale=1.0)

    def sensitivity(self, q: Queries, k: Keys, causal: bool = False, order: int = 0) -> float:
        """The largest `|A S⁺| |S⁺ B|` of a head, for weights `A S⁺ B`; each derivative adds a `|S⁻¹|` [ours].

        A change of A, S and B by a unit of rounding changes the weights by a few times that many units, to
        first order and while the rank of S stays; norms are largest sums of a row. On top of it comes what
        one improvement leaves of the inverse's own rounding: `u κ²` units, for the condition κ of S.
        """
        to_few, between, from_few = (x.detach() for x in self._factors(*widened(q, k)))
        left = _row_sums(_solved(between.mT, to_few.mT).mT)
        right = _row_sums(_solved(between, from_few))
        spread: Tensor = torch.linalg.svdvals(between)
        left_over = torch.finfo(torch.float64).eps * (spread[..., 0] / spread[..., -1]) ** 2
        magnified = left * right + left_over
        return max(1.0, float((magnified * spread[..., -1] ** -order).max()))

    def _factors(self, q: Queries, k: Keys) -> tuple[Tensor, Tensor, Tensor]:
        """A, S and B: from queries to landmarks, between landmarks, from landmarks to keys."""
        few_q, few_k = self.landmarks(q), self.landmarks(k)
        to_few, between, from_few = (
            (a @ b.mT).softmax(-1) for a, b in ((q, few_k), (few_q, few_k), (few_q, k))
        )
        return to_few, between, from_few


def _solved(matrix: Matrix, right: RightSide) -> Solution:
    """`matrix⁺ right`, improved once by what it leaves over.

    The inverse of a nearly singular matrix is large, and so is its own rounding; here that cancels, while
    in exact arithmetic and in every derivative the second term is 0.
    """
    inverse: Tensor = torch.linalg.pinv(matrix)
    first = inverse @ right
    return first + inverse @ (right - matrix @ first)


def _row_sums(matrix: Tensor) -> Tensor:
    return matrix.abs().sum(-1).amax(-1)
