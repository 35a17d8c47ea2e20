"""`sweep`: compute and store the cells of a plan."""

from __future__ import annotations

import shlex
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Exit, Option

from separatrix.cli import options
from separatrix.cli.progress import on_stderr, spell_time
from separatrix.cli.streams import notify
from separatrix.cli.terminal import console, escape, format_cell_count, new_table, show
from separatrix.core.grouping import group_pairs
from separatrix.core.interrupts import exit_code

if TYPE_CHECKING:
    from separatrix.sweeps.estimate import CostBasis, Estimate
    from separatrix.sweeps.plan import Plan
    from separatrix.sweeps.progress import Progress

RATE_SECONDS = 60.0
"""Seconds over which the rate is measured."""
LINE_SECONDS = 30.0
"""Seconds between two lines if stderr is not a terminal."""


def sweep(
    plan: Annotated[str, Argument(help="A TOML file, or a plan that comes with separatrix: paper, atlas.")],
    store: options.StoreUrl = options.HERE,
    workers: options.Workers = None,
    scheduler: options.Scheduler = None,
    dry_run: Annotated[bool, Option("--dry-run", help="Only count the cells and estimate the time.")] = False,
    retry_failed: Annotated[bool, Option("--retry-failed", help="Compute failed cells again.")] = False,
    cell_timeout: Annotated[
        float | None, Option(metavar="SECONDS", help="A cell that takes longer is ended and has failed.")
    ] = None,
    store_timeout: Annotated[
        float, Option(metavar="SECONDS", help="Give up a store that does not respond for so long.")
    ] = 60.0,
    allow: options.Allow = None,
    device: options.Device = None,
    as_json: options.AsJson = False,
) -> None:
    """Compute and store the cells of a plan.

    Cells that are in the store are not computed again. You can stop it at any time (Ctrl-C); the same
    command continues from there. Exit code 1: some cells failed; `results status=failed` has the reasons.

    Example: separatrix sweep paper --store sqlite:///results.db
    """
    from separatrix.sweeps.store import parse_address
    from separatrix.sweeps.sweep import executor_for, find_plan
    from separatrix.sweeps.sweep import sweep as run

    address = parse_address(store)
    work = find_plan(plan, allow or (), device)
    if dry_run:
        from separatrix.sweeps.estimate import estimate
        from separatrix.sweeps.store import NoStore, open_store

        try:
            target = open_store(address)
        except NoStore:
            target = None
        with (
            closing(executor_for(workers, scheduler, cell_timeout, work.threads)) as executor,
            on_stderr(as_json).status("looking up the cells, and trying some"),
        ):
            expected = estimate(work, target, executor, address.shown, retry_failed)
        show(expected, as_json, lambda: _print_estimate(work, expected))
        return
    with progress(as_json) as bar:
        result = run(
            work,
            address,
            workers=workers,
            scheduler=scheduler,
            retry_failed=retry_failed,
            cell_timeout=cell_timeout,
            store_timeout=store_timeout,
            tell=bar.tell,
            hear=bar.hear,
        )
    show(result, as_json, lambda: _print_result(work, result))
    raise Exit(exit_code() if result.stopped else 1 if result.failed or result.failed_before else 0)


class Bar:
    """The numbers of finished and failed items, the rate and the remaining time, on stderr."""

    def __init__(self, bar: Any, noun: str = "cells") -> None:
        self._noun = noun
        self._bar, self._task = bar, None if bar is None else bar.add_task("", total=None, pace="", failed="")
        self._counts: deque[tuple[float, int]] = deque()
        self._last_line = time.monotonic()
        self._note_count = 0
        """The number of notes that were printed."""
        self._is_stopping = False

    def tell(self, so_far: Progress) -> None:
        """Show the progress of the sweep."""
        pace = f"stopping; Ctrl-C again abandons unfinished {self._noun}" if self._is_stopping else self._pace(so_far)
        others = _describe_elsewhere(so_far.elsewhere)
        for note in so_far.notes[self._note_count :]:
            notify(note)
        self._note_count = len(so_far.notes)
        failed = f"[red]{so_far.failed:,} failed[/]" if so_far.failed else ""
        if self._bar is not None:
            text = ", ".join(filter(None, (pace, others)))
            self._bar.update(self._task, completed=so_far.finished, total=so_far.total, pace=text, failed=failed)
        elif time.monotonic() - self._last_line > LINE_SECONDS:
            self._last_line = time.monotonic()
            counts = f"{so_far.finished:,} of {so_far.total:,} {self._noun}, {so_far.failed:,} failed"
            notify(", ".join(filter(None, (counts, others, pace))))

    def hear(self) -> None:
        """Show that a stop was requested."""
        self._is_stopping = True
        print(file=sys.stderr)  # ends the line of the bar, or the ^C of the terminal
        notify(f"finishing the {self._noun} that are being computed; Ctrl-C again abandons them")

    def _pace(self, so_far: Progress) -> str:
        """Describe the recent rate and the remaining time at this rate."""
        count, now = so_far.done + so_far.refused + so_far.failed, time.monotonic()
        if count:
            self._counts.append((now, count))
        # Cells of one part may cost a thousand times those of another, so older cells predict nothing.
        while len(self._counts) > 2 and now - self._counts[0][0] > RATE_SECONDS:
            self._counts.popleft()
        if not self._counts or count <= self._counts[0][1]:
            return ""
        rate = (count - self._counts[0][1]) / max(now - self._counts[0][0], 1e-9)
        remaining = spell_time((so_far.total - so_far.finished) / rate)
        return f"{rate:.3g}/s, {remaining} left at this rate"


