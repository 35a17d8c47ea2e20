"""How answers look in a terminal of 80 columns, and as JSON."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from separatrix.numbers import format_exact
from separatrix.numbers.json import json_text
from separatrix.numbers.printable import visible
from separatrix.parameters import Parameters

if TYPE_CHECKING:
    from separatrix.cards import Card, Standing, Unanswered
    from separatrix.cards.atlas import Atlas
    from separatrix.checker import Report
    from separatrix.costs import Bench, CostCurve, Disagreement
    from separatrix.engines import Outcome
    from separatrix.reports.reproduce import Reproduction
    from separatrix.verdicts import Verdict

COLOURS = {
    "distinguishes": "green",
    "blind": "red",
    "partial": "yellow",
    "undecided": "yellow",
    "none": "dim",
}

NOT_FINITE = "not known: the scores overflow float64, or lose their digits"


def console() -> Console:
    """Standard output, never wider than 100 columns, with no colours or emoji of its own."""
    made = Console(highlight=False, markup=True, emoji=False)
    made.width = min(made.width, 100)
    return made


def plain(text: str) -> str:
    """A text from elsewhere as it stands: nothing in it is markup, and nothing steers the terminal."""
    return escape(visible(text))


def print_json(value: Any) -> None:
    """One JSON document."""
    print(json_text(value))


def verdict(found: Verdict, as_json: bool) -> None:
    """Print a verdict."""
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
    table.add_row(f"margin, bits{unit}", _margin(outcome))
    if found.auc is not None:
        table.add_row("AUC under that noise", f"{found.auc:.6g}" if math.isfinite(found.auc) else NOT_FINITE)
    if found.formats is not None:
        blind = ", ".join(f"{name} {_size(n)}" for name, n in found.formats.items())
        table.add_row("number formats blind from n =", blind)
    table.add_row("engine", f"{outcome.engine}: {outcome.evidence}")
    out.print(table)


def _margin(outcome: Outcome) -> str:
    return f"{outcome.margin:.6g}, {outcome.bits:.4g}" if math.isfinite(outcome.margin) else NOT_FINITE


def _size(n: int | None) -> str:
    if n is None:
        return "> 1e40"
    return str(n) if n < 10**6 else f"{n:.3g}"


def check(report: Report, file: Path, as_json: bool) -> None:
    """Print the checker's findings."""
    if as_json:
        print_json(
            {
                "file": str(file),
                "holds": report.holds,
                "verified": report.verified,
                "failed": report.failed,
                "statement": list(report.statement),
            }
        )
        return
    out = console()
    for line in report.failed:
        out.print(f"[red]fails[/]  {escape(line)}")
    word = "[bold green]holds[/]" if report.holds else "[bold red]does not hold[/]"
    counted = f"{report.verified} statements verified, {len(report.failed)} failed"
    out.print(f"{escape(str(file))}: certificate {word} ({counted})")
    for sentence in report.statement:
        lines = wrap(sentence, out.width - 2, break_long_words=False, break_on_hyphens=False)
        out.print("\n".join(f"  {line}" for line in lines), markup=False, soft_wrap=True)


def reproduction(result: Reproduction, as_json: bool) -> None:
    """Print where the report is, and how the ledger came out."""
    if as_json:
        print_json(result.as_json())
        return
    result.show(console())


@contextmanager
def working(quiet: bool) -> Iterator[Callable[[str], None]]:
    """A line on stderr that says what is being done."""
    with Console(stderr=True, quiet=quiet).status("starting") as status:
        yield lambda what: status.update(escape(what))


