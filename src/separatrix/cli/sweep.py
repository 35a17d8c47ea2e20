"""`sweep`: compute a plan's cells, and keep them."""

from __future__ import annotations

import shlex
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from separatrix.cli.options import DEFAULT, HERE, AsJson, StoreUrl
from separatrix.cli.progress import on_stderr
from separatrix.cli.terminal import console, counted_cells, escape, new_table, print_json
from separatrix.core.interrupts import exit_code

if TYPE_CHECKING:
    from separatrix.sweeps.estimate import Estimate
    from separatrix.sweeps.plan import Plan
    from separatrix.sweeps.progress import Progress

RECENT = 60.0
"""Seconds over which the rate is taken."""
QUIET = 30.0
"""Seconds between two lines where nobody is looking."""
MINUTE, HOUR, DAY = 60, 3600, 86400


def sweep(
    plan: Annotated[
        str, typer.Argument(help="A TOML file, or a plan that comes with separatrix: paper, atlas.")
    ],
    store: StoreUrl = HERE,
    workers: Annotated[
        int | None, typer.Option(help="Processes on this machine; one a core if not given.")
    ] = None,
    scheduler: Annotated[
        str | None, typer.Option(help="Run on the Dask cluster with this scheduler: tcp://host:8786.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only count the cells and estimate the time.")
    ] = False,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Try cells that failed again.")
    ] = False,
    cell_timeout: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="A cell that takes longer has failed, and is ended."),
    ] = None,
    store_timeout: Annotated[
        float,
        typer.Option(metavar="SECONDS", help="Give up a store that does not answer for so long."),
    ] = 60.0,
    allow: Annotated[
        list[str] | None,
        typer.Option(help="A mechanism of your own, module:attribute, that the plan may name."),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(help="Make training runs there: cuda, cuda:1, mps. Tested on cpu alone."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compute a plan's cells, and keep them.

    Cells that are in the store are not computed again. Stop it whenever you like (Ctrl-C); the same
    command goes on from there. Exit code 1: some cells failed; `results status=failed` says why.

    Example: separatrix sweep paper --store sqlite:///results.db
    """
    from separatrix.sweeps.store import store_address
    from separatrix.sweeps.sweep import executor_for, find_plan
    from separatrix.sweeps.sweep import sweep as run

    address = store_address(store)
    read = find_plan(plan, allow or (), device)
    if dry_run:
        from separatrix.sweeps.estimate import estimate
        from separatrix.sweeps.store import NoStore, open_store

        try:
            opened = open_store(address)
        except NoStore:
            opened = None
        with (
            closing(executor_for(workers, scheduler, cell_timeout, read.threads)) as executor,
            _looking(as_json),
        ):
            found = estimate(read, opened, executor, executor.workers, retry_failed)
        _estimate_view(read, found, address.shown, as_json)
        return
    with progress(as_json) as bar:
        done = run(
            read,
            address,
            workers=workers,
            scheduler=scheduler,
            retry_failed=retry_failed,
            cell_timeout=cell_timeout,
            store_timeout=store_timeout,
            tell=bar.tell,
            hear=bar.hear,
        )
    _view(read, done, address.shown, as_json)
    raise typer.Exit(exit_code() if done.stopped else 1 if done.failed or done.failed_before else 0)


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
def _looking(quiet: bool) -> Iterator[None]:
    """A line on stderr while cells are looked up and tried."""
    with on_stderr(quiet).status("looking the cells up, and trying some"):
        yield


class Bar:
    """Done, failed, rate and time left, on stderr."""

    def __init__(self, bar: Any, noun: str = "cells") -> None:
        self._noun = noun
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
            counted = f"{so_far.finished:,} of {so_far.total:,} {self._noun}, {so_far.failed:,} failed"
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
def progress(quiet: bool, noun: str = "cells") -> Iterator[Bar]:
    """A bar if somebody is looking, else a line now and then."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    if quiet or not sys.stderr.isatty():
        yield Bar(None, noun)
        return
    columns = (
        BarColumn(24),
        MofNCompleteColumn(),
        TextColumn("{task.fields[failed]}"),
        TextColumn("{task.fields[pace]}"),
    )
    with Progress(*columns, console=on_stderr(), transient=True) as bar:
        yield Bar(bar, noun)


def _view(plan: Plan, done: Progress, store: str, as_json: bool) -> None:
    """Print how a sweep ended, and how to go on."""
    if as_json:
        print_json({**done.as_json(), "taken": plan.taken})
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
    _say_taken(plan)
    if done.stopped:
        out.print("to go on: give the same command again")
    else:
        given = "" if store == DEFAULT else f" --store {shlex.quote(store)}"
        out.print(f"look at it: separatrix results{escape(given)} --sweep {done.sweep}", soft_wrap=True)


def _estimate_view(plan: Plan, found: Estimate, store: str, as_json: bool) -> None:
    """Print what lies before a sweep."""
    if as_json:
        print_json({"sweep": plan.name, "store": store, **found.as_json(), "taken": plan.taken})
        return
    out = console()
    twice = found.total - found.different
    named = f", {twice:,} of them named twice" if twice else ""
    parts = "1 part" if len(plan.parts) == 1 else f"{len(plan.parts)} parts"
    out.print(f"[bold]{escape(plan.name)}[/]: {counted_cells(found.total)} in {parts}{named}")
    table = new_table()
    for part in plan.parts:
        what, who, how = map(escape, part.summary)
        table.add_row(escape(part.name), f"{part.count:,}", what, who, how)
    out.print(table)
    _say_taken(plan)
    out.print(f"{found.stored:,} stored, {found.missing:,} to compute")
    if found.missing:
        workers = "1 worker" if found.workers == 1 else f"{found.workers} workers"
        out.print(f"about [bold]{spell_time(found.seconds)}[/] on {workers} ({_basis(found)})")


def _say_taken(plan: Plan) -> None:
    """Print what the plan did not give, and which parts took it from a reference point."""
    from separatrix.constructions.reference import describe_defaults

    parts: dict[str, list[str]] = {}
    for part, constructions in plan.taken.items():
        for construction, values in constructions.items():
            parts.setdefault(f"{construction}: {describe_defaults(values)}", []).append(part)
    for said, names in parts.items():
        where = "" if len(names) == len(plan.parts) else f" (in {', '.join(names)})"
        console().print(f"{said}{where}", markup=False)


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
    return f"{counted_cells(cells)} {verb} being computed by another sweep" if cells else ""
