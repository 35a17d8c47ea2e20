"""The sections of docs/theory.md that claims stand in, by their titles there."""

SECTIONS = {
    "1": "Attention units",
    "2": "The reader",
    "3": "The spike construction",
    "4": "The plain case",
    "5": "Cross-attention",
    "6": "Further separations",
    "7": "Open questions of the summary",
}
