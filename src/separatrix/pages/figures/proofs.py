"""P(tells apart) over all n, as the step functions that are proved; part of the section on proofs."""

from __future__ import annotations

import math

from separatrix.claims.paper.proofs import BELOW, ProvedStatements
from separatrix.pages.charts import Chart, ChartAxis, Note, Rule, Series
from separatrix.pages.figures._base import PROBABILITY, FigurePanel, PaperFigure, mechanism_look
from separatrix.pages.looks import FAINT, INK

MARGIN = 0.3
"""The share of the axis, in decades, beyond the last change of P."""


def make_figure(data: ProvedStatements) -> PaperFigure:
    """Return the figure: one curve for each proof."""
    proofs = data.proofs.values()
    first, last = min(proof.start for proof in proofs), max(proof.jumps[-1].n for proof in proofs)
    end = 10 ** (math.log10(last) + MARGIN * math.log10(last / first))
    series = []
    for name, proof in data.proofs.items():
        style = {"symbol": "", **({"label": f"softmax, a1 = {BELOW['a1']}", "dash": (7, 4)} if "-" in name else {})}
        look, points, step = mechanism_look(proof.mechanism.name, **style), [], proof.construction.step or 1
        for i, jump in enumerate(proof.jumps):
            if i:  # the last n with the value before
                points.append((float(jump.n - step), proof.jumps[i - 1].distinguish))
            points.append((float(jump.n), jump.distinguish))
        series.append(Series.through([*points, (end, proof.limit)], look))
    middle = math.sqrt(last * end)
    chart = Chart(
        ChartAxis("n", log=True, range=(first, end)),
        ChartAxis(PROBABILITY, range=(-0.03, 1.03)),
        series,
        [Rule("x", last, FAINT)],
        [Note(middle, 0.5, "for all\nlarger n", INK, "center")],
        height=300,
    )
    return PaperFigure(
        name="proofs",
        title="P(tells apart) at every n",
        caption=(
            "Every value of P is exact, and so is every n at which it changes. Right of the vertical line nothing "
            "changes any more: the last value of each curve holds for every larger n.",
        ),
        commands=(),
        panels=(FigurePanel("", chart),),
        size=(7.2, 2.8),
    )
