"""Figure 3: rows of attention weights."""

from __future__ import annotations

import numpy as np

from separatrix.claims.paper.figures import ATTENTION_POINT, MECHANISMS, SPIKE_TOKEN, AttentionRows
from separatrix.pages.charts import Chart, ChartAxis, Note, Rule, Series
from separatrix.pages.commands import spell_number, spell_value, verdict_command
from separatrix.pages.figures._base import FigurePanel, PaperFigure, mechanism_look
from separatrix.pages.looks import FAINT, INK, Look

FROM_SPIKE, FROM_OTHER = "from the spike", "from another token"


def make_figure(data: tuple[AttentionRows, ...]) -> PaperFigure:
    """Return the figure: a column for each mechanism, a row for each label."""
    margins = {rows.mechanism: f"margin {spell_number(rows.margin)}" for rows in data}
    panels = tuple(FigurePanel(f"{rows.mechanism}, D{rows.label}", _chart(rows)) for rows in data)
    return PaperFigure(
        name="attention",
        title=_title(data),
        caption=_caption(data),
        commands=tuple(verdict_command(name, ATTENTION_POINT, text) for name, text in margins.items()),
        panels=tuple(panel for label in (0, 1) for panel in panels[label::2]),
        size=(7.2, 4.0),
        columns=2,
        legend=(
            Look(f"weight {FROM_SPIKE}", INK, symbol="dot", has_line=False, is_filled=True),
            Look(f"weight {FROM_OTHER}", INK, symbol="circle", has_line=False),
            Look("uniform, 1/n", FAINT, width=1.2),
        ),
    )


def _title(data: tuple[AttentionRows, ...]) -> str:
    shares = {rows.mechanism: spell_number(float(rows.from_spike[SPIKE_TOKEN]), 3) for rows in data if rows.label == 1}
    return f"On D1 softmax gives the spike {shares['softmax']} of its attention, linear attention {shares['linear']}"


def _caption(data: tuple[AttentionRows, ...]) -> tuple[str, ...]:
    peak = {(rows.mechanism, rows.label): float(rows.from_spike[SPIKE_TOKEN]) for rows in data}
    softmax, linear = (next(r for r in data if r.mechanism == name and r.label == 1) for name in MECHANISMS)
    difference = float(np.max(abs(linear.from_spike - linear.from_other)))
    point = ATTENTION_POINT
    return (
        f"The weight of each of n = {point['n']} keys, for the query of the spiked token (dots) and for an "
        f"ordinary query in another block (rings), on a logarithmic scale; d = {point['d']}, the rest as at "
        f"the base point, the spike at key {SPIKE_TOKEN}. On D0 (a₀ = {spell_value(point['a0'])}) both "
        f"mechanisms are nearly uniform, 1/n = {1 / int(point['n']):.3f}.",
        f"On D1 softmax gives the spike {spell_number(peak['softmax', 1])} of the spike's own attention and "
        f"{spell_number(float(softmax.from_other[SPIKE_TOKEN]))} of an ordinary query's. Linear attention "
        f"gives it {spell_number(peak['linear', 1])} from everywhere: its weights do not depend on the "
        f"query (the largest difference between the two rows is {spell_number(difference)}), and this share "
        "falls like 1/n.",
    )


def _chart(rows: AttentionRows) -> Chart:
    """Return one label under one mechanism."""
    keys = list(range(int(ATTENTION_POINT["n"])))
    other_look = mechanism_look(rows.mechanism, label="", symbol="circle", has_line=False)
    spike_look = mechanism_look(rows.mechanism, label="", symbol="dot", has_line=False, is_filled=True)
    series = [
        Series(other_look, keys, rows.from_other.tolist(), FROM_OTHER, symbol_size=1.3),
        Series(spike_look, keys, rows.from_spike.tolist(), FROM_SPIKE),
    ]
    own_weight, other_weight = float(rows.from_spike[SPIKE_TOKEN]), float(rows.from_other[SPIKE_TOKEN])
    # One weight of the spike is written where both queries give it nearly the same.
    weights, dy = [other_weight, own_weight] if own_weight > 2 * other_weight else [own_weight], -14 * (not rows.label)
    notes = [Note(SPIKE_TOKEN, weight, f"spike: {weight:.3g}", INK, dx=9, dy=dy) for weight in weights]
    x_axis = ChartAxis("key (token index)", range=(-1, len(keys)))
    y_axis, rules = ChartAxis("attention weight", log=True, range=(4e-4, 2)), [Rule("y", 1 / len(keys), dash=())]
    return Chart(x_axis, y_axis, series, rules, notes, height=280, title=f"{rows.mechanism}, D{rows.label}")
