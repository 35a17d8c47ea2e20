"""A choice as a page: what fits, what is not known, what is excluded and by what, with all evidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from separatrix.analysis.choose import Cell, Choice, Row, Status
from separatrix.analysis.choose.budget import spelled_bytes
from separatrix.analysis.choose.sight import BOTH
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


def _groups(choice: Choice) -> dict[str, list[Row]]:
    """The rows by what comes of them, under a heading each."""
    fits = choice.of(Status.FITS)
    found = {
        "What fits": [row for row in fits if row.known],
        "What fits, but nothing is known of what it sees": [row for row in fits if not row.known],
        "What fits, but is not known to see all that it must": choice.of(Status.OPEN),
        "What is excluded, and by what": choice.of(Status.EXCLUDED),
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

    cell: Cell
    style: str

    @property
    def letter(self) -> str:
        """A letter for the word: a small one where it is sampled."""
        letter = CHOICE_LETTERS[self.cell.shown_as]
        return letter.lower() if self.cell.kind == "sampled" else letter

    @property
    def title(self) -> str:
        """All that is known, in one line."""
        at = f" at n={self.cell.n:,}" if self.cell.n else ""
        return f"{self.cell.name}{at}: {self.cell.shown_as}, {self.cell.kind}; {self.cell.evidence}"

    @property
    def at(self) -> str:
        """What is known at another length, which does not count; empty where nothing is."""
        cell = self.cell.elsewhere
        return "" if cell is None else f"{CHOICE_LETTERS[cell.shown_as]} at n={cell.n:,}"


@dataclass(frozen=True)
class ShownRow:
    """The texts of one mechanism."""

    row: Row
    cells: list[ShownCell]

    @property
    def kept(self) -> str:
        """What it keeps."""
        return spelled_bytes(self.row.kept.bytes)

    @property
    def operations(self) -> str:
        """As which power of n they grow; empty where they were not counted."""
        return "" if self.row.exponent is None else f"{self.row.exponent:.2f}"

    @property
    def counted(self) -> str:
        """Where operations were counted."""
        at = ", ".join(f"{n:,}" for n in self.row.counted_at)
        return f"counted at {at} tokens" if at else "not counted"

    @property
    def why(self) -> str:
        """What excludes it, or is not known of it, and what else there is to say."""
        unknown = f"not known: {', '.join(self.row.open_on)}" if self.row.open_on else ""
        return "; ".join(filter(None, (*self.row.excluded_by, unknown, self.row.note)))


def page(choice: Choice) -> str:
    """The choice as a page of its own, which opens offline."""
    budget, words = choice.budget, {cell.shown_as for row in choice.mechanisms for cell in row.cells}
    said, groups = meanings(budget.dtype), _groups(choice)
    room = "" if budget.memory is None else f"{spelled_bytes(budget.memory)} "
    return pages.page(
        "choice.html.j2",
        title=f"What to choose at n = {budget.n:,} in {budget.dtype}",
        choice=choice,
        room=room,
        counts={heading: len(rows) for heading, rows in groups.items()},
        columns={name: _heading(choice, name) for name in choice.lengths},
        nothing=choice.nearest,
        keys=[(CHOICE_LETTERS[word], said[word], _style(word)) for word in said if word in words],
        groups={heading: [_shown(row) for row in rows] for heading, rows in groups.items()},
    )


def _heading(choice: Choice, name: str) -> str:
    """The name of a column, and whether it has no length near n."""
    return f"{name} (no length near n)" if name in choice.elsewhere else name


def _shown(row: Row) -> ShownRow:
    return ShownRow(row, [ShownCell(cell, _style(cell.shown_as)) for cell in row.cells])


def _style(word: str) -> str:
    paper, ink = LOOKS[word]
    return f"background:{paper};color:{ink}"


def size(choice: Choice) -> tuple[float, float]:
    """Inches across and up."""
    return 2.6 + 0.24 * len(choice.lengths), 1.4 + 0.16 * len(choice.mechanisms)


def draw_on(axes: Axes, choice: Choice) -> None:
    """Mechanisms down, what they see across; what is excluded is named in grey."""
    from matplotlib.patches import Rectangle

    for y, row in enumerate(choice.mechanisms):
        for x, cell in enumerate(row.cells):
            paper, ink = LOOKS[cell.shown_as]
            axes.add_patch(Rectangle((x + 0.03, y + 0.05), 0.94, 0.9, facecolor=paper, edgecolor="none"))
            shown = ShownCell(cell, "")
            axes.text(x + 0.5, y + 0.5, shown.letter, ha="center", va="center_baseline", size=6, color=ink)
    names, count = [_heading(choice, name) for name in choice.lengths], len(choice.mechanisms)
    axes.set_xlim(0, len(names))
    axes.set_ylim(count, 0)
    axes.set_xticks([x + 0.5 for x in range(len(names))], names, rotation=90)
    axes.set_yticks([y + 0.5 for y in range(count)], [row.mechanism for row in choice.mechanisms])
    for label, row in zip(axes.get_yticklabels(), choice.mechanisms, strict=True):
        label.set_color("#999999" if row.status is Status.EXCLUDED else "#000000")
    axes.xaxis.tick_top()
    axes.tick_params(length=0, labelsize=6.5)
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    words = {cell.shown_as for row in choice.mechanisms for cell in row.cells}
    said = meanings(choice.budget.dtype)
    keys = "\n".join(f"{CHOICE_LETTERS[word]}  {said[word]}" for word in said if word in words)
    axes.set_xlabel(f"{keys}\nsmall letters are sampled; names in grey are excluded", size=6.5, loc="left")
