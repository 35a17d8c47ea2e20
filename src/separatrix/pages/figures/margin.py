"""Figure 4: the margin, which remains for a better threshold, and the number formats that lose it."""

from __future__ import annotations

from separatrix.claims.paper.figures import BASE, LAST_DECADE, MarginCurve
from separatrix.core.numbers.formats import SIGNIFICANT_BITS
from separatrix.core.numbers.spelling import RAISED
from separatrix.pages.charts import Chart, ChartAxis, Note, Rule, Series
from separatrix.pages.commands import spell_number, verdict_command
from separatrix.pages.figures._base import FigurePanel, PaperFigure, mechanism_look
from separatrix.pages.looks import FAINT, INK, LOOKS, Look

LABEL_SHIFTS = (0, 0, -6, 8)
"""Pixels by which the label of each curve is moved down from its end, so that labels do not overlap."""
FAR = 10**18


def make_figure(curves: tuple[MarginCurve, ...]) -> PaperFigure:
    """Return the figure."""
    near = [f"margin {spell_number(curve.at(int(BASE['n'])))}" for curve in curves]
    far = [f"lost in fp32 from n: {_lost_from(curve, 'fp32')}" for curve in curves]
    cases = zip((curve.mechanism for curve in curves), near, far, strict=True)
    return PaperFigure(
        name="margin",
        title=_title(curves),
        caption=_caption(curves),
        commands=tuple(verdict_command(name, BASE, f"{margin}, {lost}") for name, margin, lost in cases),
        panels=(FigurePanel("Relative margin against n", _chart(curves)),),
        size=(7.2, 3.7),
        legend=(
            *(mechanism_look(curve.mechanism, symbol="") for curve in curves),
            Look("lost from here", INK, symbol="x", has_line=False),
            Look("smallest difference in a number format", FAINT, (2, 2), width=1.2),
        ),
    )


def _title(curves: tuple[MarginCurve, ...]) -> str:
    softmax, linear = (spell_number(curve.at(FAR), 3) for curve in (curves[0], curves[-1]))
    return f"At n = {spell_number(FAR)} softmax has a margin of {softmax} left for a better threshold, linear {linear}"


def _lost_from(curve: MarginCurve, name: str) -> str:
    size = curve.lost[name]
    return "none found" if size is None else spell_number(size, 3)


def _all_lost_from(curve: MarginCurve) -> str:
    if not any(curve.lost.values()):
        return "none found up to n = 10⁴⁰"
    return ", ".join(f"{_lost_from(curve, name)} ({name})" for name in curve.lost)


def _caption(curves: tuple[MarginCurve, ...]) -> tuple[str, ...]:
    softmax, linear = curves[0], curves[-1]
    near = int(BASE["n"])
    floors = ", ".join(f"2^−{bits} ({name})" for name, bits in SIGNIFICANT_BITS.items())
    losses = "; ".join(f"{LOOKS[curve.mechanism].label}: {_all_lost_from(curve)}" for curve in reversed(curves))
    return (
        "With all signs + and v the largest pre-activation over the rows, the margin is v(D1) − v(D0). "
        f"The chart shows margin / v(D1) = 2^−bits, exact to n = 10^{LAST_DECADE}, at the base point. In "
        f"units of √(log n) softmax's margin is {spell_number(softmax.at(near), 5)} at n = {near} and "
        f"{spell_number(softmax.at(FAR), 5)} at n = {spell_number(FAR)}; linear's is "
        f"{spell_number(linear.at(near))} and {spell_number(linear.at(FAR))}, that is "
        f"{spell_number(linear.at(FAR) * FAR, 3)}/n. A kernel of fixed degree starts higher and then falls "
        "as fast.",
        f"Horizontal lines are the smallest relative differences that a number format can hold: {floors}. "
        "Crosses are the n from which on both labels round to the same number even in the best possible "
        f"implementation: the difference is lost. {losses}. A cross need not lie on its line: the limit is "
        "half a unit in the last place of b + c.",
    )


def _chart(curves: tuple[MarginCurve, ...]) -> Chart:
    series, notes = [], []
    for curve, shift in zip(curves, LABEL_SHIFTS, strict=True):
        look, n = mechanism_look(curve.mechanism, symbol=""), [float(n) for n in curve.n]
        margins = [f"margin {margin:.6g} √(log n)" for margin in curve.margin]
        series.append(Series(look, n, list(curve.relative), look.label, texts=margins))
        crosses = mechanism_look(curve.mechanism, label="", symbol="x", has_line=False)
        lost = {name: curve.lost[name] or 0 for name in curve.relative_when_lost}
        texts = [f"lost in {name} from n = {n:,}" for name, n in lost.items()]
        ends = [float(n) for n in lost.values()]
        series.append(Series(crosses, ends, list(curve.relative_when_lost.values()), look.label, texts=texts))
        notes.append(Note(n[-1], curve.relative[-1], look.label, look.colour, dx=8, dy=shift))
    floors = [
        Rule("y", 2.0**-bits, text=f"{name}, 2{f'-{bits}'.translate(RAISED)}", side="left" if bits > 40 else "right")
        for name, bits in SIGNIFICANT_BITS.items()
    ]
    decades = [(10.0**i, f"10{str(i).translate(RAISED)}") for i in range(2, LAST_DECADE + 1, 4)]
    powers = [(2.0**-i, f"2{f'-{i}'.translate(RAISED)}" if i else "1") for i in range(0, 70, 10)]
    # The labels of the curves need room after the last point.
    n_axis = ChartAxis("n, number of tokens", log=True, range=(100, 10.0 ** (LAST_DECADE + 5)), ticks=decades)
    margin_axis = ChartAxis("relative margin, (v₁ − v₀) / v₁", log=True, range=(2.0**-66, 4), ticks=powers)
    return Chart(n_axis, margin_axis, series, floors, notes, height=440)
