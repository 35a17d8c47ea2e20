"""Tools that checks share: verdicts, grids, crossings, limits and errors."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np

from separatrix.analysis.maps import boundary
from separatrix.claims._base import Array, Setting
from separatrix.constructions import Construction
from separatrix.constructions.spike import Spike
from separatrix.core.parameters import Grid
from separatrix.exact.engines import Outcome, Sampling, solve
from separatrix.exact.engines.closed import ProbabilityGrid, evaluate
from separatrix.exact.engines.outcome import Neuron
from separatrix.exact.outputs.growth_laws import GrowthLaw, margin_law
from separatrix.exact.proofs import certify_law, certify_proof, prove
from separatrix.exact.verdicts import DELTA, Verdict
from separatrix.mechanisms import Mechanism, mechanism_named

SomeConstruction = TypeVar("SomeConstruction", bound=Construction)
Curve = Callable[[list[Fraction]], Array]
WordsAndOutcomes = tuple[list[str], tuple[Outcome, Outcome]]
SEPARATED = ["distinguishes", "blind"]
"""The verdicts on two mechanisms of which only the first tells the labels apart."""


def spike(setting: Setting, **changes: object) -> Spike:
    """Return the spike construction, with one sign vector unless the setting says otherwise."""
    return Spike.read({"m": 1, **setting, **changes})


def example(kind: type[SomeConstruction], **changes: object) -> SomeConstruction:
    """Return the construction at its reference point, with changes."""
    return kind.read({**kind.example, **changes})


def judge(point: Construction, mechanism: str, engine: str = "auto", sampling: Sampling | None = None) -> Verdict:
    """Return the verdict on the mechanism of that name, with the fixed reader."""
    unit = mechanism_named(mechanism)
    return Verdict(point, unit, solve(point, unit, engine, sampling), DELTA)


def judge_pair(point: Construction, first: str = "softmax", second: str = "linear") -> WordsAndOutcomes:
    """Return the certified verdicts on two mechanisms: the words, and the outcomes."""
    verdicts = [judge(point, mechanism, "certified") for mechanism in (first, second)]
    return [verdict.word for verdict in verdicts], (verdicts[0].outcome, verdicts[1].outcome)


def on_grid(
    mechanism: Mechanism, parameters: Mapping[str, object], kind: type[Construction] = Spike, **axis: Sequence[object]
) -> ProbabilityGrid:
    """Evaluate the closed engine along one axis; columns that are given together vary together."""
    constants = {name: value for name, value in parameters.items() if name not in axis}
    return evaluate(kind, mechanism, Grid(constants, (axis,) if axis else ()))


def crossing(probability: Curve, low: object, high: object, cells: int = 32, rounds: int = 4) -> float:
    """Return where `probability` first rises to 1/2, to 1/cells^rounds of the range; or NaN."""
    low_end, high_end = Fraction(str(low)), Fraction(str(high))
    for _ in range(rounds):
        grid = [low_end + (high_end - low_end) * Fraction(i, cells) for i in range(cells + 1)]
        first = int(np.argmax(np.asarray(probability(grid)) >= 1 / 2))
        # argmax is 0 if P is at least 1/2 from the start, and if it never is.
        if first == 0:
            return math.nan
        low_end, high_end = grid[first - 1], grid[first]
    return float(high_end)


def prove_for_ever(mechanism: str, setting: Setting) -> tuple[dict[str, Any], list[Neuron]]:
    """Return a certificate for every n from the setting's on (S1), and the probabilities of one neuron there."""
    proof = prove("spike", mechanism, setting)
    return certify_proof(proof), [piece.neuron for piece in proof.pieces]


def prove_law(mechanism: str, setting: Setting) -> tuple[dict[str, Any], GrowthLaw]:
    """Return the bounds of the margin for every n from the setting's on (L1 to L4), with their certificate."""
    construction, unit = spike(setting), mechanism_named(mechanism)
    law = margin_law(construction, unit)
    if law is None:
        raise ValueError(f"no law is known for {mechanism}")
    return certify_law(construction, unit, law), law


def certified_crossing(construction: str, **parameters: object) -> float:
    """Return the only value at which softmax's P passes 1/2, both ends proved; NaN unless there is one."""
    crossings = boundary(construction, "softmax", {"m": 12, **parameters}, scan=15, tolerance="1e-9").crossings
    return crossings[0].middle if len(crossings) == 1 and crossings[0].is_certified else math.nan


def first_settled(good: Array) -> int:
    """Return the first index from which on all are good; the length if the last one is not."""
    bad = np.flatnonzero(~good)
    return int(bad[-1]) + 1 if len(bad) else 0


def limit_in_log(sizes: Sequence[int], values: Sequence[float]) -> float:
    """Return the limit of values that approach it like 1/log n, from the last two; NaN if one is missing."""
    if len(values) < len(sizes):
        return math.nan
    (early_log, late_log), (early, late) = (math.log(n) for n in sizes[-2:]), values[-2:]
    return (late * late_log - early * early_log) / (late_log - early_log)


def relative_error(computed: Any, expected: Any) -> float:
    """Return |computed - expected| / |expected| of two numbers, or the largest of two sequences."""
    # An array of objects takes fractions, floats, and sequences of either.
    first, second = (np.atleast_1d(np.asarray(x, dtype=object)) for x in (computed, expected))
    return max(abs(float(x) - float(y)) / abs(float(y)) for x, y in zip(first, second, strict=True))


def short(n: int) -> str:
    """Return a size as it is written in a summary.

    >>> short(9300), short(10**18), short(3 * 10**12 + 1)
    ('9300', '1e18', '3.0e12')
    """
    digits = str(n)
    if n < 10**5:
        return digits
    mantissa = "1" if n == 10 ** (len(digits) - 1) else f"{digits[0]}.{digits[1]}"
    return f"{mantissa}e{len(digits) - 1}"
