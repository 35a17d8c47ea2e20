"""Pictures of training with matplotlib: scores between floor and ceiling, and beside floors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from separatrix.analysis.evidence.training_result import MechanismEvidence, ReportPart, TrainingResult
from separatrix.pages.charts import Chart, add_legend, draw_charts
from separatrix.pages.learned.charts import FLOOR, Palette, choose_palette, score_label
from separatrix.pages.looks import COLOURS, FAINT, INK, PRINTED, Look, print_colour
from separatrix.pages.paper import Axes, new_figure, paper_style, save_figure, save_small_png

WIDTH = 6.4
"""Inches."""
TRACK = "#dddddd"
DOTTED: Any = (0, (2, 2))
MARKS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("a seed", {"marker": "o", "ms": 4, "mfc": "white"}),
    ("median, 95 % interval", {"marker": "|", "ms": 11, "mew": 2.2}),
    ("witness", {"marker": "D", "ms": 5}),
    ("trained from the witness", {"marker": "D", "ms": 5, "mfc": "white"}),
    ("proved ceiling", {"marker": "^", "ms": 6}),
)


def draw_scores(result: TrainingResult, axes: Axes, palette: Palette | None = None) -> None:
    """Draw a line from floor to ceiling for each mechanism, with its seeds, median, witness and proof."""
    looks = palette or choose_palette([result.as_part()])
    for row, evidence in enumerate(result.mechanisms):
        axes.plot([result.floor, result.ceiling], [row, row], color=TRACK, lw=7, zorder=1)
        _draw_marks(axes, row, evidence, looks[evidence.mechanism])
    axes.axvline(result.ceiling, color=PRINTED[INK], lw=1, label="ceiling")
    axes.axvline(result.floor, color=PRINTED[FAINT], lw=1, ls=DOTTED, label="floor")
    _name_rows(axes, result)
    if result.task.metric.sign > 0:  # intervals of shares end at 0 and 1
        low, high = axes.get_xlim()
        axes.set_xlim(max(low, -0.03), min(high, 1.03))
    for label, style in MARKS:
        axes.plot([], [], ls="", color=PRINTED[INK], label=label, **style)
    axes.legend(loc="best", fontsize=6.5)


def _name_rows(axes: Axes, result: TrainingResult) -> None:
    names = [evidence.mechanism.replace(":", ":\n", 1) for evidence in result.mechanisms]
    axes.set(yticks=range(len(names)), yticklabels=names, xlabel=score_label(result))
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.grid(visible=False, axis="y")


def _draw_marks(axes: Axes, row: int, evidence: MechanismEvidence, look: Look) -> None:
    color = print_colour(look.colour)
    scores, tuned_seeds = [run.score for run in evidence.runs], evidence.tuned_seeds
    axes.plot(scores, [row] * len(scores), "o", ms=4, mfc="white", color=color, zorder=3)
    if (summary := evidence.trained) is not None:
        axes.plot(summary.interval or [summary.median] * 2, [row, row], color=color, lw=2.2, zorder=2)
        axes.plot([summary.median], [row], "|", ms=11, mew=2.2, color=color, zorder=4)
    axes.plot(tuned_seeds, [row - 0.28] * len(tuned_seeds), "D", ms=5, mfc="white", color=color, zorder=4)
    if evidence.witness is not None:
        axes.plot([evidence.witness], [row - 0.28], "D", ms=4, color=color, zorder=5)
    if evidence.proved is not None:
        axes.plot([evidence.proved.score], [row + 0.3], "^", ms=6, color=PRINTED[INK], zorder=5)


def scores_png(result: TrainingResult, palette: Palette) -> bytes:
    """Return the scores of an experiment as a picture for a page."""
    with paper_style():
        figure = new_figure(WIDTH, 1.3 + 0.42 * len(result.mechanisms))
        draw_scores(result, figure.subplots(), palette)
        return save_small_png(figure)


def charts_png(*charts: Chart) -> bytes:
    """Return charts side by side as a picture for a page."""
    with paper_style():
        height = max(chart.height for chart in charts) / 100
        return save_small_png(draw_charts(charts, (WIDTH, height), len(charts)))


def floors_png(parts: Sequence[ReportPart]) -> bytes:
    """Return a row for each task: its seeds and medians beside the floor, and its learning curves."""
    results = [result for part in parts for result in part.results]
    names = dict.fromkeys(evidence.mechanism for result in results for evidence in result.mechanisms)
    looks = {name: Look(name, COLOURS[place % len(COLOURS)]) for place, name in enumerate(names)}
    with paper_style():
        figure = new_figure(WIDTH, 0.5 + 1.8 * len(results))
        for (left, right), result in zip(figure.subplots(len(results), 2, squeeze=False), results, strict=True):
            _draw_beside_floor(left, right, result, looks)
        marks = (
            Look("a seed", INK, symbol="circle", has_line=False),
            Look("median", INK, symbol="bar", has_line=False),
        )
        add_legend(figure, [*looks.values(), *marks, FLOOR])
        return save_figure(figure, "png", dpi=160)


def _draw_beside_floor(left: Axes, right: Axes, result: TrainingResult, looks: Palette) -> None:
    floor, faint = result.floor, PRINTED[FAINT]
    for row, evidence in enumerate(result.mechanisms):
        look = looks[evidence.mechanism]
        if evidence.trained is not None:
            left.plot([floor, evidence.trained.median], [row, row], color=TRACK, lw=7, zorder=1, solid_capstyle="butt")
        _draw_marks(left, row, evidence, look)
        for run in evidence.runs:
            steps, scores = [x for x, _ in run.curve], [y for _, y in run.curve]
            right.plot(steps, scores, color=print_colour(look.colour), lw=1, alpha=0.8)
    left.axvline(floor, color=faint, lw=1.2, ls=DOTTED)
    right.axhline(floor, color=faint, lw=1.2, ls=DOTTED)
    _name_rows(left, result)
    left.set_title(f"{result.task.spelling}, {result.setting.steps:,} steps: floor {floor:.4f}", loc="left", fontsize=9)
    right.set(xlabel="step", ylabel="validation")
