"""Charts of training: scores of several experiments, learning curves, learning rates and steps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from separatrix.analysis.evidence.training_result import MechanismEvidence, ReportPart, TrainingResult
from separatrix.pages.charts import Chart, ChartAxis, Note, Rule, Series
from separatrix.pages.looks import COLOURS, FAINT, INK, LOOKS, Look, css_colour

Palette = Mapping[str, Look]
SHAPES = ("square", "diamond", "triangle-down", "cross", "star")
CEILING, FLOOR = Look("ceiling", INK, width=1.6), Look("floor", FAINT, (2, 2), width=1.6)
LIMITS = ((CEILING, "ceiling"), (FLOOR, "floor"))
"""Looks of the scores between which training takes place, and their names in results."""
PROVED = Look("proved ceiling", INK, (5, 2), "triangle-up", 1.6, is_filled=True)
PROBABILITY_RANGE = (-0.03, 1.03)


def choose_palette(parts: Iterable[ReportPart]) -> Palette:
    """Return one look for each mechanism of a page; ink is left for ceilings and proofs."""
    names = dict.fromkeys(name for part in parts for name in _names(part))
    palette = {name: replace(LOOKS[name], label=name, is_filled=True) for name in LOOKS if name in names}
    colours = {look.colour for look in palette.values()}
    free = [colour for colour in COLOURS[1:-1] if colour not in colours]
    for i, name in enumerate(name for name in names if name not in LOOKS):
        palette[name] = Look(name, free[i % len(free)], symbol=SHAPES[i % len(SHAPES)], is_filled=True)
    return palette


@dataclass(frozen=True)
class ScoreBars:
    """The scores of one experiment between floor and ceiling, which trained-bars.js draws."""

    kind: ClassVar[str] = "bars"
    result: TrainingResult
    palette: Palette

    def as_json(self) -> dict[str, Any]:
        """Return the data of the figure."""
        return {
            "learned": self.result.as_json(),
            "moreIsBetter": self.result.task.metric.sign > 0,
            "colours": {name: css_colour(look.colour) for name, look in self.palette.items()},
        }


def score_label(result: TrainingResult) -> str:
    """Return the name of the score, and whether lower is better."""
    better = "" if result.task.metric.sign > 0 else " (lower is better)"
    return f"{result.task.metric.value}{better}"


def _score_axis(results: Sequence[TrainingResult], prefix: str = "") -> ChartAxis:
    """Return an axis for scores; intervals of shares are cut at 0 and 1."""
    is_share = results[0].task.metric.sign > 0
    return ChartAxis(f"{prefix}{score_label(results[0])}", range=PROBABILITY_RANGE if is_share else None)


def _marks(look: Look, **changes: Any) -> Look:
    return replace(look, has_line=False, **changes)


def _medians(look: Look, points: Sequence[tuple[float, MechanismEvidence]]) -> Series:
    """Return the medians over seeds with their intervals."""
    summaries = [(x, evidence.trained) for x, evidence in points if evidence.trained is not None]
    intervals = [summary.interval or (summary.median, summary.median) for _, summary in summaries]
    medians = ((x, summary.median) for x, summary in summaries)
    low, high = ([interval[end] for interval in intervals] for end in (0, 1))
    return replace(Series.through(medians, _marks(look), f"{look.label}, median"), low=low, high=high)


def _witnesses(look: Look, points: Sequence[tuple[float, MechanismEvidence]], shift: float = 0) -> Series:
    scores = ((x + shift, evidence.witness) for x, evidence in points if evidence.witness is not None)
    style = _marks(look, label="", symbol="diamond", is_filled=False)
    return replace(Series.through(scores, style, f"{look.label}, witness"), symbol_size=0.8)


def _proofs(points: Sequence[tuple[float, MechanismEvidence]], name: str) -> Series:
    scores = ((x, evidence.proved.score) for x, evidence in points if evidence.proved is not None)
    return Series.through(scores, _marks(PROVED), f"{name}, proved ceiling")


def _of_mechanism(part: ReportPart, places: Iterable[float], name: str) -> Iterator[tuple[float, MechanismEvidence]]:
    """Yield a mechanism in each experiment that has it, with the place of the experiment."""
    for x, result in zip(places, part.results, strict=True):
        yield from ((x, evidence) for evidence in result.mechanisms if evidence.mechanism == name)


def _names(part: ReportPart) -> list[str]:
    return list(dict.fromkeys(evidence.mechanism for result in part.results for evidence in result.mechanisms))


WITNESS_KEY = Series(Look("witness", INK, symbol="diamond", has_line=False), [], [])


def overview(part: ReportPart, palette: Palette) -> Chart:
    """Return the experiments of a part side by side: medians between floor and ceiling."""
    names = _names(part)
    series = []
    for look, limit in LIMITS:
        scores = enumerate(getattr(result, limit) for result in part.results)
        # The last point of each experiment makes a gap before the next one.
        ends = [end for x, y in scores for end in ((x - 0.4, y), (x + 0.4, y), (x + 0.45, None))]
        series.append(replace(Series.through(ends, look), is_silent=True))
    for number, name in enumerate(names):
        shift = (number - (len(names) - 1) / 2) * 0.22
        points = [(x + shift, evidence) for x, evidence in _of_mechanism(part, range(len(part.results)), name)]
        series += [_proofs(points, name), _medians(palette[name], points), _witnesses(palette[name], points, 0.07)]
    span = (-0.5, len(part.results) - 0.5)
    axis = ChartAxis("experiment", range=span, ticks=[*enumerate(part.labels)], is_category=True)
    return Chart(axis, _score_axis(part.results), [*series, WITNESS_KEY], height=300)


def against_parameter(part: ReportPart, palette: Palette) -> Chart:
    """Return the scores against the parameter in which experiments differ, with both ceilings."""
    parameter = part.varied or ""
    places = [float(result.task.parameters.as_json()[parameter]) for result in part.results]
    series = [Series(look, places, [getattr(result, name) for result in part.results]) for look, name in LIMITS]
    for name in _names(part):
        look, points = palette[name], list(_of_mechanism(part, places, name))
        medians = [(x, evidence.trained.median) for x, evidence in points if evidence.trained is not None]
        seeds = [(x, run.score) for x, evidence in points for run in evidence.runs]
        line, marks = replace(look, symbol="", width=1.6), _marks(look, label="", is_filled=False)
        series += [
            Series.through(medians, line, f"{name}, median"),
            Series.through(seeds, marks, f"{name}, a seed"),
            replace(_proofs(points, name), look=replace(PROVED, symbol="")),
            _witnesses(look, points),
        ]
    axis = ChartAxis(parameter, log=True, ticks=[(place, f"{place:g}") for place in places])
    return Chart(axis, _score_axis(part.results), [*series, WITNESS_KEY], height=320)


def against_state(part: ReportPart, palette: Palette) -> Chart:
    """Return the scores against the bytes carried for each pair."""
    most = max(result.task.parameters.pairs for result in part.results)
    series = []
    for name in _names(part):
        for result in part.results:
            evidence = next((item for item in result.mechanisms if item.mechanism == name), None)
            if evidence is None or evidence.trained is None or evidence.state_bytes is None:
                continue
            pairs = result.task.parameters.pairs
            look = replace(palette[name], is_filled=pairs == most)
            series.append(replace(_medians(look, [(evidence.state_bytes / pairs, evidence)]), texts=[f"{pairs} pairs"]))
    keys = [
        Series(Look(label, INK, symbol="circle", has_line=False, is_filled=is_filled), [], [])
        for label, is_filled in ((f"{most} pairs", True), ("fewer pairs", False))
    ]
    axis = ChartAxis("bytes of state for each pair", log=True)
    return Chart(axis, _score_axis(part.results), [*series, *keys], height=280)


def learning_curves(result: TrainingResult, palette: Palette) -> Chart | None:
    """Return the validation score against the step, a line for each seed; None without curves."""
    series = []
    for evidence in result.mechanisms:
        look = replace(palette[evidence.mechanism], symbol="", width=1.3)
        runs = [run for run in evidence.runs if run.curve]
        series += [Series.through(run.curve, look, f"{evidence.mechanism}, seed {run.seed}") for run in runs]
    if not series:
        return None
    rules = [Rule("y", result.ceiling, INK, (), "ceiling", "left"), Rule("y", result.floor, text="floor", side="left")]
    axis = replace(_score_axis([result], "validation: "), range=None)
    return Chart(ChartAxis("step"), axis, series, rules, height=280)


def learning_rates(result: TrainingResult, palette: Palette) -> tuple[Chart, Chart]:
    """Return the score of each learning rate on the pilot seeds, and the steps that solved runs took."""
    pilots, steps, notes = [], [], []
    for row, evidence in enumerate(result.mechanisms):
        look = palette[evidence.mechanism]
        scores = [(float(rate), score) for rate, score in evidence.pilots.items() if score is not None]
        pilots.append(Series.through(scores, replace(look, width=1.6)))
        solved_at = [run.solved_at for run in evidence.runs if run.solved_at is not None]
        marks = _marks(look, label="", symbol="circle", is_filled=False)
        steps.append(Series(marks, solved_at, [-row] * len(solved_at), evidence.mechanism))
        share = f"{evidence.solved.count} of {evidence.solved.of} solved"
        notes.append(Note(0.5, 1 - (row + 0.9) / (len(result.mechanisms) + 0.2), share, align="center", inside=True))
    grid = sorted({float(rate) for evidence in result.mechanisms for rate in evidence.pilots})
    rate_axis = ChartAxis("learning rate", log=True, ticks=[(rate, f"{rate:g}") for rate in grid])
    names = [(-row, evidence.mechanism) for row, evidence in enumerate(result.mechanisms)]
    rows = ChartAxis("", range=(-len(names) + 0.4, 0.6), ticks=names, is_category=True)
    return (
        Chart(rate_axis, ChartAxis("pilot seed, on validation samples"), pilots, height=260),
        Chart(ChartAxis("steps until solved", range=(0, result.setting.steps)), rows, steps, notes=notes, height=260),
    )
