"""The atlas as one picture: mechanisms down, constructions across, the verdict in each cell."""

from __future__ import annotations

import io
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from separatrix.cards import Standing, Unanswered
from separatrix.cards.atlas import Atlas, Region
from separatrix.files.writing import write_whole
from separatrix.numbers.json import json_text
from separatrix.reports.cells import (
    COLOURS,
    INKS,
    LETTERS,
    MARKS,
    MEANINGS,
    blind_from,
    evidence,
    exponent,
    mark,
    probability,
)
from separatrix.reports.drawing import FAINT, static_style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROW, COLUMN, GAP = 0.175, 0.52, 0.6
"""Inches of a cell, and rows left free above each family."""
DPI = 160


def draw(atlas: Atlas) -> Figure:
    """The picture for paper and README."""
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

    columns, places = atlas.constructions, _places(atlas)
    bottom = max(places.values()) + 1
    figure = Figure(figsize=(1.6 + COLUMN * len(columns), 1.5 + ROW * bottom))
    axes = figure.subplots()
    for region in atlas.regions:
        y = places[region.mechanism.spelled]
        for x, cell in enumerate(region.standings):
            axes.add_patch(Rectangle((x + 0.02, y + 0.04), 0.96, 0.92, color=COLOURS[cell.word]))
            _write(axes, x, y, cell)
    for family, regions in atlas.families.items():
        y = places[regions[0].mechanism.spelled]
        axes.text(0.02, y - 0.08, family, ha="left", va="bottom", size=6.5, color=FAINT, style="italic")
    axes.set_xlim(0, len(columns))
    axes.set_ylim(bottom, 0)
    axes.set_xticks([x + 0.5 for x in range(len(columns))], columns, rotation=40, ha="left")
    axes.set_yticks([y + 0.5 for y in places.values()], list(places))
    axes.xaxis.tick_top()
    axes.tick_params(length=0, labelsize=7)
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    words = _words(atlas)
    handles = [Rectangle((0, 0), 1, 1, facecolor=COLOURS[word], edgecolor=FAINT) for word in words]
    labels = [f"{LETTERS[word]}  {word}: {MEANINGS[word]}" for word in words]
    figure.legend(handles, labels, loc="outside lower left", ncols=len(labels), fontsize=6.5)
    known = "P is " + ", ".join(f"{sign} {kind}" for kind, sign in MARKS.items())
    figure.supxlabel(known, x=0.99, ha="right", size=6.5)
    return figure


def _write(axes: Any, x: int, y: float, cell: Standing | Unanswered) -> None:
    ink = INKS[cell.word]
    style = {"va": "center_baseline", "size": 6, "color": ink}
    axes.text(x + 0.12, y + 0.5, LETTERS[cell.word], ha="left", weight="bold", **style)
    if isinstance(cell, Standing):
        shown = f"{mark(cell)} {probability(cell.verdict.outcome.distinguish)}"
        axes.text(x + 0.92, y + 0.5, shown, ha="right", **style)


def _words(atlas: Atlas) -> list[str]:
    """The verdicts that occur, in the order of the legend."""
    found = {cell.word for region in atlas.regions for cell in region.standings}
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
    """The picture as PNG or PDF; the PNG keeps few colours, so that it stays small."""
    from PIL import Image

    buffer = io.BytesIO()
    with static_style():
        draw(atlas).savefig(buffer, format=kind, dpi=DPI)
    if kind != "png":
        return buffer.getvalue()
    small = io.BytesIO()
    Image.open(buffer).convert("RGB").quantize(64).save(small, format="png", optimize=True)
    return small.getvalue()


PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Atlas of attention mechanisms</title>
<style>
body {{ font: 16px/1.5 Charter, Georgia, serif; color: #222; max-width: 78rem; }}
body {{ margin: 2rem auto; padding: 0 1rem; }}
p {{ max-width: 46rem; }}
table {{ border-collapse: separate; border-spacing: 2px; font: 11px/1.25 system-ui, sans-serif; }}
.scroll {{ overflow-x: auto; }}
.atlas thead th {{ writing-mode: vertical-rl; transform: rotate(180deg); text-align: left; }}
.atlas thead th {{ padding: .4rem 0; white-space: nowrap; font-weight: 500; }}
.atlas thead th:first-child {{ writing-mode: initial; transform: none; }}
.atlas tbody th {{ text-align: right; padding-right: .5rem; white-space: nowrap; font-weight: 400; }}
.atlas th:first-child {{ position: sticky; left: 0; background: #fff; }}
.atlas .family th {{ text-align: left; padding-top: .6rem; font-style: italic; color: #666; }}
.atlas td {{ padding: .15rem .2rem; min-width: 2.8rem; }}
.atlas td div {{ display: flex; justify-content: space-between; gap: .3rem; white-space: nowrap; }}
.atlas td small {{ display: block; text-align: right; font-size: 10px; opacity: .85; }}
.none {{ outline: 1px solid #ccc; outline-offset: -1px; }}
.key {{ padding: .1rem .5rem; white-space: nowrap; font: 13px/1.9 system-ui, sans-serif; }}
.long {{ border-collapse: collapse; }}
.long th, .long td {{ text-align: left; vertical-align: top; border-bottom: 1px solid #ddd; }}
.long th, .long td {{ padding: .25rem .6rem .25rem 0; }}
</style>
<h1>Every mechanism on every construction</h1>
<p>Each cell has the verdict's letter; P, the probability over the reader's random signs that the mechanism
tells D0 from D1 at the construction's reference point, with a mark for how P is known; and how the margin
grows with n. The verdict is about this reader with its threshold: “blind” does not say that no reader could
see. Point at a cell for its evidence, or read all of it below.</p>
<p>{legend}</p>
<p>P is {marks}.</p>
<div class="scroll"><table class="atlas"><thead><tr><th></th>{head}</tr></thead><tbody>
{body}
</tbody></table></div>
<details><summary>All the evidence</summary>
<div class="scroll"><table class="long"><tr><th>mechanism</th><th>construction</th><th>verdict</th>
<th>evidence</th><th>margin</th><th>blind from n</th></tr>
{long}
</table></div></details>
<p>Made by <code>separatrix atlas</code>; a single cell by <code>separatrix verdict</code>.</p>
</html>
"""


def page(atlas: Atlas) -> str:
    """The atlas as a page of its own, which opens offline."""
    width = len(atlas.constructions) + 1
    body = []
    for family, regions in atlas.families.items():
        body.append(f'<tr class="family"><th colspan="{width}">{escape(family)}</th></tr>')
        body.extend(_row(region) for region in regions)
    return PAGE.format(
        legend=" ".join(swatch(word, f"{LETTERS[word]} {word}: {MEANINGS[word]}") for word in _words(atlas)),
        marks=", ".join(f"{sign} {kind}" for kind, sign in MARKS.items()),
        head="".join(f"<th>{escape(name)}</th>" for name in atlas.constructions),
        body="\n".join(body),
        long="\n".join(
            _line(region, cell)
            for regions in atlas.families.values()
            for region in regions
            for cell in region.standings
        ),
    )


def swatch(word: str, text: str) -> str:
    """A word of the legend in its colours."""
    return f'<span class="key {word}" style="{style(word)}">{escape(text)}</span>'


def style(word: str) -> str:
    """The colours of a verdict."""
    return f"background:{COLOURS[word]};color:{INKS[word]}"


def _row(region: Region) -> str:
    cells = "".join(_cell(cell) for cell in region.standings)
    return f"<tr><th>{escape(region.mechanism.spelled)}</th>{cells}</tr>"


def _cell(cell: Standing | Unanswered) -> str:
    shown = ""
    if isinstance(cell, Standing):
        shown = f"{mark(cell)}&thinsp;{escape(probability(cell.verdict.outcome.distinguish))}"
    inside = f"<div><b>{LETTERS[cell.word]}</b><span>{shown}</span></div><small>{exponent(cell)}</small>"
    title = escape(f"{cell.name}: {cell.word}; {evidence(cell)}", quote=True)
    return f'<td class="{cell.word}" style="{style(cell.word)}" title="{title}">{inside}</td>'


def _line(region: Region, cell: Standing | Unanswered) -> str:
    names = (region.mechanism.spelled, cell.name, cell.word)
    texts = (*names, evidence(cell), exponent(cell), blind_from(cell))
    return "<tr>" + "".join(f"<td>{escape(text)}</td>" for text in texts) + "</tr>"


ENDINGS = (".csv", ".html", ".json", ".pdf", ".png")


def write(atlas: Atlas, out: Path) -> None:
    """In the form the ending of `out` names."""
    makers: dict[str, Callable[[], bytes]] = {
        ".csv": lambda: atlas.as_csv().encode(),
        ".html": lambda: page(atlas).encode(),
        ".json": lambda: (json_text(atlas.as_json(), indent=1) + "\n").encode(),
        ".pdf": lambda: picture(atlas, "pdf"),
        ".png": lambda: picture(atlas, "png"),
    }
    write_whole(out, makers[out.suffix]())
