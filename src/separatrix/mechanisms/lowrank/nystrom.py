"""Nyströmformer: softmax through landmarks."""

from __future__ import annotations

from separatrix.core.parameters import natural
from separatrix.core.tensors import Float, Tensor, functional, torch
from separatrix.mechanisms._base import Mechanism
from separatrix.mechanisms._methods import attention_method, upcast
from separatrix.mechanisms._positions import Causality
from separatrix.mechanisms._types import Attended, CallOptions, Keys, Queries, Values

Matrix = Float[Tensor, "batch heads rows columns"]


class Nystrom(Mechanism):
    """`softmax(q k'ᵀ) softmax(q' k'ᵀ)⁺ softmax(q' kᵀ) v`, with landmarks q', k' [rec].

    Landmarks are means of consecutive segments, whose lengths differ by at most one. With as many as there
    are tokens this is softmax: `S S⁺ S = S`. The pseudo-inverse is exact; Nyströmformer iterates towards it,
    pads to a multiple of the landmarks, and adds a convolution of the values.

    Weights may be negative. They add up to 1 if the landmarks' matrix is invertible, else perhaps not, hence
    `is_normalised` is not claimed; and gradients then need its rank to stay the same. Tokens that are nearly
    equal make that matrix nearly singular; `sensitivity` measures the loss of digits.

    >>> x = torch.eye(4).reshape(1, 1, 4, 4)
    >>> torch.allclose(Nystrom(landmarks=4)(x, x, x), x.softmax(-1), atol=1e-5)
    True
    """

    name = "nystrom"
    formula = "softmax(q k'^T) pinv(softmax(q' k'^T)) softmax(q' k^T) v, q' and k' segment means"
    source = "[rec] Nyströmformer, arXiv 2102.03902"
    family = "low rank"
    causality = Causality.NEVER
    permutation_equivariant = False
    is_normalised = False
    landmarks: int = natural(64, at_least=1, at_most=1 << 16)
    """The number of landmarks."""

    def compute_landmarks(
        self, x: Float[Tensor, "batch heads tokens width"]
    ) -> Float[Tensor, "batch heads landmarks width"]:
        """Return means of consecutive segments, or the tokens themselves if there are no more of them."""
        count = min(self.landmarks, x.shape[-2])
        return torch.stack([segment.mean(-2) for segment in x.tensor_split(count, dim=-2)], dim=-2)

    @attention_method
    def definition(self, q: Queries, k: Keys, v: Values, options: CallOptions) -> Attended:
        to_landmarks, among_landmarks, from_landmarks = self._factors(q, k)
        weights: Tensor = to_landmarks @ _solve(among_landmarks, from_landmarks)
        return weights @ v

    @attention_method
    def __call__(self, q: Queries, k: Keys, v: Values, options: CallOptions) -> Attended:
        """Multiply from right to left, on a few summaries of the values: memory is linear in the tokens."""
        landmarks_q, landmarks_k = self.compute_landmarks(q), self.compute_landmarks(k)
        among_landmarks = (landmarks_q @ landmarks_k.mT).softmax(-1)
        values = functional.scaled_dot_product_attention(landmarks_q, k, v, scale=1.0)
        summaries = _solve(among_landmarks, values)
        return functional.scaled_dot_product_attention(q, landmarks_k, summaries, scale=1.0)

    def sensitivity(self, q: Queries, k: Keys, causal: bool = False, order: int = 0) -> float:
        """Return the largest `|A S⁺| |S⁺ B|` of a head, for weights `A S⁺ B`; derivatives add `|S⁻¹|` [ours].

        A change of A, S and B by a unit of rounding changes the weights by a few times that many units, to
        first order and while the rank of S stays; norms are largest sums of a row. The refinement of `_solve`
        leaves `u κ²` units of the inverse's own rounding, for the condition κ of S, which are added.
        """
        factors = (x.detach() for x in self._factors(*upcast(q, k)))
        to_landmarks, among_landmarks, from_landmarks = factors
        left_norm = _row_norm(_solve(among_landmarks.mT, to_landmarks.mT).mT)
        right_norm = _row_norm(_solve(among_landmarks, from_landmarks))
        singular_values: Tensor = torch.linalg.svdvals(among_landmarks)
        condition = singular_values[..., 0] / singular_values[..., -1]
        factor = left_norm * right_norm + torch.finfo(torch.float64).eps * condition**2
        return max(1.0, float((factor * singular_values[..., -1] ** -order).max()))

    def _factors(self, q: Queries, k: Keys) -> tuple[Tensor, Tensor, Tensor]:
        """Return A, S and B: from queries to landmarks, among landmarks, from landmarks to keys."""
        landmarks_q, landmarks_k = self.compute_landmarks(q), self.compute_landmarks(k)
        pairs = (q, landmarks_k), (landmarks_q, landmarks_k), (landmarks_q, k)
        to_landmarks, among_landmarks, from_landmarks = ((a @ b.mT).softmax(-1) for a, b in pairs)
        return to_landmarks, among_landmarks, from_landmarks


def _solve(
    matrix: Matrix, right: Float[Tensor, "batch heads rows sides"]
) -> Float[Tensor, "batch heads columns sides"]:
    """Return `matrix⁺ right`, refined once by its residual.

    The inverse of a nearly singular matrix is large, and so is its own rounding; here that cancels, while in
    exact arithmetic and in every derivative the second term is 0.
    """
    inverse: Tensor = torch.linalg.pinv(matrix)
    solution = inverse @ right
    return solution + inverse @ (right - matrix @ solution)


def _row_norm(matrix: Tensor) -> Tensor:
    return matrix.abs().sum(-1).amax(-1)
