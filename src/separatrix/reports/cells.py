"""How a cell of the atlas or a card looks: never by its colour alone."""

from __future__ import annotations

import math

from separatrix.cards import Standing, Unanswered
from separatrix.verdicts import Verdict

LETTERS = {"distinguishes": "D", "partial": "P", "blind": "B", "undecided": "?", "none": "–"}
COLOURS = {
    "distinguishes": "#0072B2",
    "partial": "#E69F00",
    "blind": "#4d4d4d",
    "undecided": "#d9d9d9",
    "none": "#ffffff",
}
"""Okabe and Ito's blue and orange, and greys."""
INKS = {
    "distinguishes": "#ffffff",
    "partial": "#000000",
    "blind": "#ffffff",
    "undecided": "#000000",
    "none": "#555555",
}
MARKS = {"certified": "≡", "exact": "=", "sampled": "~"}
MEANINGS = {
    "distinguishes": "tells D0 from D1: P ≥ 0.99",
    "partial": "some of the time",
    "blind": "P ≤ 0.01",
    "undecided": "the draws do not decide",
    "none": "no answer",
}


def probability(p: float) -> str:
    """P in at most four characters, never rounded to certainty.

    >>> probability(0.99976), probability(0.5), probability(1e-6), probability(0), probability(1)
    ('>.99', '.50', '<.01', '0', '1')
    """
    if p in (0, 1):
        return f"{p:g}"
    if p < 0.01:
        return "<.01"
    return ">.99" if p > 0.99 else f"{p:.2f}".lstrip("0")


def mark(cell: Standing | Unanswered) -> str:
    """How the probability is known."""
    return "" if isinstance(cell, Unanswered) else MARKS[cell.evidence]


def exponent(cell: Standing | Unanswered) -> str:
    """How the margin grows with n: its power of n, or the name of its law."""
    law = None if isinstance(cell, Unanswered) else cell.growth.law
    if law is None:
        return "" if isinstance(cell, Unanswered) else "–"
    return f"n^{law.exponent:+.2f}".replace("-", "−") if law.name == "power law" else law.name


def bits(found: Verdict) -> str:
    """The significant bits needed, or nothing where the margin is not known."""
    return "" if math.isnan(found.bits) else f"{found.bits:.3g}"


def blind_from(cell: Standing | Unanswered) -> str:
    """The length from which on it is blind, about where that was sampled."""
    if isinstance(cell, Unanswered):
        return ""
    start = cell.blind.start
    if start is None:
        return "–"
    size = f"{start:,}" if start < 10**6 else f"{start:.3g}".replace("e+", "e")
    return size if cell.blind.exact else f"≈{size}"


def evidence(cell: Standing | Unanswered) -> str:
    """The probability with its interval, and what stands behind it."""
    if isinstance(cell, Unanswered):
        return cell.why
    outcome = cell.verdict.outcome
    low, high = outcome.interval
    where = "" if low == high else f" in [{low:.4g}, {high:.4g}]"
    return f"P = {outcome.distinguish:.6g}{where}; {outcome.engine}: {outcome.evidence}"
