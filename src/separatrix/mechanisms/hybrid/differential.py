"""Differential attention: one softmax minus another."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, ClassVar

from separatrix.core.numbers import format_exact
from separatrix.core.parameters import Constraint, Exact, Parameters
from separatrix.core.tensors import Tensor
from separatrix.mechanisms._base import Attended, Counts, Keys, Mechanism, Queries, Values, form
from separatrix.mechanisms.extras import DIFFERENCE
from separatrix.mechanisms.kernels.softmax import Softmax


class DifferentialParameters(Parameters):
    """How much of the second softmax is taken away."""

    owner = "differential"
    lam: Exact = Fraction(4, 5)
    constraints: ClassVar[tuple[Constraint, ...]] = (
        Constraint(
            ("lam",),
            lambda p: abs(p.lam) <= 10**6,
            lambda p: f"lam={format_exact(p.lam)} is out of range; lam must be between -1e6 and 1e6",
        ),
    )


class Differential(Mechanism):
    """`f = softmax(<q_1,k_1>) - lam softmax(<q_2,k_2>)`, where q = (q_1, q_2) and k = (k_1, k_2).

    The Differential Transformer (arXiv 2410.05258) learns lam, one for a layer: `lam` of shape (heads,). An
    odd width gives the first half one channel more. The weights of a row add up to 1 - lam. Held against the
    authors' program, left out are the division of logits by the root of the width of a half (a layer divides
    by that of a head, smaller by sqrt(2): give it `scale`), rotary positions of each half by itself (a layer
    turns the head as one), and the root-mean-square norm of each head's output (a layer has it) times 1 less
    the constant in lam.

    >>> import torch
    >>> from separatrix.mechanisms import mechanism_named
    >>> x = torch.ones(1, 1, 3, 2)
    >>> round(mechanism_named("differential")(x, x, x)[0, 0, 0, 0].item(), 6)
    0.2
    """

    name = "differential"
    formula = "softmax(<q_1,k_1>) - lam softmax(<q_2,k_2>), q = (q_1, q_2), k = (k_1, k_2)"
    source = "[rec] arXiv 2410.05258, with a lam that is not learned"
    family = "hybrid"
    schema = DifferentialParameters
    parameters: DifferentialParameters
    extras = (DIFFERENCE,)
    takes_first = True
    takes_present = True

    @property
    def normalised(self) -> bool:
        return self.parameters.lam == 0

    @form
    def definition(
        self, q: Queries, k: Keys, v: Values, counts: Counts | None = None, causal: bool = False, **more: Any
    ) -> Attended:
        lam: Tensor = more.pop("lam").to(v)[:, None, None]
        softmax = Softmax()
        (q_1, q_2), (k_1, k_2) = _halves(q), _halves(k)
        plus = softmax.definition(q_1, k_1, v, counts, causal, **more)
        return plus - lam * softmax.definition(q_2, k_2, v, counts, causal, **more)

    @form
    def __call__(
        self, q: Queries, k: Keys, v: Values, counts: Counts | None = None, causal: bool = False, **more: Any
    ) -> Attended:
        """The fast form of softmax, twice."""
        lam: Tensor = more.pop("lam").to(v)[:, None, None]
        softmax = Softmax()
        (q_1, q_2), (k_1, k_2) = _halves(q), _halves(k)
        return softmax(q_1, k_1, v, counts, causal, **more) - lam * softmax(
            q_2, k_2, v, counts, causal, **more
        )


def _halves(x: Tensor) -> tuple[Tensor, Tensor]:
    """The first half of the channels, and the others."""
    half = -(-x.shape[-1] // 2)
    return x[..., :half], x[..., half:]