@contextmanager
def progress(quiet: bool, noun: str = "cells") -> Iterator[Bar]:
    """Yield a progress bar on a terminal; with `quiet`, or elsewhere, it prints a line now and then."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    if quiet or not sys.stderr.isatty():
        yield Bar(None, noun)
        return
    texts = (TextColumn(f"{{task.fields[{name}]}}") for name in ("failed", "pace"))
    columns = (BarColumn(24), MofNCompleteColumn(), *texts)
    with Progress(*columns, console=on_stderr(), transient=True) as bar:
        yield Bar(bar, noun)


def _print_result(plan: Plan, result: Progress) -> None:
    """Print the result of a sweep, and the next command."""
    out = console()
    computed_count = result.done + result.refused + result.failed
    word = "[yellow]interrupted[/]" if result.stopped else "[green]finished[/]"
    out.print(f"[bold]{escape(plan.name)}[/] {word}: {result.finished:,} of {result.total:,} cells are stored")
    out.print(f"  {computed_count:,} computed now, {result.kept:,} were stored already")
    for count, line in (
        (result.shared, "{:,} were computed by another sweep meanwhile"),
        (result.elsewhere, _describe_elsewhere(result.elsewhere)),
        (result.twice, "{:,} are named twice in the plan"),
        (result.refused, "{:,} refused: no engine can answer them (results status=refused)"),
        (result.failed, "[red]{:,} failed[/]: separatrix results status=failed has the reasons"),
        (result.failed_before, "[red]{:,} had failed before[/]: --retry-failed tries them again"),
        (result.lost, "{:,} times a worker died; its cells were computed again"),
    ):
        if count:
            out.print(f"  {line.format(count)}")
    _print_defaults(plan)
    if result.stopped:
        out.print("to continue: repeat the command")
    else:
        option = "" if result.store == options.DEFAULT else f" --store {shlex.quote(result.store)}"
        out.print(f"look at it: separatrix results{escape(option)} --sweep {result.number}", soft_wrap=True)


def _print_estimate(plan: Plan, estimate: Estimate) -> None:
    """Print the estimate for a sweep."""
    out = console()
    twice = estimate.cells - estimate.different
    repetitions = f", {twice:,} of them named twice" if twice else ""
    parts = "1 part" if len(plan.parts) == 1 else f"{len(plan.parts)} parts"
    out.print(f"[bold]{escape(plan.name)}[/]: {format_cell_count(estimate.cells)} in {parts}{repetitions}")
    rows = ((escape(part.name), f"{part.count:,}", *map(escape, part.summary)) for part in plan.parts)
    out.print(new_table(rows=rows))
    _print_defaults(plan)
    out.print(f"{estimate.stored:,} stored, {estimate.missing:,} to compute")
    if estimate.missing:
        workers = "1 worker" if estimate.workers == 1 else f"{estimate.workers} workers"
        basis = _describe_basis(estimate.seconds_from)
        out.print(f"about [bold]{spell_time(estimate.seconds)}[/] on {workers} ({basis})")


def _print_defaults(plan: Plan) -> None:
    """Print the parameters that come from a reference point, and the parts of the plan that use them."""
    from separatrix.constructions.reference import describe_defaults

    parts = group_pairs(
        (f"{construction}: {describe_defaults(values)}", part)
        for part, constructions in plan.reference_defaults.items()
        for construction, values in constructions.items()
    )
    for line, names in parts.items():
        suffix = "" if len(names) == len(plan.parts) else f" (in {', '.join(names)})"
        console().print(f"{line}{suffix}", markup=False)


def _describe_basis(basis: CostBasis) -> str:
    sources = (
        (basis.known, "by cells in the store"),
        (basis.tried, "by cells tried just now"),
        (basis.guessed, "by the mean of the others"),
    )
    counts = ", ".join(f"{count} {source}" for count, source in sources if count)
    return f"cost of mechanism and construction pairs: {counts}"


def _describe_elsewhere(cells: int) -> str:
    verb = "is" if cells == 1 else "are"
    return f"{format_cell_count(cells)} {verb} being computed by another sweep" if cells else ""
