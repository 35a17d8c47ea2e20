"""Theory 1 and 2: the attention units, and the four-layer network that reads their output."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from separatrix.claims import _literal as literal
from separatrix.claims._base import BASE, LABELS, Array, Finding, Point, Points, Setting, claim
from separatrix.claims._tools import on_grid, relative_error, spike
from separatrix.constructions import Label, Tokens
from separatrix.constructions.cross import Cross
from separatrix.constructions.spike import Spike
from separatrix.core.numbers.logforms import rational
from separatrix.core.tensors import Tensor, one_thread, torch
from separatrix.exact.engines import certified
from separatrix.exact.outputs.kernels import rational_model
from separatrix.exact.proofs import certify_uniformly
from separatrix.exact.proofs.uniform import prove_uniformly, theorem_ranges
from separatrix.mechanisms import Linear, Mechanism, Softmax

if TYPE_CHECKING:
    from separatrix.exact.reader import FourLayerNetwork, Layers

Kernel = Callable[[float], float]
MAX_UNIT_ERROR = 1e-12
"""Relative error allowed between two float64 computations of the same number."""
TOKENS: Setting = {"m": 1, "a0": "0.05", "a1": "0.9", "b": "0.3", "c": "0.2"}
UNIT_SETTINGS: tuple[tuple[type[Spike | Cross], Setting], ...] = (
    (Spike, {"n": 20, "d": 7, "form": "ones"}),
    (Spike, {"n": 18, "d": 8, "form": "identity"}),
    (Cross, {"n": 20, "d": 7, "r_Q": "0.5"}),
)


def kronecker_block(a1: Array, a2: Array, x: Array, j0: int) -> Array:
    """Return A_j0 x: the j0-th n-by-d² block of A1 ⊗ A2, times x = vec(X) by rows."""
    n = len(a1)
    return np.asarray(np.kron(a1, a2)[j0 * n : (j0 + 1) * n] @ x.reshape(-1))


@claim("tensor-trick", "1", "paper")
def tensor_trick() -> Finding:
    """A_j0 x, the j0-th block of A1 ⊗ A2 times vec(X), is row j0 of A1 X A2ᵀ.

    The entries are whole numbers, so both sides are exact.
    """
    rng = np.random.default_rng(0)
    points = Points()
    for n, d in ((2, 2), (3, 2), (4, 3), (5, 4)):
        a1, a2 = rng.integers(-9, 10, (2, n, d))
        q, k = rng.integers(-9, 10, (2, d, d))
        x = q @ k.T
        # The transposed X is a control: the order in which vec reads X matters.
        blocks = [np.array([kronecker_block(a1, a2, matrix, j) for j in range(n)]) for matrix in (x, x.T)]
        difference, control = (int(np.abs(rows - a1 @ x @ a2.T).max()) for rows in blocks)
        points.add({"n": n, "d": d}, difference == 0, difference=difference, with_x_transposed=control)
    return points.conclude(
        "every block times vec(X) equals its row of A1 X A2ᵀ on whole numbers; largest difference "
        f"{points.difference.max:.0f}",
        f"exact; with X transposed off by {points.with_x_transposed.min:.0f} or more",
    )


def attention_output(attend: Callable[..., Tensor], tokens: Tokens, values: Tensor | None = None) -> Array:
    """Return what attention returns for the tokens, or for these values instead of theirs."""
    values = tokens.values if values is None else values
    assert values is not None
    return attend(*(x[None, None] for x in (tokens.queries, tokens.keys, values)))[0, 0].numpy()


def attention_weights(mechanism: Mechanism, tokens: Tokens) -> Array:
    """Return f by the mechanism's definition: the output for unit vectors as values."""
    return attention_output(mechanism.definition, tokens, torch.eye(len(tokens.keys), dtype=torch.float64))


def compare_unit(mechanism: Mechanism, kernel: Kernel) -> Finding:
    """Compare u, alpha, f and c in loops on the literal matrices with `definition` and the fast form."""
    points = Points()
    for kind, setting in UNIT_SETTINGS:
        construction = kind.read({**TOKENS, **setting})
        errors = np.max([_errors(mechanism, kernel, construction, label) for label in LABELS], axis=0)
        results = dict(zip(("f", "definition", "fast_form"), errors, strict=True))
        points.add({"construction": kind.name, **setting}, errors.max() <= MAX_UNIT_ERROR, **results)
    worst = points.values("f", "definition", "fast_form").max
    return points.conclude(
        f"f and c by loops, by the definition of {mechanism.name} and by its fast form: error {worst:.1e}",
        f"error {worst:.1e}, allowed {MAX_UNIT_ERROR:.0e}",
    )


