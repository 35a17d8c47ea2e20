"""The whole reproduction: ledger, sweeps, figures, report."""

from __future__ import annotations

import io
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from separatrix.claims import CLAIMS, Claim, Ledger, ledger
from separatrix.engines.threads import one_thread
from separatrix.laws.scaling_result import Row
from separatrix.mechanisms import MECHANISMS as ZOO
from separatrix.numbers.json import json_text
from separatrix.reports import figures, growth, line, page, separations, separations_page, sweeps
from separatrix.reports.drawing import Drawn, static_style
from separatrix.reports.effort import FULL, Effort
from separatrix.reports.folder import Folder
from separatrix.reports.points import BASE, MECHANISMS, outcome_at

Examine = Callable[[Callable[[Claim], None]], Ledger]
"""What runs the claims, telling of each before it runs."""
FAR = 10**18


@dataclass(frozen=True)
class Reproduction:
    """What was made, where it is, and whether every claim held."""

    out: Path
    ledger: Ledger
    files: tuple[str, ...]
    seconds: float

    @property
    def holds(self) -> bool:
        """Whether no claim fails."""
        return self.ledger.holds

    def as_json(self) -> dict[str, Any]:
        """What `separatrix reproduce --json` prints."""
        return {
            "out": str(self.out),
            "report": str(self.out / "report.html"),
            "holds": self.holds,
            "claims": dict(Counter(entry.finding.status.value for entry in self.ledger.entries)),
            "files": list(self.files),
            "seconds": round(self.seconds, 1),
        }

    def show(self, console: Console) -> None:
        """The ledger as a table, and where to look next."""
        from separatrix.claims import table

        table.show(self.ledger, console)
        console.print(f"\nreport: {self.out / 'report.html'}", soft_wrap=True, markup=False)
        console.print(f"{len(self.files)} files in {self.seconds:.0f} s", markup=False)


def reproduce(out: Path, quiet: bool, effort: Effort = FULL, examine: Examine = ledger) -> Reproduction:
    """Run everything and write the report into `out`, whole or not at all."""
    start = time.perf_counter()
    with Folder(out) as folder, _progress(quiet) as progress:
        with one_thread():
            found = _run_claims(progress, examine)
            grown, answered = _run_growth(progress), _run_separations(progress)
        swept = _run_sweeps(progress, effort)
        drawn, images = _draw(progress, effort, swept)
        files = {
            "report.html": page.render(
                found, drawn, images, _facts(), (separations_page.section(answered), growth.section(grown))
            ).encode(),
            "ledger.json": _json(found.as_json()),
            "separations.json": _json(separations.as_json(separations.separated(answered))),
            "scaling.json": _json([row.as_json() for row in grown]),
            **{f"sweeps/{sweep.parameter}.csv": sweep.as_csv().encode() for sweep in swept},
            **{f"figures/{each.name}.png": images[each.name] for each in drawn},
            **{f"figures/{each.name}.pdf": _saved(each, "pdf") for each in drawn},
        }
        folder.fill(files)
    return Reproduction(out, found, tuple(files), time.perf_counter() - start)


def _progress(quiet: bool) -> Progress:
    return Progress(
        TextColumn("{task.description:<34}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        disable=quiet,
        transient=True,
    )


def _run_claims(progress: Progress, examine: Examine) -> Ledger:
    task = progress.add_task("claims", total=len(CLAIMS))
    begun = count()

    def tell(claim: Claim) -> None:
        progress.update(task, completed=next(begun), description=f"claim {claim.name}"[:34])

    found = examine(tell)
    progress.update(task, completed=len(CLAIMS), description="claims")
    return found


def _run_sweeps(progress: Progress, effort: Effort) -> tuple[sweeps.Sweep, ...]:
    plans = sweeps.plans(effort)
    task = progress.add_task("sweeps", total=len(MECHANISMS) * sum(len(plan.sampled) for plan in plans))
    return sweeps.run(plans, effort, lambda: progress.advance(task))


def _run_growth(progress: Progress) -> list[Row]:
    task = progress.add_task("scaling", total=len(ZOO))
    found = growth.compute(lambda _: progress.advance(task))
    progress.update(task, completed=len(ZOO))
    return found


def _run_separations(progress: Progress) -> list[separations.Answer]:
    task = progress.add_task("who beats whom", total=None)
    found = separations.answers(tell=lambda name: progress.update(task, description=f"beats: {name}"[:34]))
    progress.update(task, total=1, completed=1, description="who beats whom")
    return found


def _json(value: Any) -> bytes:
    return (json_text(value, indent=1) + "\n").encode()


def _draw(
    progress: Progress, effort: Effort, swept: tuple[sweeps.Sweep, ...]
) -> tuple[tuple[Drawn, ...], dict[str, bytes]]:
    """Every figure, and its picture as PNG."""
    makers: tuple[Callable[[], Drawn], ...] = (
        lambda: figures.sweeps.make(swept),
        lambda: figures.phase.make(effort),
        lambda: figures.attention.make(),
        lambda: figures.margin.make(effort),
        lambda: figures.hoeffding.make(effort),
        lambda: line.make(effort),
    )
    drawn, images = [], {}
    with static_style():
        for make in progress.track(makers, description="figures"):
            drawn.append(make())
            images[drawn[-1].name] = _saved(drawn[-1], "png")
    return tuple(drawn), images


def _saved(drawn: Drawn, kind: str) -> bytes:
    """The picture without a date in it, so that the same run gives the same file."""
    buffer = io.BytesIO()
    undated = {"CreationDate": None} if kind == "pdf" else {"Software": None}
    with static_style():
        drawn.static.savefig(buffer, format=kind, metadata=undated)
    return buffer.getvalue()


def _facts() -> page.Facts:
    near = {name: outcome_at(name, BASE) for name in MECHANISMS}
    far = {name: outcome_at(name, {**BASE, "n": FAR}) for name in MECHANISMS}
    return page.Facts(
        distinguish={name: outcome.distinguish for name, outcome in near.items()},
        margin={name: outcome.margin for name, outcome in near.items()},
        far=FAR,
        far_margin={name: outcome.margin for name, outcome in far.items()},
    )
