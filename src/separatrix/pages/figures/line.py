"""Figure 6: where the line runs as n grows, for three mechanisms."""

from __future__ import annotations

from separatrix.analysis.maps import Map
from separatrix.claims.paper.figures import LINE_MECHANISMS as MECHANISMS
from separatrix.pages.commands import Command, number
from separatrix.pages.drawing import Drawn, Panel
from separatrix.pages.maps import captions, heatmap
from separatrix.pages.maps.picture import figure


def make(found: Map) -> Drawn:
    """Make the figure."""
    best = float(found.layers[MECHANISMS.index("linear")].values.max())
    return Drawn(
        name="line",
        title=captions.finding(found),
        caption=(
            "P(tells apart) over a₁ and n, everything else at the base point. Softmax separates right of a "
            "line that moves towards $a_1(a_1 + b + c) = 1$ [ours] as n grows; at finite n it lies to the "
            "left. A power of the logit separates only below a line of its own, near "
            "$n = ({a_1 + b + c}/{b + c})^β$. Linear attention's largest P here is "
            f"{number(best, 2)}; what it keeps is a margin that falls like 1/n.",
            f"{found.length_remark} Any two parameters can be axes, and any mechanism a panel.",
        ),
        commands=(
            Command(f"{captions.made_by(found)} --out line.html", "this map, with every cell's command"),
        ),
        static=figure(found),
        panels=tuple(
            Panel(heatmap.panel_title(found, layer), heatmap.interactive(found, layer))
            for layer in found.panels
        ),
        keys=heatmap.keys(found),
        columns=3,
    )
