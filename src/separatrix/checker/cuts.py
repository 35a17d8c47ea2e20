"""Verification that P passes a level only where a boundary certificate says so, as a1 moves.

Between two neighbouring cuts u < v, bounds of P follow from bounds of every row's least firing count T. A row of D1
fires with P of the other blocks + if and only if P > ((mu - sigma rho)/t - w)/(2b), with mu = b y_k + c y_d - tau,
sigma = a y_1 + mu, w = mu - b (d-3) + (d-3)(c y_d - tau), and rho > 0 the quotient of the scores of the spike and of an
ordinary token. Only sigma and rho depend on a = a1; sigma is affine and rho increases. Furthermore

    y_1 (sigma rho)' / rho = 1 + (a + y_1 mu) g(a),    g = (log rho)' > 0 and monotone.

If this is positive (or negative) on [u, v], T is monotone and lies between its values at the ends. If neither is
certain, sigma rho lies between products of the values of sigma and of rho at the ends. P falls with every T, and does
not change with a T beyond the least count of D0 or of another row. So it is monotone if all other T move one way.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise, product
from math import floor
from typing import Any

from separatrix.checker.arithmetic import ends, intervals
from separatrix.checker.certificate import Certificate, read_model, require
from separatrix.checker.constructions import TRIPLES, QueryLogits, SpikeModel, ThresholdKey
from separatrix.checker.document import MOST_DIGITS, Malformed, exact
from separatrix.checker.kernels import Kernel, PowerKernel, SoftmaxKernel
from separatrix.checker.probability import Enclosure, network, neuron

BITS = 256
ROWS = ({"spike", "rest"}, {"query"})
MOST_BLOCKS = 2_000_000
"""The maximum number of block signs over all intervals."""

Bound = tuple[int, int, int]
"""The least and the largest possible count, and the direction in which P moves with a."""

Cuts = dict[Fraction, SpikeModel]
"""The construction at each cut."""


def read_cuts(value: object, parameter: str, document: dict[str, Any]) -> Cuts:
    """Parse the cuts: values of a1 in increasing order."""
    require(parameter == "a1", "cuts are for a1 only")
    require(isinstance(value, list) and 2 <= len(value) <= MOST_BLOCKS, "cuts is not a list of values")
    assert isinstance(value, list)
    values = [exact(text, "a cut", MOST_DIGITS) for text in value]
    require(all(u < v for u, v in pairwise(values)), "cuts are not in order")
    require(len(values) * document["parameters"]["d"] <= MOST_BLOCKS, "there are too many cuts to verify")
    try:
        models = [read_model(document["construction"], {**document["parameters"], "a1": text})[0] for text in value]
    except Malformed as fault:
        raise Malformed(f"a cut: {fault}") from None
    require({*models[0].rows[1]} in ROWS, "cuts are for equal scores of all other tokens only")
    return dict(zip(values, models, strict=True))


def check_cuts(
    certificate: Certificate, cuts: Cuts, passages: list[tuple[Fraction, Fraction, bool]], level: Fraction
) -> Iterator[tuple[bool | None, str]]:
    """Yield whether P is monotone from end to end of a crossing, and on the right side of the level elsewhere."""
    least0 = {key: count for key, count in certificate.thresholds.items() if key[0] == 0}
    for number, ((u, first), (v, last)) in enumerate(pairwise(cuts.items()), 1):
        bounds = _bounds(certificate.kernel, (u, first), (v, last))
        rises = next((rises for lo, hi, rises in passages if lo <= u and v <= hi), None)
        if rises is not None:
            yield (
                _directions(bounds, least0) <= {1 if rises else -1} or None,
                f"that P is monotone after cut {number}",
            )
            continue
        is_above = next((not rises for lo, _, rises in passages if v <= lo), passages[-1][2])
        # P falls as rows need more + blocks, so its lower bound belongs to the larger counts.
        counts = {key: most if is_above else least for key, (least, most, _) in bounds.items()}
        low, high = network(*neuron(last, {**least0, **counts}), certificate.m)[2]
        holds = low >= level if is_above else high <= level
        yield holds or None, f"that P does not pass the level after cut {number}"


def _bounds(
    kernel: Kernel, low: tuple[Fraction, SpikeModel], high: tuple[Fraction, SpikeModel]
) -> dict[ThresholdKey, Bound]:
    """Return bounds of every least count of D1 between two cuts, and the direction in which its P moves, or 0."""
    (u, model), (v, _) = low, high
    bounds = {}
    for name, signs in product(model.rows[1], TRIPLES):
        y_1, y_block, y_d = signs
        common = model.c * y_d - model.tau
        mu = model.b * y_block + common
        ratios = [(a * y_1 + mu, _ratio(kernel, at.rows[1][name])) for a, at in (low, high)]
        slopes = [slope for a, at in (low, high) for slope in _slope(kernel, at, name, a)]
        direction = 0
        if 1 + (u + y_1 * mu) * max(slopes) > 0:
            direction = y_1
        elif 1 + (v + y_1 * mu) * min(slopes) < 0:
            direction = -y_1
        pairs = zip(*zip(*ratios, strict=True), strict=True) if direction else product(*zip(*ratios, strict=True))
        limits = [
            ((mu - sigma * rho) / model.size - mu - model.blocks * (common - model.b)) / (2 * model.b)
            for sigma, enclosure in pairs
            for rho in enclosure
        ]
        least, most = (min(max(floor(limit) + 1, 0), model.blocks + 1) for limit in (min(limits), max(limits)))
        bounds[1, signs, name, 0] = (least, most, direction)
    return bounds


def _directions(bounds: dict[ThresholdKey, Bound], least0: dict[ThresholdKey, int]) -> set[int]:
    """Return the directions in which P may move."""
    directions = set()
    for key, (least, _, direction) in bounds.items():
        rivals = [count for (_, signs, *_), count in least0.items() if signs == key[1]]
        rivals += [most for (_, signs, *_), (_, most, _) in bounds.items() if signs == key[1]]
        if least < min(rivals):
            directions.add(direction)
    return directions


def _ratio(kernel: Kernel, row: QueryLogits) -> Enclosure:
    """Return rho, the score of the spike over that of an ordinary token."""
    exact_ratio = kernel.ratio(row.spike, row.ordinary)
    if exact_ratio is not None:
        return exact_ratio, exact_ratio
    at = intervals(BITS)
    return ends(kernel.score(row.spike, at) / kernel.score(row.ordinary, at))


def _slope(kernel: Kernel, model: SpikeModel, name: str, a: Fraction) -> Enclosure:
    """Return the derivative of log rho by a; logits are row sums of the query times (a + r), in units of log n."""
    r = model.b + model.c
    if isinstance(kernel, PowerKernel):
        return (kernel.beta / (a + r),) * 2
    assert isinstance(kernel, SoftmaxKernel)
    row = model.rows[1][name]
    growth = row.ordinary.times / r + (a if name == "spike" else 0)  # the query's row sum, which contains a itself
    low, high = ends(row.ordinary.enclose(intervals(BITS)) / intervals(BITS).rational(row.ordinary.times))
    return growth * low / kernel.temperature, growth * high / kernel.temperature
