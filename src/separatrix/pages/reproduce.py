"""The whole reproduction: ledger, sweeps, figures, report."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from separatrix.claims import ledger
from separatrix.claims.paper import Reproduction
from separatrix.claims.paper.reproduction import FULL, Effort, ReproductionData, RunClaims, compute
from separatrix.claims.paper.separations import find_separations
from separatrix.core.files.folder import Folder
from separatrix.core.numbers.json import json_file
from separatrix.pages import figures, reproduction_page
from separatrix.pages.drawing import Drawn, saved, static_style

STORE = "results.db"
"""The cells of the sweeps."""


def reproduce(out: Path, quiet: bool, effort: Effort = FULL, run_claims: RunClaims = ledger) -> Reproduction:
    """Run everything and write the report into `out`, whole or not at all."""
    start = time.perf_counter()
    with Folder(out) as folder, _progress(quiet) as progress:
        found = compute(folder.place / STORE, progress, effort, run_claims)
        drawn, images = _draw(progress, found)
        files = {
            "report.html": reproduction_page.render(found, drawn, images).encode(),
            "ledger.json": json_file(found.ledger.as_json()),
            "separations.json": json_file([row.as_json() for row in find_separations(found.answers)]),
            "scaling.json": json_file([row.as_json() for row in found.growth]),
            **{f"sweeps/{sweep.parameter}.csv": sweep.as_csv().encode() for sweep in found.sweeps},
            **{f"figures/{each.name}.png": images[each.name] for each in drawn},
            **{f"figures/{each.name}.pdf": saved(each.static, "pdf") for each in drawn},
            **{f"figures/{each.name}.svg": saved(each.static, "svg") for each in drawn},
        }
        folder.fill(files)
    return Reproduction(out, found.ledger, (*files, STORE), round(time.perf_counter() - start, 1))


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


def _draw(progress: Progress, found: ReproductionData) -> tuple[tuple[Drawn, ...], dict[str, bytes]]:
    """Every figure, and its picture as PNG."""
    makers: tuple[Callable[[], Drawn], ...] = (
        lambda: figures.sweeps.make(found.sweeps),
        lambda: figures.phase.make(found.phase),
        lambda: figures.attention.make(found.attention),
        lambda: figures.margin.make(found.margin),
        lambda: figures.hoeffding.make(found.hoeffding),
        lambda: figures.line.make(found.line),
    )
    drawn, images = [], {}
    with static_style():
        for make in progress.track(makers, description="figures"):
            drawn.append(make())
            images[drawn[-1].name] = saved(drawn[-1].static, "png")
    return tuple(drawn), images
