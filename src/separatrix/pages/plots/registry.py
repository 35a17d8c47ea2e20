"""The drawing of each kind of result.

Drawings import the modules that they need when they are called: a picture of a verdict does not import what
only pages of cards or training need.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from separatrix.pages.plots import verdicts

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from separatrix.analysis.cards.atlas import Atlas
    from separatrix.analysis.cards.card import Card
    from separatrix.analysis.choose import Choice
    from separatrix.analysis.costs.curves import Bench
    from separatrix.analysis.evidence.training_result import TrainingResult
    from separatrix.analysis.laws import Scaling, Scalings
    from separatrix.analysis.maps import Boundary, BoundaryCurve, Map

SIZE = (4.6, 3.4)
"""Inches across and up."""


@dataclass(frozen=True)
class Drawing:
    """How results of one kind are drawn and written."""

    draw: Callable[[Any, int, Axes], None]
    """Draws one panel of a result, given by its number, on axes."""
    panels: Callable[[Any], int] = lambda _: 1
    size: Callable[[Any], tuple[float, float]] = lambda _: SIZE
    figure: Callable[[Any], Figure] | None = None
    """The figure in a file, where that is more than the panels side by side."""
    files: Mapping[str, Callable[[Any], bytes]] = field(default_factory=dict)
    """Contents by suffix, beside tables and pictures."""
    has_picture: bool = True


def _draw_nothing(result: object, panel: int, axes: Axes) -> None:
    """Results of words and numbers have no picture."""


NO_PICTURE = Drawing(_draw_nothing, panels=lambda _: 0, has_picture=False)


def _draw_map(result: Map, panel: int, axes: Axes) -> None:
    from separatrix.pages.maps.figure import map_figure
    from separatrix.pages.maps.picture import bar_label, draw_panel

    figure = map_figure(result)
    image = draw_panel(axes, figure, figure.panels[panel])
    label = bar_label(figure.panels[panel].scale)
    axes.get_figure(root=True).colorbar(image, ax=axes, label=label)  # type: ignore[union-attr]
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="upper left", handlelength=3, facecolor="#777777", labelcolor="white", frameon=True)


def _map_figure(result: Map) -> Figure:
    from separatrix.pages.maps.page import draw_result

    return draw_result(result)


def _map_page(result: Map) -> bytes:
    from separatrix.pages.maps.page import map_page

    return map_page(result).encode()


def _map_arrays(result: Map) -> bytes:
    return result.to_npz()


def _draw_curve(result: BoundaryCurve, _: int, axes: Axes) -> None:
    from separatrix.pages.charts import draw_chart
    from separatrix.pages.maps.curve import chart

    draw_chart(axes, chart(result))
    axes.legend()


def _curve_table(result: BoundaryCurve) -> bytes:
    from separatrix.pages.maps.curve import as_csv

    return as_csv(result)


def _curve_page(result: BoundaryCurve) -> bytes:
    from separatrix.pages.maps.page import curve_page

    return curve_page(result).encode()


def _draw_boundary(result: Boundary, _: int, axes: Axes) -> None:
    from separatrix.pages.plots.boundary import draw_boundary

    draw_boundary(result, axes)


def _draw_scaling(result: Scaling | Scalings, _: int, axes: Axes) -> None:
    from separatrix.pages.charts import draw_chart
    from separatrix.pages.scaling import chart

    answers = getattr(result, "scalings", (result,))
    draw_chart(axes, chart([answer.as_json() for answer in answers]))
    axes.legend()


def _draw_bench(result: Bench, _: int, axes: Axes) -> None:
    from separatrix.pages.plots.costs import draw_seconds

    draw_seconds(axes, (result.softmax, *result.costs))


def _draw_card(result: Card, _: int, axes: Axes) -> None:
    from separatrix.pages.plots.costs import draw_card

    draw_card(result, axes)


def _card_size(result: Card) -> tuple[float, float]:
    from separatrix.pages.plots.costs import card_height

    return SIZE[0], max(SIZE[1], card_height(result))


def _card_page(result: Card) -> bytes:
    from separatrix.pages.card import page

    return page(result).encode()


def _draw_atlas(result: Atlas, _: int, axes: Axes) -> None:
    from separatrix.pages.atlas import draw_cells

    draw_cells(axes, result)


def _atlas_size(result: Atlas) -> tuple[float, float]:
    from separatrix.pages.atlas import size

    return size(result)


def _atlas_figure(result: Atlas) -> Figure:
    from separatrix.pages.atlas import draw

    return draw(result)


def _atlas_page(result: Atlas) -> bytes:
    from separatrix.pages.atlas import page

    return page(result).encode()


def _atlas_png(result: Atlas) -> bytes:
    from separatrix.pages.atlas import small_png

    return small_png(result)


def _draw_choice(result: Choice, _: int, axes: Axes) -> None:
    from separatrix.pages.choice import draw_cells

    draw_cells(axes, result)


def _choice_size(result: Choice) -> tuple[float, float]:
    return 2.6 + 0.24 * len(result.asked_at), 1.4 + 0.16 * len(result.mechanisms)


def _choice_page(result: Choice) -> bytes:
    from separatrix.pages.choice import page

    return page(result).encode()


def _draw_learned(result: TrainingResult, _: int, axes: Axes) -> None:
    from separatrix.pages.learned.pictures import draw_scores

    draw_scores(axes, result)


def _learned_size(result: TrainingResult) -> tuple[float, float]:
    return 6.4, 1.8 + 0.42 * len(result.mechanisms)


DRAWINGS: Mapping[str, Drawing] = {
    "atlas": Drawing(
        _draw_atlas,
        size=_atlas_size,
        figure=_atlas_figure,
        files={".html": _atlas_page, ".png": _atlas_png},
    ),
    "bench": Drawing(_draw_bench),
    "boundary": Drawing(_draw_boundary),
    "boundary_curve": Drawing(_draw_curve, files={".csv": _curve_table, ".html": _curve_page}),
    "card": Drawing(_draw_card, size=_card_size, files={".html": _card_page}),
    "choice": Drawing(_draw_choice, size=_choice_size, files={".html": _choice_page}),
    "learned": Drawing(_draw_learned, size=_learned_size),
    "ledger": NO_PICTURE,
    "map": Drawing(
        _draw_map,
        panels=lambda result: len(result.panels),
        size=lambda _: (4.6, 3.5),
        figure=_map_figure,
        files={".html": _map_page, ".npz": _map_arrays},
    ),
    "published": NO_PICTURE,
    "readers": Drawing(verdicts.draw_readers, size=lambda _: (5.4, 2.1)),
    "scaling": Drawing(_draw_scaling),
    "scalings": Drawing(_draw_scaling, panels=lambda result: 1 if result.scalings else 0),
    "search": NO_PICTURE,
    "sweep": NO_PICTURE,
    "verdict": Drawing(verdicts.draw_verdict, size=lambda _: (4.6, 2.2)),
    "verdicts": Drawing(verdicts.draw_verdicts, size=lambda result: (5.0, 1.3 + 0.28 * len(result))),
}