def _errors(mechanism: Mechanism, kernel: Kernel, construction: Spike | Cross, label: Label) -> tuple[float, ...]:
    """Return the errors of f, the definition's c and the fast form's c, relative to the largest entry."""
    units = _literal_units(construction, label, kernel)
    tokens = construction.dense(label, 3, torch.float64)
    c, f = np.array([unit.c for unit in units]), np.array([unit.f for unit in units])
    pairs = (
        (attention_weights(mechanism, tokens), f),
        (attention_output(mechanism.definition, tokens), c),
        (attention_output(mechanism, tokens), c),
    )
    return tuple(float(np.abs(output - right).max() / np.abs(right).max()) for output, right in pairs)


def _literal_units(construction: Spike | Cross, label: Label, kernel: Kernel) -> list[literal.Unit[float]]:
    d, a = construction.d, construction.matrix(label, 3, torch.float64).tolist()
    if isinstance(construction, Spike):
        queries, form = a, construction.form
    else:
        # Any queries with this row sum will do: X = 11ᵀ sees nothing else.
        queries, form = [[float(construction.r_Q) * construction.unit / d] * d for _ in a], "ones"
    return [literal.unit(row, kernel, a) for row in literal.logits(queries, literal.weight_matrix(form, d), a)]


@claim("softmax-unit", "1", "paper")
def softmax_unit() -> Finding:
    """The softmax unit: u = exp(A_j0 x), alpha = <u,1>, f = u/alpha, c = A3ᵀ f."""
    return compare_unit(Softmax(), math.exp)


@claim("linear-unit", "1", "paper")
def linear_unit() -> Finding:
    """The linear unit: u = A_j0 x, alpha = <u,1>, f = u/alpha, c = A3ᵀ f."""
    return compare_unit(Linear(), lambda z: z)


NETWORK_DRAWS = 20
NETWORK_SETTINGS: tuple[Setting, ...] = (
    {"n": 20, "d": 7, "m": 2, "a0": "0.05", "a1": "0.9", "b": "0.3", "c": "0.2", "form": "ones"},
    {"n": 18, "d": 8, "m": 3, "a0": "0.05", "a1": "1.2", "b": "0.2", "c": "0.1", "form": "identity"},
)


@claim("network-fires", "2", "paper")
def network_fires() -> Finding:
    """F fires on the tokens exactly when some pre-activation <c_j0, y_j1> exceeds tau.

    Every layer of the torch network, and whether it fires, against loops.
    """
    with one_thread():
        points = Points(network_point(*case) for case in product(NETWORK_SETTINGS, (Softmax(), Linear()), LABELS))
    fire_count, silent_count = int(sum(points.fired)), int(sum(points.silent))
    # A network that always fires, or never does, would leave the claim untested.
    if not (fire_count and silent_count):
        points.add({}, False, fired=fire_count, silent=silent_count)
    return points.conclude(
        f"{fire_count + silent_count} drawn networks: {fire_count} fired and {silent_count} did not, each "
        "exactly when some pre-activation exceeds tau",
        f"layers agree with loops to {points.error.max:.1e}",
    )


def network_point(setting: Setting, mechanism: Mechanism, label: Label) -> Point:
    """Check networks drawn on one set of tokens."""
    # FourLayerNetwork is a torch module; `separatrix list claims` imports this file and needs no torch.
    from separatrix.exact.reader import FourLayerNetwork

    construction = spike(setting)
    tokens = construction.dense(label, 0, torch.float64)
    fire_count = wrong_count = 0
    worst = 0.0
    for seed in range(NETWORK_DRAWS):
        network = FourLayerNetwork.draw(mechanism, construction, seed)
        layers = network.layers(tokens)
        signs = [[int(y) for y in row] for row in network.signs.tolist()]
        output = literal.network(layers.attended.tolist(), signs, network.tau)
        exceeds = bool((layers.preactivations > network.tau).any())
        fires = bool(layers.output > 0)
        fire_count += fires
        wrong_count += fires != exceeds or fires != (output > 0)
        worst = max(worst, abs(float(layers.output) - output), layer_error(layers, network))
    parameters = {**setting, "mechanism": mechanism.name, "label": label}
    holds = wrong_count == 0 and worst <= 1e-10
    return Point(parameters, holds, fired=fire_count, silent=NETWORK_DRAWS - fire_count, wrong=wrong_count, error=worst)


