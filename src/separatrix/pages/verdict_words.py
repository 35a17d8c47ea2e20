"""Letters, colours and meanings of verdicts in tables and pictures."""

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
"""Blue and orange of Okabe and Ito, greys, and a brown. A letter always stands beside a colour."""
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
"""Letters of a choice: verdicts, and what number formats, proofs, weights and training add to them."""
RESCUES = {
    "another threshold": ("T", "not with this threshold; another one tells them apart"),
    "a linear reader": ("R", "not with this reader; a linear one tells them apart, without noise"),
    "no reader": ("X", "no reader tells them apart: D0 and D1 give equal rows, which is proved"),
}
"""Letters of cells where this reader fails and it is known whether another one does not."""
MARKS = {"certified": "≡", "closed": "=", "sampled": "~"}
MARKS_LEGEND = ", ".join(f"{mark} {kind}" for kind, mark in MARKS.items())
MEANINGS = {
    "distinguishes": "tells D0 from D1: P ≥ 0.99",
    "partial": "P between 0.01 and 0.99",
    "blind": "this reader does not tell D0 from D1, P ≤ 0.01",
    "saturated": "this reader fires on both D0 and D1, P ≤ 0.01",
    "undecided": "the draws do not decide",
    "none": "no engine answers here",
}


def verdict_name(word: str) -> str:
    """Return a verdict as people read it.

    >>> verdict_name("blind"), verdict_name("none")
    ('blind', 'not computed')
    """
    return "not computed" if word == "none" else word


def short_probability(p: float) -> str:
    """Return P in at most four characters, never rounded to certainty.

    >>> [short_probability(p) for p in (0.99976, 0.5, 1e-6, 0, 1)]
    ['>.99', '.50', '<.01', '0', '1']
    """
    if p in (0, 1):
        return f"{p:g}"
    if p < 0.01:
        return "<.01"
    return ">.99" if p > 0.99 else f"{p:.2f}".lstrip("0")
