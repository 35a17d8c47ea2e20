"""Theory 7.5, the spike outside its hypotheses: ragged blocks, several spikes, noise."""

from __future__ import annotations

import math

import numpy as np

from separatrix.claims._base import Finding, Point, claim
from separatrix.claims._tools import Array, Points, example, judged, point
from separatrix.claims.units import LABELS
from separatrix.constructions import Label
from separatrix.constructions.rough import Rough
from separatrix.core.tensors import torch
from separatrix.exact.engines import Sampling

SAMPLING = Sampling(draws=200, confidence=0.99)
SMOOTH = {"n": 503, "spikes": 1, "noise": 0}
KEPT: tuple[dict[str, object], ...] = (
    {},
    {"n": 330},
    {"spikes": 3},
    {"noise": "0.005"},
    {"noise": "0.01"},
    {"n": 430, "spikes": 2, "noise": "0.01"},
)
"""Blocks of 5 and 6 tokens, of 3 and 4; several spikes; noise; all at once."""
LOST: tuple[dict[str, object], ...] = ({"noise": "0.02"}, {"noise": "0.05"})
HIGH, LOW = 0.97, 0.03
"""What the ends of a 99% interval after 200 draws must pass."""


@claim("rough", "7.5", "ours")
def survives() -> Finding:
    """The spike's separation (softmax distinguishes, linear is blind, X = 11ᵀ) survives n that is no multiple
    of d-2, unequal blocks, several spikes, and noise on every entry.

    Inside: each regularity broken, on tokens that are compared with loops entry by entry. Outside: noise
    whose sum over a row is as large as the spike.
    """
    inside, outside = (Points(rough_point(changes) for changes in each) for each in (KEPT, LOST))
    inside += [tokens_point(changes) for changes in KEPT]
    # D0 fires in these outside points only, so they alone show whether draws on which it fires are counted.
    inside.add({"noise": "0.02, 0.05"}, all(each.measured["in_intervals"] == "yes" for each in outside))
    lost = ", ".join(f"{p:.2f}" for p in outside.values("softmax"))
    return inside.conclude_where(
        outside,
        "the noise is small: a row sum has noise of sd noise sqrt(d), about 0.1 at 0.01, and the largest of "
        "n of these must stay well below a1",
        f"sampled, 99% intervals: softmax P >= {inside.smallest('softmax_least'):.3f}, linear P <= "
        f"{inside.largest('linear_most'):.3f} with n no multiple of d-2, unequal blocks, 2 or 3 spikes, "
        f"noise of sd up to 0.01; with noise 0.02 and 0.05 softmax has P = {lost}",
        f"intervals end at {inside.smallest('softmax_least'):.3f} and {inside.largest('linear_most'):.3f}; "
        f"allowed {HIGH} and {LOW}",
    )


def rough_point(changes: dict[str, object]) -> Point:
    """Holds if the intervals put softmax near 1 and linear near 0, and contain what was sampled."""
    made = example(Rough, **{**SMOOTH, **changes})
    softmax, linear = (judged(made, each, "dense", SAMPLING).outcome for each in ("softmax", "linear"))
    least, most = softmax.interval[0], linear.interval[1]
    is_inside = all(unit.interval[0] <= unit.distinguish <= unit.interval[1] for unit in (softmax, linear))
    return point(
        {**SMOOTH, **changes},
        least >= HIGH and most <= LOW and is_inside,
        softmax=softmax.distinguish,
        softmax_least=least,
        linear=linear.distinguish,
        linear_most=most,
        in_intervals=is_inside,
    )


ROUNDING = 1e-12
NOISE_ERROR = 0.25
"""The standard deviation of some hundred numbers may be off by so much, relatively."""


def literal_tokens(made: Rough, label: Label, spike: int) -> Array:
    """The matrix A without noise in loops, in units of sqrt(log n).

    Block k of the d-2 blocks has the tokens from k n/(d-2) up to (k+1) n/(d-2); the spikes stand at
    multiples of n over their number, counted from `spike` and around the end.
    """
    given, n = made.parameters, made.n
    blocks, amplitude = given.d - 2, float(given.a1 if label else given.a0)
    tokens = np.zeros((n, given.d))
    for block in range(blocks):
        for token in range(math.ceil(block * n / blocks), math.ceil((block + 1) * n / blocks)):
            tokens[token, 1 + block] = float(given.b)
    for token in range(n):
        tokens[token, given.d - 1] = float(given.c)
    for number in range(given.spikes):
        tokens[(spike + math.floor(number * n / given.spikes)) % n, 0] = amplitude
    return tokens


def tokens_point(changes: dict[str, object]) -> Point:
    """Check every entry of A without noise, and with noise how large it is and that the labels share it."""
    made = example(Rough, **{**SMOOTH, **changes})
    noise, unit, worst, noise_error = float(made.parameters.noise), math.sqrt(math.log(made.n)), 0.0, 0.0
    smooth = example(Rough, **{**SMOOTH, **changes, "noise": 0})
    for spike in (0, made.n // 2):
        quiet, loud = (literal_tokens(made, label, spike) for label in LABELS)
        for label, right in zip(LABELS, (quiet, loud), strict=True):
            tokens = smooth.matrix(label, spike, torch.float64).numpy() / unit
            worst = max(worst, float(np.abs(tokens - right).max()))
        noisy = [made.matrix(label, spike, torch.float64).numpy() / unit for label in LABELS]
        worst = max(worst, float(np.abs(noisy[1] - noisy[0] - (loud - quiet)).max()))
        if noise:
            sd = np.sqrt(((noisy[1] - loud) ** 2).mean(axis=0))
            noise_error = max(noise_error, float(np.abs(sd / noise - 1).max()))
    return point(
        {**SMOOTH, **changes},
        worst <= ROUNDING and noise_error < NOISE_ERROR,
        difference=worst,
        noise_error=noise_error,
    )
