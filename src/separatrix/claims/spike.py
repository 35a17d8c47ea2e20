"""Theory 3.1, the spike construction: its shape and its closed forms, against dense tokens."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np

from separatrix.claims import _literal as literal
from separatrix.claims._base import Finding, claim
from separatrix.claims._tools import Array, Points, Setting
from separatrix.claims._tools import spike as make
from separatrix.claims.units import LABELS, attention_weights, returned
from separatrix.constructions import Label
from separatrix.constructions.spike import Spike
from separatrix.core.parameters import UsageError
from separatrix.core.tensors import torch
from separatrix.mechanisms import Linear, Mechanism, Softmax

ROUNDING = 1e-11
SETTINGS: tuple[Setting, ...] = (
    {"n": 200, "d": 22, "a0": "0.01", "a1": "1.2", "b": "0.2", "c": "0.1"},
    {"n": 120, "d": 12, "a0": "0.05", "a1": "0.7", "b": "0.5", "c": "0.4"},
    {"n": 20, "d": 22, "a0": "0.1", "a1": "0.9", "b": "0.3", "c": "1"},
)
"""The last has blocks of a single token."""


@claim("spike-shape", "3.1", "rec")
def shape() -> Finding:
    """A has n = (d-2)t rows. In units of sqrt(log n): the spike a in one row of column 1, b in the column of
    the row's block, c in column d.

    Every entry of A, for both labels and several positions of the spike; and the distinct rows with their
    counts are the rows of A.
    """
    points = Points()
    for setting in SETTINGS:
        made = make(setting)
        b, c, worst, has_groups = float(made.parameters.b), float(made.parameters.c), 0.0, True
        for row, label in product((0, made.n // 2, made.n - 1), LABELS):
            right = np.array(literal.spiked(made.n, setting["d"], made.spike(label), b, c, row)) * made.unit
            worst = max(worst, float(np.abs(made.matrix(label, row, torch.float64).numpy() - right).max()))
            has_groups = has_groups and groups_are_rows(made, label, row)
        points.add(setting, worst <= ROUNDING and has_groups and refused(setting), difference=worst)
    worst = points.largest("difference")
    return points.conclude(
        f"A by its definition and A as built differ by {worst:.1g}; n that is no multiple of d-2 is refused",
        f"difference {worst:.1g}",
    )


def groups_are_rows(made: Spike, label: Label, row: int) -> bool:
    """Whether the distinct tokens, each as often as it is counted, are the rows of A in some order."""
    tokens, counts = made.token_groups(label, torch.float64, row), made.group_counts(label)
    assert tokens.values is not None
    if sum(counts) != made.n:
        return False
    repeated = np.repeat(tokens.values.numpy(), counts, axis=0).tolist()
    return sorted(repeated) == sorted(made.matrix(label, row, torch.float64).tolist())


def refused(setting: Setting) -> bool:
    """Whether one token more, which leaves a block unfilled, is an error."""
    try:
        make(setting, n=setting["n"] + 1)
    except UsageError:
        return True
    return False


def closed_logits(made: Spike, label: Label) -> Array:
    """The table of logits / log n: by the kinds of query and key alone."""
    n, b, c = made.n, float(made.parameters.b), float(made.parameters.c)
    a, r = made.spike(label), b + c
    spiked = np.arange(n) == 0
    both, either = np.logical_and.outer(spiked, spiked), np.logical_or.outer(spiked, spiked)
    if made.parameters.form == "ones":
        table: Array = np.where(both, (a + r) ** 2, np.where(either, r * (a + r), r * r))
        return table
    block = np.arange(n) // made.block_size
    sums: Array = a * a * both + b * b * np.equal.outer(block, block) + c * c
    return sums


def closed_returns(made: Spike, label: Label, f: Array) -> Array:
    """c by blocks: a f(j, j3), b times the weight of each block, and c."""
    n, d = made.n, made.parameters.d
    mass = f.reshape(n, d - 2, made.block_size).sum(-1)
    last = np.full((n, 1), float(made.parameters.c))
    return np.hstack([made.spike(label) * f[:, :1], float(made.parameters.b) * mass, last]) * made.unit


def ones_softmax_weights(made: Spike, label: Label) -> Array:
    """f(j3,j3) = 1/(1+(n-1)n^{-aR}), f(j,j3) = 1/(1+(n-1)n^{-ar}), the rest shared equally."""
    n, a = made.n, made.spike(label)
    r = float(made.parameters.b + made.parameters.c)
    own, other = (1 / (1 + (n - 1) * n ** (-a * s)) for s in (a + r, r))
    f = np.full((n, n), (1 - other) / (n - 1))
    f[:, 0], f[0] = other, (1 - own) / (n - 1)
    f[0, 0] = own
    return f


def ones_linear_weights(made: Spike, label: Label) -> Array:
    """f(j,i) = s_i / sum s with s the row sums of A."""
    s = np.full(made.n, float(made.parameters.b + made.parameters.c))
    s[0] += made.spike(label)
    return np.tile(s / s.sum(), (made.n, 1))


KERNELS: dict[str, Callable[[Array, int], Array]] = {
    "softmax": lambda logits, n: float(n) ** logits,
    "linear": lambda logits, n: logits * np.log(n),
}
"""u of logits in units of log n."""
Weights = Callable[[Spike, Label], Array] | None
"""f in closed form; None where there is none shorter than that of the logits."""


def compare(mechanism: Mechanism, form: str, weights: Weights = None) -> Points:
    """u, f and c in closed form against the dense tokens: the largest relative error of an entry."""
    points = Points()
    for setting in SETTINGS:
        made = make(setting, form=form)
        errors = np.max([_errors(mechanism, made, label, weights) for label in LABELS], axis=0)
        parameters = {**setting, "form": form, "mechanism": mechanism.name}
        points.add(parameters, errors.max() <= ROUNDING, u=errors[0], f=errors[1], c=errors[2])
    return points


def _errors(mechanism: Mechanism, made: Spike, label: Label, weights: Weights) -> tuple[float, ...]:
    tokens = made.dense(label, 0, torch.float64)
    logits = (tokens.queries @ tokens.keys.T).numpy() / np.log(made.n)
    found, u = (KERNELS[mechanism.name](each, made.n) for each in (logits, closed_logits(made, label)))
    f = u / u.sum(-1, keepdims=True) if weights is None else weights(made, label)
    pairs = (
        (found, u),
        (attention_weights(mechanism, tokens), f),
        (returned(mechanism, tokens), closed_returns(made, label, f)),
    )
    return tuple(float(np.abs(found / right - 1).max()) for found, right in pairs)


def _finding(points: Points) -> Finding:
    worst = points.largest("u", "f", "c")
    return points.conclude(
        f"every entry of u, f and c at {len(points)} settings: relative error {worst:.1e} on dense tokens",
        f"error {worst:.1e}, allowed {ROUNDING:.0e}",
    )


@claim("closed-ones-softmax", "3.1", "rec")
def closed_ones_softmax() -> Finding:
    """X = 11ᵀ, softmax: u is n^{R²}, n^{rR} or n^{r²}; f(j3,j3) = 1/(1+(n-1)n^{-aR}), f(j,j3) =
    1/(1+(n-1)n^{-ar}).
    """
    return _finding(compare(Softmax(), "ones", ones_softmax_weights))


@claim("closed-ones-linear", "3.1", "rec")
def closed_ones_linear() -> Finding:
    """X = 11ᵀ, linear: f(j,i) = s_i / sum s with s the row sums of A; f(.,j3) = R/(R+(n-1)r)."""
    return _finding(compare(Linear(), "ones", ones_linear_weights))


@claim("closed-identity", "3.1", "ours")
def closed_identity() -> Finding:
    """X = I (this project's second form): logits / log n are a²[i=j=j3] + b²[same block] + c², and u, f and c
    follow.
    """
    return _finding(Points([*compare(Softmax(), "identity"), *compare(Linear(), "identity")]))


@claim("linear-ignores-query", "3.1", "rec")
def linear_ignores_query() -> Finding:
    """X = 11ᵀ, linear: f does not depend on the query at all.

    How far apart the rows of f are, for linear and, as a control, for softmax.
    """
    points = Points()
    for setting in SETTINGS:
        tokens = make(setting, form="ones").dense(1, 0, torch.float64)
        spread, control = (
            float(np.ptp(attention_weights(mechanism, tokens), axis=0).max())
            for mechanism in (Linear(), Softmax())
        )
        points.add(setting, spread <= ROUNDING < control, linear=spread, softmax=control)
    spread, control = points.largest("linear"), points.smallest("softmax")
    return points.conclude(
        f"rows of f differ by {spread:.1e} at most for linear, by {control:.2g} or more for softmax",
        f"{spread:.1e}; softmax {control:.2g}",
    )
