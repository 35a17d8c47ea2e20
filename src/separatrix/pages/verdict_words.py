"""Letters, colours and meanings of verdicts in tables and pictures."""

from separatrix.pages.looks import GREEN, PURPLE, SKY, VERMILION

# Blue and orange of Okabe and Ito, greys, and a brown, each with an ink that has enough contrast. A letter
# always stands beside a colour, for prints without colour and readers who do not see it.
_STYLES = {
    "distinguishes": ("D", "#0072B2", "#ffffff", "tells D0 from D1: P ≥ 0.99"),
    "partial": ("P", "#E69F00", "#000000", "P between 0.01 and 0.99"),
    "blind": ("B", "#4d4d4d", "#ffffff", "this reader does not tell D0 from D1, P ≤ 0.01"),
    "saturated": ("S", "#8c510a", "#ffffff", "this reader fires on both D0 and D1, P ≤ 0.01"),
    "undecided": ("?", "#d9d9d9", "#000000", "the draws do not decide"),
    "none": ("–", "#ffffff", "#555555", "no engine answers here"),
}
LETTERS, COLOURS, INKS, MEANINGS = ({word: style[column] for word, style in _STYLES.items()} for column in range(4))
_LOST = "lost in {dtype}%s: the reader gets the same number from D0 and D1"
CHOICE_STYLES = {
    "distinguishes": (*_STYLES["distinguishes"][:3], "tells D0 from D1 (P ≥ 0.99)"),
    "partial": (*_STYLES["partial"][:3], "partial (P between 0.01 and 0.99)"),
    "blind": (*_STYLES["blind"][:3], "blind to this reader (P ≤ 0.01)"),
    "saturated": (*_STYLES["saturated"][:3], "saturated: this reader fires on both D0 and D1 (P ≤ 0.01)"),
    "blind, and lost in this format": ("F", "#882255", "#ffffff", f"blind, and also {_LOST % ''}"),
    "lost": ("L", PURPLE, "#000000", _LOST % " only"),
    "cannot": ("X", "#000000", "#ffffff", "cannot: proved (on constructions for every reader)"),
    "can": ("C", SKY, "#000000", "can: constructed weights reach the best score"),
    "learned": ("T", GREEN, "#ffffff", "learned: stored runs solved it"),
    "not learned": ("N", "#f0e442", "#000000", "not learned, which does not mean cannot"),
    "undecided": (*_STYLES["undecided"][:3], "undecided: the draws do not decide"),
    "not known": ("·", *_STYLES["none"][1:3], "not known"),
    "contradiction": (*("!", VERMILION, "#000000"), "the evidence contradicts itself, which is a bug in separatrix"),
}
"""Letter, background, ink and meaning of each word of a choice: verdicts, and what number formats, proofs,
weights and training add to them."""
CHOICE_LETTERS = {word: letter for word, (letter, *_) in CHOICE_STYLES.items()}
RESCUES = {
    "another threshold": ("T", "not with this threshold; another one tells them apart"),
    "a linear reader": ("R", "not with this reader; a linear one tells them apart, without noise"),
    "no reader": ("X", "no reader tells them apart: D0 and D1 give equal rows, which is proved"),
}
"""Letters of cells where this reader fails and it is known whether another one does not."""
MARKS = {"certified": "≡", "closed": "=", "sampled": "~"}
MARKS_LEGEND = ", ".join(f"{mark} {kind}" for kind, mark in MARKS.items())


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
