"""A choice on a terminal: what fits as a table, and the others by what is said of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from string import ascii_lowercase
from typing import TYPE_CHECKING, TypeVar

from separatrix.cli.terminal import COLOURS, console, escape

if TYPE_CHECKING:
    from rich.console import Console

    from separatrix.analysis.choose import Cell, Choice, Row

Key = TypeVar("Key")

MOST_ROWS = 12
"""Mechanisms that are shown where none fits, the nearest first."""
FAR = 11
"""Characters of a letter and a length."""
LONGEST = 27
"""Characters of a name; longer ones are cut, and whole in JSON and on the page."""
HUES = {
    **COLOURS,
    "lost": "magenta",
    "cannot": "red",
    "can": "green",
    "learned": "green",
    "not learned": "yellow",
    "contradiction": "red",
}


def view(found: Choice) -> None:
    """Print those that can be chosen as a table, and the others by what is said of them."""
    from separatrix.analysis.choose import Status
    from separatrix.analysis.choose.budget import spelled_bytes

    out, budget = console(), found.budget
    room = "" if budget.memory is None else f", {spelled_bytes(budget.memory)}"
    out.print(f"n={budget.n:,} in {budget.dtype}{room} for {budget.model}", markup=False)
    if found.must:
        far = {name: f"{name} (has no length near {budget.n:,})" for name in found.elsewhere}
        out.print(f"must be seen: {', '.join(far.get(name, name) for name in found.must)}", markup=False)
    fits = found.of(Status.FITS)
    shown = [row for row in fits if row.known]
    if shown:
        out.print(f"[bold]{len(shown)} fit{'s' * (len(shown) == 1)}[/]")
    else:
        out.print(found.nearest or "Of what fits, nothing is known.", style="bold", markup=False)
        shown = list(found.mechanisms[:MOST_ROWS])
    _table(out, found, shown)
    _elsewhere(out, found, shown)
    for sentence in found.contradictions:
        out.print(sentence, style="bold red", markup=False)
    unknown, way = [row for row in fits if not row.known], found.way_to_know([*found.lengths])
    verb, they_see = _those(unknown)
    _grouped(out, f"{verb}, but nothing is known of what {they_see} at this length{way}", unknown)
    for names, rows in _by(found.of(Status.OPEN), lambda row: row.open_on):
        way = found.way_to_know(names)
        verb, they_see = _those(rows)
        _grouped(out, f"{verb}, but whether {they_see} {', '.join(names)} is not known{way}", rows)
        _scores(out, names, rows)
    for reasons, rows in _by(found.of(Status.EXCLUDED), lambda row: row.excluded_by):
        _grouped(out, f"excluded: {'; '.join(reasons)}", rows, sizes=False)
    _legend(out, found)


def _table(out: Console, found: Choice, rows: list[Row]) -> None:
    """Mechanisms down, what they see at this length across: a letter a column."""
    from separatrix.analysis.choose.budget import spelled_bytes

    if not rows:
        return
    wide = min(LONGEST, max(len(row.mechanism) for row in rows))
    heads = " ".join(_columns(found))
    out.print(f"{'':{wide}}  {heads}  {'keeps':>8}  operations", markup=False)
    for row in rows:
        letters = " ".join(_letter(cell) for cell in row.cells if cell.name not in found.elsewhere)
        grows = "–" if row.exponent is None else f"n^{row.exponent:.1f}"
        kept = spelled_bytes(row.kept.bytes)
        out.print(f"{_name(row, wide)}  {letters}  {kept:>8}  {grows}", soft_wrap=True)


def _elsewhere(out: Console, found: Choice, rows: list[Row]) -> None:
    """What is known only at other lengths: each cell with the length at which it is."""
    names = [
        name
        for name in found.elsewhere
        if any(cell.name == name and cell.elsewhere is not None for row in rows for cell in row.cells)
    ]
    if not names:
        return
    out.print("at other lengths only, which does not count here:", markup=False)
    wide = min(LONGEST, max(len(row.mechanism) for row in rows))
    spans = [max(len(name), FAR) for name in names]
    heads = "  ".join(f"{name:{span}}" for name, span in zip(names, spans, strict=True)).rstrip()
    out.print(f"{'':{wide}}  {heads}", markup=False, soft_wrap=True)
    for row in rows:
        cells = {cell.name: cell for cell in row.cells}
        texts = []
        for name, span in zip(names, spans, strict=True):
            cell = cells[name].elsewhere
            at = "" if cell is None else f"n={cell.n:,}"
            texts.append(f"{_letter(cell or cells[name])} {at:{span - 2}}")
        out.print(f"{_name(row, wide)}  {'  '.join(texts)}".rstrip(), soft_wrap=True)


def _columns(found: Choice) -> dict[str, str]:
    """The letter of every column of the table, and what it stands for."""
    names = (name for name in found.lengths if name not in found.elsewhere)
    return dict(zip(ascii_lowercase, names, strict=False))


def _name(row: Row, wide: int) -> str:
    """A mechanism's name, cut where it is longer than its column."""
    name = row.mechanism if len(row.mechanism) <= wide else f"{row.mechanism[: wide - 1]}…"
    return f"{escape(name)}{' ' * (wide - len(name))}"