@contextmanager
def counting(quiet: bool) -> Iterator[Callable[[int, int, str], None]]:
    """A bar on stderr that says how far it is, how long it may take, and what is being done."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (BarColumn(20), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True, quiet=quiet), transient=True) as bar:
        task = bar.add_task("starting", total=None)
        yield lambda done, total, what: bar.update(
            task, completed=done, total=total, description=escape(what)
        )


def card(found: Card, as_json: bool) -> None:
    """Print a report card."""
    from separatrix.cards import Unanswered
    from separatrix.reports.verdict_words import MARKS

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
    for what, names in _by_message(contract.failed).items():
        out.print(f"  [red]broken[/] {escape(', '.join(names))}: {escape(what)}")
    titles = ("construction", "verdict", "P", "margin", "bits", "blind from")
    table = Table(*titles, box=None, pad_edge=False)
    for each in (found, *found.against):
        if found.against:
            table.add_row(f"[bold]{escape(each.mechanism.spelled)}[/]")
        for cell in each.standings:
            table.add_row(escape(cell.name), f"[{COLOURS[cell.word]}]{cell.word}[/]", *_numbers(cell))
    for column in table.columns:
        column.no_wrap = True
    if table.row_count:
        out.print(table)
        out.print(f"P is {', '.join(f'{sign} {kind}' for kind, sign in MARKS.items())}", style="dim")
    for each in (found, *found.against):
        unanswered = {cell.name: cell.why for cell in each.standings if isinstance(cell, Unanswered)}
        for what, names in _by_message(unanswered).items():
            where = "any construction" if len(names) == len(each.standings) else ", ".join(names)
            out.print(f"[red]{escape(each.mechanism.spelled)} has no answer[/] on {where}: {escape(what)}")
    _print_costs(out, [each.cost for each in (found, *found.against)], found.softmax_cost)
    out.print(escape(found.reading))


def _by_message(messages: dict[str, str]) -> dict[str, list[str]]:
    """The names that share a message, so that it is said once."""
    found: dict[str, list[str]] = {}
    for name, message in messages.items():
        found.setdefault(message, []).append(name)
    return found


def _numbers(cell: Standing | Unanswered) -> tuple[str, ...]:
    from separatrix.cards import Unanswered
    from separatrix.reports.standings import bits, blind_from, exponent
    from separatrix.reports.verdict_words import MARKS

    if isinstance(cell, Unanswered):
        return ()
    outcome = cell.verdict.outcome
    low, high = outcome.interval
    shown = f"{outcome.distinguish:.4g}" if low == high else f"{low:.2g}..{high:.2g}"
    return f"{MARKS[cell.evidence]} {shown}", exponent(cell), bits(cell.verdict), blind_from(cell)


def atlas(found: Atlas, as_json: bool) -> None:
    """Print the atlas as a table: a letter and a mark for each construction."""
    from separatrix.reports.standings import shown
    from separatrix.reports.verdict_words import LETTERS, MARKS

    if as_json:
        print_json(found.as_json())
        return
    out, columns = console(), found.constructions
    wide = max(len(region.mechanism.spelled) for region in found.regions)
    out.print(" " * wide + "".join(f"{place:3d}" for place in range(1, len(columns) + 1)))
    for family, regions in found.families.items():
        out.print(f"[dim italic]{escape(family)}[/]")
        for region in regions:
            letters = "".join(
                f"{'' if cell.p else ' '} [{COLOURS[cell.word]}]{LETTERS[cell.word]}[/]{cell.p[:1]}"
                for cell in map(shown, region.standings)
            )
            out.print(f"{escape(region.mechanism.spelled):>{wide}}{letters}", soft_wrap=True)
    out.print("; ".join(f"{place} {name}" for place, name in enumerate(columns, 1)))
    words = ", ".join(f"[{COLOURS[word]}]{letter}[/] {word}" for word, letter in LETTERS.items())
    out.print(f"{words}; P is {', '.join(f'{sign} {kind}' for kind, sign in MARKS.items())}")


def bench(found: Bench, as_json: bool) -> None:
    """Print costs, or why there are none."""
    if as_json:
        print_json(found.as_json())
        return
    _print_costs(console(), list(found.found), found.softmax)


def _print_costs(
    out: Console, found: list[CostCurve | Disagreement], softmax: CostCurve | Disagreement
) -> None:
    """The two longest lengths of each mechanism, and those that get no numbers."""
    from separatrix.costs import CostCurve, Disagreement, crossover
    from separatrix.costs.state import CACHE

    titles = ("cost", "n", "ms", "MiB", "GFLOP", "KiB kept", "beats softmax")
    table, curves = Table(*titles, box=None, pad_edge=False), [x for x in found if isinstance(x, CostCurve)]
    for curve in curves:
        start = crossover(curve, softmax)
        for cost in curve.costs[-2:]:
            last = cost is curve.costs[-1]
            table.add_row(
                escape(curve.mechanism),
                f"{cost.length:,}",
                f"{1e3 * cost.seconds:.3g}",
                f"{cost.peak_bytes / 2**20:.3g}",
                f"{cost.flops / 1e9:.3g}",
                f"{cost.state_bytes / 2**10:,.5g}{'*' if curve.state == CACHE else ''}",
                "" if not last else "–" if start is None else f"from {start:,}",
            )
    if curves:
        out.print(table)
        if any(curve.state == CACHE for curve in curves):
            out.print(f"* {CACHE}; else the state, measured", style="dim")
    for each in found:
        if isinstance(each, Disagreement):
            out.print(f"[red]{escape(each.mechanism)} gets no numbers[/]: {escape(each.what)}")


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
