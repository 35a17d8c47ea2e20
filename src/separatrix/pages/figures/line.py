"""Figure 6: the boundary as n grows, for three mechanisms."""

from __future__ import annotations

from dataclasses import replace

from separatrix.analysis.maps import Map
from separatrix.claims.paper.figures import LINE_MECHANISMS
from separatrix.pages.commands import Command, spell_number
from separatrix.pages.figures._base import FigurePanel, PaperFigure
from separatrix.pages.maps import captions
from separatrix.pages.maps.figure import map_figure


def make_figure(result: Map) -> PaperFigure:
    """Return the figure."""
    best = float(result.layers[LINE_MECHANISMS.index("linear")].values.max())
    figure = map_figure(result)
    # Without its place the figure has no command for each cell: the page written by the command below has.
    figure = replace(figure, heading={**figure.heading, "place": None})
    return PaperFigure(
        name="line",
        title=captions.finding(result),
        caption=(
            "P(tells apart) over a₁ and n, everything else at the base point. Softmax separates right of a "
            "line that moves towards $a_1(a_1 + b + c) = 1$ [ours] as n grows; at finite n it lies to the "
            "left. A power of the logit separates only below a line of its own, near "
            "$n = ({a_1 + b + c}/{b + c})^β$. Linear attention's largest P here is "
            f"{spell_number(best, 2)}; its margin falls like 1/n.",
            f"{result.length_remark} Any two parameters can be axes, and any mechanism a panel.",
        ),
        commands=(Command(f"{captions.made_by(result)} --out line.html", "this map, with a command for every cell"),),
        panels=(FigurePanel("", figure),),
    )
