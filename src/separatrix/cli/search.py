"""`search`: find instances that one mechanism tells apart and another does not."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Exit, Option

from separatrix.cli import completion
from separatrix.cli.options import AsJson
from separatrix.cli.progress import announced, counting
from separatrix.cli.terminal import console, escape, new_table, show
from separatrix.core.interrupts import exit_code
from separatrix.core.numbers import format_exact
from separatrix.core.numbers.json import json_file

if TYPE_CHECKING:
    from rich.console import Console

    from separatrix.analysis.search import FindingsCheck, InputFinding, PointFinding, Search
    from separatrix.constructions import TokenGroup
    from separatrix.mechanisms import Mechanism

MAX_PRINTED_OUTPUTS = 6
"""Outputs of one label that are printed; JSON has them all."""
PROOFS = {"exact": "exact", "balls": "balls, proved", "float64": "float64, not proved"}


def search(
    x: Annotated[
        str | None, Argument(help="The mechanism that tells the labels apart.", autocompletion=completion.mechanism)
    ] = None,
    y: Annotated[str | None, Argument(help="The mechanism that does not.", autocompletion=completion.mechanism)] = None,
    budget: Annotated[int, Option(help="Trials, including those of the study file.")] = 300,
    seconds: Annotated[float | None, Option(help="Stop trying after this many seconds.")] = None,
    seed: Annotated[int, Option(help="Seed of the trials.")] = 0,
    space: Annotated[str, Option(help="inputs, constructions or both.")] = "inputs",
    study: Annotated[
        Path | None, Option(help="Log finished trials in this file, and continue from those in it.")
    ] = None,
    out: Annotated[Path | None, Option(help="Write the findings: found.json.")] = None,
    check: Annotated[Path | None, Option(help="Evaluate the findings of such a file again.")] = None,
    as_json: AsJson = False,
) -> None:
    """Find inputs that X tells apart and Y does not.

    Tries small inputs (or parameters of constructions), and shrinks the findings. Finding nothing
    proves nothing. With --check, exit code 1: a finding of the file does not hold.

    Example: separatrix search softmax linear --out found.json
    """
    from separatrix.analysis.search import check_findings
    from separatrix.analysis.search import search as run
    from separatrix.core.files.writing import require_writable, write_whole
    from separatrix.core.parameters import UsageError

    if check is not None:
        report = check_findings(check, x, y)
        show(report, as_json, lambda: _print_check(report))
        raise Exit(0 if report.holds else 1)
    if x is None or y is None:
        raise UsageError("name two mechanisms, for example: separatrix search softmax linear")
    if out is not None:
        require_writable(out, (".json",))
    limit = f", or {seconds:g} s" if seconds is not None else "; about a minute for 300"
    task = f"trying {budget:,} inputs{limit}, then shrinking the findings"
    with announced("search", task, as_json), counting(as_json) as tell:
        result = run(x, y, budget=budget, seconds=seconds, seed=seed, space=space, study=study, tell=tell)
    if out is not None:
        write_whole(out, json_file(result.as_json(), 2))
    show(result, as_json, lambda: _print_search(result, out, study))
    if result.interrupted:
        raise Exit(exit_code())


def _print_search(result: Search, out: Path | None, study: Path | None) -> None:
    """Print every finding, and the questions without one."""
    terminal = console()
    count = len(result.findings)
    number = f"{count} {'finding' if count == 1 else 'findings'}" if count else "nothing found"
    cause = ", stopped by the clock" if result.out_of_time else ""
    effort = f"{number} in {result.trials} of {result.budget} trials, seed {result.seed}{cause}"
    names = [escape(mechanism.spelled) for mechanism in (result.x, result.y)]
    terminal.print(f"[bold]{names[0]}[/] over [bold]{names[1]}[/]: {effort}")
    for index, finding in enumerate(result.findings, 1):
        _print_finding(terminal, f"{index}. ", finding, result.x, result.y)
    if result.caution:
        terminal.print(escape(result.caution))
    if result.failed:
        terminal.print(escape(f"no answer in {result.failed} trials; the first reason: {result.reason}"))
    if result.space != "constructions":
        terminal.print(f"[dim]{escape(result.thresholds)}[/]")
    if result.interrupted:
        hint = "give the same command again" if study else "nothing was kept; add --study FILE next time"
        terminal.print(f"interrupted; to continue: {hint}")
    if out is not None:
        terminal.print(f"written; evaluate it again with: separatrix search --check {escape(str(out))}")
    elif result.found:
        terminal.print("to keep it: --out found.json; then: separatrix search --check found.json")


def _print_check(report: FindingsCheck) -> None:
    """Print every finding of a file as it is now."""
    terminal = console()
    for finding in report.findings:
        word = "[green]holds[/] " if finding.holds else "[red]does not hold[/] "
        _print_finding(terminal, word, finding, report.x, report.y)
    word = "[bold green]holds[/]" if report.holds else "[bold red]does not hold[/]"
    terminal.print(f"{escape(str(report.file))}: {word}")


def _print_finding(
    terminal: Console, mark: str, finding: InputFinding | PointFinding, x: Mechanism, y: Mechanism
) -> None:
    from separatrix.analysis.search import InputFinding

    suffix = "" if finding.shrunk else ", not shrunk"
    terminal.print(f"\n{mark}[bold]{escape(finding.family)}[/]: {escape(finding.sentence)}{suffix}")
    if isinstance(finding, InputFinding):
        _print_inputs(terminal, finding, escape(x.spelled), escape(y.spelled))
        return
    table = new_table()
    for mechanism, verdict in ((x, finding.x), (y, finding.y)):
        low, high = verdict.interval
        interval = "" if low == high else f" in [{low:.4g}, {high:.4g}]"
        probability = f"P = {verdict.distinguish:.6g}{interval}"
        table.add_row(escape(mechanism.spelled), verdict.verdict, probability, verdict.engine)
    terminal.print(table)
    for mechanism in (x, y):
        terminal.print(f"  {escape(finding.command(mechanism))}", soft_wrap=True)


def _print_inputs(terminal: Console, finding: InputFinding, x_name: str, y_name: str) -> None:
    d0, d1 = finding.instance.labels
    rows = [("query", *map(_vector, pair)) for pair in zip(d0.queries, d1.queries, strict=True)]
    if len(rows) > 1:
        rows = [(f"query {i}", *vectors) for i, (_, *vectors) in enumerate(rows, 1)]
    rows += [(f"token {i}", *map(_describe_token, pair)) for i, pair in enumerate(zip_longest(d0.groups, d1.groups), 1)]
    table = new_table("", "D0", "D1")
    for name, before, after in rows:
        table.add_row(name, before, "the same" if before == after else f"[bold]{after}[/]")
    for name, reading in ((x_name, finding.x), (y_name, finding.y)):
        table.add_row(f"{name} gives", _outputs(reading.d0_texts), _outputs(reading.d1_texts))
    terminal.print(table)
    margins = [f"apart by {x.margin_text} of the scale ({PROOFS[x.evidence]})" for x in (finding.x, finding.y)]
    terminal.print(f"  {x_name}: {margins[0]}")
    failure = {
        "equal": f"equal ({PROOFS[finding.y.evidence]})",
        "near": f"near, {margins[1]}; not proved equal",
        "drowned": f"drowned, {margins[1]}",
        None: f"not separated, {margins[1]}",
    }
    terminal.print(f"  {y_name}: {failure[finding.way]}")


def _vector(vector: Sequence[Fraction | float]) -> str:
    numbers = [format_exact(Fraction(x)) for x in vector]
    return numbers[0] if len(numbers) == 1 else f"({', '.join(numbers)})"


def _describe_token(group: TokenGroup | None) -> str:
    if group is None:
        return "none"
    copies = f"{group.count:,} × " if group.count > 1 else ""
    return f"{copies}key {_vector(group.key)} value {_vector(group.value)}"


def _outputs(rows: list[list[str]]) -> str:
    texts = [text for row in rows for text in row]
    more = " …" if len(texts) > MAX_PRINTED_OUTPUTS else ""
    return escape(", ".join(texts[:MAX_PRINTED_OUTPUTS]) + more)
