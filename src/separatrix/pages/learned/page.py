"""Trained evidence as a static page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from separatrix.analysis.evidence.estimates import SeedSummary, describe_resolution
from separatrix.analysis.evidence.predictions import Prediction
from separatrix.analysis.evidence.training_result import EqualState, MechanismEvidence, ReportPart, TrainingResult
from separatrix.core.files.writing import write_whole
from separatrix.core.numbers.json import json_file
from separatrix.pages.charts import Chart, merge_keys
from separatrix.pages.learned import charts, markdown
from separatrix.pages.learned.pictures import charts_png, floors_png, scores_png
from separatrix.pages.learned.texts import (
    HEAD,
    difference_text,
    equal_state_head,
    equal_state_rows,
    evidence_row,
    score_text,
    seeds_text,
    summary_text,
)
from separatrix.pages.looks import Look
from separatrix.pages.pages import Section, render_page, render_section

SUFFIXES = (".html", ".json", ".md", ".png")


@dataclass(frozen=True)
class PageFigure:
    """Charts with one legend, their picture for printing, and a caption."""

    identity: str
    charts: tuple[Chart, ...]
    caption: str

    @property
    def png(self) -> bytes:
        """The picture."""
        return charts_png(*self.charts)

    @property
    def keys(self) -> tuple[Look, ...]:
        """The legend."""
        return merge_keys(self.charts)


def page(title: str, parts: Sequence[ReportPart], command: str, more: Sequence[Section] = ()) -> str:
    """Return the page; `command` makes it, `more` are sections after the experiments."""
    palette = charts.choose_palette(parts)
    return render_page(
        "learned.html.j2",
        ("chart", "bars") if parts else (),
        title=title,
        command=command,
        sections=[*(_section(part, palette) for part in parts), *more],
    )


def _section(part: ReportPart, palette: charts.Palette) -> Section:
    """Return the section of a question: figures over all experiments first, then each experiment."""
    figures, results = [], part.results
    is_comparable = len(results) > 1 and len({result.task.metric for result in results}) == 1
    if is_comparable and part.varied is not None:
        caption = f"Scores against {part.varied}: every seed, the medians joined, with both ceilings."
        figures.append(PageFigure(f"{part.name}-against", (charts.against_parameter(part, palette),), caption))
    elif is_comparable:
        caption = "Medians over seeds with 95 % intervals, side by side."
        figures.append(PageFigure(f"{part.name}-overview", (charts.overview(part, palette),), caption))
    widths = {result.setting.key_width for result in results}
    if is_comparable and all(result.task.name == "mqar" for result in results) and len(widths) > 1:
        caption = "The same at equal state: points above each other carry as many bytes for each pair."
        figures.append(PageFigure(f"{part.name}-states", (charts.against_state(part, palette),), caption))
    about = part.is_about_rates
    experiments = [_experiment(f"{part.name}-{i}", result, palette, about) for i, result in enumerate(results)]
    variables: dict[str, Any] = {"part": part, "experiments": experiments, "figures": figures, "summary": summary_text}
    return render_section(part.name, part.title, "learned_part.html.j2", **variables)


def _experiment(identity: str, result: TrainingResult, palette: charts.Palette, about_rates: bool) -> dict[str, Any]:
    """Return the variables of the template for an experiment."""
    mechanisms = ",".join(evidence.mechanism for evidence in result.mechanisms)
    task, *words = result.label.split()
    curves = charts.learning_curves(result, palette)
    curve_caption = "; ".join((result.label, "validation score against the step, a line for each seed"))
    rate_caption = f"{result.label}: validation score by learning rate, and steps until solved"
    return {
        "identity": identity,
        "result": result,
        "command": " ".join(("separatrix learn", task, mechanisms, *words, f"rates={result.setting.rates}")),
        "head": HEAD,
        "rows": [evidence_row(evidence) for evidence in result.mechanisms],
        "bars": None if about_rates else charts.ScoreBars(result, palette),
        "bars_png": b"" if about_rates else scores_png(result, palette),
        "curves": None if curves is None else PageFigure(f"{identity}-curves", (curves,), curve_caption),
        "rates": PageFigure(f"{identity}-rates", charts.learning_rates(result, palette), rate_caption),
        "windows": [_describe_rates(evidence) for evidence in result.mechanisms],
        "tuned": [line for evidence in result.mechanisms for line in _describe_tuned(evidence)],
        "seeds": [seeds_text(evidence.trained) for evidence in result.mechanisms],
        "paired": [difference_text(pair) for pair in result.paired],
        "resolution": describe_resolution(result.paired),
        "equal": None if result.equal_state is None else _equal_state(result.equal_state),
    }


def _describe_rates(evidence: MechanismEvidence) -> str:
    scores = ", ".join(f"{float(rate):g} {score_text(score)}" for rate, score in evidence.pilots.items())
    window = ", ".join(f"{float(rate):g}" for rate in evidence.lr_window)
    choice = f"as good as the best: {window}; chosen: {float(evidence.lr):g}"
    return f"validation score by learning rate: {scores}; {choice}"


def _describe_tuned(evidence: MechanismEvidence) -> list[str]:
    """Return a comparison of runs from a witness and from scratch, where there are several of both."""
    if len(evidence.tuned_seeds) < 2 or evidence.trained is None:
        return []
    tuned_summary = summary_text(SeedSummary(evidence.tuned_seeds))
    from_witness = f"{len(evidence.tuned_seeds)} runs from the witness with noise end at {tuned_summary}"
    from_scratch = f"{len(evidence.runs)} from scratch at {summary_text(evidence.trained)}"
    return [f"{evidence.mechanism}: {from_witness}, {from_scratch}"]


def _equal_state(result: EqualState) -> dict[str, Any]:
    return {
        "result": result,
        "head": equal_state_head(result),
        "rows": equal_state_rows(result),
        "paired": [difference_text(pair) for pair in result.paired],
    }


def predictions_section(predictions: Sequence[Prediction]) -> list[Section]:
    """Return the predictions without training beside the scores of training, if there are any."""
    if not predictions:
        return []
    rows = [
        (prediction.name, prediction.what, str(len(prediction.pairs)), _correlation(prediction))
        for prediction in predictions
    ]
    misses = [(prediction.name, line) for prediction in predictions for line in prediction.misses]
    pairs = [
        (prediction.name, pair.task, pair.mechanism, f"{pair.predicted:.4g}", f"{abs(pair.trained):.4f}")
        for prediction in predictions
        for pair in prediction.pairs
    ]
    title, template = "Predictions without training", "learned_ledger.html.j2"
    return [render_section("predictions", title, template, rows=rows, misses=misses, pairs=pairs)]


def _correlation(prediction: Prediction) -> str:
    if prediction.correlation is None:
        return "too few, or all alike"
    if prediction.interval is None:
        return f"{prediction.correlation:.2f}, ranks all equal: no interval"
    low, high = prediction.interval
    return f"{prediction.correlation:.2f} [{low:.2f}, {high:.2f}]"


def write(
    title: str,
    parts: Sequence[ReportPart],
    command: str,
    out: Path,
    document: Any,
    more: Sequence[Section] = (),
    text: Callable[[], str] | None = None,
) -> None:
    """Write the file in the format of its suffix; `text` makes the Markdown instead of the parts."""
    writers: dict[str, Callable[[], bytes]] = {
        ".html": lambda: page(title, parts, command, more).encode(),
        ".json": lambda: json_file(document),
        ".md": lambda: (markdown.evidence_table(parts, command) if text is None else text()).encode(),
        ".png": lambda: floors_png(parts),
    }
    write_whole(out, writers[out.suffix]())
