"""`results`: query stored cells, and export them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from separatrix.cli.options import HERE, AsJson, StoreUrl
from separatrix.cli.streams import answer_stream
from separatrix.cli.terminal import COLOURS, console, counted_cells, new_table, plain, warn_of

if TYPE_CHECKING:
    from rich.console import Console

    from separatrix.sweeps.store import Selection

ROWS = 20
"""Cells that are printed; files have them all."""
MOST_COLUMNS = 4
"""Parameters that get a column."""
WIDEST_KEPT = 10
"""Characters of a cell that are never put on two lines."""


def results(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME=VALUE...", help="Conditions: mechanism=softmax n=1e3:1e6 verdict=blind"),
    ] = None,
    store: StoreUrl = HERE,
    sweep: Annotated[str | None, typer.Option(help="Only cells of this sweep: its name or number.")] = None,
    kind: Annotated[str, typer.Option(help="Which kind of work: verdict or training.")] = "verdict",
    limit: Annotated[int | None, typer.Option(help="Show at most this many cells.")] = None,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
    as_parquet: Annotated[
        bool, typer.Option("--parquet", help="Print Parquet, into a file or a pipe.")
    ] = False,
    as_json: AsJson = False,
    out: Annotated[Path | None, typer.Option(help="Write a file: .csv, .parquet or .json.")] = None,
) -> None:
    """Query stored cells, and export them.

    A condition is a value, several separated by commas, or a range low:high. Its name is a parameter of
    the construction, or one of: construction, mechanism, verdict, engine, asked, status, seed, draws,
    distinguish, margin, bits, fire_d0, fire_d1, seconds, dtype, delta, code. Exit code 1: the store is
    damaged; what is intact is shown, and a line on stderr says what is not.

    \b
    Example:
      separatrix results mechanism=softmax n=1e3:1e6 verdict=blind --csv
    """
    from separatrix.core.files.writing import require_writable, whole_file
    from separatrix.core.parameters import UsageError, read_words
    from separatrix.sweeps.store import open_store, read_filter, selected
    from separatrix.sweeps.store.export import ENDINGS, write
    from separatrix.sweeps.store.frame import require_known

    chosen = [name for name, given in zip(ENDINGS, (as_csv, as_json, as_parquet), strict=True) if given]
    if len(chosen) + (out is not None) > 1:
        raise UsageError("choose one of --csv, --json, --parquet and --out")
    if limit is not None and limit < 1:
        raise UsageError(f"--limit {limit} leaves nothing; it must be at least 1")
    if as_parquet and sys.stdout.isatty():
        raise UsageError("Parquet is not for terminals; write --out results.parquet")
    if out is not None:
        require_writable(out, ENDINGS)
    asked = read_filter(read_words(words or []), kind)
    opened = open_store(store)
    number = None if sweep is None else opened.sweep_named(sweep)
    with selected(opened, asked, number, limit) as found:
        if found.count == 0:
            require_known(opened, asked)
        if out is not None:
            with whole_file(out) as file:
                write(found, out.suffix, file)
            typer.echo(f"{found.count:,} cells written to {out}")
        elif chosen:
            write(found, chosen[0], answer_stream().buffer)
        else:
            _view(found, limit)
    warn_of(found.scan.damage)


def _view(found: Selection, limit: int | None) -> None:
    """Print the first cells as a table, and how all of them came out."""
    out = console()
    if found.count == 0:
        out.print("no stored cell is like that")
        return
    came = ", ".join(
        f"{count:,} [{COLOURS.get(word, 'red')}]{plain(word)}[/]" for word, count in found.words.most_common()
    )
    cut = " (there may be more: --limit)" if found.count == limit else ""
    out.print(f"{counted_cells(found.count)}{cut}: {came}")
    shown, rows = next(found.frames(limit or ROWS)), limit or ROWS
    spreads = {called: found.spreads[name] for called, name in found.parameters.items()}
    spreads |= {"seed": found.seeds} if "seed" in shown else {}
    varying = [name for name, each in spreads.items() if each.varied or 0 < each.count < found.count]
    varying = varying[:MOST_COLUMNS]
    same = [name for name, each in spreads.items() if not each.varied and name not in varying]
    fixed = " ".join(
        f"{plain(name)}={_number(shown[name][0])}" for name in same if shown[name][0] is not None
    )
    if fixed:
        out.print(f"all with {fixed}", style="dim")
    first = found.fixed[0]
    if found.kind != "verdict":
        ended = () if set(found.words) == {"done"} else ("status",)
        _print_work(out, found, (*first, *varying, *ended, *found.found), rows)
        _more(out, found, rows)
        return
    table = new_table(*map(plain, (*first, *varying, "verdict", "P", "engine")), gap=1)
    for chunk in found.frames(rows):
        for row in chunk.iter_rows(named=True):
            word = row["verdict"] or row["status"]
            table.add_row(
                *(plain(row["construction"]), plain(row["mechanism"])),
                *("" if row[name] is None else _number(row[name]) for name in varying),
                f"[{COLOURS.get(word, 'red')}]{plain(word)}[/]",
                _probability(row) if row["verdict"] else plain(_short(row["message"] or "", 40)),
                plain(row["engine"] or ""),
            )
    out.print(table)
    _more(out, found, rows)


def _more(out: Console, found: Selection, rows: int) -> None:
    if found.count > rows:
        out.print(f"… and {found.count - rows:,} more: --limit, --csv, --json or --out has them")


def _print_work(out: Console, found: Selection, names: Sequence[str], rows: int) -> None:
    """Work of another kind than verdicts: no number is cut; columns that have no room are named instead."""
    lines = [
        {name: "" if row[name] is None else _number(row[name], 4) for name in names}
        for chunk in found.frames(rows)
        for row in chunk.iter_rows(named=True)
    ]
    titles = {name: plain(name).replace("validation", "valid.").replace("_", " ") for name in names}
    room, shown, table = out.width, list[str](), new_table(gap=1)
    table.show_header = True
    for name, title in titles.items():
        widest = max(len(text) for text in (*title.split(), *(line[name] for line in lines)))
        width = min(widest, WIDEST_KEPT)
        room -= width + 1
        if room < 0:
            break
        shown.append(name)
        table.add_column(title, overflow="fold", min_width=width)
    for line in lines:
        table.add_row(*(line[name] for name in shown))
    out.print(table)
    if hidden := [plain(name) for name in names if name not in shown]:
        out.print(f"no room for {', '.join(hidden)}: --csv, --json or --out has them", style="dim")


def _short(text: str, most: int = 24) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _number(value: Any, digits: int = 6) -> str:
    if isinstance(value, int) and abs(value) >= 10**10:
        return f"{value:.10g}".replace("e+", "e")
    return f"{value:.{digits}g}" if isinstance(value, float) else plain(str(value))


def _probability(row: dict[str, Any]) -> str:
    low, high = row["low"], row["high"]
    return f"{row['distinguish']:.6g}" if low == high else f"{low:.3g}..{high:.3g}"
