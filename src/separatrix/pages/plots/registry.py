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


Function = str | Callable[..., Any]
"""A function, or its name as `module:function` below `pages`."""


def call(function: Function, *arguments: Any) -> Any:
    """Call a function, imported if it is given by its name."""
    return (resolve_name(f"separatrix.pages.{function}") if isinstance(function, str) else function)(*arguments)


@dataclass(frozen=True)
class Drawing:
    """How results of one kind are drawn and written."""

    draw: str = ""
    """Draws one of `panels` on axes; empty for results of words and numbers."""
    size: Function = lambda _: SIZE
    figure: str = ""
    """Returns the figure in a file, where that is more than the panels side by side."""
    files: Mapping[str, Function] = field(default_factory=dict)
    """Return contents by suffix, beside tables and pictures: bytes, or a page."""
    panels: Callable[[Any], Sequence[Any]] = lambda result: [result]
    """Returns the parts of a result that have axes each; none where there is nothing to draw."""

    def content(self, suffix: str, result: Any) -> bytes:
        """Return the content of one of `files`."""
        content: str | bytes = call(self.files[suffix], result)
        return content.encode() if isinstance(content, str) else content


NO_PICTURE = Drawing(panels=lambda _: [])
SCALING_PAGE = {".html": "scaling:page"}

DRAWINGS: Mapping[str, Drawing] = {
    "atlas": Drawing(
        "atlas:draw_cells", "atlas:size", "atlas:draw", {".html": "atlas:page", ".png": "atlas:small_png"}
    ),
    "bench": Drawing("plots.costs:draw_bench"),
    "boundary": Drawing("plots.boundary:draw_boundary"),
    "boundary_curve": Drawing(
        "maps.curve:draw_curve", files={".csv": "maps.curve:as_csv", ".html": "maps.page:curve_page"}
    ),
    "card": Drawing("plots.costs:draw_card", "plots.costs:card_size", files={".html": "card:page"}),
    "choice": Drawing("choice:draw_cells", "choice:size", files={".html": "choice:page"}),
    "learned": Drawing("learned.pictures:draw_scores", lambda result: (6.4, 1.8 + 0.42 * len(result.mechanisms))),
    "ledger": NO_PICTURE,
    "map": Drawing(
        "maps.page:draw_map_panel",
        lambda _: (4.6, 3.5),
        "maps.page:draw_result",
        {".html": "maps.page:map_page", ".npz": lambda result: result.to_npz()},
        lambda result: [(result, number) for number in range(len(result.panels))],
    ),
    "proof": Drawing("plots.proofs:draw_proof", lambda _: (5.4, 2.6)),
    "proofs": Drawing("plots.proofs:draw_proofs", lambda _: (5.4, 2.6)),
    "published": NO_PICTURE,
    "readers": Drawing("plots.verdicts:draw_readers", lambda _: (5.4, 2.1)),
    "scaling": Drawing("scaling:draw", files=SCALING_PAGE),
    "scalings": Drawing("scaling:draw", files=SCALING_PAGE, panels=lambda x: [x] if x.scalings else []),
    "search": NO_PICTURE,
    "sweep": NO_PICTURE,
    "uniform_proof": NO_PICTURE,
    "verdict": Drawing("plots.verdicts:draw_verdict", lambda _: (4.6, 2.2)),
    "verdicts": Drawing("plots.verdicts:draw_verdicts", lambda result: (5.0, 1.3 + 0.28 * len(result))),
    "weights": Drawing("plots.weights:draw_weights", lambda _: (5.4, 3.0)),
}
