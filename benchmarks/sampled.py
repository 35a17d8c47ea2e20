"""The dense engine."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Iterator

import torch
from torch.nn.functional import scaled_dot_product_attention

from benchmarks._base import Measurement, at_least, at_most, ratio, require
from separatrix.constructions.spike import Spike
from separatrix.exact.engines import certified, dense
from separatrix.exact.engines.outcome import Outcome
from separatrix.exact.engines.sampling import Sampling
from separatrix.mechanisms import Softmax

POINT = {"d": 202, "m": 12, "a0": "0.01", "a1": "1.2", "b": "0.2", "c": "0.1"}
ONE_READER = Sampling(draws=1, dtype="float32")

PEAK = """
import sys
from pathlib import Path
from benchmarks.sampled import verdict

def kib(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name))

verdict(2000)
Path("/proc/self/clear_refs").write_text("5")  # reset the peak of resident memory
before = kib("VmRSS:")
outcome = verdict(int(sys.argv[1]))
print(outcome.margin, (kib("VmHWM:") - before) / 1024)
"""


def measure() -> Iterator[Measurement]:
    """Yield the measurements of this file. Both sides compute both labels."""
    yield at_least("full-width attention relative to a dense verdict, n=16,000 d=202 m=12", speed, "x", 6.0)
    yield at_most("peak extra memory of that verdict", lambda: peak(16_000), "MiB", 300.0)
    yield at_most("peak extra memory at n=65,000, completed", lambda: peak(65_000), "MiB", 600.0)


def speed() -> float:
    """Return the time of attention at full width relative to a correct verdict."""
    check_against_certified()
    point = Spike.read({**POINT, "n": 16_000})
    tokens = [point.matrix(label, 0, torch.float32)[None, None] for label in (0, 1)]
    return ratio(
        lambda: [scaled_dot_product_attention(x, x, x, scale=1.0) for x in tokens],
        lambda: dense.solve(point, Softmax(), ONE_READER),
    )


def verdict(n: int) -> Outcome:
    """Compute one draw of the reader on both labels in float32; n is rounded down to whole blocks."""
    return dense.solve(Spike.read({**POINT, "n": n // 200 * 200}), Softmax(), ONE_READER)


def peak(n: int) -> float:
    """Return the additional MiB over a small verdict, measured in a new process."""
    done = subprocess.run([sys.executable, "-c", PEAK, str(n)], capture_output=True, text=True, check=True)
    margin, extra = map(float, done.stdout.split())
    require(math.isclose(margin, 1.2, rel_tol=0.01), f"the dense margin at n={n}")
    return extra


def check_against_certified() -> None:
    """Require that the dense engine's interval contains the certified P, and that the margins agree."""
    point = Spike.read({**POINT, "n": 1600, "a1": "0.7"})
    truth = certified.solve(point, Softmax())
    sampled = dense.solve(point, Softmax(), Sampling(draws=400, confidence=0.999, dtype="float32"))
    require(sampled.interval[0] <= truth.distinguish <= sampled.interval[1], "the dense estimate")
    require(math.isclose(sampled.margin, truth.margin, rel_tol=1e-3), "the dense margin")
