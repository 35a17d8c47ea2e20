"""The training runs of a sweep: their outcomes, and their validation scores by step."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from typing import Any

import polars as pl
from sqlalchemy import select

from separatrix.pages.charts import Chart, ChartAxis, Series
from separatrix.pages.looks import Look, choose_looks
from separatrix.pages.pages import Section, render_section, shorten_text
from separatrix.sweeps.store import Store, StoreError, select_cells
from separatrix.sweeps.store.export import write
from separatrix.sweeps.store.files import CURVES, read_curves
from separatrix.sweeps.store.filters import read_filter
from separatrix.sweeps.store.schema import FLOOR, TRAINING, cells, files

HEAD = (
    *("Task", "Mechanism", "Rate", "Start", "Runs", "Solved", "Diverged", "Failed"),
    *("Validation", "Test", "Floor", "Steps"),
)
GROUP_KEYS = ("about", "mechanism", "rate", "start", "purpose")
MAX_ROWS, MAX_CHARTS, MAX_LINES, MAX_MESSAGES = 200, 6, 60, 20


@dataclass(frozen=True)
class TrainedRuns:
    """The runs of a sweep, each with its task and the parameters that differ among the runs."""

    store: Store
    rows: pl.DataFrame
    csv: bytes = b""
    """The runs as a table."""
    floors: tuple[tuple[Mapping[str, str], float], ...] = ()
    """The scores of shortcuts, with the task and its parameters."""

    def floor(self, row: Mapping[str, Any]) -> float | None:
        """Return the score of a shortcut on the test samples of a run, where it is stored."""
        parameters = json.loads(row["parameters"])
        return next((score for task, score in self.floors if task.items() <= parameters.items()), None)

    @property
    def counts(self) -> dict[str, int]:
        """The number of runs by status."""
        return dict(self.rows.group_by("status", maintain_order=True).len().iter_rows())

    @property
    def seconds(self) -> float:
        """The computing time of all runs."""
        return float(self.rows["seconds"].sum())


def read_runs(store: Store, sweep: int | None) -> TrainedRuns:
    """Return the training runs of a sweep, or of the store."""
    runs, table = pl.DataFrame(), BytesIO()
    if store.select(select(cells.c.id).where(cells.c.kind == TRAINING).limit(1)):
        with select_cells(store, read_filter({}, TRAINING), sweep) as selection:
            runs = pl.concat(selection.frames())
            write(selection, ".csv", table)
    if runs.is_empty():
        return TrainedRuns(store, pl.DataFrame(schema={"status": pl.String, "seconds": pl.Float64}))
    # A run that several parts of a plan name is in the selection several times.
    runs = runs.unique("id", maintain_order=True)
    for name in (*GROUP_KEYS[1:], "seed", "score", "validation_score", "last_step", "outcome"):
        if name not in runs.columns:
            runs = runs.with_columns(pl.lit(None).alias(name))
    about = pl.Series("about", _describe_tasks(runs["parameters"].to_list()))
    return TrainedRuns(store, runs.with_columns(about), table.getvalue(), _read_floors(store))


def _read_floors(store: Store) -> tuple[tuple[Mapping[str, str], float], ...]:
    with select_cells(store, read_filter({}, FLOOR)) as selection:
        rows = [row for frame in selection.frames() for row in frame.iter_rows(named=True)]
    finished_rows = [row for row in rows if row["status"] == "done"]
    return tuple((json.loads(row["parameters"]), float(row["floor"])) for row in finished_rows)


def training_section(runs: TrainedRuns) -> Section | None:
    """Return a row for each question over its seeds, and charts of the curves; None without runs."""
    if runs.rows.is_empty():
        return None
    groups = runs.rows.group_by(*GROUP_KEYS, maintain_order=True)
    rows = [_row(dict(zip(GROUP_KEYS, keys, strict=True)), members, runs) for keys, members in groups]
    names = runs.rows["mechanism"].unique(maintain_order=True)
    looks = {name: replace(look, symbol="", width=1.6) for name, look in choose_looks(names).items()}
    charts = list(_charts(runs, looks))
    messages = runs.rows.filter(pl.col("status") != "done")["message"].drop_nulls()
    return render_section(
        "training",
        "Training runs",
        "sweep_training.html.j2",
        head=HEAD,
        rows=rows[:MAX_ROWS],
        left=len(rows) - MAX_ROWS,
        messages=messages.unique(maintain_order=True).head(MAX_MESSAGES).to_list(),
        charts=charts,
        keys=[looks[name] for name in names] if charts else [],
    )


def _describe_tasks(parameters: Sequence[str]) -> list[str]:
    """Return the task of each run, with the parameters and settings that differ among the runs."""
    runs = [json.loads(text) for text in parameters]
    names = dict.fromkeys(name for run in runs for name in run)
    other_names = [name for name in names if name not in ("task", *GROUP_KEYS, "tests")]
    differing = [name for name in other_names if len({run.get(name) for run in runs}) > 1]
    words = [[f"{name}={run[name]}" for name in differing if name in run] for run in runs]
    return [" ".join([str(run.get("task")), *own_words]) for run, own_words in zip(runs, words, strict=True)]


def _row(keys: dict[str, Any], members: pl.DataFrame, runs: TrainedRuns) -> tuple[str, ...]:
    outcomes, floor = members["outcome"].to_list(), runs.floor(members.row(0, named=True))
    steps = members["last_step"].cast(pl.Float64).median()
    lengths = {"about": 200, "mechanism": 80, "rate": 40, "start": 40}
    failed_count = (members["status"] != "done").sum()
    counts = members.height, outcomes.count("solved"), outcomes.count("diverged"), failed_count
    return (
        *(shorten_text(str(keys[name]), most) for name, most in lengths.items()),
        *(f"{count:,}" for count in counts),
        *(_describe_scores(members[name]) for name in ("validation_score", "score")),
        "–" if floor is None else f"{floor:.4f}",
        f"{steps:g}" if isinstance(steps, float) else "–",
    )


def _describe_scores(scores: pl.Series) -> str:
    """Return the mean, and the least and the largest of several."""
    values = [float(score) for score in scores.drop_nulls()]
    if not values:
        return "–"
    mean = f"{sum(values) / len(values):.4f}"
    return mean if len(values) == 1 else f"{mean} ({min(values):.4f} to {max(values):.4f})"


def _charts(runs: TrainedRuns, looks: Mapping[str, Look]) -> Iterator[tuple[str, Chart]]:
    """Yield the first tasks with a line for each of their first runs."""
    with_curves = {cell for (cell,) in runs.store.select(select(files.c.cell).where(files.c.name == CURVES))}
    rows = runs.rows.filter(pl.col("id").is_in(list(with_curves)))
    for (about,), members in list(rows.group_by("about", maintain_order=True))[:MAX_CHARTS]:
        series = []
        for row in members.head(MAX_LINES).iter_rows(named=True):
            try:
                curve = read_curves(runs.store, row["id"]).filter(name="validation")
            except StoreError:  # `store check` reports damaged files
                continue
            name = shorten_text(f"{row['mechanism']}, rate {row['rate']}, seed {row['seed']}", 120)
            series.append(Series(looks[row["mechanism"]], curve["step"].to_list(), curve["value"].to_list(), name))
        yield str(about), Chart(ChartAxis("steps"), ChartAxis("score on validation samples"), series)