def layer_error(layers: Layers, network: FourLayerNetwork) -> float:
    """Return the largest difference between a layer and its formula applied to the layer before."""
    pre, neurons, rows = (layer.numpy() for layer in (layers.preactivations, layers.neurons, layers.rows))
    differences = (
        np.einsum("rk,mk->rm", layers.attended.numpy(), network.signs.numpy()) - pre,
        np.maximum(pre - network.tau, 0) - neurons,
        np.maximum(neurons.sum(1), 0) - rows,
        np.maximum(rows.sum(), 0) - layers.output.numpy(),
    )
    return max(float(np.abs(difference).max()) for difference in differences)


@claim("threshold", "2", "paper")
def threshold() -> Finding:
    """tau = (c + 0.1) sqrt(log n).

    The float of the dense reader, and the rational of the exact engines.
    """
    points = Points()
    for n, c in ((100, "0.1"), (1000, "0.4"), (10**6, "1"), (10**18, "0.35")):
        construction = spike(BASE, n=n, c=c)
        error = relative_error(construction.threshold, (float(c) + 0.1) * math.sqrt(math.log(n)))
        is_exact = rational_model(construction).amplitudes.tau == rational(Fraction(c) + Fraction(1, 10))
        points.add({"n": n, "c": c}, is_exact and error < 1e-14, tau=construction.threshold, error=error)
    return points.conclude(
        "the reader's threshold is (c + 0.1) sqrt(log n), and exactly c + 1/10 in the exact engines",
        f"relative error {points.error.max:.1e}",
    )


WIDTH_SETTINGS: tuple[Setting, ...] = (
    {"a0": "0.01", "a1": "1.2", "b": "0.2", "c": "0.1", "d": 202},
    {"a0": "0.1", "a1": "1.5", "b": "0.5", "c": "1", "d": 1002},
)
"""At the first a neuron fires on D1 half the time, at the second a quarter of the time."""
WIDTH_DELTAS = (0.1, 0.01, 0.001)
CONSTANT = 1 / math.log(4 / 3)
PROVED_FROM = 10**4
"""The first n of what is proved for every n."""


@claim("width", "2", "paper")
def width() -> Finding:
    """m = O(log(n/delta)) sign vectors are enough for softmax to distinguish with probability 1-delta.

    The least m with P(tells apart) >= 1 - delta, from exact probabilities.
    """
    cases = product(WIDTH_SETTINGS, WIDTH_DELTAS, (10**4, 10**6, 10**12, 10**18))
    points = Points(width_point(*case) for case in cases)
    distinct = {(p.parameters["b"], p.parameters["delta"], p.measured["least_m"]) for p in points}
    is_growing = len(distinct) > len(WIDTH_SETTINGS) * len(WIDTH_DELTAS)
    growth = "it grows with n" if is_growing else "it is the same at n=1e4 and 1e18"
    for setting, delta in product(WIDTH_SETTINGS, WIDTH_DELTAS):
        m = math.ceil(CONSTANT * math.log(PROVED_FROM / delta))
        proof = prove_uniformly(
            "softmax", theorem_ranges("softmax", setting), {**setting, "m": m}, start=PROVED_FROM, delta=delta
        )
        points.verify(certify_uniformly(proof), proof.verdict == "distinguishes", proved_m=m)
    return points.conclude(
        f"the least m that suffices is {points.m_over_log.max:.4f} log(n/delta) or less; {growth}",
        f"{points.m_over_log.max:.4f} log(n/delta) or less; the proof takes {CONSTANT:.2f} log(1/delta)",
    )


def least_by_fractions(setting: Setting, delta: float, n: int) -> int:
    """Return the least m with (1-p0)^m - q^m >= 1 - delta, from certified p0 and q, one m after another."""
    neuron = certified.count(spike(setting, n=n), Softmax()).low
    silent, least_p, m = 1 - Fraction(neuron.p0), 1 - Fraction(str(delta)), 1
    while silent**m - (silent - Fraction(neuron.only)) ** m < least_p and m <= 1000:
        m += 1
    return m


def width_point(setting: Setting, delta: float, n: int) -> Point:
    """Check that some m up to log(n/delta)/log(4/3) is enough, and that m itself is."""
    largest_m = math.ceil(CONSTANT * math.log(n / delta))
    n -= n % (setting["d"] - 2)
    distinguish = on_grid(Softmax(), {**setting, "n": n}, m=list(range(1, largest_m + 1))).distinguish
    is_enough = distinguish >= 1 - delta
    least = int(np.argmax(is_enough)) + 1
    holds = is_enough[-1] and least == least_by_fractions(setting, delta, n)
    results = {"least_m": least, "m_tried": largest_m, "p_at_that_m": distinguish[-1]}
    parameters, ratio = {**setting, "n": n, "delta": delta}, least / math.log(n / delta)
    return Point(parameters, holds, m_over_log=ratio, **results)
