"""Pictures of training: where scores lie between floor and ceiling, how they were reached, and how fast."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from separatrix.reports.drawing import FAINT, INK, Key, looks, static_style

if TYPE_CHECKING:
    from separatrix.evidence.found import Learned, MechanismEvidence, Part

WIDE = 9.0


def bars(found: Learned) -> bytes:
    """A line from floor to ceiling for each mechanism, with its seeds, mean, witness and proof."""
    names = [each.mechanism for each in found.mechanisms]

    def draw(figure: Any) -> None:
        axes, look = figure.subplots(), looks(names)
        for row, each in enumerate(found.mechanisms):
            axes.plot([found.floor.score, found.ceiling.score], [row, row], color="#dddddd", lw=7, zorder=1)
            _marks(axes, row, each, look[each.mechanism])
        axes.axvline(found.ceiling.score, color=INK, lw=1)
        axes.axvline(found.floor.score, color=FAINT, lw=1, ls=(0, (2, 2)))
        axes.set(yticks=range(len(names)), yticklabels=names, xlabel=found.task.answers.value)
        axes.set_ylim(len(names) - 0.4, -0.6)
        axes.grid(visible=False, axis="y")
        shown = (
            ("seed", {"marker": "o", "ms": 4, "mfc": "white"}),
            ("mean, 95 % interval", {"marker": "|", "ms": 11, "mew": 2.2}),
            ("witness", {"marker": "D", "ms": 5}),
            ("tuned witness", {"marker": "D", "ms": 5, "mfc": "white"}),
            ("proved ceiling", {"marker": ">", "ms": 6, "mfc": INK}),
        )
        for label, style in shown:
            axes.plot([], [], ls="", color=INK, label=label, **style)
        axes.plot([], [], color=INK, lw=1, label="ceiling")
        axes.plot([], [], color=FAINT, lw=1, ls=(0, (2, 2)), label="floor")
        figure.legend(loc="outside upper center", ncols=7)

    return _png(draw, 0.9 + 0.38 * len(names))


def _marks(axes: Any, row: int, each: MechanismEvidence, key: Key) -> None:
    scores = [run.score for run in each.runs]
    axes.plot(scores, [row] * len(scores), "o", ms=4, mfc="white", color=key.colour, zorder=3)
    if (mean := each.trained) is not None:
        low, high = mean.interval or (mean.mean, mean.mean)
        axes.plot([low, high], [row, row], color=key.colour, lw=2.2, zorder=2)
        axes.plot([mean.mean], [row], "|", ms=11, mew=2.2, color=key.colour, zorder=4)
    above = row - 0.26
    if each.witness is not None:
        axes.plot([each.witness], [above], "D", ms=5, color=key.colour, zorder=5)
    if each.tuned is not None:
        axes.plot([each.tuned], [above], "D", ms=5, mfc="white", color=key.colour, zorder=4)
    if each.proved is not None:
        axes.plot([each.proved.score], [row + 0.26], ">", ms=6, color=INK, zorder=5)


def against(part: Part) -> bytes:
    """The scores against the parameter in which experiments differ, with the ceilings that are known."""
    names = list(dict.fromkeys(each.mechanism for one in part.found for each in one.mechanisms))
    moved = part.moved or ""

    def draw(figure: Any) -> None:
        axes, look = figure.subplots(), looks(names)
        places = [float(one.task.parameters.shown()[moved]) for one in part.found]
        axes.plot(places, [one.ceiling.score for one in part.found], color=INK, lw=1.4, label="ceiling")
        axes.plot(places, [one.floor.score for one in part.found], color=FAINT, ls=":", label="floor")
        for name in names:
            key = look[name]
            _against(axes, part, places, name, key)
        axes.set(xscale="log", xlabel=moved, ylabel=part.found[0].task.answers.value)
        axes.set_xticks(places, [f"{place:g}" for place in places])
        axes.minorticks_off()
        figure.legend(loc="outside right upper")

    return _png(draw, 3.0)


def _against(axes: Any, part: Part, places: Sequence[float], name: str, key: Key) -> None:
    there = [
        (x, each)
        for x, one in zip(places, part.found, strict=True)
        for each in one.mechanisms
        if each.mechanism == name and each.trained is not None
    ]
    means = [each.trained.mean for _, each in there if each.trained is not None]
    axes.plot([x for x, _ in there], means, marker="o", ms=4, color=key.colour, label=name)
    for x, each in there:
        scores = [run.score for run in each.runs]
        axes.plot([x] * len(scores), scores, ".", ms=3, color=key.colour, alpha=0.6)
    proved = [(x, each.proved.score) for x, each in there if each.proved is not None]
    if proved:
        style = {"color": key.colour, "ls": (0, (5, 2)), "lw": 1}
        axes.plot(*zip(*proved, strict=True), **style, label=f"proved ceiling of {name}")
    witnessed = [(x, each.witness) for x, each in there if each.witness is not None]
    if witnessed:
        axes.plot(*zip(*witnessed, strict=True), "D", ms=4, color=key.colour, mfc="white")


def curves(found: Learned) -> bytes:
    """The score on validation samples against the step, a line for each seed."""
    names = [each.mechanism for each in found.mechanisms]

    def draw(figure: Any) -> None:
        axes, look = figure.subplots(), looks(names)
        for each in found.mechanisms:
            for place, run in enumerate(each.runs):
                if not run.curve:
                    continue
                steps, scores = zip(*run.curve, strict=True)
                label = each.mechanism if place == 0 else None
                axes.plot(steps, scores, color=look[each.mechanism].colour, lw=1, alpha=0.8, label=label)
        axes.axhline(found.ceiling.score, color=INK, lw=1)
        axes.axhline(found.floor.score, color=FAINT, lw=1, ls=(0, (2, 2)))
        axes.set(xlabel="step", ylabel=f"validation: {found.task.answers.value}")
        figure.legend(loc="outside right upper")

    return _png(draw, 2.6)


def rates(found: Learned) -> bytes:
    """What each learning rate did on the pilot seeds, and the steps that solved runs took."""
    names = [each.mechanism for each in found.mechanisms]

    def draw(figure: Any) -> None:
        (left, right), look = figure.subplots(1, 2), looks(names)
        for row, each in enumerate(found.mechanisms):
            colour = look[each.mechanism].colour
            tried = [(float(one.rate), one.score) for one in each.pilots if one.score is not None]
            if tried:
                left.plot(*zip(*tried, strict=True), marker="o", ms=4, color=colour, label=each.mechanism)
            solved = [run.solved_at for run in each.runs if run.solved_at is not None]
            right.plot(solved, [row] * len(solved), "o", ms=4, mfc="white", color=colour)
            share = f"{each.solved.count} of {each.solved.of}"
            right.annotate(share, (1.02, row), xycoords=("axes fraction", "data"), va="center", fontsize=7.5)
        left.set(xscale="log", xlabel="learning rate", ylabel="pilot, validation")
        right.set(yticks=range(len(names)), yticklabels=names, xlabel="steps until solved")
        right.set_ylim(len(names) - 0.5, -0.5)

    return _png(draw, 1.2 + 0.3 * max(4, len(names)))


def _png(draw: Any, height: float) -> bytes:
    from matplotlib.figure import Figure

    made = io.BytesIO()
    with static_style():
        figure = Figure(figsize=(WIDE, height))
        draw(figure)
        figure.savefig(made, format="png", dpi=160)
    return made.getvalue()
