"""A choice as a page: what fits, what is not known, what is excluded and by what, with all evidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from separatrix.analysis.choose import Choice, ChoiceCell, ChoiceRow, ChoiceStatus
from separatrix.analysis.choose.budget import format_bytes
from separatrix.analysis.choose.construction_cells import BOTH
from separatrix.pages import pages
from separatrix.pages.verdict_words import CHOICE_LETTERS, COLOURS, INKS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ENDINGS = (".csv", ".html", ".json", ".parquet", ".pdf", ".png", ".svg")
LOOKS = {
    **{
        word: (COLOURS[word], INKS[word])
        for word in ("distinguishes", "partial", "blind", "saturated", "undecided")
    },
    BOTH: ("#882255", "#ffffff"),
    "lost": ("#cc79a7", "#000000"),
    "cannot": ("#000000", "#ffffff"),
    "can": ("#56b4e9", "#000000"),
    "learned": ("#009e73", "#ffffff"),
    "not learned": ("#f0e442", "#000000"),
    "not known": (COLOURS["none"], INKS["none"]),
    "contradiction": ("#d55e00", "#000000"),
}
"""Paper and ink of each word; Okabe and Ito's colours."""


def _groups(choice: Choice) -> dict[str, list[ChoiceRow]]:
    """The rows by what comes of them, under a heading each."""
    fits = choice.with_status(ChoiceStatus.FITS)
    found = {
        "What fits": [row for row in fits if row.has_results],
        "What fits, but nothing is known of what it sees": [row for row in fits if not row.has_results],
        "What fits, but is not known to see all that it must": choice.with_status(ChoiceStatus.OPEN),
        "What is excluded, and by what": choice.with_status(ChoiceStatus.EXCLUDED),
    }
    return {heading: rows for heading, rows in found.items() if rows}


def meanings(dtype: str) -> dict[str, str]:
    """What each word of a cell says."""
    return {
        "distinguishes": "tells D0 from D1 (P ≥ 0.99)",
        "partial": "some of the time",
        "blind": "blind to this reader (P ≤ 0.01)",
        "saturated": "saturated: this reader fires on both D0 and D1 (P ≤ 0.01)",
        BOTH: f"blind, and lost in {dtype} as well: what is read is one number in D0 and D1",
        "lost": f"lost in {dtype}, or it would be seen: what is read is one number",
        "cannot": "cannot: proved (on constructions for every reader)",
        "can": "can: written weights reach the best score",
        "learned": "learned: stored runs solved it",
        "not learned": "not learned, which does not say cannot",
        "undecided": "the draws do not decide",
        "not known": "not known",
        "contradiction": "the evidence contradicts itself, which is a bug in separatrix",
    }


@dataclass(frozen=True)
class ShownCell:
    """The texts of one cell."""

    cell: ChoiceCell
    style: str

    @property
    def letter(self) -> str:
        """A letter for the word: a small one where it is sampled."""
        letter = CHOICE_LETTERS[self.cell.displayed_word]
        return letter.lower() if self.cell.kind == "sampled" else letter

    @property
    def title(self) -> str:
        """All that is known, in one line."""
        at = f" at n={self.cell.n:,}" if self.cell.n else ""
        return f"{self.cell.name}{at}: {self.cell.displayed_word}, {self.cell.kind}; {self.cell.evidence}"

    @property
    def at(self) -> str:
        """What is known at another length, which does not count; empty where nothing is."""
        cell = self.cell.elsewhere
        return "" if cell is None else f"{CHOICE_LETTERS[cell.displayed_word]} at n={cell.n:,}"


@dataclass(frozen=True)
class ShownRow:
    """The texts of one mechanism."""

    row: ChoiceRow
    cells: list[ShownCell]

    @property
    def kept(self) -> str:
        """What it keeps."""
        return format_bytes(self.row.kept_bytes)

    @property
    def operations(self) -> str:
        """As which power of n they grow; empty where they were not counted."""
        return "" if self.row.operations_exponent is None else f"{self.row.operations_exponent:.2f}"

    @property
    def counted(self) -> str:
        """Where operations were counted."""
        at = ", ".join(f"{n:,}" for n in self.row.operations_counted_at)
        return f"counted at {at} tokens" if at else "not counted"

    @property
    def why(self) -> str:
        """What excludes it, or is not known of it, and what else there is to say."""
        unknown = f"not known: {', '.join(self.row.not_known)}" if self.row.not_known else ""
        return "; ".join(filter(None, (*self.row.excluded_by, unknown, self.row.note)))


def page(choice: Choice) -> str:
    """The choice as a page of its own, which opens offline."""
    words = {cell.displayed_word for row in choice.mechanisms for cell in row.sees.values()}
    said, groups = meanings(choice.dtype), _groups(choice)
    room = "" if choice.memory is None else f"{format_bytes(choice.memory)} "
    return pages.page(
        "choice.html.j2",
        title=f"What to choose at n = {choice.n:,} in {choice.dtype}",
        choice=choice,
        room=room,
        counts={heading: len(rows) for heading, rows in groups.items()},
        columns={name: _heading(choice, name) for name in choice.asked_at},
        nothing=choice.nearest,
        keys=[(CHOICE_LETTERS[word], said[word], _style(word)) for word in said if word in words],
        groups={heading: [_shown(row) for row in rows] for heading, rows in groups.items()},
    )


def _heading(choice: Choice, name: str) -> str:
    """The name of a column, and whether it has no length near n."""
    return f"{name} (no length near n)" if name in choice.elsewhere else name


def _shown(row: ChoiceRow) -> ShownRow:
    return ShownRow(row, [ShownCell(cell, _style(cell.displayed_word)) for cell in row.sees.values()])


def _style(word: str) -> str:
    paper, ink = LOOKS[word]
    return f"background:{paper};color:{ink}"


def size(choice: Choice) -> tuple[float, float]:
    """Inches across and up."""
    return 2.6 + 0.24 * len(choice.asked_at), 1.4 + 0.16 * len(choice.mechanisms)


def draw_on(axes: Axes, choice: Choice) -> None:
    """Mechanisms down, what they see across; what is excluded is named in grey."""
    from matplotlib.patches import Rectangle

    for y, row in enumerate(choice.mechanisms):
        for x, cell in enumerate(row.sees.values()):
            paper, ink = LOOKS[cell.displayed_word]
            axes.add_patch(Rectangle((x + 0.03, y + 0.05), 0.94, 0.9, facecolor=paper, edgecolor="none"))
            shown = ShownCell(cell, "")
            axes.text(x + 0.5, y + 0.5, shown.letter, ha="center", va="center_baseline", size=6, color=ink)
    names, count = [_heading(choice, name) for name in choice.asked_at], len(choice.mechanisms)
    axes.set_xlim(0, len(names))
    axes.set_ylim(count, 0)
    axes.set_xticks([x + 0.5 for x in range(len(names))], names, rotation=90)
    axes.set_yticks([y + 0.5 for y in range(count)], [row.mechanism for row in choice.mechanisms])
    for label, row in zip(axes.get_yticklabels(), choice.mechanisms, strict=True):
        label.set_color("#999999" if row.status is ChoiceStatus.EXCLUDED else "#000000")
    axes.xaxis.tick_top()
    axes.tick_params(length=0, labelsize=6.5)
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    words = {cell.displayed_word for row in choice.mechanisms for cell in row.sees.values()}
    said = meanings(choice.dtype)
    keys = "\n".join(f"{CHOICE_LETTERS[word]}  {said[word]}" for word in said if word in words)
    axes.set_xlabel(f"{keys}\nsmall letters are sampled; names in grey are excluded", size=6.5, loc="left")
