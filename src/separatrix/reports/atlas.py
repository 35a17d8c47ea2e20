"""The atlas as one picture: mechanisms down, constructions across, the verdict in each cell."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from separatrix.assess.atlas import Atlas, Region
from separatrix.assess.standing import Standing
from separatrix.parameters.files import write_whole
from separatrix.reports.figures._base import static_style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = {"distinguishes": "#0072B2", "partial": "#E69F00", "blind": "#4d4d4d", "undecided": "#cccccc"}
"""Okabe and Ito's blue and orange, and two greys."""
INKS = {"distinguishes": "white", "partial": "black", "blind": "white", "undecided": "black"}


def cell_text(standing: Standing) -> str:
    """The verdict's probability, and how the margin grows with n."""
    growth = standing.growth
    exponent = "margin –" if growth is None else f"margin n^{growth.exponent:+.2f}"
    return f"P {standing.verdict.outcome.distinguish:.3g}\n{exponent}"


def draw(atlas: Atlas) -> Figure:
    """The picture for paper and README."""
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

    rows, columns = atlas.regions, atlas.constructions
    figure = Figure(figsize=(7.0, 0.9 + 0.3 * len(rows)))
    axes = figure.subplots()
    for y, region in enumerate(rows):
        for x, standing in enumerate(region.standings):
            word = standing.verdict.word
            axes.add_patch(Rectangle((x + 0.02, y + 0.04), 0.96, 0.92, color=COLOURS[word]))
            text = cell_text(standing).replace("\n", "   ")
            axes.text(x + 0.5, y + 0.5, text, ha="center", va="center", size=6, color=INKS[word])
    axes.set_xlim(0, len(columns))
    axes.set_ylim(len(rows), 0)
    axes.set_xticks([x + 0.5 for x in range(len(columns))], columns)
    axes.set_yticks([y + 0.5 for y in range(len(rows))], [region.mechanism.spelled for region in rows])
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    for y in _family_breaks(rows):
        axes.axhline(y, color="black", linewidth=0.8)
    handles = [Rectangle((0, 0), 1, 1, color=colour) for colour in COLOURS.values()]
    figure.legend(handles, list(COLOURS), loc="outside lower center", ncols=len(COLOURS))
    return figure


def _family_breaks(rows: tuple[Region, ...]) -> list[int]:
    families = [region.mechanism.family for region in rows]
    return [i for i in range(1, len(rows)) if families[i] != families[i - 1]]


def picture(atlas: Atlas, kind: str) -> bytes:
    """The picture as PNG or PDF."""
    buffer = io.BytesIO()
    with static_style():
        draw(atlas).savefig(buffer, format=kind)
    return buffer.getvalue()


PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Atlas of attention mechanisms</title>
<style>
body {{ font: 16px/1.5 Georgia, serif; color: #222; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }}
table {{ border-collapse: separate; border-spacing: 2px; font: 13px/1.3 system-ui, sans-serif; }}
th {{ text-align: left; padding: .3rem .6rem; white-space: nowrap; }}
td {{ padding: .35rem .6rem; min-width: 8rem; }}
.scroll {{ overflow-x: auto; }}
</style>
<h1>Every mechanism on every construction</h1>
<p>Each cell: P, the probability over the reader's random signs that the mechanism tells D0 from D1 at
n=1000, and how the margin grows with n. The verdict is about this reader with its threshold; “blind” does
not say that no reader could. Point at a cell for its evidence.</p>
<p>{legend}</p>
<div class="scroll"><table><thead><tr><th>mechanism</th>{head}</tr></thead><tbody>
{body}
</tbody></table></div>
<p>Made by <code>separatrix atlas</code>; a single cell by <code>separatrix verdict</code>.</p>
</html>
"""


def page(atlas: Atlas) -> str:
    """The atlas as a page of its own, which opens offline."""
    legend = " ".join(_swatch(word, word) for word in COLOURS)
    head = "".join(f"<th>{escape(name)}</th>" for name in atlas.constructions)
    body = "\n".join(_row(region) for region in atlas.regions)
    return PAGE.format(legend=legend, head=head, body=body)


def _swatch(word: str, text: str) -> str:
    style = f"background:{COLOURS[word]};color:{INKS[word]};padding:.1rem .5rem"
    return f'<span style="{style}">{escape(text)}</span>'


def _row(region: Region) -> str:
    cells = []
    for standing in region.standings:
        word, outcome = standing.verdict.word, standing.verdict.outcome
        shown = standing.verdict.construction.parameters.shown()
        words = " ".join(f"{name}={value}" for name, value in shown.items())
        title = escape(f"{word}; {outcome.engine}: {outcome.evidence}; {words}", quote=True)
        text = escape(cell_text(standing)).replace("\n", "<br>")
        style = f"background:{COLOURS[word]};color:{INKS[word]}"
        cells.append(f'<td style="{style}" title="{title}">{text}</td>')
    return f"<tr><th>{escape(region.mechanism.spelled)}</th>{''.join(cells)}</tr>"


ENDINGS = (".csv", ".html", ".json", ".pdf", ".png")


def write(atlas: Atlas, out: Path) -> None:
    """In the form the ending of `out` names."""
    makers: dict[str, Callable[[], bytes]] = {
        ".csv": lambda: atlas.as_csv().encode(),
        ".html": lambda: page(atlas).encode(),
        ".json": lambda: (json.dumps(atlas.as_json(), indent=1) + "\n").encode(),
        ".pdf": lambda: picture(atlas, "pdf"),
        ".png": lambda: picture(atlas, "png"),
    }
    write_whole(out, makers[out.suffix]())