def _those(rows: list[Row]) -> tuple[str, str]:
    return ("fits", "it sees") if len(rows) == 1 else ("fit", "they see")


def _grouped(out: Console, what: str, rows: list[Row], sizes: bool = True) -> None:
    """What is said of some, and their names, by what they keep."""
    from rich.padding import Padding
    from rich.text import Text

    from separatrix.analysis.choose.budget import spelled_bytes

    if not rows:
        return
    out.print(f"[bold]{len(rows)}[/] {escape(what)}")
    for size, alike in _by(rows, lambda row: row.kept.bytes if sizes else 0):
        kept = f" ({spelled_bytes(size)})" if sizes else ""
        names = f"{', '.join(row.mechanism for row in alike)}{kept}"
        out.print(Padding(Text(names), (0, 0, 0, 2), expand=False))


def _scores(out: Console, names: Iterable[str], rows: list[Row]) -> None:
    """What written weights score on tasks, where that is too little to count."""
    from rich.padding import Padding
    from rich.text import Text

    for name in names:
        cells = {row.mechanism: cell for row in rows for cell in row.cells if cell.name == name}
        scores = [
            f"{mechanism} {cell.score:.4f} of {cell.best_score:.4f}"
            for mechanism, cell in cells.items()
            if cell.score is not None
        ]
        if scores:
            said = f"{name}, written weights against the best rule: {', '.join(scores)}"
            out.print(Padding(Text(said), (0, 0, 0, 2), expand=False))


def _legend(out: Console, found: Choice) -> None:
    from separatrix.pages.choice import meanings

    columns = ", ".join(f"{letter} {name}" for letter, name in _columns(found).items())
    cells = [cell for row in found.mechanisms for cell in row.cells]
    words = {cell.shown_as for cell in (*cells, *(cell.elsewhere for cell in cells if cell.elsewhere))}
    said = meanings(found.budget.dtype)
    signs = "; ".join(f"{_letters()[word]} {said[word]}" for word in said if word in words)
    out.print(columns, style="dim", markup=False)
    out.print(f"{signs}; small letters are sampled", style="dim", markup=False)
    one = f"A cell by itself: {found.mechanisms[0].cells[0].command}; --json and --out page.html have all."
    for sentence in (_counted(found), _without_causal(found), found.moved, found.left_out, found.scope, one):
        if sentence:
            out.print(sentence, style="dim", markup=False)


def _counted(found: Choice) -> str:
    """Where operations were counted."""
    groups = _by((row for row in found.mechanisms if row.counted_at), lambda row: row.counted_at)
    groups.sort(key=lambda group: -len(group[1]))
    spelled = []
    for place, (lengths, rows) in enumerate(groups):
        who = f" ({', '.join(row.mechanism for row in rows)})" if place else ""
        spelled.append(f"{lengths[0]:,} to {lengths[-1]:,} tokens{who}")
    return f"Operations of a causal pass are counted at {'; '.join(spelled)}." if spelled else ""


def _without_causal(found: Choice) -> str:
    """Which mechanisms are counted without causal, because they have no causal form."""
    from separatrix.analysis.choose.choice import NO_CAUSAL_FORM

    names = [row.mechanism for row in found.mechanisms if row.note == NO_CAUSAL_FORM]
    verb = "has" if len(names) == 1 else "have"
    those = "it does not decode, and its" if len(names) == 1 else "they do not decode, and their"
    return f"{', '.join(names)} {verb} no causal form: {those} operations are not causal." if names else ""


def _letters() -> dict[str, str]:
    from separatrix.pages.verdict_words import CHOICE_LETTERS

    return CHOICE_LETTERS


def _letter(cell: Cell) -> str:
    letter = _letters()[cell.shown_as]
    shown = letter.lower() if cell.kind == "sampled" else letter
    return f"[{HUES.get(cell.word, 'dim')}]{shown}[/]"


def _by(rows: Iterable[Row], key: Callable[[Row], Key]) -> list[tuple[Key, list[Row]]]:
    """Rows that are alike in something, together."""
    groups: dict[Key, list[Row]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return list(groups.items())
