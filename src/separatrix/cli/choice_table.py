"""A choice on a terminal: the mechanisms that fit as a table, and the others grouped by the reason."""

from __future__ import annotations

from collections.abc import Iterable
from string import ascii_lowercase
from typing import TYPE_CHECKING

from separatrix.cli.terminal import COLOURS, console, escape, new_table, print_lines
from separatrix.core.grouping import group_pairs

if TYPE_CHECKING:
    from rich.console import Console

    from separatrix.analysis.choose import Choice, ChoiceCell, ChoiceRow

MAX_NEAREST_ROWS = 12
"""Mechanisms in the table if none fits."""
CELL_COLOURS = {
    **COLOURS,
    "lost": "magenta",
    "cannot": "red",
    "can": "green",
    "learned": "green",
    "not learned": "yellow",
    "contradiction": "red",
}


def print_choice(choice: Choice) -> None:
    """Print the mechanisms that fit as a table, and the others grouped by the reason."""
    from separatrix.analysis.cards.label_difference import join_names
    from separatrix.analysis.choose import ChoiceStatus
    from separatrix.analysis.choose.budget import format_bytes

    out = console()
    memory = "" if choice.memory is None else f", {format_bytes(choice.memory)}"
    out.print(f"n={choice.n:,} in {choice.dtype}{memory} for {choice.model}", markup=False)
    if choice.must:
        notes = {name: f"{name} (has no length near {choice.n:,})" for name in choice.elsewhere}
        out.print(f"must be seen: {', '.join(notes.get(name, name) for name in choice.must)}", markup=False)
    fits = choice.with_status(ChoiceStatus.FITS)
    rows = [row for row in fits if row.has_results]
    if rows:
        out.print(f"[bold]{len(rows)} fit{'s' * (len(rows) == 1)}[/]")
    else:
        out.print(choice.nearest or "No result is known for those that fit.", style="bold", markup=False)
        rows = list(choice.mechanisms[:MAX_NEAREST_ROWS])
    _print_table(out, choice, rows)
    _print_elsewhere(out, choice, rows)
    print_lines(choice.contradictions, "bold red")
    remedy = choice.describe_remedy([*choice.asked_at])
    without_results = [row for row in fits if not row.has_results]
    _print_group(out, f"{_fit(without_results)}, but no result is known at this length{remedy}", without_results)
    for names, group in group_pairs((row.not_known, row) for row in choice.with_status(ChoiceStatus.OPEN)).items():
        remedy = choice.describe_remedy(names)
        verb = "is" if len(names) == 1 else "are"
        _print_group(out, f"{_fit(group)}, but {join_names(names)} {verb} unknown{remedy}", group)
        _print_scores(out, names, group)
    excluded_rows = choice.with_status(ChoiceStatus.EXCLUDED)
    for reasons, group in group_pairs((row.excluded_by, row) for row in excluded_rows).items():
        _print_group(out, f"excluded: {'; '.join(reasons)}", group, sizes=False)
    _print_legend(choice)


def _print_table(out: Console, choice: Choice, rows: list[ChoiceRow]) -> None:
    """Print mechanisms down and questions across: a letter for each result."""
    from separatrix.analysis.choose.budget import format_bytes

    table = new_table("", *_columns(choice), "keeps", "operations", gap=1)
    for row in rows:
        letters = [_letter(cell) for name, cell in row.sees.items() if name not in choice.elsewhere]
        growth = "–" if row.operations_exponent is None else f"n^{row.operations_exponent:.1f}"
        table.add_row(escape(row.mechanism), *letters, format_bytes(row.kept_bytes), growth)
    if rows:
        out.print(table)


def _print_elsewhere(out: Console, choice: Choice, rows: list[ChoiceRow]) -> None:
    """Print results that are known only at other lengths, each with its length."""
    names = [name for name in choice.elsewhere if any(row.sees[name].elsewhere is not None for row in rows)]
    if not names:
        return
    out.print("only at other lengths, which do not count here:", markup=False)
    table = new_table("", *names)
    for row in rows:
        cells = [(row.sees[name], row.sees[name].elsewhere) for name in names]
        texts = (_letter(cell) if other is None else f"{_letter(other)} n={other.n:,}" for cell, other in cells)
        table.add_row(escape(row.mechanism), *texts)
    out.print(table)


