"""The training runs of a sweep: how they ended, by what was asked, and their validation scores by step."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any

import polars as pl
from sqlalchemy import select

from separatrix.pages import pages
from separatrix.pages.drawing import Key, draw_line, looks, plot
from separatrix.pages.pages import short
from separatrix.sweeps.store import Store, StoreError, select_cells
from separatrix.sweeps.store.export import write
from separatrix.sweeps.store.files import CURVES, read_curves
from separatrix.sweeps.store.filters import read_filter
from separatrix.sweeps.store.schema import FLOOR, TRAINING, cells, files

if TYPE_CHECKING:
    import plotly.graph_objects as go

HEAD = (
    *("Task", "Mechanism", "Rate", "Start", "Runs", "Solved", "Diverged", "Failed"),
    *("Validation", "Test", "Floor", "Steps"),
)
ASKED = ("about", "mechanism", "rate", "start", "purpose")
MOST_ROWS, MOST_PLOTS, MOST_LINES, MOST_MESSAGES = 200, 6, 60, 20


@dataclass(frozen=True)
class TrainedRuns:
    """The runs of a sweep, each with what it is about."""

    store: Store
    rows: pl.DataFrame
    csv: bytes = b""
    """The runs as a table."""
    floors: tuple[tuple[Mapping[str, str], float], ...] = ()
    """What shortcuts score, with the task and its parameters."""

    def floor(self, row: Mapping[str, Any]) -> float | None:
        """What a shortcut scores on the test samples of a run, where that is stored."""
        asked = json.loads(row["parameters"])
        return next((score for given, score in self.floors if given.items() <= asked.items()), None)

    @property
    def counts(self) -> dict[str, int]:
        """How many runs, by how they ended."""
        return dict(self.rows.group_by("status", maintain_order=True).len().iter_rows())

    @property
    def seconds(self) -> float:
        """The computing time of all runs."""
        return float(self.rows["seconds"].sum())


def trained_runs(store: Store, sweep: int | None) -> TrainedRuns:
    """The training runs of a sweep, or of the store."""
    found, table = pl.DataFrame(), BytesIO()
    if store.select(select(cells.c.id).where(cells.c.kind == TRAINING).limit(1)):
        with select_cells(store, read_filter({}, TRAINING), sweep) as chosen:
            found = pl.concat(chosen.frames())
            write(chosen, ".csv", table)
    if found.is_empty():
        return TrainedRuns(store, pl.DataFrame(schema={"status": pl.String, "seconds": pl.Float64}))
    found = found.unique("id", maintain_order=True)
    for name in (*ASKED[1:], "seed", "score", "validation_score", "last_step", "outcome"):
        if name not in found.columns:
            found = found.with_columns(pl.lit(None).alias(name))
    about = pl.Series("about", _about(found["parameters"].to_list()))
    return TrainedRuns(store, found.with_columns(about), table.getvalue(), _floors(store))


def _floors(store: Store) -> tuple[tuple[Mapping[str, str], float], ...]:
    with select_cells(store, read_filter({}, FLOOR)) as chosen:
        rows = [row for frame in chosen.frames() for row in frame.iter_rows(named=True)]
    done = [row for row in rows if row["status"] == "done"]
    return tuple((json.loads(row["parameters"]), float(row["floor"])) for row in done)


def section(runs: TrainedRuns) -> pages.Section | None:
    """A row for each thing that was asked, over its seeds, and plots of the curves; None without runs."""
    if runs.rows.is_empty():
        return None
    groups = runs.rows.group_by(*ASKED, maintain_order=True)
    rows = [_row(dict(zip(ASKED, asked, strict=True)), own, runs) for asked, own in groups]
    keys = looks(runs.rows["mechanism"].unique(maintain_order=True))
    plots = list(_plots(runs, keys))
    told = runs.rows.filter(pl.col("status") != "done")["message"].drop_nulls().unique(maintain_order=True)
    shown = [keys[name] for name in runs.rows["mechanism"].unique(maintain_order=True)]
    return pages.section(
        "training",
        "Training runs",
        "sweep_training.html.j2",
        head=HEAD,
        rows=rows[:MOST_ROWS],
        left=len(rows) - MOST_ROWS,
        messages=told.head(MOST_MESSAGES).to_list(),
        plots=plots,
        keys=shown if plots else [],
    )


def _about(parameters: Sequence[str]) -> list[str]:
    """The task of each run, with those of its parameters and settings that differ among the runs."""
    read = [json.loads(parameter) for parameter in parameters]
    names = dict.fromkeys(name for each in read for name in each)
    others = [name for name in names if name not in ("task", *ASKED, "tests")]
    differ = [name for name in others if len({each.get(name) for each in read}) > 1]
    return [
        " ".join([str(each.get("task")), *(f"{name}={each[name]}" for name in differ if name in each)])
        for each in read
    ]


def _row(asked: dict[str, Any], own: pl.DataFrame, runs: TrainedRuns) -> tuple[str, ...]:
    ended, floor = own["outcome"].to_list(), runs.floor(own.row(0, named=True))
    steps = own["last_step"].cast(pl.Float64).median()
    return (
        short(asked["about"], 200),
        short(asked["mechanism"], 80),
        short(str(asked["rate"]), 40),
        short(str(asked["start"]), 40),
        f"{own.height:,}",
        f"{ended.count('solved'):,}",
        f"{ended.count('diverged'):,}",
        f"{(own['status'] != 'done').sum():,}",
        _spread(own["validation_score"]),
        _spread(own["score"]),
        "–" if floor is None else f"{floor:.4f}",
        f"{steps:g}" if isinstance(steps, float) else "–",
    )


def _spread(scores: pl.Series) -> str:
    """The mean, and the least and the largest of several."""
    known = [float(score) for score in scores.drop_nulls()]
    if not known:
        return "–"
    mean = f"{sum(known) / len(known):.4f}"
    return mean if len(known) == 1 else f"{mean} ({min(known):.4f} to {max(known):.4f})"


def _plots(runs: TrainedRuns, keys: dict[str, Key]) -> Iterator[tuple[str, go.Figure]]:
    """The first runs of the first tasks, a line for each."""
    kept = {cell for (cell,) in runs.store.select(select(files.c.cell).where(files.c.name == CURVES))}
    drawn = runs.rows.filter(pl.col("id").is_in(list(kept)))
    for (about,), own in list(drawn.group_by("about", maintain_order=True))[:MOST_PLOTS]:
        figure = plot("steps", "score on validation samples")
        for row in own.head(MOST_LINES).iter_rows(named=True):
            try:
                curve = read_curves(runs.store, row["id"]).filter(name="validation")
            except StoreError:  # `store check` says which files are damaged
                continue
            hover = short(f"{row['mechanism']}, rate {row['rate']}, seed {row['seed']}", 120)
            draw_line(
                *(figure, curve["step"].to_list(), curve["value"].to_list(), keys[row["mechanism"]]),
                hover=hover.replace("%", "") + ": %{y:.4f} after %{x} steps",
                width=1.6,
            )
        yield str(about), figure
