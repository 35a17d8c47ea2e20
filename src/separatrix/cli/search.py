"""`search`: find what one mechanism tells apart and another does not."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from fractions import Fraction
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from separatrix.cli import completion
from separatrix.cli.options import AsJson
from separatrix.cli.progress import announced, counting
from separatrix.cli.terminal import console, escape, new_table, print_json, show
from separatrix.core.interrupts import exit_code
from separatrix.core.numbers import format_exact
from separatrix.core.numbers.json import json_file

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from separatrix.analysis.search import (
        FindingsCheck,
        InputFinding,
        PointFinding,
        Reading,
        Search,
        SearchFinding,
    )
    from separatrix.constructions import TokenGroup

FEATURES_SHOWN = 6
"""Outputs of one label that are printed; JSON has them all."""
MOST_LINES = 8
PROVED = {"exact": "exact", "balls": "balls, proved", "float64": "float64, not proved"}


def search(
    x: Annotated[
        str | None,
        typer.Argument(
            help="The mechanism that is to tell the labels apart.", autocompletion=completion.mechanism
        ),
    ] = None,
    y: Annotated[
        str | None,
        typer.Argument(help="The mechanism that is not to.", autocompletion=completion.mechanism),
    ] = None,
    budget: Annotated[int, typer.Option(help="Trials, those of the study file included.")] = 300,
    seconds: Annotated[float | None, typer.Option(help="Stop trying after so many seconds.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the trials.")] = 0,
    space: Annotated[str, typer.Option(help="inputs, constructions or both.")] = "inputs",
    study: Annotated[
        Path | None, typer.Option(help="Keep finished trials in this file, and go on from those in it.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write what was found: found.json.")] = None,
    check: Annotated[Path | None, typer.Option(help="Evaluate the findings of such a file again.")] = None,
    as_json: AsJson = False,
) -> None:
    """Find what X tells apart and Y does not.

    Tries small inputs (or parameters of constructions), and shrinks what it finds. Finding nothing
    proves nothing. With --check, exit code 1: a finding of the file does not hold.

    Example: separatrix search softmax linear --out found.json
    """
    from separatrix.analysis.search import check_findings
    from separatrix.analysis.search import search as run
    from separatrix.core.files.writing import require_writable, write_whole
    from separatrix.core.parameters import UsageError

    if check is not None:
        report = check_findings(check, x, y)
        _check_view(report, check, as_json)
        raise typer.Exit(0 if report.holds else 1)
    if x is None or y is None:
        raise UsageError("name two mechanisms, for example: separatrix search softmax linear")
    if out is not None:
        require_writable(out, (".json",))
    most = f", or {seconds:g} s" if seconds is not None else "; about a minute for 300"
    what = f"trying {budget:,} inputs{most}, then shrinking what was found"
    with announced("search", what, as_json), counting(as_json) as tell:
        found = run(x, y, budget=budget, seconds=seconds, seed=seed, space=space, study=study, tell=tell)
    if found.damaged:
        _warn_of(found.damaged, study)
    if out is not None:
        write_whole(out, json_file(found.as_json(), 2))
    show(found, as_json, lambda: _view(found, out, study))
    if found.interrupted:
        raise typer.Exit(exit_code())


def _warn_of(lines: Sequence[int], study: Path | None) -> None:
    """Warn of damaged lines of a log, on stderr."""
    few = ", ".join(map(str, lines[:MOST_LINES])) + (", …" if len(lines) > MOST_LINES else "")
    what = f"line {few} is" if len(lines) == 1 else f"{len(lines):,} lines are"
    named = "" if len(lines) == 1 else f" ({few})"
    said = f"{study}: {what} damaged{named} and left out; the rest is used"
    print(f"separatrix: warning: {said}", file=sys.stderr)


def _view(found: Search, out: Path | None, study: Path | None) -> None:
    """Print every finding, and what was not found."""
    from separatrix.analysis.search import THRESHOLDS

    to, names = console(), (found.x.spelled, found.y.spelled)
    to.print(f"[bold]{escape(names[0])}[/] over [bold]{escape(names[1])}[/]: {_counted(found)}")
    for number, finding in enumerate(found.findings, 1):
        _finding(to, f"{number}. ", finding, names)
    if found.caution:
        to.print(escape(found.caution))
    if found.failed:
        to.print(escape(f"no answer in {found.failed} trials, the first time because: {found.reason}"))
    if found.space != "constructions":
        to.print(f"[dim]{escape(THRESHOLDS)}[/]")
    if found.interrupted:
        again = "give the same command again" if study else "nothing is kept; with --study FILE it would be"
        to.print(f"interrupted; to go on: {again}")
    if out is not None:
        to.print(f"written; evaluate it again with: separatrix search --check {escape(str(out))}")
    elif found.found:
        to.print("to keep it: --out found.json; then: separatrix search --check found.json")


def _check_view(report: FindingsCheck, file: Path, as_json: bool) -> None:
    """Print every finding of a file as it is now."""
    if as_json:
        print_json({"file": str(file), **report.as_json()})
        return
    to = console()
    for finding, holds in report.findings:
        word = "[green]holds[/] " if holds else "[red]does not hold[/] "
        _finding(to, word, finding, (report.x.spelled, report.y.spelled))
    word = "[bold green]holds[/]" if report.holds else "[bold red]does not hold[/]"
    to.print(f"{escape(str(file))}: {word}")


def _counted(found: Search) -> str:
    number = len(found.findings)
    what = "nothing found" if not number else f"{number} {'finding' if number == 1 else 'findings'}"
    stopped = ", stopped by the clock" if found.out_of_time else ""
    return f"{what} in {found.trials} of {found.budget} trials, seed {found.seed}{stopped}"


def _finding(to: Console, mark: str, finding: SearchFinding, names: tuple[str, str]) -> None:
    from separatrix.analysis.search import InputFinding, PointFinding

    rest = "" if finding.shrunk else ", as it was found"
    to.print(f"\n{mark}[bold]{escape(finding.family)}[/]: {escape(finding.sentence)}{rest}")
    if isinstance(finding, InputFinding):
        _instance(to, finding, names)
    elif isinstance(finding, PointFinding):
        _point(to, finding)


def _instance(to: Console, finding: InputFinding, names: tuple[str, str]) -> None:
    d0, d1 = finding.instance.labels
    table = new_table("", "D0", "D1")
    for i, queries in enumerate(zip(d0.queries, d1.queries, strict=True), 1):
        _row(table, f"query {i}" if len(d0.queries) > 1 else "query", *map(_vector, queries))
    for i, kinds in enumerate(zip_longest(d0.groups, d1.groups), 1):
        _row(table, f"token {i}", *map(_token, kinds))
    separation = finding.separation
    for name, reading in zip(names, (separation.x, separation.y), strict=True):
        table.add_row(f"{escape(name)} gives", _outputs(reading.d0), _outputs(reading.d1))
    to.print(table)
    to.print(f"  {escape(names[0])}: apart by {_margin(separation.x)}")
    apart = f"apart by {_margin(separation.y)}"
    told = {
        "equal": f"equal ({PROVED[separation.y.evidence]})",
        "near": f"near, {apart}; not proved equal",
        "drowned": f"drowned, {apart}",
        None: f"not separated, {apart}",
    }
    to.print(f"  {escape(names[1])}: {told[separation.way]}")


def _row(table: Table, name: str, one: str, other: str) -> None:
    table.add_row(name, one, "the same" if one == other else f"[bold]{other}[/]")


def _vector(vector: Any) -> str:
    numbers = [format_exact(Fraction(x)) for x in vector]
    return numbers[0] if len(numbers) == 1 else f"({', '.join(numbers)})"


def _token(kind: TokenGroup | None) -> str:
    if kind is None:
        return "none"
    copies = f"{kind.count:,} × " if kind.count > 1 else ""
    return f"{copies}key {_vector(kind.key)} value {_vector(kind.value)}"


def _outputs(rows: Any) -> str:
    from separatrix.analysis.search.separation import shown

    numbers = [shown(x) for row in rows for x in row]
    more = " …" if len(numbers) > FEATURES_SHOWN else ""
    return escape(", ".join(numbers[:FEATURES_SHOWN]) + more)


def _margin(reading: Reading) -> str:
    from separatrix.analysis.search.separation import shown

    return f"{shown(reading.margin)} of the scale ({PROVED[reading.evidence]})"


def _point(to: Console, finding: PointFinding) -> None:
    table = new_table()
    for verdict in (finding.x, finding.y):
        low, high = verdict.outcome.interval
        interval = "" if low == high else f" in [{low:.4g}, {high:.4g}]"
        probability = f"P = {verdict.outcome.distinguish:.6g}{interval}"
        table.add_row(escape(verdict.mechanism.spelled), verdict.word, probability, verdict.outcome.engine)
    to.print(table)
    for command in finding.commands():
        to.print(f"  {escape(command)}", soft_wrap=True)
