"""`python -m benchmarks`: check, then time, then say whether each promise is kept."""

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
    learning,
    maps,
    sampled,
    store,
    sweeps,
    training,
)
from benchmarks._base import Measurement


def main() -> int:
    """Print the table; 1 if a promise is broken."""
    console = Console()
    measured: list[Measurement] = []
    with console.status("measuring"):
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
        ):
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
