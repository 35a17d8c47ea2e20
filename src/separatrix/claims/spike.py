"""Theory 3.1, the spike construction: its shape and its closed forms, against dense tokens."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np

from separatrix.claims import _literal as literal
from separatrix.claims._base import LABELS, Array, Finding, Points, Setting, claim
from separatrix.claims._tools import spike as make_spike
from separatrix.claims.units import attention_output, attention_weights
from separatrix.constructions import Label
from separatrix.constructions.spike import Spike
from separatrix.core.parameters import UsageError
from separatrix.core.tensors import torch
from separatrix.mechanisms import Linear, Mechanism, Softmax

MAX_CLOSED_ERROR = 1e-11
SHAPE_SETTINGS: tuple[Setting, ...] = (
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
    for setting in SHAPE_SETTINGS:
        spike = make_spike(setting)
        b, c, worst, has_groups = float(spike.b), float(spike.c), 0.0, True
        for row, label in product((0, spike.n // 2, spike.n - 1), LABELS):
            expected = literal.spike_matrix(spike.n, spike.d, spike.spike(label), b, c, row)
            difference = spike.matrix(label, row, torch.float64).numpy() - np.array(expected) * spike.unit
            worst = max(worst, float(np.abs(difference).max()))
            has_groups = has_groups and groups_are_rows(spike, label, row)
        points.add(setting, worst <= MAX_CLOSED_ERROR and has_groups and refuses_one_more(setting), difference=worst)
    return points.conclude(
        f"A by its definition and A as built differ by {points.difference.max:.1g}; n that is no multiple "
        "of d-2 is refused",
        f"difference {points.difference.max:.1g}",
    )


def groups_are_rows(spike: Spike, label: Label, row: int) -> bool:
    """Return whether the distinct tokens, each as often as it is counted, are the rows of A in some order."""
    tokens, counts = spike.token_groups(label, torch.float64, row), spike.group_counts(label)
    assert tokens.values is not None
    if sum(counts) != spike.n:
        return False
    rows = np.repeat(tokens.values.numpy(), counts, axis=0).tolist()
    return sorted(rows) == sorted(spike.matrix(label, row, torch.float64).tolist())


def refuses_one_more(setting: Setting) -> bool:
    """Return whether one token more, which leaves a block unfilled, is an error."""
    try:
        return not make_spike(setting, n=setting["n"] + 1)
    except UsageError:
        return True


def closed_logits(spike: Spike, label: Label) -> Array:
    """Return the table of logits / log n, which depend only on the kinds of query and key."""
    n, b, c = spike.n, float(spike.b), float(spike.c)
    a, r = spike.spike(label), b + c
    is_spike = np.arange(n) == 0
    if spike.form == "ones":
        row_sums = r + a * is_spike
        return np.asarray(np.multiply.outer(row_sums, row_sums))
    block = np.arange(n) // spike.block_size
    both_spikes, same_block = np.logical_and.outer(is_spike, is_spike), np.equal.outer(block, block)
    return np.asarray(a * a * both_spikes + b * b * same_block + c * c)


def closed_outputs(spike: Spike, label: Label, f: Array) -> Array:
    """Return c by blocks: a f(j, j3), b times the weight of each block, and c."""
    block_weights = f.reshape(spike.n, spike.d - 2, spike.block_size).sum(-1)
    last = np.full((spike.n, 1), float(spike.c))
    return np.hstack([spike.spike(label) * f[:, :1], float(spike.b) * block_weights, last]) * spike.unit


def ones_softmax_weights(spike: Spike, label: Label) -> Array:
    """Return f(j3,j3) = 1/(1+(n-1)n^{-aR}), f(j,j3) = 1/(1+(n-1)n^{-ar}), and equal shares elsewhere."""
    n, a, r = spike.n, spike.spike(label), float(spike.b + spike.c)
    from_spike, from_others = (1 / (1 + (n - 1) * n ** (-a * s)) for s in (a + r, r))
    f = np.full((n, n), (1 - from_others) / (n - 1))
    f[:, 0], f[0] = from_others, (1 - from_spike) / (n - 1)
    f[0, 0] = from_spike
    return f


def ones_linear_weights(spike: Spike, label: Label) -> Array:
    """Return f(j,i) = s_i / sum s with s the row sums of A."""
    s = np.full(spike.n, float(spike.b + spike.c))
    s[0] += spike.spike(label)
    return np.tile(s / s.sum(), (spike.n, 1))


KERNELS: dict[str, Callable[[Array, int], Array]] = {
    "softmax": lambda logits, n: float(n) ** logits,
    "linear": lambda logits, n: logits * np.log(n),
}
"""u of logits in units of log n."""
Weights = Callable[[Spike, Label], Array] | None
"""f in closed form; None if there is none shorter than that of the logits."""


def compare(mechanism: Mechanism, form: str, weights: Weights = None) -> Points:
    """Compare u, f and c in closed form with dense tokens: the largest relative error of an entry."""
    points = Points()
    for setting in SHAPE_SETTINGS:
        spike = make_spike(setting, form=form)
        errors = np.max([_errors(mechanism, spike, label, weights) for label in LABELS], axis=0)
        parameters = {**setting, "form": form, "mechanism": mechanism.name}
        points.add(parameters, errors.max() <= MAX_CLOSED_ERROR, u=errors[0], f=errors[1], c=errors[2])
    return points


def _errors(mechanism: Mechanism, spike: Spike, label: Label, weights: Weights) -> tuple[float, ...]:
    tokens = spike.dense(label, 0, torch.float64)
    dense_logits = (tokens.queries @ tokens.keys.T).numpy() / np.log(spike.n)
    dense_u, u = (KERNELS[mechanism.name](z, spike.n) for z in (dense_logits, closed_logits(spike, label)))
    f = u / u.sum(-1, keepdims=True) if weights is None else weights(spike, label)
    pairs = (
        (dense_u, u),
        (attention_weights(mechanism, tokens), f),
        (attention_output(mechanism, tokens), closed_outputs(spike, label, f)),
    )
    return tuple(float(np.abs(dense / formula - 1).max()) for dense, formula in pairs)


def _conclude(points: Points) -> Finding:
    worst = points.values("u", "f", "c").max
    return points.conclude(
        f"every entry of u, f and c at {len(points)} settings: relative error {worst:.1e} on dense tokens",
        f"error {worst:.1e}, allowed {MAX_CLOSED_ERROR:.0e}",
    )


@claim("closed-ones-softmax", "3.1", "rec")
def closed_ones_softmax() -> Finding:
    """X = 11ᵀ, softmax: u is n^{R²}, n^{rR} or n^{r²}; f(j3,j3) = 1/(1+(n-1)n^{-aR}), f(j,j3) =
    1/(1+(n-1)n^{-ar}).
    """
    return _conclude(compare(Softmax(), "ones", ones_softmax_weights))


@claim("closed-ones-linear", "3.1", "rec")
def closed_ones_linear() -> Finding:
    """X = 11ᵀ, linear: f(j,i) = s_i / sum s with s the row sums of A; f(.,j3) = R/(R+(n-1)r)."""
    return _conclude(compare(Linear(), "ones", ones_linear_weights))


@claim("closed-identity", "3.1", "ours")
def closed_identity() -> Finding:
    """X = I (this project's second form): logits / log n are a²[i=j=j3] + b²[same block] + c², and u, f and c
    follow.
    """
    return _conclude(Points([*compare(Softmax(), "identity"), *compare(Linear(), "identity")]))


@claim("linear-ignores-query", "3.1", "rec")
def linear_ignores_query() -> Finding:
    """X = 11ᵀ, linear: f does not depend on the query at all.

    The spread of the rows of f, for linear and, as a control, for softmax.
    """
    points = Points()
    for setting in SHAPE_SETTINGS:
        tokens = make_spike(setting, form="ones").dense(1, 0, torch.float64)
        weights = [attention_weights(mechanism, tokens) for mechanism in (Linear(), Softmax())]
        spread, control = (float(np.ptp(f, axis=0).max()) for f in weights)
        points.add(setting, spread <= MAX_CLOSED_ERROR < control, linear=spread, softmax=control)
    return points.conclude(
        f"rows of f differ by {points.linear.max:.1e} at most for linear, by {points.softmax.min:.2g} or "
        "more for softmax",
        f"{points.linear.max:.1e}; softmax {points.softmax.min:.2g}",
    )
