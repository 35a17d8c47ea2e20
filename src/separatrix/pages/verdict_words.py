"""How verdicts look in tables and pictures: never by their colour alone."""

LETTERS = {
    "distinguishes": "D",
    "partial": "P",
    "blind": "B",
    "saturated": "S",
    "undecided": "?",
    "none": "–",
}
COLOURS = {
    "distinguishes": "#0072B2",
    "partial": "#E69F00",
    "blind": "#4d4d4d",
    "saturated": "#8c510a",
    "undecided": "#d9d9d9",
    "none": "#ffffff",
}
"""Okabe and Ito's blue and orange, greys, and a brown."""
INKS = {
    "distinguishes": "#ffffff",
    "partial": "#000000",
    "blind": "#ffffff",
    "saturated": "#ffffff",
    "undecided": "#000000",
    "none": "#555555",
}
CHOICE_LETTERS = {
    "distinguishes": "D",
    "partial": "P",
    "blind": "B",
    "saturated": "S",
    "blind, and lost in this format": "F",
    "lost": "L",
    "cannot": "X",
    "can": "C",
    "learned": "T",
    "not learned": "N",
    "undecided": "?",
    "not known": "·",
    "contradiction": "!",
}
"""Of what a mechanism sees, with what number formats, proofs, weights and training add to verdicts."""
RESCUES = {
    "another threshold": ("T", "not with this threshold: another one tells them apart"),
    "a linear reader": (
        "R",
        "not with this reader: a linear one tells them apart, without noise",
    ),
    "no reader": ("X", "no reader tells them apart: D0 and D1 have equal rows, proved"),
}
"""The letters of blind cells of which more is known."""
MARKS = {"certified": "≡", "closed": "=", "sampled": "~"}
MARKED = ", ".join(f"{sign} {kind}" for kind, sign in MARKS.items())
MEANINGS = {
    "distinguishes": "tells D0 from D1: P ≥ 0.99",
    "partial": "some of the time",
    "blind": "to this reader, P ≤ 0.01",
    "saturated": "this reader fires on both D0 and D1, P ≤ 0.01",
    "undecided": "the draws do not decide",
    "none": "no engine answers here",
}


def spelled(word: str) -> str:
    """A verdict as people read it.

    >>> spelled("blind"), spelled("none")
    ('blind', 'not computed')
    """
    return "not computed" if word == "none" else word


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