def _columns(choice: Choice) -> dict[str, str]:
    """Return the letter of every column of the table, and its construction or task."""
    return dict(zip(ascii_lowercase, (name for name in choice.asked_at if name not in choice.elsewhere), strict=False))


def _fit(rows: list[ChoiceRow]) -> str:
    return "fits" if len(rows) == 1 else "fit"


def _print_group(out: Console, text: str, rows: list[ChoiceRow], sizes: bool = True) -> None:
    """Print a sentence about some mechanisms, and their names grouped by the memory that they need."""
    from separatrix.analysis.choose.budget import format_bytes

    if not rows:
        return
    out.print(f"[bold]{len(rows)}[/] {escape(text)}")
    for size, group in group_pairs((row.kept_bytes if sizes else 0, row) for row in rows).items():
        memory = f" ({format_bytes(size)})" if sizes else ""
        _print_indented(out, f"{', '.join(row.mechanism for row in group)}{memory}")


def _print_scores(out: Console, names: Iterable[str], rows: list[ChoiceRow]) -> None:
    """Print the scores of hand-written weights on tasks that do not reach the goal."""
    for name in names:
        cells = [(row.mechanism, row.sees[name]) for row in rows if row.sees[name].score is not None]
        if scores := [f"{mechanism} {cell.score:.4f} of {cell.best_score:.4f}" for mechanism, cell in cells]:
            _print_indented(out, f"{name}, hand-written weights against the best rule: {', '.join(scores)}")


def _print_indented(out: Console, text: str) -> None:
    from rich.padding import Padding
    from rich.text import Text

    out.print(Padding(Text(text), (0, 0, 0, 2), expand=False))


def _print_legend(choice: Choice) -> None:
    from separatrix.pages.choice import meanings
    from separatrix.pages.verdict_words import CHOICE_LETTERS

    columns = ", ".join(f"{letter} {name}" for letter, name in _columns(choice).items())
    cells = [cell for row in choice.mechanisms for cell in row.sees.values()]
    words = {cell.displayed_word for cell in (*cells, *(cell.elsewhere for cell in cells if cell.elsewhere))}
    texts = meanings(choice.dtype).items()
    signs = "; ".join(f"{CHOICE_LETTERS[word]} {text}" for word, text in texts if word in words)
    command = f"One cell: {cells[0].command}; --json and --out page.html have all."
    notes = (_describe_counting(choice), _describe_not_causal(choice), choice.length_remark, choice.left_out)
    print_lines((columns, f"{signs}; small letters are sampled", *notes, choice.scope, command), "dim")


def _describe_counting(choice: Choice) -> str:
    """Return the lengths at which operations were counted, as a sentence."""
    rows = (row for row in choice.mechanisms if row.operations_counted_at)
    lengths = [length for row in rows for length in (row.operations_counted_at[0], row.operations_counted_at[-1])]
    return f"Operations of a causal pass are counted at {min(lengths):,} to {max(lengths):,} tokens." if lengths else ""


def _describe_not_causal(choice: Choice) -> str:
    """Return the mechanisms without a causal form, as a sentence."""
    from separatrix.analysis.choose.choice import NO_CAUSAL_FORM

    names = [row.mechanism for row in choice.mechanisms if row.note == NO_CAUSAL_FORM]
    verb, subject, owner = ("has", "it", "its") if len(names) == 1 else ("have", "they", "their")
    remark = f"{verb} no causal form: {subject} cannot decode, and {owner} operations are not causal."
    return f"{', '.join(names)} {remark}" if names else ""


def _letter(cell: ChoiceCell) -> str:
    from separatrix.pages.choice import cell_letter

    return f"[{CELL_COLOURS.get(cell.word, 'dim')}]{cell_letter(cell)}[/]"
