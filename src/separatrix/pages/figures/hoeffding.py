"""Figure 5: Hoeffding's bound against the exact value, which shows how loose the proof is."""

from __future__ import annotations

from separatrix.claims.paper.figures import (
    BASE,
    HOEFFDING_BLOCK,
    REQUIRED_WIDTH,
    SURE,
    TARGET_P0,
    HoeffdingCurve,
    hoeffding_point,
)
from separatrix.pages.charts import Chart, ChartAxis, Note, Rule, Series
from separatrix.pages.commands import spell_number, verdict_command
from separatrix.pages.figures._base import FigurePanel, PaperFigure, mechanism_look
from separatrix.pages.looks import INK, LOOKS, Look

BOUND = Look("Hoeffding's bound", INK, width=1.6)
WIDTH_AXIS = ChartAxis("d, width of a token")


def make_figure(data: tuple[HoeffdingCurve, ...]) -> PaperFigure:
    """Return the figure: values on the left, their quotient on the right."""
    softmax = data[0]
    near_base = min(softmax.d, key=lambda d: abs(d - int(BASE["d"])))
    printed = {curve.mechanism: f"p0 = {spell_number(curve.exact[curve.d.index(near_base)])}" for curve in data}
    low, high = (spell_number(ratio, 2) for ratio in (min(softmax.ratio), max(softmax.ratio)))
    return PaperFigure(
        name="hoeffding",
        title=f"The proof is loose: Hoeffding's bound is {low} to {high} times the exact value",
        caption=_caption(data),
        commands=tuple(verdict_command(name, hoeffding_point(near_base), text) for name, text in printed.items()),
        panels=(
            FigurePanel("One neuron fires on D0", _values(data)),
            FigurePanel("Bound divided by exact value", _ratios(data)),
        ),
        size=(7.2, 3.1),
        columns=2,
        ratios=(1.5, 1),
    )


def _caption(data: tuple[HoeffdingCurve, ...]) -> tuple[str, ...]:
    softmax, m = data[0], int(BASE["m"])
    by_exact, by_bound = softmax.enough(softmax.exact, TARGET_P0), softmax.enough(softmax.bound, TARGET_P0)
    return (
        "P(a neuron fires on D0), exactly and as the proof bounds it, over d = 4, 8, 12, … (no ties there) "
        f"with n = {HOEFFDING_BLOCK}(d − 2), the rest as at the base point. Row j says $a_0 f_j y_1 + "
        "b Σ_k w_{jk} y_k + c y_d$, where $f_j$ is its weight on the spike and $w_{jk}$ on block k. Given "
        "$y_d$ it fires if the other signs add up to more than $τ - c y_d$, that is 0.1 or 2c + 0.1. With "
        "$V_j = a_0^2 f_j^2 + b^2 Σ_k w_{jk}^2$, Hoeffding's inequality and a union over the two distinct "
        "rows j (the spike, any other) give "
        "$p_0 <= Σ_j 1/2 [exp(-{0.1^2}/{2V_j}) + exp(-{(2c + 0.1)^2}/{2V_j})]$.",
        f"The bound is {spell_number(softmax.ratio[0], 2)} times the exact value at d = {softmax.d[0]} and "
        f"{spell_number(softmax.ratio[-1], 2)} times at d = {softmax.d[-1]}. For m·p₀ ≤ δ = {SURE} with "
        f"m = {m} the exact value needs d ≥ {by_exact}, this bound d ≥ {by_bound}, and the theorem's "
        f"condition $d - 2 >= 200 b^2 log({{4m}}/δ)$ asks for d ≥ {REQUIRED_WIDTH}. On D0 both mechanisms "
        "attend almost uniformly, so their curves nearly coincide.",
    )


def _values(data: tuple[HoeffdingCurve, ...]) -> Chart:
    softmax = data[0]
    series, notes = [], []
    for curve in data:
        look = mechanism_look(curve.mechanism, symbol="")
        series.append(Series(look, curve.d, curve.exact, f"{look.label}, exact"))
        series.append(Series(BOUND, curve.d, curve.bound, f"{look.label}, bound"))
    # The widths at which the exact value and the bound come down to the target.
    exact, bound = (softmax.exact, LOOKS["softmax"].colour, "right", -1), (softmax.bound, INK, "left", 1)
    for values, colour, align, side in (exact, bound):
        d = softmax.enough(values, TARGET_P0)
        p = values[softmax.d.index(d)]
        dot = Look("", colour, symbol="circle", has_line=False, is_filled=True)
        series.append(Series(dot, [d], [p], is_silent=True))
        notes.append(Note(d, p, f"d = {d}", colour, align, dx=8 * side, dy=-8 * side))
    middle = len(softmax.d) // 2
    words = "exact: softmax (solid),\nlinear (dashed)"
    notes.append(Note(softmax.d[middle], softmax.exact[middle], words, INK, "right", "top", dx=-14, wide=True))
    target = Rule("y", TARGET_P0, text="δ/m at m = 12")
    return Chart(WIDTH_AXIS, ChartAxis("P(a neuron fires on D0)", log=True), series, [target], notes, height=360)


def _ratios(data: tuple[HoeffdingCurve, ...]) -> Chart:
    series = [Series(mechanism_look(curve.mechanism, symbol=""), curve.d, curve.ratio) for curve in data]
    return Chart(WIDTH_AXIS, ChartAxis("bound / exact", log=True), series, height=360)
