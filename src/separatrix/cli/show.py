"""How answers look in a terminal of 80 columns, and as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from separatrix.parameters import Parameters, format_exact

if TYPE_CHECKING:
    from separatrix.checker import Report
    from separatrix.reports import Reproduction
    from separatrix.verdicts import Verdict

COLOURS = {"distinguishes": "green", "blind": "red", "partial": "yellow", "undecided": "yellow"}


def console() -> Console:
    """Standard output, never wider than 100 columns and without highlighting of its own."""
    made = Console(highlight=False, markup=True)
    made.width = min(made.width, 100)
    return made


def print_json(value: Any) -> None:
    """One JSON document."""
    print(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))


def verdict(found: Verdict, as_json: bool) -> None:
    """One verdict."""
    if as_json:
        print_json(found.as_json())
        return
    out, outcome, word = console(), found.outcome, found.word
    out.print(
        f"{found.mechanism.spelled} on {found.construction.name}: [bold {COLOURS[word]}]{word}[/] "
        f"(delta {format_exact(found.delta)})"
    )
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    low, high = outcome.interval
    interval = "" if low == high else f"  in [{low:.4g}, {high:.4g}]"
    table.add_row("P(tells D0 from D1)", f"{outcome.distinguish:.10g}{interval}")
    table.add_row("P(fires on D0), P(fires on D1)", f"{outcome.fire_d0:.6g}, {outcome.fire_d1:.6g}")
    table.add_row("one neuron: p0, p1", f"{float(outcome.p0):.6g}, {float(outcome.p1):.6g}")
    table.add_row("margin, bits", f"{outcome.margin:.6g}, {found.bits:.4g}")
    if found.auc is not None:
        table.add_row("AUC under that noise", f"{found.auc:.6g}")
    if found.formats is not None:
        blind = ", ".join(f"{name} {_size(n)}" for name, n in found.formats.items())
        table.add_row("number formats blind from n =", blind)
    table.add_row("engine", f"{outcome.engine}: {outcome.evidence}")
    out.print(table)


def _size(n: int | None) -> str:
    if n is None:
        return "never"
    return str(n) if n < 10**6 else f"{n:.3g}"


def check(report: Report, file: Path, as_json: bool) -> None:
    """The checker's findings."""
    if as_json:
        print_json(
            {"file": str(file), "holds": report.holds, "verified": report.verified, "failed": report.failed}
        )
        return
    out = console()
    for line in report.failed:
        out.print(f"[red]fails[/]  {escape(line)}")
    word = "[bold green]holds[/]" if report.holds else "[bold red]does not hold[/]"
    counted = f"{report.verified} statements verified, {len(report.failed)} failed"
    out.print(f"{escape(str(file))}: certificate {word} ({counted})")


def reproduction(result: Reproduction, as_json: bool) -> None:
    """Where the report is, and how the ledger came out."""
    if as_json:
        print_json(result.as_json())
        return
    result.show(console())


def mechanisms(as_json: bool) -> None:
    """Every mechanism with its formula, parameters and source."""
    from separatrix.mechanisms import MECHANISMS

    rows = [
        {"name": each.name, "formula": each.formula, "parameters": _names(each.schema), "source": each.source}
        for each in MECHANISMS.values()
    ]
    _listing(rows, as_json)


def constructions(as_json: bool) -> None:
    """Every construction with its parameters and description."""
    from separatrix.constructions import CONSTRUCTIONS

    rows = [
        {
            "name": each.name,
            "title": each.title,
            "parameters": _names(each.schema),
            "provenance": each.provenance,
            "description": each.description,
        }
        for each in CONSTRUCTIONS.values()
    ]
    _listing(rows, as_json)


def claims(as_json: bool) -> None:
    """Every claim of the ledger, without running it."""
    from separatrix.claims import CLAIMS

    rows = [
        {"name": each.name, "provenance": each.provenance, "statement": each.statement} for each in CLAIMS
    ]
    _listing(rows, as_json)


def _names(schema: type[Parameters]) -> list[str]:
    return [name if field.is_required() else f"[{name}]" for name, field in schema.model_fields.items()]


def _listing(rows: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        print_json(rows)
        return
    out = console()
    for row in rows:
        out.print(row["name"], style="bold")
        for name, value in row.items():
            if name != "name":
                text = " ".join(value) if isinstance(value, list) else value
                out.print(f"  {name}: {text}", soft_wrap=False, markup=False)
