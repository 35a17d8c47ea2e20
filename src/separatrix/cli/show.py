"""How answers look in a terminal of 80 columns, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from separatrix.parameters import Parameters, format_exact

if TYPE_CHECKING:
    from separatrix.assess import Card, CostCurve, Disagreement
    from separatrix.assess.atlas import Atlas
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
    unit = "" if found.construction.unit == 1 else " (margin in sqrt(log n))"
    table.add_row(f"margin, bits{unit}", f"{outcome.margin:.6g}, {found.bits:.4g}")
    if found.auc is not None:
        table.add_row("AUC under that noise", f"{found.auc:.6g}")
    if found.formats is not None:
        blind = ", ".join(f"{name} {_size(n)}" for name, n in found.formats.items())
        table.add_row("number formats blind from n =", blind)
    table.add_row("engine", f"{outcome.engine}: {outcome.evidence}")
    out.print(table)


def _size(n: int | None) -> str:
    if n is None:
        return "> 1e40"
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


@contextmanager
def working(quiet: bool) -> Iterator[Callable[[str], None]]:
    """A line on stderr that says what is being done."""
    with Console(stderr=True, quiet=quiet).status("starting") as status:
        yield lambda what: status.update(what)


def card(found: Card, as_json: bool) -> None:
    """A report card."""
    if as_json:
        print_json(found.as_json())
        return
    out = console()
    out.print(f"[bold]{escape(found.mechanism.spelled)}[/]  {escape(found.mechanism.formula)}")
    contract = found.contract
    counted = (
        f"{len(contract.passed)} kept, {len(contract.failed)} broken, {len(contract.skipped)} do not apply"
    )
    out.print(f"contract: {counted}")
    for name, what in contract.failed.items():
        out.print(f"  [red]broken[/] {escape(name)}: {escape(what)}")
    table = Table(
        "construction", "verdict", "P", "margin", "blind from n", "engine", box=None, padding=(0, 1, 0, 0)
    )
    for each in (found, *found.against):
        if found.against:
            table.add_row(f"[bold]{escape(each.mechanism.spelled)}[/]")
        for standing in each.standings:
            outcome, growth, word = standing.verdict.outcome, standing.growth, standing.verdict.word
            table.add_row(
                standing.name,
                f"[{COLOURS[word]}]{word}[/]",
                f"{outcome.distinguish:.3g}",
                "–" if growth is None else f"n^{growth.exponent:+.2f}",
                "–" if standing.blind_from is None else _size(standing.blind_from),
                outcome.engine,
            )
    out.print(table)
    out.print(_costs([each.cost for each in (found, *found.against)]))
    out.print(escape(found.reading))


def atlas(found: Atlas, as_json: bool) -> None:
    """The atlas as a table: a word for each construction."""
    if as_json:
        print_json(found.as_json())
        return
    table = Table("mechanism", *found.constructions, box=None, padding=(0, 1, 0, 0))
    for region in found.regions:
        words = [standing.verdict.word for standing in region.standings]
        table.add_row(escape(region.mechanism.spelled), *(f"[{COLOURS[word]}]{word}[/]" for word in words))
    console().print(table)


def bench(found: list[CostCurve | Disagreement], as_json: bool) -> None:
    """Costs, or why there are none."""
    from separatrix.assess import Disagreement

    if as_json:
        print_json([each.as_json() for each in found])
        return
    out = console()
    out.print(_costs([each for each in found if not isinstance(each, Disagreement)]))
    for each in found:
        if isinstance(each, Disagreement):
            out.print(f"[red]{escape(each.mechanism)} gets no numbers[/]: {escape(each.what)}")


def _costs(curves: list[CostCurve]) -> Table:
    table = Table("cost", "n", "ms", "MiB", "GFLOP", box=None, padding=(0, 1, 0, 0))
    for curve in curves:
        for cost in curve.costs[-2:]:
            megabytes, operations = cost.peak_bytes / 2**20, cost.flops / 1e9
            table.add_row(
                escape(curve.mechanism),
                f"{cost.length:,}",
                f"{1e3 * cost.seconds:.3g}",
                f"{megabytes:.3g}",
                f"{operations:.3g}",
            )
    return table


def mechanisms(as_json: bool) -> None:
    """Every mechanism with its formula, parameters and source."""
    from separatrix.mechanisms import MECHANISMS

    rows = [
        {
            "name": each.name,
            "family": each.family,
            "formula": each.formula,
            "parameters": _names(each.schema),
            "source": each.source,
        }
        for each in MECHANISMS.values()
    ]
    _listing(rows, as_json)


def lattice(as_json: bool) -> None:
    """Which mechanism, at which parameters, is another one; every line is a test."""
    from separatrix.contract.lattice import shown

    if as_json:
        print_json(shown())
        return
    table = Table("this", "is", "causal", "tokens", "why", box=None, padding=(0, 1, 0, 0))
    for row in shown():
        table.add_row(*(escape(row[name]) for name in ("special", "general", "causal", "inputs", "why")))
    console().print(table)


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
                text = (" ".join(value) or "none") if isinstance(value, list) else value
                out.print(f"  {name}: {text}", soft_wrap=False, markup=False)
