"""Theory 1: the attention units, against loops and a literal Kronecker product."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from separatrix.claims import _literal as literal
from separatrix.claims._base import Finding, claim
from separatrix.claims._tools import Array, Points, Setting
from separatrix.constructions import Label, Tokens
from separatrix.constructions.cross import Cross
from separatrix.constructions.spike import Spike
from separatrix.core.tensors import Tensor, torch
from separatrix.mechanisms import Linear, Mechanism, Softmax

ROUNDING = 1e-12
"""Relative error allowed between two float64 computations of the same number."""
LABELS: tuple[Label, ...] = (0, 1)
TOKENS: Setting = {"m": 1, "a0": "0.05", "a1": "0.9", "b": "0.3", "c": "0.2"}
SETTINGS: tuple[tuple[type[Spike | Cross], Setting], ...] = (
    (Spike, {"n": 20, "d": 7, "form": "ones"}),
    (Spike, {"n": 18, "d": 8, "form": "identity"}),
    (Cross, {"n": 20, "d": 7, "r_Q": "0.5"}),
)


def kronecker_block(a1: Array, a2: Array, x: Array, j0: int) -> Array:
    """A_j0 x: the j0-th n-by-d² block of A1 ⊗ A2, times x = vec(X) by rows."""
    n = len(a1)
    block = np.kron(a1, a2)[j0 * n : (j0 + 1) * n]
    product: Array = block @ x.reshape(-1)
    return product


@claim("tensor-trick", "1", "paper")
def tensor_trick() -> Finding:
    """A_j0 x, the j0-th block of A1 ⊗ A2 times vec(X), is row j0 of A1 X A2ᵀ.

    Whole numbers, so that both sides are exact.
    """
    rng = np.random.default_rng(0)
    points = Points()
    for n, d in ((2, 2), (3, 2), (4, 3), (5, 4)):
        a1, a2 = rng.integers(-9, 10, (2, n, d))
        q, k = rng.integers(-9, 10, (2, d, d))
        x = q @ k.T
        rows = a1 @ x @ a2.T
        right, turned = (
            max(int(np.abs(kronecker_block(a1, a2, matrix, j) - rows[j]).max()) for j in range(n))
            for matrix in (x, x.T)
        )
        points.add({"n": n, "d": d}, right == 0, difference=right, with_x_transposed=turned)
    return points.conclude(
        "every block times vec(X) equals its row of A1 X A2ᵀ on whole numbers; "
        f"largest difference {points.largest('difference'):.0f}",
        f"exact; with X transposed off by {points.smallest('with_x_transposed'):.0f} or more",
    )


def returned(attend: Callable[..., Tensor], tokens: Tokens, values: Tensor | None = None) -> Array:
    """What attention returns for the tokens, or for other values in the place of theirs."""
    carried = tokens.values if values is None else values
    assert carried is not None
    found: Array = attend(*(each[None, None] for each in (tokens.queries, tokens.keys, carried)))[
        0, 0
    ].numpy()
    return found


def attention_weights(mechanism: Mechanism, tokens: Tokens) -> Array:
    """f as the mechanism's definition has it: what attending to unit vectors gives."""
    return returned(mechanism.definition, tokens, torch.eye(len(tokens.keys), dtype=torch.float64))


def unit_against_loops(mechanism: Mechanism, kernel: Callable[[float], float]) -> Finding:
    """u, alpha, f and c in loops on the literal matrices, against `definition` and the fast form."""
    points = Points()
    for kind, setting in SETTINGS:
        made = kind(kind.schema.read({**TOKENS, **setting}))
        errors = np.max([_errors(mechanism, kernel, made, label) for label in LABELS], axis=0)
        points.add(
            {"construction": kind.name, **setting},
            errors.max() <= ROUNDING,
            f=errors[0],
            definition=errors[1],
            fast_form=errors[2],
        )
    worst = points.largest("f", "definition", "fast_form")
    return points.conclude(
        f"f and c by loops, by the definition of {mechanism.name} and by its fast form: error {worst:.1e}",
        f"error {worst:.1e}, allowed {ROUNDING:.0e}",
    )


def _errors(
    mechanism: Mechanism, kernel: Callable[[float], float], made: Spike | Cross, label: Label
) -> tuple[float, ...]:
    """How far f, the definition's c and the fast form's c are from the loops, relative to the largest."""
    units = _literal_units(made, label, kernel)
    tokens = made.dense(label, 3, torch.float64)
    c, f = np.array([unit.c for unit in units]), np.array([unit.f for unit in units])
    pairs = (
        (attention_weights(mechanism, tokens), f),
        (returned(mechanism.definition, tokens), c),
        (returned(mechanism, tokens), c),
    )
    return tuple(float(np.abs(found - right).max() / np.abs(right).max()) for found, right in pairs)


def _literal_units(
    made: Spike | Cross, label: Label, kernel: Callable[[float], float]
) -> list[literal.Unit[float]]:
    d, a = made.parameters.d, made.matrix(label, 3, torch.float64).tolist()
    queries, form = a, "ones"
    if isinstance(made, Spike):
        form = made.parameters.form
    else:  # any queries with this row sum will do: X = 11ᵀ sees nothing else
        queries = [[float(made.parameters.r_Q) * made.unit / d] * d for _ in a]
    return [
        literal.unit(row, kernel, a) for row in literal.logits(queries, literal.weight_matrix(form, d), a)
    ]


@claim("softmax-unit", "1", "paper")
def softmax_unit() -> Finding:
    """The softmax unit: u = exp(A_j0 x), alpha = <u,1>, f = u/alpha, c = A3ᵀ f."""
    return unit_against_loops(Softmax(), math.exp)


@claim("linear-unit", "1", "paper")
def linear_unit() -> Finding:
    """The linear unit: u = A_j0 x, alpha = <u,1>, f = u/alpha, c = A3ᵀ f."""
    return unit_against_loops(Linear(), lambda z: z)
