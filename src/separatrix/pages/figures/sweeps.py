"""Figure 1: P(tells apart) along six parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from separatrix.claims.paper.figures import BASE, MECHANISMS
from separatrix.claims.paper.sweeps import ParameterSweep
from separatrix.pages.charts import Chart, ChartAxis, Note, Rule, Series
from separatrix.pages.commands import Command, reproduce_command, spell_number, spell_value, verdict_command
from separatrix.pages.figures._base import PROBABILITY, FigurePanel, PaperFigure, mechanism_look
from separatrix.pages.looks import FAINT, LOOKS, Look

REMARKS: Mapping[str, tuple[float, float, str]] = {
    "d": (0.97, 0.45, "narrow tokens:\nfires on D0 too"),
    "m": (0.97, 0.45, "too few sign vectors:\nnone of them fires"),
    "a0": (0.08, 0.45, "large a₀: D0's own\nspike is attended to"),
    "a1": (0.97, 0.45, "small a₁:\nspike not\nattended to"),
    "c": (0.97, 0.70, "large c: fewer sign\npatterns fire"),
}
"""The cause of a failure, and its place as shares of the panel."""
AXES: Mapping[str, tuple[str, str, bool]] = {
    "n": ("n, tokens", "", True),
    "d": ("d, width", "", True),
    "m": ("m, sign vectors", "", False),
    "a0": ("a₀, spike of D0", ", in units of √(log n)", False),
    "a1": ("a₁, spike of D1", ", in units of √(log n)", False),
    "c": ("c, last column", ", in units of √(log n)", False),
}
"""For each sweep: its title, its unit, and whether its axis is logarithmic."""
P_TICKS = [(0, "0"), (0.25, ""), (0.5, "0.5"), (0.75, ""), (1, "1")]
D_TICKS = [(d, str(d)) for d in (4, 10, 30, 100, 300, 1000)]
DELTA = 0.01
"""Up to this P a mechanism is blind; from 1 less this on it distinguishes."""
FIRES = {"fire_d0": ("P(fires on D0)", (2, 2)), "fire_d1": ("P(fires on D1)", (6, 3))}
BASE_COLOUR = "#bbbbbb"


def make_figure(sweeps: Sequence[ParameterSweep]) -> PaperFigure:
    """Return the figure from finished sweeps."""
    labels = {f"{label}, in the colour of its mechanism": dash for label, dash in FIRES.values()}
    thin_lines = [Look(label, FAINT, dash, width=1.2) for label, dash in labels.items()]
    return PaperFigure(
        name="sweeps",
        title=_title(sweeps),
        caption=_caption(sweeps),
        commands=(reproduce_command("every sweep, as CSV in sweeps/"),),
        panels=tuple(FigurePanel(AXES[sweep.parameter][0], _chart(sweep), commands(sweep)) for sweep in sweeps),
        size=(7.2, 4.5),
        columns=3,
        legend=(*map(mechanism_look, MECHANISMS), *thin_lines, Look("base point", BASE_COLOUR, width=1.2)),
    )


def _title(sweeps: Sequence[ParameterSweep]) -> str:
    softmax, linears = (
        [max(sweep.cells.filter(mechanism=name)["distinguish"]) for sweep in sweeps] for name in MECHANISMS
    )
    count = sum(best >= 1 - DELTA for best in softmax)
    everywhere = "every sweep" if count == len(sweeps) else f"{count} of {len(sweeps)} sweeps"
    blind = max(linears) <= DELTA
    stays = "is blind throughout" if blind else f"never gets above P = {spell_number(max(linears), 2)}"
    return f"Softmax tells D0 from D1 somewhere in {everywhere}; linear attention {stays}"


def _caption(sweeps: Sequence[ParameterSweep]) -> tuple[str, ...]:
    names = {"a0": "a₀", "a1": "a₁"}
    base = ", ".join(f"{names.get(name, name)} = {spell_value(value)}" for name, value in BASE.items())
    rows = [row for sweep in sweeps for row in sweep.cells.iter_rows(named=True)]
    sampled_rows = [row for row in rows if row["dense"] is not None]
    covered_count = sum(row["low"] <= row["distinguish"] <= row["high"] for row in sampled_rows)
    draws, confidence = sampled_rows[0]["draws"], sampled_rows[0]["confidence"]
    worst = max(row["distinguish"] for row in rows if row["mechanism"] == "linear")
    return (
        "The probability, over the reader's random signs, that the network is silent on D0 and fires on "
        f"D1. One parameter moves at a time; the others stay at {base}. Thick lines are exact (closed form "
        f"over all sign states). Markers are estimates on all n literal tokens with {draws} draws "
        f"of the signs each and {confidence:.0%} Clopper-Pearson intervals: {covered_count} of "
        f"{len(sampled_rows)} intervals contain the exact value. Thin lines show the cause of a failure.",
        "Softmax loses the separation when it fires on D0 as well (small d: the block signs no longer "
        "average out; large a₀: D0 has a spike of its own), when the spike of D1 is too small to be "
        "attended to (small a₁), or when there are too few sign vectors for one of them to fire. In c it "
        "comes down in steps, as one more sign pattern falls below the threshold. Linear attention never "
        f"gets above {spell_number(worst)}. d runs over the values for which n = {BASE['n']} is a multiple "
        "of d − 2.",
    )


def commands(sweep: ParameterSweep) -> tuple[Command, Command]:
    """Return the exact and the dense command at the sampled point whose outcome is the least certain."""
    sampled_rows = sweep.cells.drop_nulls("dense").iter_rows(named=True)
    row = min(sampled_rows, key=lambda row: abs(row["distinguish"] - 0.5))
    mechanism, point = row["mechanism"], {**BASE, sweep.parameter: row["value"]}
    interval = f"interval {spell_number(row['low'])} to {spell_number(row['high'])}"
    options = f"--engine dense --draws {row['draws']} --seed {row['seed']}"
    return (
        verdict_command(mechanism, point, f"P = {spell_number(row['distinguish'])}"),
        verdict_command(mechanism, point, f"P = {spell_number(row['dense'])}, {interval}", options),
    )


def _chart(sweep: ParameterSweep) -> Chart:
    parameter = sweep.parameter
    title, unit, is_log = AXES[parameter]
    series = [line for name in reversed(MECHANISMS) for line in _mechanism_series(sweep, name)]
    notes = []
    if parameter in REMARKS:
        x, y, remark = REMARKS[parameter]
        notes.append(Note(x, y, remark, align="right" if x > 0.5 else "left", inside=True))
    if parameter == "n":
        for name, y in (("softmax", 0.88), ("linear", 0.1)):
            notes.append(Note(0.6, y, name, LOOKS[name].colour, "center", inside=True))
    ticks = D_TICKS if parameter == "d" else None
    p_axis = ChartAxis(PROBABILITY, range=(-0.04, 1.06), ticks=P_TICKS)
    rules = [Rule("x", float(BASE[parameter]), BASE_COLOUR, ())]
    return Chart(ChartAxis(title + unit, is_log, ticks=ticks), p_axis, series, rules, notes, height=300)


def _mechanism_series(sweep: ParameterSweep, name: str) -> list[Series]:
    """Return the exact curves of a mechanism, and its sampled points with their intervals."""
    look, cells = mechanism_look(name), sweep.cells.filter(mechanism=name)
    sampled_cells = cells.drop_nulls("dense")
    columns = {column: cells[column].to_list() for column in ("x", "distinguish", *FIRES)}
    thin = []
    for column, (label, dash) in FIRES.items():
        thin_look = mechanism_look(name, label="", symbol="", dash=dash, width=1.2)
        thin.append(Series(thin_look, columns["x"], columns[column], f"{name}, {label}"))
    exact = mechanism_look(name, symbol="", width=2.6)
    marks = mechanism_look(name, label="", has_line=False)
    x, dense, low, high = (sampled_cells[column].to_list() for column in ("x", "dense", "low", "high"))
    return [
        *thin,
        Series(exact, columns["x"], columns["distinguish"], f"{name}, {PROBABILITY}"),
        Series(marks, x, dense, f"{look.label}, sampled", low, high),
    ]
