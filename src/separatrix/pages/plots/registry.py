"""The drawing of each kind of result.

Drawings are named here and imported when they are called: a picture of a verdict does not import what only
pages of cards or training need.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pkgutil import resolve_name
from typing import Any

SIZE = (4.6, 3.4)
"""Inches across and up."""


def _import_later(name: str) -> Callable[..., Any]:
    """Return a function that imports and calls another one, given as `module:function` below `pages`."""
    return lambda *arguments: resolve_name(f"separatrix.pages.{name}")(*arguments)


def _import_page(name: str) -> Callable[[Any], bytes]:
    """Return a function that imports and calls another one, and encodes the page that it returns."""
    make = _import_later(name)
    return lambda result: make(result).encode()


@dataclass(frozen=True)
class Drawing:
    """How results of one kind are drawn and written."""

    draw: Callable[[Any, Any], None]
    """Draws one of `panels` on axes."""
    panels: Callable[[Any], Sequence[Any]] = lambda result: [result]
    """Returns the parts of a result that have axes each; none where there is nothing to draw."""
    size: Callable[[Any], tuple[float, float]] = lambda _: SIZE
    figure: Callable[[Any], Any] | None = None
    """The figure in a file, where that is more than the panels side by side."""
    files: Mapping[str, Callable[[Any], bytes]] = field(default_factory=dict)
    """Contents by suffix, beside tables and pictures."""
    has_picture: bool = True


# Results of words and numbers.
NO_PICTURE = Drawing(lambda panel, axes: None, panels=lambda _: [], has_picture=False)

DRAWINGS: Mapping[str, Drawing] = {
    "atlas": Drawing(
        _import_later("atlas:draw_cells"),
        size=_import_later("atlas:size"),
        figure=_import_later("atlas:draw"),
        files={".html": _import_page("atlas:page"), ".png": _import_later("atlas:small_png")},
    ),
    "bench": Drawing(_import_later("plots.costs:draw_bench")),
    "boundary": Drawing(_import_later("plots.boundary:draw_boundary")),
    "boundary_curve": Drawing(
        _import_later("maps.curve:draw_curve"),
        files={".csv": _import_later("maps.curve:as_csv"), ".html": _import_page("maps.page:curve_page")},
    ),
    "card": Drawing(
        _import_later("plots.costs:draw_card"),
        size=_import_later("plots.costs:card_size"),
        files={".html": _import_page("card:page")},
    ),
    "choice": Drawing(
        _import_later("choice:draw_cells"),
        size=lambda result: (2.6 + 0.24 * len(result.asked_at), 1.4 + 0.16 * len(result.mechanisms)),
        files={".html": _import_page("choice:page")},
    ),
    "learned": Drawing(
        _import_later("learned.pictures:draw_scores"), size=lambda result: (6.4, 1.8 + 0.42 * len(result.mechanisms))
    ),
    "ledger": NO_PICTURE,
    "map": Drawing(
        _import_later("maps.page:draw_map_panel"),
        panels=lambda result: [(result, number) for number in range(len(result.panels))],
        size=lambda _: (4.6, 3.5),
        figure=_import_later("maps.page:draw_result"),
        files={".html": _import_page("maps.page:map_page"), ".npz": lambda result: result.to_npz()},
    ),
    "proof": Drawing(_import_later("plots.proofs:draw_proof"), size=lambda _: (5.4, 2.6)),
    "proofs": Drawing(_import_later("plots.proofs:draw_proofs"), size=lambda _: (5.4, 2.6)),
    "published": NO_PICTURE,
    "readers": Drawing(_import_later("plots.verdicts:draw_readers"), size=lambda _: (5.4, 2.1)),
    "scaling": Drawing(_import_later("scaling:draw_result")),
    "scalings": Drawing(
        _import_later("scaling:draw_result"), panels=lambda result: [result] if result.scalings else []
    ),
    "search": NO_PICTURE,
    "sweep": NO_PICTURE,
    "uniform_proof": NO_PICTURE,
    "verdict": Drawing(_import_later("plots.verdicts:draw_verdict"), size=lambda _: (4.6, 2.2)),
    "verdicts": Drawing(
        _import_later("plots.verdicts:draw_verdicts"), size=lambda result: (5.0, 1.3 + 0.28 * len(result))
    ),
}
