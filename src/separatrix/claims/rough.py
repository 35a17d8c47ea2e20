"""Theory 7.5, the spike outside its hypotheses: ragged blocks, several spikes, noise."""

from __future__ import annotations

import math

import numpy as np

from separatrix.claims._base import LABELS, Array, Finding, Point, Points, Setting, claim
from separatrix.claims._tools import example
from separatrix.constructions import Label
from separatrix.constructions.rough import Rough
from separatrix.core.tensors import torch
from separatrix.exact.engines import Sampling, dense
from separatrix.mechanisms import Linear, Softmax

ROUGH_SAMPLING = Sampling(draws=200, confidence=0.99)
SMOOTH = {"n": 503, "spikes": 1, "noise": 0}
INSIDE: tuple[dict[str, object], ...] = (
    {},
    {"n": 330},
    {"spikes": 3},
    {"noise": "0.005"},
    {"noise": "0.01"},
    {"n": 430, "spikes": 2, "noise": "0.01"},
)
"""Blocks of 5 and 6 tokens, of 3 and 4; several spikes; noise; all at once."""
OUTSIDE: tuple[dict[str, object], ...] = ({"noise": "0.02"}, {"noise": "0.05"})
HIGH, LOW = 0.97, 0.03
"""Limits for the ends of a 99% interval after 200 draws."""
MAX_ENTRY_ERROR = 1e-12
MAX_NOISE_ERROR = 0.25
"""The standard deviation of some hundred numbers may be off by this much, relatively."""


@claim("rough", "7.5", "ours")
def rough_separation() -> Finding:
    """The spike's separation (softmax distinguishes, linear is blind, X = 11ᵀ) survives n that is no multiple
    of d-2, unequal blocks, several spikes, and noise on every entry.

    Inside: each regularity broken, on tokens that are compared with loops entry by entry. Outside: noise
    whose sum over a row is as large as the spike.
    """
    inside, outside = (Points(rough_point(changes) for changes in cases) for cases in (INSIDE, OUTSIDE))
    inside += [tokens_point(changes) for changes in INSIDE]
    # D0 fires in these outside points only, so they alone show whether draws on which it fires are counted.
    inside.add({"noise": "0.02, 0.05"}, all(point.measured["in_intervals"] == "yes" for point in outside))
    return inside.conclude_where(
        outside,
        "the noise is small: a row sum has noise of sd noise sqrt(d), about 0.1 at 0.01, and the largest of "
        "n of these must stay well below a1",
        f"sampled, 99% intervals: softmax P >= {inside.softmax_least.min:.3f}, linear P <= "
        f"{inside.linear_most.max:.3f} with n no multiple of d-2, unequal blocks, 2 or 3 spikes, noise of "
        "sd up to 0.01; with noise 0.02 and 0.05 softmax has P = "
        f"{outside.softmax[0]:.2f}, {outside.softmax[1]:.2f}",
        f"intervals end at {inside.softmax_least.min:.3f} and {inside.linear_most.max:.3f}; allowed {HIGH} and {LOW}",
    )


def rough_point(changes: dict[str, object]) -> Point:
    """Check that the intervals put softmax near 1 and linear near 0, and contain the sampled P."""
    construction = example(Rough, **{**SMOOTH, **changes})
    softmax, linear = (dense.solve(construction, unit, ROUGH_SAMPLING) for unit in (Softmax(), Linear()))
    least, most = softmax.interval[0], linear.interval[1]
    is_inside = all(unit.interval[0] <= unit.distinguish <= unit.interval[1] for unit in (softmax, linear))
    holds = least >= HIGH and most <= LOW and is_inside
    results: Setting = {"softmax": softmax.distinguish, "softmax_least": least, "in_intervals": is_inside}
    results |= {"linear": linear.distinguish, "linear_most": most}
    return Point({**SMOOTH, **changes}, holds, **results)


def literal_tokens(rough: Rough, label: Label, spike: int) -> Array:
    """Return the matrix A without noise, in units of sqrt(log n).

    Block k of the d-2 blocks has the tokens from k n/(d-2) up to (k+1) n/(d-2); the spikes stand at
    multiples of n over their number, counted from `spike` and around the end.
    """
    n, blocks = rough.n, rough.d - 2
    tokens = np.zeros((n, rough.d))
    for block in range(blocks):
        tokens[math.ceil(block * n / blocks) : math.ceil((block + 1) * n / blocks), 1 + block] = float(rough.b)
    tokens[:, rough.d - 1] = float(rough.c)
    for number in range(rough.spikes):
        row = (spike + math.floor(number * n / rough.spikes)) % n
        tokens[row, 0] = float(rough.a1 if label else rough.a0)
    return tokens


def tokens_point(changes: dict[str, object]) -> Point:
    """Check every entry of A without noise, and with noise its size and that the labels share it."""
    noisy = example(Rough, **{**SMOOTH, **changes})
    smooth = example(Rough, **{**SMOOTH, **changes, "noise": 0})
    noise, unit, worst, noise_error = float(noisy.noise), math.sqrt(math.log(noisy.n)), 0.0, 0.0
    for spike in (0, noisy.n // 2):
        expected = np.array([literal_tokens(noisy, label, spike) for label in LABELS])
        exact, rough = (
            np.array([kind.matrix(label, spike, torch.float64).numpy() for label in LABELS]) / unit
            for kind in (smooth, noisy)
        )
        label_difference = (rough[1] - rough[0]) - (expected[1] - expected[0])
        worst = max(worst, float(np.abs(exact - expected).max()), float(np.abs(label_difference).max()))
        if noise:
            sd = np.sqrt(((rough[1] - expected[1]) ** 2).mean(axis=0))
            noise_error = max(noise_error, float(np.abs(sd / noise - 1).max()))
    holds = worst <= MAX_ENTRY_ERROR and noise_error < MAX_NOISE_ERROR
    return Point({**SMOOTH, **changes}, holds, difference=worst, noise_error=noise_error)
