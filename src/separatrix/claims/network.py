"""Theory 2: the four-layer network that reads what attention returned."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from separatrix.claims import _literal as literal
from separatrix.claims._base import Finding, Point, claim
from separatrix.claims._tools import BASE, Points, Setting, on_grid, point, relative_error, spike
from separatrix.claims.units import LABELS
from separatrix.constructions import Label
from separatrix.core.numbers.logforms import rational
from separatrix.core.tensors import one_thread, torch
from separatrix.exact.engines import certified
from separatrix.exact.outputs.kernels import rational_model
from separatrix.mechanisms import Linear, Mechanism, Softmax

if TYPE_CHECKING:
    from separatrix.exact.reader import FourLayerNetwork, Layers

DRAWS = 20
SETTINGS: tuple[Setting, ...] = (
    {"n": 20, "d": 7, "m": 2, "a0": "0.05", "a1": "0.9", "b": "0.3", "c": "0.2", "form": "ones"},
    {"n": 18, "d": 8, "m": 3, "a0": "0.05", "a1": "1.2", "b": "0.2", "c": "0.1", "form": "identity"},
)


@claim("network-fires", "2", "paper")
def network_fires() -> Finding:
    """F fires on the tokens exactly when some pre-activation <c_j0, y_j1> exceeds tau.

    Every layer of the torch network, and whether it fires, against loops.
    """
    with one_thread():
        cases = product(SETTINGS, (Softmax(), Linear()), LABELS)
        points = Points(network_point(*case) for case in cases)
    fired, silent = (int(sum(points.values(name))) for name in ("fired", "silent"))
    if not (fired and silent):  # a network that always, or never, fires would make this check idle
        points.add({}, False, fired=fired, silent=silent)
    return points.conclude(
        f"{fired + silent} drawn networks: {fired} fired and {silent} did not, "
        "each exactly when some pre-activation exceeds tau",
        f"layers agree with loops to {points.largest('error'):.1e}",
    )


def network_point(setting: Setting, mechanism: Mechanism, label: Label) -> Point:
    """Networks drawn on one set of tokens."""
    from separatrix.exact.reader import FourLayerNetwork  # a module of torch: claims are listed without it

    made = spike(setting)
    tokens = made.dense(label, 0, torch.float64)
    fired = wrong = 0
    worst = 0.0
    for seed in range(DRAWS):
        network = FourLayerNetwork.draw(mechanism, made, seed)
        layers = network.layers(tokens)
        signs = [[int(y) for y in row] for row in network.signs.tolist()]
        output = literal.network(layers.attended.tolist(), signs, network.tau)
        exceeds = bool((layers.preactivations > network.tau).any())
        fires = bool(layers.output > 0)
        fired += fires
        wrong += fires != exceeds or fires != (output > 0)
        worst = max(worst, abs(float(layers.output) - output), layer_error(layers, network))
    return point(
        {**setting, "mechanism": mechanism.name, "label": label},
        wrong == 0 and worst <= 1e-10,
        fired=fired,
        silent=DRAWS - fired,
        wrong=wrong,
        error=worst,
    )


def layer_error(layers: Layers, network: FourLayerNetwork) -> float:
    """How far each layer is from what its formula makes of the one before."""
    pre, neurons, rows = (each.numpy() for each in (layers.preactivations, layers.neurons, layers.rows))
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

    The float the dense reader compares with, and the rational the exact engines compare with.
    """
    points = Points()
    for n, c in ((100, "0.1"), (1000, "0.4"), (10**6, "1"), (10**18, "0.35")):
        made = spike(BASE, n=n, c=c)
        error = relative_error(made.threshold, (float(c) + 0.1) * math.sqrt(math.log(n)))
        exact = rational_model(made).amplitudes.tau == rational(Fraction(c) + Fraction(1, 10))
        points.add({"n": n, "c": c}, exact and error < 1e-14, tau=made.threshold, error=error)
    return points.conclude(
        "the reader's threshold is (c + 0.1) sqrt(log n), and exactly c + 1/10 in the exact engines",
        f"relative error {points.largest('error'):.1e}",
    )


WIDE: tuple[Setting, ...] = (
    {"a0": "0.01", "a1": "1.2", "b": "0.2", "c": "0.1", "d": 202},
    {"a0": "0.1", "a1": "1.5", "b": "0.5", "c": "1", "d": 1002},
)
"""One where a neuron fires on D1 half the time, and one where it does so a quarter of the time."""
DELTAS = (0.1, 0.01, 0.001)
CONSTANT = 1 / math.log(4 / 3)


@claim("width", "2", "paper")
def width() -> Finding:
    """m = O(log(n/delta)) sign vectors are enough for softmax to distinguish with probability 1-delta.

    The least m with P(tells apart) >= 1 - delta, from exact probabilities.
    """
    sizes = (10**4, 10**6, 10**12, 10**18)
    points = Points(width_point(setting, delta, n) for setting in WIDE for delta in DELTAS for n in sizes)
    ratio = points.largest("m_over_log")
    distinct = {(p.parameters["b"], p.parameters["delta"], p.measured["least_m"]) for p in points}
    grows = (
        "it grows with n" if len(distinct) > len(WIDE) * len(DELTAS) else "it is the same at n=1e4 and 1e18"
    )
    return points.conclude(
        f"the least m that suffices is {ratio:.4f} log(n/delta) or less; {grows}",
        f"{ratio:.4f} log(n/delta) or less; the proof takes {CONSTANT:.2f} log(1/delta)",
    )


def least_by_fractions(setting: Setting, delta: float, n: int) -> int:
    """The least m with (1-p0)^m - q^m >= 1 - delta, from certified p0 and q, one m after the other."""
    neuron = certified.count(spike(setting, n=n), Softmax()).low
    silent, wanted, m = 1 - Fraction(neuron.p0), 1 - Fraction(str(delta)), 1
    while silent**m - (silent - Fraction(neuron.only)) ** m < wanted:
        m += 1
        if m > 1000:
            break
    return m


def width_point(setting: Setting, delta: float, n: int) -> Point:
    """Holds if some m up to log(n/delta)/log(4/3) is enough, and that m itself is."""
    most = math.ceil(CONSTANT * math.log(n / delta))
    n -= n % (setting["d"] - 2)
    found = on_grid(Softmax(), {**setting, "n": n}, m=list(range(1, most + 1))).distinguish
    enough = found >= 1 - delta
    least = int(np.argmax(enough)) + 1
    return point(
        {**setting, "n": n, "delta": delta},
        bool(enough[-1]) and least == least_by_fractions(setting, delta, n),
        least_m=least,
        m_over_log=least / math.log(n / delta),
        m_tried=most,
        p_at_that_m=found[-1],
    )
