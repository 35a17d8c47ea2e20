"""A choice as a static page and a picture: mechanisms that fit, are unknown or excluded."""

from __future__ import annotations

from typing import Any

from separatrix.analysis.choose import Choice, ChoiceCell, ChoiceRow, ChoiceStatus
from separatrix.analysis.choose.budget import format_bytes
from separatrix.pages.pages import render_page
from separatrix.pages.paper import Axes, hide_frame, label_cells
from separatrix.pages.verdict_words import CHOICE_LETTERS, CHOICE_STYLES

VERDICTS = ("distinguishes", "partial", "blind", "saturated", "undecided")


def meanings(dtype: str) -> dict[str, str]:
    """Return the meaning of each word of a cell."""
    return {word: meaning.format(dtype=dtype) for word, (*_, meaning) in CHOICE_STYLES.items()}


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


def cell_letter(cell: ChoiceCell) -> str:
    """Return the letter of the word, a small one if it is sampled."""
    letter = CHOICE_LETTERS[cell.displayed_word]
    return letter.lower() if cell.kind == "sampled" else letter


def _cell_texts(cell: ChoiceCell) -> dict[str, str]:
    """Return the texts of a cell; `other_length` is the word at another length, which does not count."""
    at, other = f" at n={cell.n:,}" if cell.n else "", cell.elsewhere
    return {
        "letter": cell_letter(cell),
        "class": "none" if cell.word == "not known" else "seen",
        "style": _style(cell.displayed_word),
        "title": f"{cell.name}{at}: {cell.displayed_word}, {cell.kind}; {cell.evidence}",
        "other_length": "" if other is None else f"{CHOICE_LETTERS[other.displayed_word]} at n={other.n:,}",
    }


def _row_texts(row: ChoiceRow) -> dict[str, Any]:
    """Return a mechanism with its texts; `exponent` is empty where operations were not counted."""
    lengths = ", ".join(f"{n:,}" for n in row.operations_counted_at)
    open_questions = f"not known: {', '.join(row.not_known)}" if row.not_known else ""
    return {
        "row": row,
        "cells": [_cell_texts(cell) for cell in row.sees.values()],
        "memory": format_bytes(row.kept_bytes),
        "exponent": "" if row.operations_exponent is None else f"{row.operations_exponent:.2f}",
        "lengths": f"counted at {lengths} tokens" if lengths else "not counted",
        "reasons": "; ".join(filter(None, (*row.excluded_by, open_questions, row.note))),
    }


def page(choice: Choice) -> str:
    """Return the choice as a static page."""
    return render_page(
        "choice.html.j2",
        title=f"Mechanisms for n = {choice.n:,} in {choice.dtype}",
        choice=choice,
        room="" if choice.memory is None else format_bytes(choice.memory),
        columns={name: _heading(choice, name) for name in choice.asked_at},
        keys=[(letter, meaning, _style(word)) for word, letter, meaning in _legend(choice)],
        groups={heading: [_row_texts(row) for row in rows] for heading, rows in _groups(choice).items()},
    )


def _legend(choice: Choice) -> list[tuple[str, str, str]]:
    """Return word, letter and meaning of the words that occur, and of every verdict."""
    words = {cell.displayed_word for row in choice.mechanisms for cell in row.sees.values()} | set(VERDICTS)
    return [(word, CHOICE_LETTERS[word], meaning) for word, meaning in meanings(choice.dtype).items() if word in words]


def _heading(choice: Choice, name: str) -> str:
    return f"{name} (no length near n)" if name in choice.elsewhere else name


def _style(word: str) -> str:
    _, background, ink, _ = CHOICE_STYLES[word]
    return f"background:{background};color:{ink}"


def size(choice: Choice) -> tuple[float, float]:
    """Return the inches across and up."""
    return 2.6 + 0.24 * len(choice.asked_at), 1.4 + 0.16 * len(choice.mechanisms)


def draw_cells(choice: Choice, axes: Axes) -> None:
    """Draw mechanisms down and questions across; the names of excluded mechanisms are grey."""
    from matplotlib.patches import Rectangle

    for y, row in enumerate(choice.mechanisms):
        for x, cell in enumerate(row.sees.values()):
            _, background, ink, _ = CHOICE_STYLES[cell.displayed_word]
            axes.add_patch(Rectangle((x + 0.03, y + 0.05), 0.94, 0.9, facecolor=background, edgecolor="none"))
            axes.text(x + 0.5, y + 0.5, cell_letter(cell), ha="center", va="center_baseline", size=6, color=ink)
    places = {row.mechanism: float(y) for y, row in enumerate(choice.mechanisms)}
    label_cells(axes, [_heading(choice, name) for name in choice.asked_at], places, rotation=90)
    for label, row in zip(axes.get_yticklabels(), choice.mechanisms, strict=True):
        label.set_color("#999999" if row.status is ChoiceStatus.EXCLUDED else "#000000")
    hide_frame(axes, labelsize=6.5)
    keys = "\n".join(f"{letter}  {meaning}" for _, letter, meaning in _legend(choice))
    axes.set_xlabel(f"{keys}\nsmall letters are sampled; names in grey are excluded", size=6.5, loc="left")
