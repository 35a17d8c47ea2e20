"""The atlas as picture and page: mechanisms down, constructions across, the verdict in each cell."""

from __future__ import annotations

from separatrix.analysis.cards.atlas import Atlas
from separatrix.pages.looks import FAINT, PRINTED
from separatrix.pages.pages import render_page
from separatrix.pages.paper import Axes, Figure, hide_frame, label_cells, new_figure, paper_style, save_small_png
from separatrix.pages.standings import standing_text
from separatrix.pages.verdict_words import COLOURS, INKS, LETTERS, MARKS_LEGEND, MEANINGS, RESCUES, verdict_name

ROW_HEIGHT, COLUMN_WIDTH = 0.175, 0.52
"""Inches of a cell."""
FAMILY_GAP = 0.6
"""Rows above each family, for its name."""
PNG_COLOURS = 64


def draw(atlas: Atlas) -> Figure:
    """Return the picture with its legend."""
    from matplotlib.patches import Rectangle

    figure = new_figure(*size(atlas))
    draw_cells(atlas, figure.subplots())
    handles = [Rectangle((0, 0), 1, 1, facecolor=COLOURS[word], edgecolor=PRINTED[FAINT]) for word in MEANINGS]
    labels = [f"{LETTERS[word]}  {verdict_name(word)}: {meaning}" for word, meaning in MEANINGS.items()]
    figure.legend(handles, labels, loc="outside lower left", ncols=3, fontsize=6.5)
    more = "; ".join(f"{letter}  {meaning}" for letter, meaning in rescue_legend(atlas).items())
    marks = f"P is {MARKS_LEGEND}"
    figure.supxlabel(f"{more}\n{marks}" if more else marks, x=0.99, ha="right", size=6.5)
    return figure


def rescue_legend(atlas: Atlas) -> dict[str, str]:
    """Return the letters of readers that tell apart what this one does not, as far as they occur."""
    readers = {row["rescued_by"] for row in atlas.rows() if row["verdict"] in ("blind", "saturated")}
    return dict(entry for by, entry in RESCUES.items() if by in readers)


def size(atlas: Atlas) -> tuple[float, float]:
    """Return the inches across and up."""
    return 1.6 + COLUMN_WIDTH * len(atlas.constructions), 1.5 + ROW_HEIGHT * (max(_row_places(atlas).values()) + 1)


def draw_cells(atlas: Atlas, axes: Axes) -> None:
    """Draw the cells on matplotlib axes."""
    from matplotlib.patches import Rectangle

    places = _row_places(atlas)
    for region in atlas.mechanisms:
        y = places[region.mechanism.spelled]
        for x, cell in enumerate(map(standing_text, region.results)):
            axes.add_patch(Rectangle((x + 0.02, y + 0.04), 0.96, 0.92, color=COLOURS[cell.word]))
            ink, middle = INKS[cell.word], y + 0.5
            for at, text, align in ((0.12, cell.letter, "left"), (0.92, cell.p, "right")):
                weight = "bold" if align == "left" else "normal"
                axes.text(x + at, middle, text, ha=align, va="center_baseline", size=6, color=ink, weight=weight)
    for family, regions in atlas.families.items():
        y = places[regions[0].mechanism.spelled]
        axes.text(0.02, y - 0.08, family, ha="left", va="bottom", size=6.5, color=PRINTED[FAINT], style="italic")
    label_cells(axes, atlas.constructions, places, rotation=40, ha="left")
    hide_frame(axes, labelsize=7)


def _row_places(atlas: Atlas) -> dict[str, float]:
    """Return the row of every mechanism, with room for the names of families."""
    places, y = {}, 0.0
    for regions in atlas.families.values():
        y += FAMILY_GAP
        for region in regions:
            places[region.mechanism.spelled] = y
            y += 1
    return places


def small_png(atlas: Atlas) -> bytes:
    """Return the picture as a PNG with few colours: it is part of the documentation and has to stay small."""
    with paper_style():
        return save_small_png(draw(atlas), PNG_COLOURS)


def page(atlas: Atlas) -> str:
    """Return the atlas as a static page."""
    return render_page(
        "atlas.html.j2",
        ("atlas",),
        title=_finding(atlas),
        rescues=rescue_legend(atlas),
        constructions=atlas.titles,
        families={
            family: {region.mechanism.spelled: [*map(standing_text, region.results)] for region in regions}
            for family, regions in atlas.families.items()
        },
    )


def _finding(atlas: Atlas) -> str:
    """Return which mechanisms tell D0 from D1 on most constructions."""
    counts = {
        region.mechanism.spelled: sum(cell.word == "distinguishes" for cell in region.results)
        for region in atlas.mechanisms
    }
    most = max(counts.values(), default=0)
    best = [name for name, count in counts.items() if count == most]
    constructions = f"{len(atlas.constructions)} constructions"
    if not most:
        return f"None of {len(counts)} mechanisms tells D0 from D1 on any of {constructions}"
    subject = f"{best[0]} tells" if len(best) == 1 else f"{len(best)} of {len(counts)} mechanisms tell"
    line = f"{subject} D0 from D1 on {most} of {constructions}"
    remaining_count = len(counts) - len(best)
    remaining = "the other mechanism" if remaining_count == 1 else f"the other {remaining_count} mechanisms"
    more = f", more than {remaining}" if remaining_count else ""
    return f"{line[:1].upper()}{line[1:]}{more}"
