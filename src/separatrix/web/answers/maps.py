"""Maps: as documents, as numbers for the page to colour, as files."""

from __future__ import annotations

from dataclasses import replace

from separatrix.analysis.maps import Map
from separatrix.analysis.maps import map as map_plane
from separatrix.analysis.maps.plane import Step
from separatrix.core.parameters import split_mechanisms
from separatrix.core.parameters.ranges import read_counted, split_axes
from separatrix.exact.verdicts.question import question
from separatrix.pages.maps import captions
from separatrix.pages.maps.figure import map_figure
from separatrix.pages.plots import content
from separatrix.web.answers._base import SLOW, Tell, Words, answer, document, sampling_of
from separatrix.web.workers import Slow, TooManyCells

MOST_CELLS = 250_000
"""Of a map on the page: 500 by 500."""
MOST_SLOW_CELLS = 2_500
"""Of a map that is made a cell at a time."""
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
    """Return a map as `MapFigure.pack` encodes it, with sentences about it in the heading."""
    result = _map(construction, mechanisms, words, options, quick, tell)
    figure = map_figure(result)
    return replace(figure, heading={**figure.heading, "sentences": captions.sentences(result)}).pack()


@answer
def map_file(
    construction: str, mechanisms: str, words: Words, options: Words, quick: bool, tell: Tell
) -> bytes:
    """The file that `separatrix map --out` writes."""
    if quick:
        raise Slow(SLOW)
    return content(_map(construction, mechanisms, words, options, quick, tell), options["out"])


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
