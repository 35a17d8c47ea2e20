"""`python -m benchmarks [maps cards …]`: check results, measure, and compare with the limits."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from benchmarks._base import Line, Measurement, Skipped
from benchmarks._suites import run_suite

SUITES = (
    "closed_form",
    "proofs",
    "maps",
    "sampled",
    "coverage",
    "attention",
    "training",
    "learning",
    "cards",
    "cluster",
    "store",
    "sweeps",
    "commands",
    "explorer",
)


def main(names: Sequence[str] = ()) -> int:
    """Print the table of all or the named suites; return 1 if a limit is violated or a line failed."""
    console = Console()
    unknown = [name for name in names if name not in SUITES]
    if unknown:
        console.print(f"there is no suite {escape(unknown[0])}; there are {', '.join(SUITES)}")
        return 2
    modules = [f"benchmarks.{name}" for name in names or SUITES]
    return 0 if run(modules, console) else 1


def run(modules: Sequence[str], console: Console) -> bool:
    """Run suites given by their module names, print the table, and return whether every limit is met."""
    lines: list[Line] = []
    with console.status("measuring"):
        for module in modules:
            for line in run_suite(module):
                lines.append(line)
                console.print(f"{escape(line.title)}: {_outcome(line)}")
    table = Table("measurement", "value", "limit", "met")
    for line in lines:
        limit, met = "", "" if isinstance(line, Skipped) else "[red]failed[/]"
        if isinstance(line, Measurement):
            limit = f"{'≤' if line.at_most else '≥'} {line.wanted:,.6g} {line.unit}"
            if not line.failure:
                met = "[green]yes[/]" if line.met else "[red]no[/]"
        table.add_row(escape(line.title), _outcome(line), limit, met)
    console.print(table)
    return all(isinstance(line, Skipped) or (isinstance(line, Measurement) and line.met) for line in lines)


def _outcome(line: Line) -> str:
    """Return the number with its unit, or the reason why there is none."""
    if isinstance(line, Skipped):
        return f"skipped: {escape(line.reason)}"
    if line.failure:
        return f"failed: {escape(line.failure)}"
    assert isinstance(line, Measurement)
    return f"{line.measured:,.3g} {line.unit}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
