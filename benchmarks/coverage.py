"""Coverage of 95% intervals, for every construction and every sampling engine."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import partial

from benchmarks import _exhaustive_signs as exhaustive_signs
from benchmarks._base import Line, Measurement, at_least, attempt, require
from separatrix.constructions import CONSTRUCTIONS, Construction, construction_named
from separatrix.exact.engines import EngineRefusal, Sampling, certified, solve
from separatrix.mechanisms import Mechanism, mechanism_named

SEEDS = 300
DECIDE = (Fraction(1, 4), Fraction(3, 4))
WAYS = {"40 draws": Sampling(40), "stopped early": Sampling(100, decide=DECIDE)}
BLOCKS: dict[str, object] = {"n": 12, "d": 6, "m": 2, "a0": "0.01", "a1": "1.2", "b": "0.8", "c": "0.1"}
ROUGH = {**BLOCKS, "n": 40, "d": 7, "m": 30, "a1": "0.6", "b": "0.05", "noise": "0.03", "seed": 3}
POINTS: tuple[tuple[str, dict[str, object], str], ...] = (
    ("spike", {**BLOCKS, "tau": "0.5"}, "softmax"),
    ("spike", {**BLOCKS, "tau": "0.5", "form": "identity"}, "softmax"),
    ("spike", {**BLOCKS, "tau": "0.5", "form": "identity", "n": 8, "m": 4}, "favor:features=8"),
    ("plain", {"n": 10, "m": 2}, "softmax"),
    ("plain", {"n": 8, "m": 4, "base": 1000, "spread": 998, "peak": "0.3", "tau": "0.9"}, "softmax"),
    ("cross", {**BLOCKS, "r_Q": 1, "tau": "0.5"}, "softmax"),
    ("injectivity", {"n": 12, "m": 1}, "softmax"),
    ("duplication", {"n": 7, "m": 1, "r1": 3}, "identity-features:normalised=no"),
    ("routing", {"n": 8, "m": 1}, "softmax"),
    ("parity", {"n": 8, "m": 1, "scale": 4}, "softmax"),
    ("dispersion", {"n": 12, "m": 1}, "softmax"),
    ("critical", {"n": 12, "m": 1}, "softmax"),
    ("averaging", {"n": 12, "m": 1, "q": 2}, "softmax"),
    ("location", {**BLOCKS, "a0": 0, "b": "0.2"}, "softmax"),
    ("regression", {"n": 12, "m": 1}, "identity-features:normalised=no"),
    ("recall", {"n": 9, "m": 1, "width": 6, "digits": 2}, "softmax"),
    ("majority", {"n": 12, "m": 1, "groups": 3, "noise": "0.7"}, "linear"),
    ("spikes", {"n": 12, "m": 1, "k": 3}, "softmax"),
    ("level", {"n": 12, "m": 1}, "softmax"),
    ("rough", ROUGH, "softmax"),
    ("rough", {**ROUGH, "n": 20, "m": 3, "noise": "0.05"}, "window:size=3"),
)
"""Points with a P that is neither close to 0 nor close to 1."""


def measure() -> Iterator[Line]:
    """Yield the smaller coverage of `WAYS` for every point and engine."""
    require({name for name, _, _ in POINTS} == set(CONSTRUCTIONS), "not every construction is sampled")
    for name, values, spelled in POINTS:
        title = f"95% intervals that contain P: {name}, {spelled}"
        yield from attempt(title, partial(_coverages, title, name, values, spelled))


def _coverages(title: str, name: str, values: dict[str, object], spelled: str) -> Iterator[Measurement]:
    """Yield the measurements of one point."""
    point, mechanism = construction_named(name).read(values), mechanism_named(spelled)
    truth = _truth(point, mechanism)
    require(0.02 < truth < 0.98, f"{name}: P = {truth:.3g} is too close to 0 or 1")
    for engine in ("dense", "grouped"):
        if engine == "grouped" and not (point.has_groups and mechanism.takes_counts):
            continue
        covered = 100 * _coverage(point, mechanism, engine, truth)
        yield at_least(f"{title}, {engine} (P = {truth:.3f})", covered, "%", 93.0)


def _truth(point: Construction, mechanism: Mechanism) -> float:
    """Return P by exact fractions, or by enumeration of all positions and signs."""
    try:
        return certified.solve(point, mechanism).distinguish
    except EngineRefusal:
        low, high = exhaustive_signs.distinguish(point, mechanism)
        require(low == high, f"{point.name}: P is undecided because of a tie")
        return low


def _coverage(point: Construction, mechanism: Mechanism, engine: str, truth: float) -> float:
    shares = []
    for sampling in WAYS.values():
        intervals = (
            solve(point, mechanism, engine, Sampling(sampling.draws, seed, decide=sampling.decide)).interval
            for seed in range(SEEDS)
        )
        shares.append(sum(low <= truth <= high for low, high in intervals) / SEEDS)
    return min(shares)
