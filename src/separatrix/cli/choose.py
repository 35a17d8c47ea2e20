"""`choose`: which mechanisms still see what at a length in a number format, and what they keep for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from inspect import signature
from pathlib import Path
from string import ascii_lowercase
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from separatrix.cli import completion
from separatrix.cli.options import AsJson
from separatrix.cli.progress import announced, counting
from separatrix.cli.terminal import COLOURS, console, escape, show

if TYPE_CHECKING:
    from rich.console import Console

    from separatrix.choices import Cell, Choice, Row

Key = TypeVar("Key")

LONGEST = 27
"""Characters of a name; longer ones are cut, and whole in JSON and on the page."""
HUES = {
    **COLOURS,
    "lost": "magenta",
    "cannot": "red",
    "can": "green",
    "learned": "green",
    "not learned": "yellow",
}


def choose(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME=VALUE...",
            help="n, dtype=bfloat16, memory=2GiB, and the sizes of the model: layers=12 heads=12 width=64.",
        ),
    ] = None,
    must: Annotated[
        str, typer.Option(help="Constructions and tasks that have to be seen, with commas: spike,needle.")
    ] = "",
    mechanisms: Annotated[
        str | None,
        typer.Option(
            help="Which, with commas; one of each if none is named.", autocompletion=completion.mechanisms
        ),
    ] = None,
    literal: Annotated[
        bool, typer.Option("--literal", help="Also where every token is needed: minutes for each.")
    ] = False,
    store: Annotated[
        str | None, typer.Option(help="Where runs of training are read from, for tasks.", metavar="URL")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write .html, .json, .csv, .parquet, .png, .svg or .pdf.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Which mechanisms still see what, at which cost.

    At a length and in a number format: what each mechanism sees of every construction that has that many
    tokens, what it keeps of a sequence in all layers, and how its operations grow. What keeps more than
    memory, or does not see what it must, is excluded and says by what; what nobody knows is said.

    \b
    Examples:
      separatrix choose n=131072 dtype=bfloat16 memory=2GiB
      separatrix choose n=131072 --must critical,averaging
    """
    from separatrix.choices import Budget
    from separatrix.choices import choose as run
    from separatrix.errors import UsageError
    from separatrix.files.writing import require_writable
    from separatrix.parameters import read_words
    from separatrix.reports.choice import ENDINGS

    if out is not None:
        require_writable(out, ENDINGS)
    options = {name.removeprefix("as_") for name in signature(choose).parameters} - {"words"}
    given: dict[str, Any] = {**read_words(words or [], Budget.model_fields, options)}
    if strange := next((name for name in given if name not in Budget.model_fields), None):
        raise UsageError(Budget.unknown(strange))
    Budget.require_all(given)
    Budget.read(given)
    what = "what each mechanism sees at this length; about 10 s for all"
    with announced("choose", what, as_json), counting(as_json) as tell:
        found = run(**given, must=must, mechanisms=mechanisms, literal=literal, store=store, tell=tell)
    if out is not None:
        found.save(out)
    show(found, as_json, lambda: _view(found))


def _view(found: Choice) -> None:
    """Print those that can be chosen as a table, and the others by what is said of them."""
    from separatrix.choices import Status
    from separatrix.choices.budget import spelled_bytes

    out, budget = console(), found.budget
    room = "" if budget.memory is None else f", {spelled_bytes(budget.memory)}"
    out.print(f"n={budget.n:,} in {budget.dtype}{room} for {budget.model}", markup=False)
    if found.must:
        out.print(f"must be seen: {', '.join(found.must)}", markup=False)
    fits = found.of(Status.FITS)
    _table(out, found, [row for row in fits if row.known])
    unknown = [row for row in fits if not row.known]
    _grouped(out, "fit, but nothing is known of what they see at this length (--literal)", unknown)
    for names, rows in _by(found.of(Status.OPEN), lambda row: row.open_on):
        _grouped(out, f"fit, but whether they see {', '.join(names)} is not known (--literal)", rows)
    for reasons, rows in _by(found.of(Status.EXCLUDED), lambda row: row.excluded_by):
        _grouped(out, f"excluded: {'; '.join(reasons)}", rows, sizes=False)
    _legend(out, found)


def _table(out: Console, found: Choice, rows: list[Row]) -> None:
    """Mechanisms down, what they see across: a letter a column."""
    from separatrix.choices.budget import spelled_bytes

    count = len(rows)
    if not rows:
        out.print("[bold]No mechanism is known to fit.[/]")
        return
    wide = min(LONGEST, max(len(row.mechanism) for row in rows))
    heads = " ".join(ascii_lowercase[place] for place in range(len(found.lengths)))
    out.print(f"[bold]{count} fit{'s' * (count == 1)}[/]")
    out.print(f"{'':{wide}}  {heads}  {'keeps':>8}  operations", markup=False)
    for row in rows:
        name = row.mechanism if len(row.mechanism) <= wide else f"{row.mechanism[: wide - 1]}…"
        letters = " ".join(map(_letter, row.cells))
        grows = "–" if row.exponent is None else f"n^{row.exponent:.1f}"
        kept = spelled_bytes(row.kept.bytes)
        out.print(f"{escape(name):{wide}}  {letters}  {kept:>8}  {grows}", soft_wrap=True)


def _grouped(out: Console, what: str, rows: list[Row], sizes: bool = True) -> None:
    """What is said of some, and their names, by what they keep."""
    from rich.padding import Padding
    from rich.text import Text

    from separatrix.choices.budget import spelled_bytes

    if not rows:
        return
    out.print(f"[bold]{len(rows)}[/] {escape(what)}")
    for size, alike in _by(rows, lambda row: row.kept.bytes if sizes else 0):
        kept = f" ({spelled_bytes(size)})" if sizes else ""
        names = f"{', '.join(row.mechanism for row in alike)}{kept}"
        out.print(Padding(Text(names), (0, 0, 0, 2), expand=False))


def _legend(out: Console, found: Choice) -> None:
    from separatrix.reports.choice import meanings

    columns = ", ".join(f"{ascii_lowercase[place]} {name}" for place, name in enumerate(found.lengths))
    words = dict.fromkeys(cell.word for row in found.mechanisms for cell in row.cells)
    said = meanings(found.budget.dtype)
    signs = "; ".join(f"{_letters()[word]} {said[word]}" for word in said if word in words)
    out.print(columns, style="dim", markup=False)
    out.print(f"{signs}; small letters are sampled", style="dim", markup=False)
    states = (f"{row.mechanism}: {row.note}." for row in found.mechanisms if "from a state" in row.note)
    one = f"A cell by itself: {found.mechanisms[0].cells[0].command}; --json and --out page.html have all."
    for sentence in (*states, found.moved, found.left_out, found.scope, one):
        if sentence:
            out.print(sentence, style="dim", markup=False)


def _letters() -> dict[str, str]:
    from separatrix.reports.verdict_words import CHOICE_LETTERS

    return CHOICE_LETTERS


def _letter(cell: Cell) -> str:
    letter = _letters()[cell.word]
    shown = letter.lower() if cell.kind == "sampled" else letter
    return f"[{HUES.get(cell.word, 'dim')}]{shown}[/]"


def _by(rows: Iterable[Row], key: Callable[[Row], Key]) -> list[tuple[Key, list[Row]]]:
    """Rows that are alike in something, together."""
    groups: dict[Key, list[Row]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return list(groups.items())
