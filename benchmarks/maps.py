"""Maps as a user waits for them, once everything is loaded."""

from __future__ import annotations

import math
import random
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks._base import Measurement, at_most, require, seconds
from separatrix.analysis import maps
from separatrix.analysis.maps import Map, boundary
from separatrix.exact.engines import certified
from separatrix.pages.plots import write

SIDE = 400
FIXED = {"m": 12, "a0": "0.01", "b": "0.2", "c": "0.1"}
OVER_A1 = {**FIXED, "a1": f"0.5:1.5:{SIDE}", "n": f"1e3:1e18:{SIDE}:log", "d": 102}
OVER_D = {**FIXED, "a1": "0.8", "n": f"1e3:1e18:{SIDE}:log", "d": f"4:{SIDE + 3}:{SIDE}"}
RANGE = {**FIXED, "a1": "0.5:1.5", "n": 10**6, "d": 102}


def measure() -> Iterator[Measurement]:
    """All lines of this file."""
    for name, plane in (("a1 and n", OVER_A1), ("d and n, every n moved", OVER_D)):
        yield at_most(f"map of {SIDE} by {SIDE} over {name}", partial(seconds_to_make, plane), "s", 1.0)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "map.html"
        yield at_most(
            "the same over a1 and n, as a page",
            lambda: seconds(lambda: write(make(OVER_A1), out), repeats=3),
            "s",
            2.0,
        )
        yield at_most("size of that page", lambda: out.stat().st_size / 1e6, "MB", 8.0)
    yield at_most("a certified boundary in a1, n=1e6 d=102", seconds_of_boundary, "s", 0.5)


def seconds_to_make(plane: dict[str, object]) -> float:
    """The time of a map, after a comparison with certified values."""
    check_against_certified(make(plane))
    return seconds(lambda: make(plane), repeats=3)


def seconds_of_boundary() -> float:
    """The time of a boundary that is certified."""
    (crossing,) = boundary("spike", "softmax", RANGE).crossings
    require(crossing.is_certified, "the boundary in a1")
    return seconds(lambda: boundary("spike", "softmax", RANGE), repeats=3)


def make(plane: dict[str, object]) -> Map:
    """The map itself."""
    return maps.map("spike", ["softmax"], plane)


def check_against_certified(found: Map) -> None:
    """Fifty cells of the map against exact fractions."""
    (asked,), (layer,), pick = found.questions, found.layers, random.Random(0)
    for _ in range(50):
        cell = pick.randrange(found.places.shape[0]), pick.randrange(found.places.shape[1])
        chosen = found.places.at(cell)
        truth = certified.solve(asked.point(chosen), asked.mechanism(chosen))
        agree = math.isclose(layer.values[cell], truth.distinguish, rel_tol=1e-9, abs_tol=1e-300)
        require(agree, f"the map at {chosen}")
