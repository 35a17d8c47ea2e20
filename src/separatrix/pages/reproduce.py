"""The reproduction of the paper: ledger, sweeps, figures, report."""

from __future__ import annotations

import time
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
FIGURES = ("proofs", "sweeps", "phase", "attention", "margin", "hoeffding", "line")
"""Modules of the figures and attributes of their data, in the order of the report; the first has no number."""


def reproduce(out: Path, quiet: bool, effort: Effort = FULL, run_claims: RunClaims = ledger) -> Reproduction:
    """Run everything and write the report into `out`, whole or not at all."""
    start = time.perf_counter()
    with Folder(out) as folder, _progress(quiet) as progress:
        data = compute(folder.place / STORE, progress, effort, run_claims)
        paper_figures = [
            getattr(figures, name).make_figure(getattr(data, name))
            for name in progress.track(FIGURES, description="figures")
        ]
        files = {**_report(data, paper_figures), **_pictures(paper_figures)}
        folder.fill(files)
    return Reproduction(out, data.ledger, (*files, STORE), round(time.perf_counter() - start, 1))


def _report(data: ReproductionData, paper_figures: list[PaperFigure]) -> dict[str, bytes]:
    """Return the page and the tables by their paths."""
    with paper_style():
        images = {figure.name: save_small_png(figure.draw()) for figure in paper_figures}
    return {
        "report.html": reproduction_page.page(data, paper_figures, images).encode(),
        "ledger.json": json_file(data.ledger.as_json()),
        "separations.json": json_file([row.as_json() for row in find_separations(data.answers)]),
        "scaling.json": json_file([row.as_json() for row in data.growth]),
        **data.proofs.files,
        **{f"sweeps/{sweep.parameter}.csv": sweep.as_csv().encode() for sweep in data.sweeps},
    }


def _pictures(paper_figures: list[PaperFigure]) -> dict[str, bytes]:
    """Return the figures as image files by their paths."""
    with paper_style():
        return {
            f"figures/{figure.name}.{kind}": save_figure(drawing, kind)
            for figure in paper_figures
            for drawing in [figure.draw()]
            for kind in ("png", "pdf", "svg")
        }


def _progress(quiet: bool) -> Progress:
    columns = TextColumn("{task.description:<34}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    return Progress(*columns, console=Console(stderr=True), disable=quiet, transient=True)
