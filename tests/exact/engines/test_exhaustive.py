"""For small d every sign vector is tried on literal tokens with rational arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import pytest
import torch

from cases import spike
from separatrix.constructions import Construction, construction_named
from separatrix.core.parameters import Grid
from separatrix.exact.engines import certified, closed
from separatrix.exact.reader import FourLayerNetwork
from separatrix.mechanisms import Linear, Mechanism, mechanism_named

CASES = [
    ("linear", {"n": 16, "d": 6, "a0": "0.05", "a1": "0.5", "b": "0.55", "c": "0.3", "form": "identity"}),
    ("linear", {"n": 18, "d": 8, "a0": "0.01", "a1": "3", "b": "0.2", "c": "0.1"}),
    ("linear", {"n": 6, "d": 8, "a0": "0", "a1": "3", "b": "0.7", "c": "0.1", "form": "identity"}),
    ("linear", {"n": 21, "d": 9, "a0": "0.5", "a1": "4", "b": "1/3", "c": "0.25", "form": "identity"}),
    ("power:beta=2", {"n": 12, "d": 8, "a0": "0.01", "a1": "1.2", "b": "0.6", "c": "0.1"}),
    ("power:beta=3", {"n": 14, "d": 9, "a0": "0.1", "a1": "1.1", "b": "0.4", "c": "0.2", "form": "identity"}),
    # n is a perfect power, so that softmax weights are rational: 16^(1/4) = 2, 4096^(1/4) = 8.
    ("softmax", {"n": 16, "d": 6, "a0": "0.5", "a1": "1", "b": "0.5", "c": "0.5", "form": "identity"}),
    ("softmax", {"n": 16, "d": 10, "a0": "0", "a1": "1", "b": "0.5", "c": "0.5", "form": "identity"}),
    ("softmax", {"n": 81, "d": 5, "a0": "0.5", "a1": "1", "b": "0.25", "c": "0.25"}),
    ("softmax", {"n": 16, "d": 10, "a0": "1/2", "a1": "1", "b": "1/3", "c": "1/6"}),
    # a spike of the other labels' size and a low threshold: every row fires often.
    ("linear", {"n": 20, "d": 7, "a0": "0.1", "a1": "9", "b": "2", "c": "0.1", "tau": "0.15"}),
    ("power:beta=5", {"n": 20, "d": 7, "a0": "1", "a1": "9", "b": "2", "c": "1", "form": "identity", "tau": "2"}),
]


def by_enumeration(point: Construction, mechanism: Mechanism) -> tuple[Fraction, Fraction, Fraction]:
    """p0, p1 and P(fires on D1 only) over all 2^d sign vectors, from the definition of the network."""
    parameters = point.parameters
    d = parameters.d
    tokens = [_tokens(point, label) for label in (0, 1)]
    attention = [[_weights(mechanism, parameters, rows, query) for query in rows] for rows in tokens]
    fired = [0, 0, 0]
    tau = parameters.complete_values()["tau"]
    for signs in product((1, -1), repeat=d):
        seen = [[sum(x * y for x, y in zip(row, signs, strict=True)) for row in rows] for rows in tokens]
        fires = [
            any(sum(f * s for f, s in zip(row, seen[label], strict=True)) > tau for row in attention[label])
            for label in (0, 1)
        ]
        fired[0] += fires[0]
        fired[1] += fires[1]
        fired[2] += fires[1] and not fires[0]
    return tuple(Fraction(count, 2**d) for count in fired)  # type: ignore[return-value]


def _tokens(point: Construction, label: int) -> list[list[Fraction]]:
    """The rows of A in units of sqrt(log n), the spike in the middle of a block."""
    p = point.parameters
    size = p.n // (p.d - 2)
    spike_at = size + size // 2
    rows = []
    for i in range(p.n):
        row = [Fraction(0)] * p.d
        row[1 + i // size] = p.b
        row[-1] = p.c
        if i == spike_at:
            row[0] = p.a1 if label else p.a0
        rows.append(row)
    return rows


def _weights(mechanism: Mechanism, p: object, rows: list[list[Fraction]], query: list[Fraction]) -> list[Fraction]:
    """f of one query row; logits are multiples of log n."""
    logits = [
        sum(query) * sum(key) if p.form == "ones" else sum(x * y for x, y in zip(query, key, strict=True))
        for key in rows
    ]
    scores = [_score(mechanism, logit, p.n) for logit in logits]
    return [score / sum(scores) for score in scores]


def _score(mechanism: Mechanism, logit: Fraction, n: int) -> Fraction:
    if mechanism.name == "softmax":
        root = round(n ** (1 / logit.denominator))
        assert root**logit.denominator == n, "choose a perfect power"
        return Fraction(root) ** logit.numerator
    beta = 1 if mechanism.name == "linear" else mechanism.parameters.beta
    return logit**beta


@pytest.mark.parametrize(("spelling", "changes"), CASES)
def test_fractions_equal_the_enumeration(spelling: str, changes: dict[str, object]) -> None:
    point, mechanism = spike(m=3, **changes), mechanism_named(spelling)
    found = certified.count(point, mechanism)
    assert found.is_decided
    assert (found.low.p0, found.low.p1, found.low.only) == by_enumeration(point, mechanism)
    parameters = {name: value for name, value in point.parameters.complete_values().items() if value is not None}
    grid = closed.evaluate(type(point), mechanism, Grid(parameters))
    assert grid.p0.item() == pytest.approx(float(found.low.p0), abs=1e-14)
    assert grid.p1.item() == pytest.approx(float(found.low.p1), abs=1e-14)
    assert grid.only.item() == pytest.approx(float(found.low.only), abs=1e-14)


def test_the_tie_is_no_firing() -> None:
    """Some states equal tau exactly: float64 says they fire, and they do not."""
    point = spike(n=16, d=6, m=3, a0="0.05", a1="0.5", b="0.55", c="0.3", form="identity")
    signs = torch.tensor(list(product((1, -1), repeat=6)), dtype=torch.float64)
    network = FourLayerNetwork(Linear(), signs, point.threshold)
    in_floats = network.layers(point.dense(0, 0, torch.float64)).has_fired.any(0)
    by_float64 = Fraction(int(in_floats.sum()), 64)
    assert certified.count(point, Linear()).low.p0 == by_enumeration(point, Linear())[0] == Fraction(13, 32)
    assert by_float64 == Fraction(29, 64)


@pytest.mark.parametrize("spelling", ["linear", "softmax"])
@pytest.mark.parametrize("n", [5, 9])
def test_plain_by_enumeration(spelling: str, n: int) -> None:
    point = construction_named("plain").read({"n": n, "m": 2})
    mechanism = mechanism_named(spelling)
    found = certified.count(point, mechanism)
    base, peak = math.log(1.5), 4 * math.log(n)
    score = math.exp if spelling == "softmax" else float
    fired = [0, 0]
    for signs in product((1, -1), repeat=n):
        for label, scores in enumerate(([base] * n, [peak] + [base] * (n - 1))):
            u = [score(z) for z in scores]
            value = math.fsum(x * y for x, y in zip(u, signs, strict=True)) / math.fsum(u)
            assert abs(value - 0.25) > 1e-9, "not a tie, so float64 decides"
            fired[label] += value > 0.25
    assert (found.low.p0, found.low.p1) == (Fraction(fired[0], 2**n), Fraction(fired[1], 2**n))
