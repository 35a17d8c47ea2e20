"""The atlas as one picture: mechanisms down, constructions across, the verdict in each cell."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from separatrix.analysis.cards.atlas import Atlas
from separatrix.pages import pages
from separatrix.pages.drawing import FAINT, saved, static_style
from separatrix.pages.standings import ShownStanding, shown
from separatrix.pages.verdict_words import COLOURS, INKS, LETTERS, MARKED, MEANINGS, RESCUES, spelled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ROW, COLUMN, GAP = 0.175, 0.52, 0.6
"""Inches of a cell, and rows left free above each family."""
DPI = 160


def draw(atlas: Atlas) -> Figure:
    """The picture for paper and README."""
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

    figure = Figure(figsize=size(atlas))
    draw_on(figure.subplots(), atlas)
    words = _words(atlas)
    handles = [Rectangle((0, 0), 1, 1, facecolor=COLOURS[word], edgecolor=FAINT) for word in words]
    labels = [f"{LETTERS[word]}  {spelled(word)}: {MEANINGS[word]}" for word in words]
    figure.legend(handles, labels, loc="outside lower left", ncols=len(labels), fontsize=6.5)
    more = "; ".join(f"{letter}  {meaning}" for letter, meaning in rescues(atlas).items())
    figure.supxlabel(f"{more}\nP is {MARKED}" if more else f"P is {MARKED}", x=0.99, ha="right", size=6.5)
    return figure


def rescues(atlas: Atlas) -> dict[str, str]:
    """The letters that say who tells apart what this reader does not, as far as they occur."""
    found = {row["rescued_by"] for row in atlas.rows() if row["verdict"] in ("blind", "saturated")}
    return dict(each for by, each in RESCUES.items() if by in found)


def size(atlas: Atlas) -> tuple[float, float]:
    """Inches across and up, as many as the cells take."""
    return 1.6 + COLUMN * len(atlas.constructions), 1.5 + ROW * (max(_places(atlas).values()) + 1)


def draw_on(axes: Axes, atlas: Atlas) -> None:
    """The cells on matplotlib axes."""
    from matplotlib.patches import Rectangle

    columns, places = atlas.constructions, _places(atlas)
    for region in atlas.mechanisms:
        y = places[region.mechanism.spelled]
        for x, cell in enumerate(map(shown, region.results)):
            axes.add_patch(Rectangle((x + 0.02, y + 0.04), 0.96, 0.92, color=COLOURS[cell.word]))
            _write(axes, x, y, cell)
    for family, regions in atlas.families.items():
        y = places[regions[0].mechanism.spelled]
        axes.text(0.02, y - 0.08, family, ha="left", va="bottom", size=6.5, color=FAINT, style="italic")
    axes.set_xlim(0, len(columns))
    axes.set_ylim(max(places.values()) + 1, 0)
    axes.set_xticks([x + 0.5 for x in range(len(columns))], columns, rotation=40, ha="left")
    axes.set_yticks([y + 0.5 for y in places.values()], list(places))
    axes.xaxis.tick_top()
    axes.tick_params(length=0, labelsize=7)
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)


def _write(axes: Any, x: int, y: float, cell: ShownStanding) -> None:
    style = {"va": "center_baseline", "size": 6, "color": INKS[cell.word]}
    axes.text(x + 0.12, y + 0.5, cell.letter, ha="left", weight="bold", **style)
    axes.text(x + 0.92, y + 0.5, cell.p, ha="right", **style)


def _words(atlas: Atlas) -> list[str]:
    """The verdicts that occur, in the order of the legend."""
    found = {cell.word for region in atlas.mechanisms for cell in region.results}
    return [word for word in COLOURS if word in found]


def _places(atlas: Atlas) -> dict[str, float]:
    """The row of every mechanism, with room for the name of its family."""
    places, y = {}, 0.0
    for regions in atlas.families.values():
        y += GAP
        for region in regions:
            places[region.mechanism.spelled] = y
            y += 1
    return places


def picture(atlas: Atlas, kind: str) -> bytes:
    """The picture as PNG, PDF or SVG; the PNG keeps few colours, so that it stays small."""
    from PIL import Image

    with static_style():
        made = saved(draw(atlas), kind, dpi=DPI)
    if kind != "png":
        return made
    small = io.BytesIO()
    Image.open(io.BytesIO(made)).convert("RGB").quantize(64).save(small, format="png", optimize=True)
    return small.getvalue()


def page(atlas: Atlas) -> str:
    """The atlas as a page of its own, which opens offline."""
    return pages.page(
        "atlas.html.j2",
        title=_finding(atlas),
        meanings={word: MEANINGS[word] for word in _words(atlas)},
        marks=MARKED,
        rescues=rescues(atlas),
        constructions=atlas.titles,
        families={
            family: {region.mechanism.spelled: [*map(shown, region.results)] for region in regions}
            for family, regions in atlas.families.items()
        },
    )


def _finding(atlas: Atlas) -> str:
    """Who tells D0 from D1 on most constructions, of how many."""
    told = {
        region.mechanism.spelled: sum(cell.word == "distinguishes" for cell in region.results)
        for region in atlas.mechanisms
    }
    most = max(told.values(), default=0)
    best = [name for name, count in told.items() if count == most]
    who = best[0] if len(best) == 1 else f"{len(best)} of {len(told)} mechanisms"
    verb = "tells" if len(best) == 1 else "tell"
    asked = f"{len(atlas.constructions)} constructions"
    if not most:
        return f"None of {len(told)} mechanisms tells D0 from D1 on any of {asked}"
    line = f"{who} {verb} D0 from D1 on {most} of {asked}"
    others = f", more than the other {len(told) - len(best)} mechanisms" if len(told) > len(best) else ""
    return f"{line[:1].upper()}{line[1:]}{others}"


ENDINGS = (".csv", ".html", ".json", ".pdf", ".png", ".svg")
