"""`claim`: one statement of the ledger, checked."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from separatrix.cli import completion
from separatrix.cli.options import AsJson
from separatrix.cli.progress import working
from separatrix.cli.terminal import console, escape, new_table, show
from separatrix.core.numbers.spelling import for_people, powers_for_people

if TYPE_CHECKING:
    from rich.console import Console

    from separatrix.claims import Entry, Point

COLOURS = {"holds": "green", "holds only where": "yellow", "fails": "bold red"}
TAGS = {
    "paper": "stated in the paper's summary",
    "rec": "reconstructed from the summary or from another paper",
    "ours": "a result of this project",
}
MOST_POINTS, MOST_WIDE, GAP = 20, 6, 2
"""So many points are shown as a table, and so many where each takes several lines."""


def claim(
    name: Annotated[
        str,
        typer.Argument(
            help="Its name in the ledger, for example theorem (`list claims`).",
            autocompletion=completion.claims,
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Check one statement of the ledger, and show what was computed.

    The exit code is 1 where it fails. `reproduce` checks all of them.

    Example: separatrix claim theorem
    """
    from separatrix.claims import ClaimStatus, checked, claim_named

    asked = claim_named(name)
    with working(as_json) as tell:
        tell(f"{asked.name}: {asked.statement[:60]}")
        found = checked(asked)
    show(found, as_json, lambda: _view(found))
    raise typer.Exit(1 if found.finding.status is ClaimStatus.FAILS else 0)


def _view(found: Entry) -> None:
    """Print the statement, how it came out, and the points that were tried, those that fail first."""
    out, asked, finding = console(), found.claim, found.finding
    status = finding.status.value
    out.print(f"[bold]{escape(asked.name)}[/], section {asked.place} of docs/theory.md")
    out.print(f"[{asked.provenance}] {TAGS[asked.provenance]}", style="dim", markup=False)
    out.print(asked.statement, markup=False)
    where = f" {escape(finding.where)}" if finding.where else ""
    out.print(f"[{COLOURS[status]}]{status}[/]{where}")
    out.print(powers_for_people(finding.summary), markup=False)
    out.print(f"slack: {powers_for_people(finding.slack)}", markup=False)
    held = sum(point.holds for point in finding.points)
    out.print(
        f"holds at {held} of {len(finding.points)} points tried, in {found.seconds:.1f} s", markup=False
    )
    for alike in _groups(finding.points):
        _points(out, sorted(alike, key=lambda point: point.holds))


def _groups(points: Sequence[Point]) -> list[list[Point]]:
    """Points of the same parameters, of which the same was measured."""
    found: dict[tuple[str, ...], list[Point]] = {}
    for point in points:
        found.setdefault((*point.parameters, *point.measured), []).append(point)
    return list(found.values())


def _points(out: Console, points: Sequence[Point]) -> None:
    """What is the same at all points, and a table of the rest, turned round where it is too wide."""
    from rich.padding import Padding

    same = {
        name: value
        for name, value in points[0].parameters.items()
        if len(points) > 1 and all(point.parameters[name] == value for point in points)
    }
    if same:
        out.print(f"at {' '.join(f'{name}={value}' for name, value in same.items())}", markup=False)
    shown = points[:MOST_POINTS]
    rows = [{**_given(point, same), **_measured(point)} for point in shown]
    if any(not point.holds for point in shown):
        rows = [{"": "" if point.holds else "FAILS", **row} for point, row in zip(shown, rows, strict=True)]
    lines = [list(rows[0]), *(list(row.values()) for row in rows)]
    wide = sum(max(len(line[i]) for line in lines) + GAP for i in range(len(lines[0])))
    if wide <= out.width:
        table = new_table(*map(escape, lines[0]), gap=GAP)
        for line in lines[1:]:
            table.add_row(*map(escape, line))
        out.print(table)
    else:
        shown = points[:MOST_WIDE]
        for point in shown:
            where = " ".join(f"{name}={value}" for name, value in _given(point, same).items())
            out.print(f"{where or 'there'}{'' if point.holds else ': FAILS'}", markup=False)
            measured = ", ".join(f"{name} {value}" for name, value in _measured(point).items())
            out.print(Padding(escape(measured), (0, 0, 0, 4)))
    if len(points) > len(shown):
        out.print(f"and {len(points) - len(shown)} more points; --json has them all", markup=False)


def _given(point: Point, same: Container[str]) -> dict[str, str]:
    """The parameters that differ between points."""
    return {name: str(value) for name, value in point.parameters.items() if name not in same}


def _measured(point: Point) -> dict[str, str]:
    """What was measured, in words and numbers for people."""
    return {
        name.replace("_", " ").replace("distinguish", "P(tells apart)"): for_people(value, 4)
        if isinstance(value, float)
        else str(value)
        for name, value in point.measured.items()
    }
