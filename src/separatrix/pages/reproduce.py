"""The reproduction of the paper: ledger, sweeps, figures, report."""

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
from separatrix.pages.figures._base import PaperFigure
from separatrix.pages.paper import paper_style, save_figure, save_small_png

STORE = "results.db"
"""The file of the sweeps' cells."""


def reproduce(out: Path, quiet: bool, effort: Effort = FULL, run_claims: RunClaims = ledger) -> Reproduction:
    """Run everything and write the report into `out`, whole or not at all."""
    start = time.perf_counter()
    with Folder(out) as folder, _progress(quiet) as progress:
        computed = compute(folder.place / STORE, progress, effort, run_claims)
        makers: tuple[Callable[[], PaperFigure], ...] = (
            lambda: figures.sweeps.make_figure(computed.sweeps),
            lambda: figures.phase.make_figure(computed.phase),
            lambda: figures.attention.make_figure(computed.attention),
            lambda: figures.margin.make_figure(computed.margin),
            lambda: figures.hoeffding.make_figure(computed.hoeffding),
            lambda: figures.line.make_figure(computed.line),
        )
        made = [make() for make in progress.track(makers, description="figures")]
        files = {**_report(computed, made), **_pictures(made)}
        folder.fill(files)
    return Reproduction(out, computed.ledger, (*files, STORE), round(time.perf_counter() - start, 1))


def _report(computed: ReproductionData, made: list[PaperFigure]) -> dict[str, bytes]:
    """Return the page and the tables by their paths."""
    with paper_style():
        images = {figure.name: save_small_png(figure.draw()) for figure in made}
    return {
        "report.html": reproduction_page.page(computed, made, images).encode(),
        "ledger.json": json_file(computed.ledger.as_json()),
        "separations.json": json_file([row.as_json() for row in find_separations(computed.answers)]),
        "scaling.json": json_file([row.as_json() for row in computed.growth]),
        **{f"sweeps/{sweep.parameter}.csv": sweep.as_csv().encode() for sweep in computed.sweeps},
    }


def _pictures(made: list[PaperFigure]) -> dict[str, bytes]:
    """Return the figures as image files by their paths."""
    with paper_style():
        return {
            f"figures/{figure.name}.{kind}": save_figure(drawing, kind)
            for figure in made
            for drawing in [figure.draw()]
            for kind in ("png", "pdf", "svg")
        }


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
