"""Theory 5: cross-attention, where the queries carry no spike."""

from __future__ import annotations

import math

import numpy as np

from separatrix.claims import _literal as literal
from separatrix.claims._base import Finding, claim
from separatrix.claims._tools import BASE, Array, Points, Setting, relative_error
from separatrix.claims.boundary import SIZES, boundary_finding
from separatrix.claims.units import attention_weights
from separatrix.constructions.cross import Cross
from separatrix.core.tensors import torch
from separatrix.exact.outputs.kernels import rational_model, spike_weights
from separatrix.mechanisms import Linear, Softmax

ROUNDING = 1e-11
SETTINGS = ((60, 7, "0.5", "1.2"), (100, 12, "1.5", "0.9"), (40, 22, "0.2", "2"))
"""n, d, r_Q, a1."""


def spike_weight(n: int, a: float, r_q: float) -> float:
    """f(., j3) = 1/(1 + (n-1) n^{-a r_Q})."""
    return 1 / (1 + (n - 1) * math.exp(-a * r_q * math.log(n)))


def linear_weight(n: int, a: float, r: float = 0.3) -> float:
    """f(., j3) = R/(R + (n-1) r) with the row sums r = b+c of the keys and R = a + r, whatever r_Q is."""
    return (a + r) / (a + r + (n - 1) * r)


def literal_weights(n: int, d: int, a: float, r_q: float) -> Array:
    """f(j, j3) of every row j for uneven queries that have nothing in common but their row sum."""
    rng = np.random.default_rng(0)
    queries = rng.uniform(-1, 1, (n, d))
    queries += (r_q - queries.sum(1, keepdims=True)) / d
    keys = literal.spiked(n, d, a, 0.2, 0.1)
    scores = literal.logits(queries.tolist(), literal.weight_matrix("ones", d), keys)
    size = float(n)
    return np.array([literal.unit(row, lambda z: size**z, keys).f[0] for row in scores])


@claim("cross-weight", "5", "ours")
def every_row() -> Finding:
    """Cross-attention, X = 11ᵀ: every query row has f(.,j3) = 1/(1+(n-1)n^{-a r_Q}), with r_Q the row sum of
    the queries.

    The closed form against loops on uneven queries, and against the construction's dense tokens. Linear's,
    R/(R+(n-1)r), is compared with dense tokens and with the weights of the certified engine.
    """
    points = Points()
    for n, d, r_q, a1 in SETTINGS:
        made = Cross(Cross.schema.read({**BASE, "n": n, "d": d, "m": 1, "r_Q": r_q, "a1": a1}))
        expected = spike_weight(n, float(a1), float(r_q))
        loops = literal_weights(n, d, float(a1), float(r_q))
        tokens = attention_weights(Softmax(), made.dense(1, 0, torch.float64))[:, 0]
        errors = [float(np.abs(found / expected - 1).max()) for found in (loops, tokens)]
        linear = attention_weights(Linear(), made.dense(1, 0, torch.float64))[:, 0]
        certain = [
            float(spike_weights(unit, rational_model(made), 1)["query"]) for unit in (Softmax(), Linear())
        ]
        errors += [
            float(np.abs(linear / linear_weight(n, float(a1)) - 1).max()),
            relative_error(certain[0], expected),
            relative_error(certain[1], linear_weight(n, float(a1))),
        ]
        points.add(
            {"n": n, "d": d, "r_Q": r_q, "a1": a1},
            max(errors) <= ROUNDING,
            weight=expected,
            error_loops=errors[0],
            error_dense=errors[1],
            error_linear=errors[2],
            error_certified=max(errors[3:]),
        )
    worst = points.largest("error_loops", "error_dense")
    return points.conclude(
        f"every query row, uneven queries included, has the closed form's weight to {worst:.1e} (relative)",
        f"error {worst:.1e}, allowed {ROUNDING:.0e}",
    )


def _setting(n: int) -> Setting:
    return {**BASE, "a1": "searched", "r_Q": "0.5", "n": n}


@claim("boundary-cross", "5", "ours")
def boundary() -> Finding:
    """Cross-attention, the other conditions kept: the a1 at which softmax comes to separate tends to a1 r_Q =
    1 (extrapolated in n); at finite n it is lower.

    a1 r_Q = 1 with r_Q = 1/2: a1 = 2.
    """
    return boundary_finding(SIZES, 2.0, _setting, Cross, "3")
