"""Drawings of one verdict, of several side by side, and of readers of growing freedom."""

from __future__ import annotations

from textwrap import fill
from typing import Any

from separatrix.core.numbers import format_exact
from separatrix.exact.verdicts import Readers, Verdict, Verdicts
from separatrix.pages.looks import BLUE, FAINT, INK, PRINTED
from separatrix.pages.paper import Axes
from separatrix.pages.verdict_words import COLOURS

MAX_LINE = 66
"""Characters of a line below the axes."""
QUANTITIES = ("fires on D0", "fires on D1", "tells D0 from D1")
_INK, _FAINT = PRINTED[INK], PRINTED[FAINT]


def draw_verdict(result: Verdict, axes: Axes) -> None:
    """Draw how likely the reader fires on each label, and tells them apart."""
    outcome = result.outcome
    for row, chance in enumerate((outcome.fire_d0, outcome.fire_d1)):
        draw_bar(axes, row, chance, (chance, chance), _FAINT, f"{chance:.4g}")
    draw_bar(axes, 2, outcome.distinguish, outcome.interval, COLOURS[result.word], f"{outcome.distinguish:.4g}")
    draw_thresholds(axes, result)
    axes.set(ylim=(2.5, -0.5), yticks=range(3), yticklabels=QUANTITIES)
    axes.set_xlabel(f"probability\n{_describe_point(result)}", size=8)
    axes.set_title(f"{result.mechanism.spelled} on {result.construction.name}: {result.word}")


def draw_verdicts(result: Verdicts, axes: Axes) -> None:
    """Draw how likely the reader tells the labels apart with each mechanism."""
    answers, names = result.answers, [str(row["mechanism"]) for row in result.rows()]
    for row, name in enumerate(names):
        verdict = next((answer for answer in answers if answer.mechanism.spelled == name), None)
        if verdict is None:
            axes.annotate("not computed", (0.01, row), va="center", color=_FAINT, style="italic", size=7.5)
            continue
        outcome, word = verdict.outcome, verdict.word
        draw_bar(axes, row, outcome.distinguish, outcome.interval, COLOURS[word], f"{outcome.distinguish:.4g}, {word}")
    draw_thresholds(axes, answers[0])
    axes.set(ylim=(len(names) - 0.5, -0.5), yticks=range(len(names)), yticklabels=names)
    axes.set_xlabel(f"P(tells apart)\n{_describe_point(answers[0])}", size=8)
    axes.set_title(answers[0].construction.name)


def draw_bar(axes: Axes, row: int, chance: float, interval: tuple[float, float], colour: str, text: str) -> None:
    """Draw a probability with its interval, and a text at its end: inside where there is no room beside it."""
    low, high = interval
    axes.barh(row, chance, height=0.62, color=colour, edgecolor=_INK, lw=0.6)
    if low < high:
        axes.plot([low, high], [row, row], "|-", color=_INK, ms=8, lw=1.3)
    edge = max(chance, high)
    is_inside = edge > 0.6
    shift = (-4 if is_inside else 4, 8 if low < high else 0)  # above an interval
    style: Any = {"ha": "right" if is_inside else "left", "va": "center", "size": 7.5, "textcoords": "offset points"}
    axes.annotate(text, (edge, row), shift, color="white" if is_inside and low == high else _INK, **style)


def draw_thresholds(axes: Axes, verdict: Verdict) -> None:
    """Draw the limits of P at which a mechanism is blind, and distinguishes, on axes from 0 to 1."""
    delta = float(verdict.delta)
    for at in (delta, 1 - delta):
        axes.axvline(at, color=_INK, lw=0.8, ls=(0, (2, 2)))
    axes.set_xlim(0, 1)
    axes.grid(visible=False, axis="y")


def _describe_point(verdict: Verdict) -> str:
    """Return the parameters of the construction, and the meaning of the dotted lines."""
    point = " ".join(f"{name}={value}" for name, value in verdict.construction.parameters.as_json().items())
    return f"{fill(point, MAX_LINE)}\ndotted: delta = {format_exact(verdict.delta)}, and 1 - delta"


def draw_readers(result: Readers, axes: Axes) -> None:
    """Draw P with the fixed threshold and with the best one, and whether a linear reader can."""
    outcomes = {"this threshold": result.fixed.outcome}
    if result.threshold is not None:
        outcomes[f"best threshold, tau = {float(result.threshold.tau):.4g}"] = result.threshold.outcome
    for row, outcome in enumerate(outcomes.values()):
        p = outcome.distinguish
        axes.plot(outcome.interval, [row, row], color=BLUE, lw=3)
        axes.plot([p], [row], "o", ms=7, color=BLUE)
        align = "left" if p < 0.5 else "right"
        axes.annotate(f"P = {p:.4g}", (p, row), (0, 8), textcoords="offset points", ha=align, size=8)
    last = len(outcomes)
    is_verified = result.linear is not None and result.linear.verified
    linear = "can, weights are given" if is_verified else "equal: none can" if result.outputs.has_equal_rows else "open"
    axes.text(0.5, last, linear, ha="center", va="center", color=_INK, size=8, style="italic")
    names = [*outcomes, "a linear reader of one row"]
    axes.set(xlim=(-0.03, 1.03), ylim=(last + 0.5, -0.6), yticks=range(last + 1), yticklabels=names)
    axes.set_xlabel("P(tells apart)")
    axes.grid(visible=True, axis="x", color=_FAINT, alpha=0.25)
    axes.set_title(f"{result.mechanism.spelled} on {result.construction.name}: {result.verdict.word}")
