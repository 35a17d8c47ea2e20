"""How sweeps and stored cells look in a terminal of 80 columns."""

from __future__ import annotations

import shlex
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from separatrix.cli.show import COLOURS, console, plain, print_json
from separatrix.cli.sweep import DEFAULT

if TYPE_CHECKING:
    from separatrix.store import Selection, Sweep
    from separatrix.sweeps import Estimate, Plan, Progress

ROWS = 20
"""Cells that are printed; files have them all."""
MOST_COLUMNS = 4
"""Parameters that get a column."""
RECENT = 60.0
"""Seconds over which the rate is taken."""
QUIET = 30.0
"""Seconds between two lines where nobody is looking."""
MINUTE, HOUR, DAY = 60, 3600, 86400


def spell_time(seconds: float) -> str:
    """A time in seconds roughly, as people say it.

    >>> spell_time(5400), spell_time(42), spell_time(0.2)
    ('1.5 h', '42 s', '1 s')
    """
    if seconds > 1000 * DAY:
        return "more than 1000 days"
    for size, name in ((DAY, "days"), (HOUR, "h"), (MINUTE, "min")):
        if seconds >= 1.5 * size or (size == HOUR and seconds >= size):
            return f"{seconds / size:.2g} {name}"
    return f"{max(1, round(seconds))} s"


@contextmanager
def looking(quiet: bool) -> Iterator[None]:
    """A line on stderr while cells are looked up and tried."""
    with Console(stderr=True, quiet=quiet).status("looking the cells up, and trying some"):
        yield


class Bar:
    """Done, failed, rate and time left, on stderr."""

    def __init__(self, bar: Any) -> None:
        self._bar, self._task = bar, None if bar is None else bar.add_task("", total=None, pace="", failed="")
        self._seen: deque[tuple[float, int]] = deque()
        self._said = time.monotonic()
        self._notes = 0
        """How many notes were printed."""
        self._stopping = False

    def tell(self, so_far: Progress) -> None:
        """Show how far the sweep is."""
        pace = "stopping; Ctrl-C again drops it" if self._stopping else self._pace(so_far)
        others = _elsewhere(so_far.elsewhere)
        for note in so_far.notes[self._notes :]:
            print(f"separatrix: {note}", file=sys.stderr, flush=True)
        self._notes = len(so_far.notes)
        failed = f"[red]{so_far.failed:,} failed[/]" if so_far.failed else ""
        if self._bar is not None:
            said = ", ".join(filter(None, (pace, others)))
            self._bar.update(
                self._task, completed=so_far.finished, total=so_far.total, pace=said, failed=failed
            )
        elif time.monotonic() - self._said > QUIET:
            self._said = time.monotonic()
            counted = f"{so_far.finished:,} of {so_far.total:,} cells, {so_far.failed:,} failed"
            print(
                "separatrix: " + ", ".join(filter(None, (counted, others, pace))), file=sys.stderr, flush=True
            )

    def hear(self) -> None:
        """Show that the user wants the sweep to stop."""
        self._stopping = True
        what = "finishing what is being computed, at most a cell of each worker"
        print(f"\nseparatrix: {what}; Ctrl-C again drops it", file=sys.stderr, flush=True)

    def _pace(self, so_far: Progress) -> str:
        """The rate of late: cells of one part may cost a thousand times those of another."""
        computed, now = so_far.done + so_far.refused + so_far.failed, time.monotonic()
        if computed:
            self._seen.append((now, computed))
        while len(self._seen) > 2 and now - self._seen[0][0] > RECENT:
            self._seen.popleft()
        if not self._seen or computed <= self._seen[0][1]:
            return ""
        rate = (computed - self._seen[0][1]) / max(now - self._seen[0][0], 1e-9)
        left = spell_time((so_far.total - so_far.finished) / rate)
        return f"{rate:.3g}/s, {left} left at this rate"


