"""A choice as a static page and a picture: mechanisms that fit, are unknown or excluded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from separatrix.analysis.choose import Choice, ChoiceCell, ChoiceRow, ChoiceStatus
from separatrix.analysis.choose.budget import format_bytes
from separatrix.analysis.choose.construction_cells import BOTH
from separatrix.pages.atlas import hide_frame
from separatrix.pages.looks import GREEN, PURPLE, SKY, VERMILION
from separatrix.pages.pages import render_page
from separatrix.pages.verdict_words import CHOICE_LETTERS, COLOURS, INKS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

VERDICTS = ("distinguishes", "partial", "blind", "saturated", "undecided")
WORD_COLOURS = {
    **{word: (COLOURS[word], INKS[word]) for word in VERDICTS},
    BOTH: ("#882255", "#ffffff"),
    "lost": (PURPLE, "#000000"),
    "cannot": ("#000000", "#ffffff"),
    "can": (SKY, "#000000"),
    "learned": (GREEN, "#ffffff"),
    "not learned": ("#f0e442", "#000000"),
    "not known": (COLOURS["none"], INKS["none"]),
    "contradiction": (VERMILION, "#000000"),
}
"""Background and ink of each word."""


def meanings(dtype: str) -> dict[str, str]:
    """Return the meaning of each word of a cell."""
    return {
        "distinguishes": "tells D0 from D1 (P ≥ 0.99)",
        "partial": "partial (P between 0.01 and 0.99)",
        "blind": "blind to this reader (P ≤ 0.01)",
        "saturated": "saturated: this reader fires on both D0 and D1 (P ≤ 0.01)",
        BOTH: f"blind, and also lost in {dtype}: the reader gets the same number from D0 and D1",
        "lost": f"lost in {dtype} only: the reader gets the same number from D0 and D1",
        "cannot": "cannot: proved (on constructions for every reader)",
        "can": "can: constructed weights reach the best score",
        "learned": "learned: stored runs solved it",
        "not learned": "not learned, which does not mean cannot",
        "undecided": "undecided: the draws do not decide",
        "not known": "not known",
        "contradiction": "the evidence contradicts itself, which is a bug in separatrix",
    }


def _groups(choice: Choice) -> dict[str, list[ChoiceRow]]:
    """Return the rows by their status, under a heading each."""
    fits = choice.with_status(ChoiceStatus.FITS)
    groups = {
        "Fits": [row for row in fits if row.has_results],
        "Fits, but nothing is known about what it tells apart": [row for row in fits if not row.has_results],
        "Fits, but is not known to meet every requirement": choice.with_status(ChoiceStatus.OPEN),
        "Excluded": choice.with_status(ChoiceStatus.EXCLUDED),
    }
    return {heading: rows for heading, rows in groups.items() if rows}


@dataclass(frozen=True)
class CellText:
    """The texts of one cell."""

    cell: ChoiceCell

    @property
    def letter(self) -> str:
        """The letter of the word, a small one if it is sampled."""
        letter = CHOICE_LETTERS[self.cell.displayed_word]
        return letter.lower() if self.cell.kind == "sampled" else letter

    @property
    def style(self) -> str:
        """The colours of the word."""
        return _style(self.cell.displayed_word)

    @property
    def title(self) -> str:
        """The evidence in one line."""
        at = f" at n={self.cell.n:,}" if self.cell.n else ""
        return f"{self.cell.name}{at}: {self.cell.displayed_word}, {self.cell.kind}; {self.cell.evidence}"

    @property
    def other_length(self) -> str:
        """The word at another length, which does not count; empty where there is none."""
        cell = self.cell.elsewhere
        return "" if cell is None else f"{CHOICE_LETTERS[cell.displayed_word]} at n={cell.n:,}"


@dataclass(frozen=True)
class RowText:
    """The texts of one mechanism."""

    row: ChoiceRow

    @property
    def cells(self) -> list[CellText]:
        """The texts of its cells."""
        return [CellText(cell) for cell in self.row.sees.values()]

    @property
    def memory(self) -> str:
        """The bytes that are kept of a sequence."""
        return format_bytes(self.row.kept_bytes)

    @property
    def exponent(self) -> str:
        """The power of n with which operations grow; empty where they were not counted."""
        return "" if self.row.operations_exponent is None else f"{self.row.operations_exponent:.2f}"

    @property
    def lengths(self) -> str:
        """The lengths at which operations were counted."""
        lengths = ", ".join(f"{n:,}" for n in self.row.operations_counted_at)
        return f"counted at {lengths} tokens" if lengths else "not counted"

    @property
    def reasons(self) -> str:
        """The reasons for exclusion, the open questions, and remarks."""
        unknown = f"not known: {', '.join(self.row.not_known)}" if self.row.not_known else ""
        return "; ".join(filter(None, (*self.row.excluded_by, unknown, self.row.note)))


def page(choice: Choice) -> str:
    """Return the choice as a static page."""
    groups = _groups(choice)
    room = "" if choice.memory is None else format_bytes(choice.memory)
    return render_page(
        "choice.html.j2",
        title=f"Mechanisms for n = {choice.n:,} in {choice.dtype}",
        choice=choice,
        room=room,
        counts={heading: len(rows) for heading, rows in groups.items()},
        columns={name: _heading(choice, name) for name in choice.asked_at},
        nearest=choice.nearest,
        keys=[(letter, meaning, _style(word)) for word, letter, meaning in _legend(choice)],
        groups={heading: [RowText(row) for row in rows] for heading, rows in groups.items()},
    )


def _legend(choice: Choice) -> list[tuple[str, str, str]]:
    """Return word, letter and meaning of the words that occur, and of every verdict."""
    words = {cell.displayed_word for row in choice.mechanisms for cell in row.sees.values()} | set(VERDICTS)
    return [
        (word, CHOICE_LETTERS[word], meaning)
        for word, meaning in meanings(choice.dtype).items()
        if word in words
    ]


def _heading(choice: Choice, name: str) -> str:
    return f"{name} (no length near n)" if name in choice.elsewhere else name


def _style(word: str) -> str:
    background, ink = WORD_COLOURS[word]
    return f"background:{background};color:{ink}"


def draw_cells(axes: Axes, choice: Choice) -> None:
    """Draw mechanisms down and questions across; the names of excluded mechanisms are grey."""
    from matplotlib.patches import Rectangle

    for y, row in enumerate(choice.mechanisms):
        for x, cell in enumerate(row.sees.values()):
            background, ink = WORD_COLOURS[cell.displayed_word]
            axes.add_patch(Rectangle((x + 0.03, y + 0.05), 0.94, 0.9, facecolor=background, edgecolor="none"))
            letter = CellText(cell).letter
            axes.text(x + 0.5, y + 0.5, letter, ha="center", va="center_baseline", size=6, color=ink)
    names, count = [_heading(choice, name) for name in choice.asked_at], len(choice.mechanisms)
    axes.set_xlim(0, len(names))
    axes.set_ylim(count, 0)
    axes.set_xticks([x + 0.5 for x in range(len(names))], names, rotation=90)
    axes.set_yticks([y + 0.5 for y in range(count)], [row.mechanism for row in choice.mechanisms])
    for label, row in zip(axes.get_yticklabels(), choice.mechanisms, strict=True):
        label.set_color("#999999" if row.status is ChoiceStatus.EXCLUDED else "#000000")
    hide_frame(axes, 6.5)
    keys = "\n".join(f"{letter}  {meaning}" for _, letter, meaning in _legend(choice))
    axes.set_xlabel(f"{keys}\nsmall letters are sampled; names in grey are excluded", size=6.5, loc="left")
