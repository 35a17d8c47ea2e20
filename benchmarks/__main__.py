"""`python -m benchmarks [maps cards …]`: check, then time, then say whether each promise is kept."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.table import Table

from benchmarks import (
    attention,
    cards,
    closed_form,
    cluster,
    commands,
    coverage,
    explorer,
    learning,
    maps,
    sampled,
    store,
    sweeps,
    training,
)
from benchmarks._base import Measurement

SUITES = {
    suite.__name__.rpartition(".")[2]: suite
    for suite in (
        closed_form,
        maps,
        sampled,
        coverage,
        attention,
        training,
        learning,
        cards,
        cluster,
        store,
        sweeps,
        commands,
        explorer,
    )
}


def main() -> int:
    """Print the table of all suites, or of those named; 1 if a promise is broken."""
    console = Console()
    unknown = [name for name in sys.argv[1:] if name not in SUITES]
    if unknown:
        console.print(f"there is no suite {unknown[0]}; there are {', '.join(SUITES)}")
        return 2
    chosen = [SUITES[name] for name in sys.argv[1:] or SUITES]
    measured: list[Measurement] = []
    with console.status("measuring"):
        for suite in chosen:
            for line in suite.measure():
                measured.append(line)
                console.print(f"{line.what}: {line.measured:,.3g} {line.unit}")
    table = Table("what", "measured", "promised", "kept")
    for line in measured:
        sign = "≤" if line.at_most else "≥"
        kept = "[green]yes[/]" if line.met else "[red]no[/]"
        table.add_row(
            line.what, f"{line.measured:,.3g} {line.unit}", f"{sign} {line.wanted:,.6g} {line.unit}", kept
        )
    console.print(table)
    return 0 if all(line.met for line in measured) else 1


if __name__ == "__main__":
    sys.exit(main())
