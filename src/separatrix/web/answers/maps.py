"""Maps: as documents, as numbers for the page to colour, as files."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from separatrix.analysis.maps import QUANTITIES, Map
from separatrix.analysis.maps import map as map_plane
from separatrix.analysis.maps.plane import Step
from separatrix.core.documents import keys_of, to_json
from separatrix.core.numbers.json import json_text
from separatrix.core.parameters import split_mechanisms
from separatrix.core.parameters.ranges import read_counted, split_axes
from separatrix.exact.verdicts.question import question
from separatrix.pages.maps import captions, heatmap, write_map
from separatrix.web.answers._base import SLOW, Tell, Words, answer, document, sampling_of, written
from separatrix.web.workers import Slow, TooManyCells

MOST_CELLS = 250_000
"""Of a map on the page: 500 by 500."""
MOST_SLOW_CELLS = 2_500
"""Of a map that is made a cell at a time."""
LAYER_TEXTS = ("mechanism", "engine", "evidence", "remark")
"""Keys of a layer that are not numbers."""
LONGEST_QUICK = 0.4
"""Seconds that a map may take to be answered at once."""


@answer
def map_json(
    construction: str, mechanisms: str, words: Words, options: Words, quick: bool, tell: Tell
) -> bytes:
    """What `separatrix map --json` prints."""
    return document(_map(construction, mechanisms, words, options, quick, tell))


@answer
def map_cells(
    construction: str, mechanisms: str, words: Words, options: Words, quick: bool, tell: Tell
) -> bytes:
    """A map for the page: a heading as JSON after its length in 4 bytes, then its numbers as float64.

    The heading is the document without the numbers; `arrays` says which come in which order, each with a row
    for each value of y: `values` of every layer, `low` and `high` where there is an interval, `margin` where
    that is what is coloured, `formula` where one of the boundary is known (its zeros are the boundary).
    `panels` says what each layer's colours stand for, and which levels are drawn over it.
    """
    found = _map(construction, mechanisms, words, options, quick, tell)
    arrays: list[tuple[dict[str, Any], Any]] = []
    panels = []
    for place, layer in enumerate(found.panels):
        coloured, shades = heatmap.drawn(found, layer)
        panels.append(
            {
                "title": heatmap.panel_title(found, layer),
                "coloured": "values" if coloured is layer.values else "margin",
                "label": QUANTITIES["margin"] if shades.log else shades.label,
                **{name: getattr(shades, name) for name in ("low", "high", "colours", "log")},
            }
        )
        names = ["values", "low", "high"] if layer.has_interval else ["values"]
        names += [] if coloured is layer.values else ["margin"]
        arrays += [({"layer": place, "name": name}, getattr(layer, name)) for name in names]
        known = layer.formula
        if known is not None:
            formula, values = known
            said = {"formula": formula.formula, "tag": formula.tag, "limit": formula.limit}
            arrays.append(({"layer": place, "name": "formula", **said}, values))
    heading = {
        **{key: to_json(getattr(found, attribute)) for key, attribute, _ in keys_of(Map) if key != "layers"},
        "layers": [{name: getattr(layer, name) for name in LAYER_TEXTS} for layer in found.panels],
        "panels": panels,
        "levels": [{"name": name, "level": level} for name, level in heatmap.levels(found).items()],
        "arrays": [said for said, _ in arrays],
        "shape": list(found.grid.shape),
        "labels": [heatmap.axis_label(axis.name) for axis in (found.x, found.y)],
        "title": captions.title(found),
        "sentences": captions.sentences(found),
    }
    head = json_text(heading, indent=None).encode()
    head += b" " * (-len(head) % 8)
    body = b"".join(np.ascontiguousarray(values, dtype="<f8").tobytes() for _, values in arrays)
    return struct.pack("<II", len(head), 0) + head + body


@answer
def map_file(
    construction: str, mechanisms: str, words: Words, options: Words, quick: bool, tell: Tell
) -> bytes:
    """The file that `separatrix map --out` writes."""
    if quick:
        raise Slow(SLOW)
    found = _map(construction, mechanisms, words, options, quick, tell)
    return written(options["out"], lambda out: write_map(found, out))


def _map(construction: str, mechanisms: str, words: Words, options: Words, quick: bool, tell: Tell) -> Map:
    refuse_large(construction, mechanisms, words, MOST_CELLS)

    def step(so_far: Step) -> None:
        if so_far.total > MOST_SLOW_CELLS:
            raise TooManyCells(
                f"{so_far.mechanism} has no closed form for whole maps; {so_far.total:,} cells one by one "
                f"are more than the page makes ({MOST_SLOW_CELLS:,}); take fewer, or give the command in "
                "a terminal",
                MOST_SLOW_CELLS,
            )
        if quick and so_far.seconds > LONGEST_QUICK:
            raise Slow(SLOW)
        told = {"mechanism": so_far.mechanism, "done": so_far.done, "total": so_far.total}
        tell({**told, "seconds": so_far.seconds})

    return map_plane(
        construction,
        mechanisms,
        dict(words),
        of=options.get("of", "distinguish"),
        engine=options.get("engine", "auto"),
        difference=options.get("difference", "no") == "yes",
        sampling=sampling_of(options),
        tell=step,
    )


def refuse_large(construction: str, mechanisms: str, words: Words, most: int) -> None:
    """Refuse more cells than a page has points before any of them is made."""
    axes, fixed = split_axes(words)
    asked = question(construction, (split_mechanisms(mechanisms) or [mechanisms])[0], fixed, axes)
    cells = 1
    for name, text in axes.items():
        cells *= read_counted(asked.schema_of(name), name, text)[1]
    if cells > most:
        raise TooManyCells(
            f"this map has {cells:,} cells, more than the page makes ({most:,}); "
            "give the command in a terminal",
            most,
        )
