"""Pictures of training: where scores lie between floor and ceiling, how they were reached, and how fast."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from separatrix.pages.drawing import COLOURS, FAINT, INK, LOOKS, Key, looks, static_style

if TYPE_CHECKING:
    from separatrix.analysis.evidence.training_result import MechanismEvidence, ReportPart, TrainingResult

WIDE = 6.4
"""Inches: on a page 760 pixels wide, texts are then as large as those around."""
Palette = Mapping[str, Key]
SHAPES = ("square", "diamond", "triangle-down", "cross", "star")
DOTTED: Any = (0, (2, 2))
MARKS = (
    ("a seed", {"marker": "o", "ms": 4, "mfc": "white"}),
    ("median, 95 % interval", {"marker": "|", "ms": 11, "mew": 2.2}),
    ("witness", {"marker": "D", "ms": 5}),
    ("tuned", {"marker": "D", "ms": 5, "mfc": "white"}),
    ("proved ceiling", {"marker": "^", "ms": 6}),
)


def palette(parts: Iterable[ReportPart]) -> Palette:
    """One look for each mechanism of a page; black is left to ceilings and what is proved."""
    names = dict.fromkeys(
        mechanism.mechanism for part in parts for one in part.results for mechanism in one.mechanisms
    )
    known = {name: key for name, key in looks(names).items() if name in names and name in LOOKS}
    taken = {key.colour for key in known.values()}
    free = [colour for colour in COLOURS[1:-1] if colour not in taken]
    others = enumerate(name for name in names if name not in known)
    shapes = len(SHAPES)
    return {
        **known,
        **{name: Key(name, free[i % len(free)], symbol=SHAPES[i % shapes]) for i, name in others},
    }


def bars(found: TrainingResult, look: Palette) -> bytes:
    """A line from floor to ceiling for each mechanism, with its seeds, median, witness and proof."""

    def draw(figure: Any) -> None:
        draw_bars(figure.subplots(), found, look)
        _legend(figure, MARKS)

    return _png(draw, bars_height(found))


def bars_height(found: TrainingResult) -> float:
    """Inches for all mechanisms."""
    return 1.3 + 0.42 * len(found.mechanisms)


def draw_bars(axes: Any, found: TrainingResult, look: Palette) -> None:
    """The same on matplotlib axes, without a legend."""
    names = [mechanism.mechanism for mechanism in found.mechanisms]
    for row, each in enumerate(found.mechanisms):
        axes.plot([found.floor, found.ceiling], [row, row], color="#dddddd", lw=7, zorder=1)
        _marks(axes, row, each, look[each.mechanism])
    axes.axvline(found.ceiling, color=INK, lw=1)
    axes.axvline(found.floor, color=FAINT, lw=1, ls=DOTTED)
    axes.set(yticks=range(len(names)), yticklabels=map(_two_lines, names), xlabel=_scored(found))
    axes.set_ylim(len(names) - 0.4, -0.6)
    _within(axes, [found], "x")
    axes.grid(visible=False, axis="y")


def _marks(axes: Any, row: int, each: MechanismEvidence, key: Key) -> None:
    scores = [run.score for run in each.runs]
    axes.plot(scores, [row] * len(scores), "o", ms=4, mfc="white", color=key.colour, zorder=3)
    if (summary := each.trained) is not None:
        low, high = summary.interval or (summary.median, summary.median)
        axes.plot([low, high], [row, row], color=key.colour, lw=2.2, zorder=2)
        axes.plot([summary.median], [row], "|", ms=11, mew=2.2, color=key.colour, zorder=4)
    above = row - 0.28
    tuned = each.tuned_seeds
    axes.plot(tuned, [above] * len(tuned), "D", ms=5, mfc="white", color=key.colour, zorder=4)
    if each.witness is not None:
        axes.plot([each.witness], [above], "D", ms=4, color=key.colour, zorder=5)
    if each.proved is not None:
        axes.plot([each.proved.score], [row + 0.3], "^", ms=6, color=INK, zorder=5)


def overview(part: ReportPart, look: Palette) -> bytes:
    """The experiments of a part side by side: the median of each mechanism between floor and ceiling."""
    names = _names(part)

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        for place, one in enumerate(part.results):
            ends = [place - 0.4, place + 0.4]
            axes.plot(ends, [one.ceiling] * 2, color=INK, lw=1.2)
            axes.plot(ends, [one.floor] * 2, color=FAINT, lw=1.2, ls=DOTTED)
        for number, name in enumerate(names):
            shift = (number - (len(names) - 1) / 2) * 0.22
            there = [(x + shift, each) for x, each in _of(part, range(len(part.results)), name)]
            _points(axes, there, look[name])
            for x, each in there:
                if each.proved is not None:
                    axes.plot([x], [each.proved.score], "^", ms=6, color=INK, zorder=1)
        labels = [label.replace(" ", "\n") for label in part.labels]
        axes.set(xticks=range(len(labels)), xticklabels=labels, ylabel=_two_rows(_scored(part.results[0])))
        axes.set_xlim(-0.5, len(labels) - 0.5)
        _within(axes, part.results)
        axes.grid(visible=False, axis="x")
        witness, proof = ("witness", {"marker": "D", "ms": 4, "mfc": "white"}), MARKS[-1]
        _legend(figure, (witness, proof), names, look)

    return _png(draw, 2.9)


def _within(axes: Any, found: Sequence[TrainingResult], along: str = "y") -> None:
    """Cut intervals off where no share can be."""
    if found[0].task.metric.sign > 0:
        low, high = axes.get_ylim() if along == "y" else axes.get_xlim()
        ends = max(low, -0.03), min(high, 1.03)
        axes.set_ylim(ends) if along == "y" else axes.set_xlim(ends)


def _points(
    axes: Any, there: Sequence[tuple[float, MechanismEvidence]], key: Key, fill: str | None = None
) -> None:
    """The medians over seeds with their intervals, and beside them what witnesses score."""
    for x, each in there:
        if (summary := each.trained) is not None:
            low, high = summary.interval or (summary.median, summary.median)
            axes.plot([x, x], [low, high], color=key.colour, lw=2)
            axes.plot([x], [summary.median], _marker(key), ms=5, color=key.colour, mfc=fill or key.colour)
        if each.witness is not None:
            axes.plot([x + 0.07], [each.witness], "D", ms=4, color=key.colour, mfc="white")


def against(part: ReportPart, look: Palette) -> bytes:
    """The scores against the parameter in which experiments differ, with the ceilings that are known."""
    moved, names = part.varied or "", _names(part)

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        places = [float(one.task.parameters.shown()[moved]) for one in part.results]
        axes.plot(places, [one.ceiling for one in part.results], color=INK, lw=1.4)
        axes.plot(places, [one.floor for one in part.results], color=FAINT, ls=DOTTED)
        for name in names:
            key, there = look[name], list(_of(part, places, name))
            medians = [each.trained.median for _, each in there if each.trained is not None]
            axes.plot([x for x, each in there if each.trained is not None], medians, color=key.colour, lw=1.2)
            for x, each in there:
                scores = [run.score for run in each.runs]
                axes.plot([x] * len(scores), scores, _marker(key), ms=4, color=key.colour, mfc="white")
            proved = [(x, each.proved.score) for x, each in there if each.proved is not None]
            axes.plot(
                [x for x, _ in proved], [score for _, score in proved], color=INK, ls=(0, (5, 2)), lw=1.2
            )
            written = [(x, each.witness) for x, each in there if each.witness is not None]
            axes.plot([x for x, _ in written], [y for _, y in written], "D", ms=3.5, color=key.colour)
        axes.set(xscale="log", xlabel=moved, ylabel=_two_rows(_scored(part.results[0])))
        axes.set_xticks(places, [f"{place:g}" for place in places])
        axes.minorticks_off()
        axes.plot([], [], color=INK, ls=(0, (5, 2)), lw=1.2, label="proved ceiling")
        _legend(figure, (("witness", {"marker": "D", "ms": 3.5}),), names, look)

    return _png(draw, 3.2)


def states(part: ReportPart, look: Palette) -> bytes:
    """The scores against the bytes that are carried for each pair: what stands above the same place."""
    names, most = _names(part), max(one.task.parameters.pairs for one in part.results)

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        for name in names:
            key = look[name]
            for place, each in _of(part, range(len(part.results)), name):
                one = part.results[int(place)]
                if each.trained is None or each.state_bytes is None:
                    continue
                x = each.state_bytes / one.task.parameters.pairs
                fill = key.colour if one.task.parameters.pairs == most else "white"
                _points(axes, [(x, replace(each, witness=None))], key, fill)
        _within(axes, part.results)
        axes.set(xscale="log", xlabel="bytes of state for each pair")
        axes.set_ylabel(_two_rows(_scored(part.results[0])))
        mark = {"marker": "o", "ms": 6}
        _legend(
            figure,
            ((f"{most} pairs", mark), ("fewer", {**mark, "mfc": "white"})),
            names,
            look,
            bounds=False,
        )

    return _png(draw, 2.6)


def curves(found: TrainingResult, look: Palette) -> bytes:
    """The score on validation samples against the step, a line for each seed."""
    names = [mechanism.mechanism for mechanism in found.mechanisms]

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        for mechanism in found.mechanisms:
            for run in (run for run in mechanism.runs if run.curve):
                steps, scores = zip(*run.curve, strict=True)
                axes.plot(steps, scores, color=look[mechanism.mechanism].colour, lw=1, alpha=0.8)
        axes.axhline(found.ceiling, color=INK, lw=1)
        axes.axhline(found.floor, color=FAINT, lw=1, ls=DOTTED)
        axes.set(xlabel="step", ylabel=_two_rows(f"validation: {_scored(found)}"))
        _legend(figure, (), names, look, lines=True)

    return _png(draw, 2.6)


def beside_floors(parts: Sequence[ReportPart]) -> bytes:
    """A row for each task: its seeds and medians beside the floor, and how they were learned."""
    found = [one for part in parts for one in part.results]
    names = dict.fromkeys(mechanism.mechanism for one in found for mechanism in one.mechanisms)
    look = {name: Key(name, COLOURS[place % len(COLOURS)]) for place, name in enumerate(names)}

    def draw(figure: Any) -> None:
        panels = figure.subplots(len(found), 2, squeeze=False)
        for (left, right), one in zip(panels, found, strict=True):
            floor, shown = one.floor, [mechanism.mechanism for mechanism in one.mechanisms]
            for row, each in enumerate(one.mechanisms):
                if each.trained is not None:
                    ends = [floor, each.trained.median]
                    left.plot(ends, [row, row], color="#dddddd", lw=7, zorder=1, solid_capstyle="butt")
                _marks(left, row, each, look[each.mechanism])
                for run in each.runs:
                    steps, scores = [x for x, _ in run.curve], [y for _, y in run.curve]
                    right.plot(steps, scores, color=look[each.mechanism].colour, lw=1, alpha=0.8)
            left.axvline(floor, color=FAINT, lw=1.2, ls=DOTTED)
            right.axhline(floor, color=FAINT, lw=1.2, ls=DOTTED)
            left.set(yticks=range(len(shown)), yticklabels=shown, xlabel=_two_rows(_scored(one)))
            left.set_ylim(len(shown) - 0.4, -0.6)
            left.grid(visible=False, axis="y")
            left.set_title(
                f"{one.task.spelling}, {one.setting.steps:,} steps: floor {floor:.4f}", loc="left", fontsize=9
            )
            right.set(xlabel="step", ylabel="validation")
        panels[0][0].plot([], [], color=FAINT, lw=1.2, ls=DOTTED, label="floor")
        _legend(figure, MARKS[:2], list(look), look, lines=True, bounds=False)

    return _png(draw, 0.5 + 1.8 * len(found))


def rates(found: TrainingResult, look: Palette) -> bytes:
    """What each learning rate did on the pilot seeds, and the steps that solved runs took."""
    names = [mechanism.mechanism for mechanism in found.mechanisms]

    def draw(figure: Any) -> None:
        left, right = figure.subplots(1, 2)
        for row, each in enumerate(found.mechanisms):
            key = look[each.mechanism]
            tried = [(float(rate), score) for rate, score in each.pilots.items() if score is not None]
            left.plot(
                [x for x, _ in tried], [y for _, y in tried], marker=_marker(key), ms=5, color=key.colour
            )
            solved = [run.solved_at for run in each.runs if run.solved_at is not None]
            right.plot(solved, [row] * len(solved), "o", ms=5, mfc="white", color=key.colour)
            share = f"{each.solved.count} of {each.solved.of} solved"
            right.annotate(
                share, (0.5, row + 0.38), xycoords=("axes fraction", "data"), ha="center", fontsize=7.5
            )
        grid = sorted({float(rate) for mechanism in found.mechanisms for rate in mechanism.pilots})
        left.set(xscale="log", xlabel="learning rate", ylabel="pilot seed, on validation samples")
        left.set_xticks(grid, [f"{rate:g}" for rate in grid])
        left.minorticks_off()
        right.set(yticks=range(len(names)), yticklabels=map(_two_lines, names), xlabel="steps until solved")
        right.set_ylim(len(names) - 0.4, -0.5)
        right.set_xlim(0, found.setting.steps)
        _legend(figure, (("a seed that solved it", MARKS[0][1]),), names, look, lines=True, bounds=False)

    return _png(draw, 1.8 + 0.32 * max(3, len(names)))


def _names(part: ReportPart) -> list[str]:
    return list(dict.fromkeys(mechanism.mechanism for one in part.results for mechanism in one.mechanisms))


def _of(part: ReportPart, places: Iterable[float], name: str) -> Iterable[tuple[float, MechanismEvidence]]:
    """A mechanism in each experiment that has it, with the place of the experiment."""
    for x, one in zip(places, part.results, strict=True):
        yield from ((x, mechanism) for mechanism in one.mechanisms if mechanism.mechanism == name)


def _marker(key: Key) -> str:
    known = {"circle": "o", "square": "s", "diamond": "D", "triangle-up": "^", "triangle-down": "v"}
    return {**known, "cross": "P", "star": "*"}.get(key.symbol, "o")


def _scored(found: TrainingResult) -> str:
    better = "" if found.task.metric.sign > 0 else " (lower is better)"
    return f"{found.task.metric.value}{better}"


def _two_lines(name: str) -> str:
    """A mechanism with its parameters below."""
    return name.replace(":", ":\n", 1)


def _two_rows(label: str) -> str:
    """A label for an axis that is short, cut at the space nearest to its middle."""
    spaces = [place for place, letter in enumerate(label) if letter == " "]
    if len(label) < 32 or not spaces:
        return label
    middle = min(spaces, key=lambda place: abs(place - len(label) / 2))
    return f"{label[:middle]}\n{label[middle + 1 :]}"


def _legend(
    figure: Any,
    marks: Iterable[tuple[str, Mapping[str, Any]]],
    names: Sequence[str] = (),
    look: Palette | None = None,
    *,
    lines: bool = False,
    bounds: bool = True,
) -> None:
    """Above a figure: mechanisms, marks, ceiling and floor."""
    axes, known = figure.axes[0], look or {}
    for name in names:
        style = {"ls": "-" if lines else "", "marker": "" if lines else _marker(known[name])}
        axes.plot([], [], color=known[name].colour, label=name, ms=5, **style)
    for label, mark in marks:
        axes.plot([], [], **{"ls": "", "color": INK, "label": label, **mark})
    if bounds:
        axes.plot([], [], color=INK, lw=1.2, label="ceiling")
        axes.plot([], [], color=FAINT, lw=1.2, ls=DOTTED, label="floor")
    shown = axes.get_legend_handles_labels()[1]
    figure.legend(loc="outside upper center", ncols=min(4, len(shown)))


def _png(draw: Any, height: float) -> bytes:
    from matplotlib.figure import Figure

    made = io.BytesIO()
    with static_style():
        figure = Figure(figsize=(WIDE, height))
        draw(figure)
        figure.savefig(made, format="png", dpi=160)
    return made.getvalue()
