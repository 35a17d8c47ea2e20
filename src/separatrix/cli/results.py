"""`results`: query and export stored cells."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option, echo

from separatrix.cli.options import HERE, AsJson, StoreUrl
from separatrix.cli.streams import answer_stream
from separatrix.cli.terminal import COLOURS, console, format_cell_count, new_table, plain, warn_of
from separatrix.core.lazy import pl

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from separatrix.sweeps.store import Selection

Row = dict[str, Any]
MAX_ROWS = 20
"""Cells that are printed; files have all of them."""
MAX_COLUMNS = 4
"""Parameters with a column of their own."""
MAX_UNFOLDED = 10
"""Characters of a cell that stay on one line."""


def results(
    words: Annotated[
        list[str] | None,
        Argument(metavar="NAME=VALUE...", help="Conditions: mechanism=softmax n=1e3:1e6 verdict=blind"),
    ] = None,
    store: StoreUrl = HERE,
    sweep: Annotated[str | None, Option(help="Only cells of this sweep, by name or number.")] = None,
    kind: Annotated[str, Option(help="Kind of work: verdict or training.")] = "verdict",
    limit: Annotated[int | None, Option(help="Maximum number of cells.")] = None,
    as_csv: Annotated[bool, Option("--csv", help="Print CSV.")] = False,
    as_parquet: Annotated[bool, Option("--parquet", help="Print Parquet, into a file or a pipe.")] = False,
    as_json: AsJson = False,
    out: Annotated[Path | None, Option(help="Write a file: .csv, .parquet or .json.")] = None,
) -> None:
    """Query and export stored cells.

    A condition is a value, several values separated by commas, or a range low:high. Its name is a parameter
    of the construction, or one of: construction, mechanism, verdict, engine, asked, status, seed, draws,
    distinguish, margin, bits, fire_d0, fire_d1, seconds, dtype, delta, code. Exit code 1: the store is
    damaged; intact cells are shown, and a line on stderr describes the damage.

    \b
    Example:
      separatrix results mechanism=softmax n=1e3:1e6 verdict=blind --csv
    """
    from separatrix.core.files.writing import require_writable, whole_file
    from separatrix.core.parameters import UsageError, read_words
    from separatrix.sweeps.store import open_store, read_filter, select_cells
    from separatrix.sweeps.store.export import ENDINGS, write
    from separatrix.sweeps.store.frame import require_known
    from separatrix.sweeps.store.sweep_list import find_sweep

    formats = [ending for ending, is_set in zip(ENDINGS, (as_csv, as_json, as_parquet), strict=True) if is_set]
    if len(formats) + (out is not None) > 1:
        raise UsageError("choose one of --csv, --json, --parquet and --out")
    if limit is not None and limit < 1:
        raise UsageError(f"--limit {limit} leaves nothing; it must be at least 1")
    if as_parquet and sys.stdout.isatty():
        raise UsageError("Parquet is not for terminals; write --out results.parquet")
    if out is not None:
        require_writable(out, ENDINGS)
    conditions = read_filter(read_words(words or []), kind)
    source = open_store(store)
    with select_cells(source, conditions, None if sweep is None else find_sweep(source, sweep), limit) as selection:
        if selection.count == 0:  # an empty answer may be a misspelled name
            require_known(source, conditions)
        if out is not None:
            with whole_file(out) as file:
                write(selection, out.suffix, file)
            echo(f"{selection.count:,} cells written to {out}")
        elif formats:
            write(selection, formats[0], answer_stream().buffer)
        else:
            _view(selection, limit)
    # Last, since the warning ends the command with exit code 1.
    warn_of(selection.damage)


def _view(selection: Selection, limit: int | None) -> None:
    """Print the first cells as a table, and a summary of all."""
    out = console()
    if selection.count == 0:
        out.print("no stored cell matches")
        return
    counts = ", ".join(f"{count:,} {_colour(word)}" for word, count in selection.words.most_common())
    more = " (there may be more: --limit)" if selection.count == limit else ""
    out.print(f"{format_cell_count(selection.count)}{more}: {counts}")
    size = limit or MAX_ROWS
    table = pl.concat(selection.frames(size))
    spreads = {column: selection.spreads[name] for column, name in selection.parameters.items()}
    spreads |= {"seed": selection.seeds} if "seed" in table else {}
    varying = [name for name, x in spreads.items() if x.is_varied or 0 < x.count < selection.count][:MAX_COLUMNS]
    others = [name for name, spread in spreads.items() if not spread.is_varied and name not in varying]
    constants = [f"{plain(name)}={_format(table[name][0])}" for name in others if table[name][0] is not None]
    if constants:
        out.print(f"all with {' '.join(constants)}", style="dim")
    leading = selection.fixed_columns[0]
    rows = table.iter_rows(named=True)
    if selection.kind == "verdict":
        out.print(_make_verdict_table(rows, (*leading, *varying)))
    else:
        status = () if set(selection.words) == {"done"} else ("status",)
        _print_work(out, rows, (*leading, *varying, *status, *selection.findings))
    if selection.count > size:
        out.print(f"… and {selection.count - size:,} more: --limit, --csv, --json or --out has them")


def _make_verdict_table(rows: Iterable[Row], names: Sequence[str]) -> Table:
    table = new_table(*map(plain, (*names, "verdict", "P", "engine")), gap=1)
    for row in rows:
        table.add_row(
            *("" if row[name] is None else _format(row[name]) for name in names),
            _colour(row["verdict"] or row["status"]),
            _format_probability(row) if row["verdict"] else plain(_cut(row["message"] or "")),
            plain(row["engine"] or ""),
        )
    return table


def _print_work(out: Console, rows: Iterable[Row], names: Sequence[str]) -> None:
    """Print work that is no verdict; numbers are not cut, and columns without room are named below."""
    # Widths follow from the cells, so all rows are formatted before the columns are chosen.
    lines = [{name: "" if row[name] is None else _format(row[name], 4) for name in names} for row in rows]
    titles = {name: plain(name).replace("validation", "valid.").replace("_", " ") for name in names}
    room, columns, table = out.width, list[str](), new_table(gap=1)
    table.show_header = True
    for name, title in titles.items():
        widest = max(len(text) for text in (*title.split(), *(line[name] for line in lines)))
        width = min(widest, MAX_UNFOLDED)
        room -= width + 1
        if room < 0:
            break
        columns.append(name)
        table.add_column(title, overflow="fold", min_width=width)
    for line in lines:
        table.add_row(*(line[name] for name in columns))
    out.print(table)
    if omitted_names := [plain(name) for name in names if name not in columns]:
        out.print(f"no room for {', '.join(omitted_names)}: --csv, --json or --out has them", style="dim")


def _colour(word: str) -> str:
    return f"[{COLOURS.get(word, 'red')}]{plain(word)}[/]"


def _cut(text: str, limit: int = 40) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _format(value: Any, digits: int = 6) -> str:
    if isinstance(value, int) and abs(value) >= 10**10:  # lengths up to 10**18 would widen the column
        return f"{value:.10g}".replace("e+", "e")
    return f"{value:.{digits}g}" if isinstance(value, float) else plain(str(value))


def _format_probability(row: Row) -> str:
    low, high = row["low"], row["high"]
    return f"{row['distinguish']:.6g}" if low == high else f"{low:.3g}..{high:.3g}"
