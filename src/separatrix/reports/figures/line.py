"""Figure 6: where the line runs as n grows, for three mechanisms."""

from __future__ import annotations

from separatrix.maps import Map
from separatrix.paper.line import MECHANISMS
from separatrix.reports.commands import Command, number
from separatrix.reports.drawing import Drawn, Panel
from separatrix.reports.maps import captions, heatmap
from separatrix.reports.maps.picture import figure


def make(found: Map) -> Drawn:
    """Make the figure."""
    best = float(found.layers[MECHANISMS.index("linear")].values.max())
    return Drawn(
        name="line",
        title="Where the line runs as n grows",
        caption=(
            "P[distinguishes] over a₁ and n, everything else at the base point. Softmax separates right of a "
            "line that moves towards a₁(a₁+b+c) = 1 [ours] as n grows; at finite n it lies to the left. "
            "A power of the logit separates only below a line of its own, near n = ((a₁+b+c)/(b+c))^β, and "
            f"linear attention nowhere: its largest P here is {number(best, 2)}.",
            f"{found.places.remark} Any two parameters can be axes, and any mechanism a panel.",
        ),
        commands=(
            Command(f"{captions.made_by(found)} --out line.html", "this map, with every cell's command"),
        ),
        static=figure(found),
        panels=tuple(Panel(layer.mechanism, heatmap.interactive(found, layer)) for layer in found.shown),
        keys=heatmap.keys(found),
        columns=3,
    )