@contextmanager
def progress(quiet: bool) -> Iterator[Bar]:
    """A bar if somebody is looking, else a line now and then."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    if quiet or not sys.stderr.isatty():
        yield Bar(None)
        return
    columns = (
        BarColumn(24),
        MofNCompleteColumn(),
        TextColumn("{task.fields[failed]}"),
        TextColumn("{task.fields[pace]}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        yield Bar(bar)


def progressed(plan: Plan, done: Progress, store: str, as_json: bool) -> None:
    """Print how a sweep ended, and how to go on."""
    if as_json:
        counted = {name: value for name, value in vars(done).items() if name != "sweep"}
        print_json({"sweep": plan.name, "number": done.sweep, "store": store, **counted})
        return
    out = console()
    computed = done.done + done.refused + done.failed
    word = "[yellow]interrupted[/]" if done.stopped else "[green]finished[/]"
    out.print(f"[bold]{escape(plan.name)}[/] {word}: {done.finished:,} of {done.total:,} cells are stored")
    out.print(f"  {computed:,} computed now, {done.kept:,} were there already")
    for count, line in (
        (done.shared, "{:,} were computed by another sweep meanwhile"),
        (done.elsewhere, _elsewhere(done.elsewhere)),
        (done.twice, "{:,} are named twice in the plan"),
        (done.refused, "{:,} refused: no engine can answer them (results status=refused)"),
        (done.failed, "[red]{:,} failed[/]: why, says separatrix results status=failed"),
        (done.failed_before, "[red]{:,} had failed before[/]: --retry-failed tries them again"),
        (done.lost, "{:,} times a worker died; its cells were computed again"),
    ):
        if count:
            out.print(f"  {line.format(count)}")
    if done.stopped:
        out.print("to go on: give the same command again")
    else:
        given = "" if store == DEFAULT else f" --store {shlex.quote(store)}"
        out.print(f"look at it: separatrix results{escape(given)} --sweep {done.sweep}", soft_wrap=True)


def estimate(plan: Plan, found: Estimate, store: str, as_json: bool) -> None:
    """Print what lies before a sweep."""
    if as_json:
        print_json({"sweep": plan.name, "store": store, **found.as_json()})
        return
    out = console()
    twice = found.total - found.different
    named = f", {twice:,} of them named twice" if twice else ""
    parts = "1 part" if len(plan.parts) == 1 else f"{len(plan.parts)} parts"
    out.print(f"[bold]{escape(plan.name)}[/]: {_counted(found.total)} in {parts}{named}")
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    for part in plan.parts:
        what = ", ".join(dict.fromkeys(grid.kind.name for grid in part.grids))
        who = ", ".join(each.spelled for each in part.mechanisms)
        table.add_row(escape(part.name), f"{part.count:,}", escape(what), escape(who), part.engine)
    out.print(table)
    out.print(f"{found.stored:,} stored, {found.missing:,} to compute")
    if found.missing:
        workers = "1 worker" if found.workers == 1 else f"{found.workers} workers"
        out.print(f"about [bold]{spell_time(found.seconds)}[/] on {workers} ({_basis(found)})")


def _basis(found: Estimate) -> str:
    parts = (
        (found.known, "by cells in the store"),
        (found.tried, "by cells tried just now"),
        (found.guessed, "by the mean of the others"),
    )
    said = ", ".join(f"{count} {what}" for count, what in parts if count)
    return f"mechanism and construction pairs judged: {said}"


def _elsewhere(cells: int) -> str:
    verb = "is" if cells == 1 else "are"
    return f"{_counted(cells)} {verb} being computed by another sweep" if cells else ""


def _counted(cells: int) -> str:
    return "1 cell" if cells == 1 else f"{cells:,} cells"


def _short(text: str, most: int = 24) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def results(found: Selection, limit: int | None = None) -> None:
    """Print the first cells as a table, and how all of them came out."""
    out = console()
    if found.count == 0:
        out.print("no stored cell is like that")
        return
    came = ", ".join(
        f"{count:,} [{COLOURS.get(word, 'red')}]{plain(word)}[/]" for word, count in found.words.most_common()
    )
    cut = " (there may be more: --limit)" if found.count == limit else ""
    out.print(f"{_counted(found.count)}{cut}: {came}")
    shown, rows = next(found.frames(limit or ROWS)), limit or ROWS
    spreads = {called: found.spreads[name] for called, name in found.parameters.items()} | {
        "seed": found.seeds
    }
    varying = [name for name, each in spreads.items() if each.varied or 0 < each.count < found.count]
    varying = varying[:MOST_COLUMNS]
    same = [name for name, each in spreads.items() if not each.varied and name not in varying]
    fixed = " ".join(
        f"{plain(name)}={_number(shown[name][0])}" for name in same if shown[name][0] is not None
    )
    if fixed:
        out.print(f"all with {fixed}", style="dim")
    columns = ("construction", "mechanism", *map(plain, varying), "verdict", "P", "engine")
    table = Table(*columns, box=None, padding=(0, 1, 0, 0))
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
    if found.count > rows:
        out.print(f"… and {found.count - rows:,} more: --limit, --csv, --json or --out has them")


def _number(value: Any) -> str:
    if isinstance(value, int) and abs(value) >= 10**10:
        return f"{value:.10g}".replace("e+", "e")
    return f"{value:.6g}" if isinstance(value, float) else plain(str(value))


def _probability(row: dict[str, Any]) -> str:
    low, high = row["low"], row["high"]
    return f"{row['distinguish']:.6g}" if low == high else f"{low:.3g}..{high:.3g}"


def plans(as_json: bool) -> None:
    """Print every plan that comes with separatrix."""
    import tomllib

    from separatrix.sweeps import load_plan, shipped_plans

    files = shipped_plans()
    about = {name: tomllib.loads(file.read_text())["description"] for name, file in files.items()}
    if as_json:
        counts = {name: load_plan(file).count for name, file in files.items()}
        print_json([{"name": name, "description": about[name], "cells": counts[name]} for name in files])
        return
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    for name, description in about.items():
        table.add_row(f"[bold]{escape(name)}[/]", escape(description))
    console().print(table)


def sweeps(found: list[Sweep], as_json: bool) -> None:
    """Print every sweep of a store."""
    if as_json:
        names = ("id", "name", "started", "cells")
        print_json([{name: getattr(each, name) for name in names} for each in found])
        return
    if not found:
        console().print("no sweep is stored")
        return
    table = Table("number", "name", "begun", "cells stored", box=None, padding=(0, 2, 0, 0))
    for each in found:
        table.add_row(str(each.id), plain(each.name), plain(each.started), f"{each.cells:,}")
    console().print(table)
