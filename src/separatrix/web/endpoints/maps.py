"""Maps: as documents, as numbers that the page colours, as files."""

from __future__ import annotations

from dataclasses import replace

from separatrix.analysis.maps import Map
from separatrix.analysis.maps import map as compute_map
from separatrix.analysis.maps.plane import Step
from separatrix.analysis.maps.quantities import parse_quantity
from separatrix.core.parameters import UsageError, split_mechanisms
from separatrix.core.parameters.ranges import read_counted, split_axes
from separatrix.exact.verdicts.question import question
from separatrix.pages.maps import captions
from separatrix.pages.maps.figure import map_figure
from separatrix.pages.plots import content
from separatrix.web.endpoints._base import (
    ENGINE_OPTION,
    SAMPLING_OPTIONS,
    ConstructionName,
    MechanismNames,
    Options,
    Words,
    endpoint,
    read_sampling,
)
from separatrix.web.endpoints.questions import require_options, require_point
from separatrix.web.workers import JSON, Reply, Report, Slow, TooManyCells

CELLS = "application/vnd.separatrix.cells"
MAX_CELLS = 250_000
"""The page shows at most 500 by 500 cells."""
MAX_SLOW_CELLS = 2_500
"""The limit of a map whose cells are computed one by one."""
MAX_QUICK_SECONDS = 0.4
"""A map that takes longer than this goes to the slow lane, where its progress is shown."""
MAP_OPTIONS = {
    "of": "distinguish, fire_d0, fire_d1, margin or bits.",
    "difference": "yes: the first of two mechanisms less the second.",
    **ENGINE_OPTION,
    **SAMPLING_OPTIONS,
}
FILE_TYPES = {
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".pdf": "application/pdf",
    ".csv": "text/csv",
    ".json": JSON,
}


def _check_map(construction: str, mechanisms: str, words: Words, options: Options) -> None:
    """Refuse wrong arguments of a map without computing a cell."""
    require_options(options)
    parse_quantity(options.get("of", "distinguish"))
    _require_few_cells(construction, mechanisms, words)
    axes, fixed = split_axes(words)
    for mechanism in split_mechanisms(mechanisms):
        map_question = question(construction, mechanism, fixed, axes)
        spans = [read_counted(map_question.schema_of(name), name, text)[0] for name, text in axes.items()]
        require_point(map_question, {span.name: span.start for span in spans})


@endpoint("/map/{construction}/{mechanisms:path}", Map, options=MAP_OPTIONS)
def answer_map(
    construction: ConstructionName,
    mechanisms: MechanismNames,
    words: Words,
    options: Options,
    accepts_cells: bool,
    is_quick: bool,
    report: Report,
) -> Map | Reply:
    """What `separatrix map --json` prints.

    A client that accepts `application/vnd.separatrix.cells` gets its numbers in binary. A map without a
    closed form is sent as lines of progress, the result last, to a client that accepts
    `application/x-ndjson`.
    """
    result = _compute(construction, mechanisms, words, options, is_quick, report)
    if not accepts_cells:
        return result
    figure = map_figure(result)
    heading = {**figure.heading, "sentences": captions.sentences(result)}
    return Reply(replace(figure, heading=heading).pack(), CELLS)


@endpoint(
    "/files/map/{construction}/{mechanisms:path}",
    options={**MAP_OPTIONS, "out": f"The kind of file: {', '.join(FILE_TYPES)}."},
    files=FILE_TYPES.values(),
)
def draw_map_file(
    construction: ConstructionName,
    mechanisms: MechanismNames,
    words: Words,
    options: Options,
    is_quick: bool,
    report: Report,
) -> Reply:
    """The file that `separatrix map --out` writes."""
    ending = options.get("out", ".png")
    if ending not in FILE_TYPES:
        raise UsageError(f"--out={ending} is no kind of file here; there is {', '.join(FILE_TYPES)}")
    if is_quick:
        _check_map(construction, mechanisms, words, options)
        raise Slow
    result = _compute(construction, mechanisms, words, options, is_quick, report)
    return Reply(content(result, ending), FILE_TYPES[ending], f"map{ending}")


def _compute(construction: str, mechanisms: str, words: Words, options: Options, is_quick: bool, report: Report) -> Map:
    _require_few_cells(construction, mechanisms, words)

    def step(progress: Step) -> None:
        # Only maps without a closed form report steps, so this is the first moment at which that is known.
        if progress.total > MAX_SLOW_CELLS:
            raise TooManyCells(
                f"{progress.mechanism} has no closed form for whole maps; {progress.total:,} cells one by "
                f"one are more than the page computes ({MAX_SLOW_CELLS:,}); take fewer, or give the command "
                "in a terminal",
                MAX_SLOW_CELLS,
            )
        if is_quick and progress.seconds > MAX_QUICK_SECONDS:
            raise Slow
        report(
            {
                "mechanism": progress.mechanism,
                "done": progress.done,
                "total": progress.total,
                "seconds": progress.seconds,
            }
        )

    return compute_map(
        construction,
        mechanisms,
        words,
        of=options.get("of", "distinguish"),
        engine=options.get("engine", "auto"),
        difference=options.get("difference", "no") == "yes",
        sampling=read_sampling(options),
        tell=step,
    )


def _require_few_cells(construction: str, mechanisms: str, words: Words) -> None:
    """Refuse a map that is too large before its axes are built: a count may be as large as 1e9."""
    axes, fixed = split_axes(words)
    map_question = question(construction, (split_mechanisms(mechanisms) or [mechanisms])[0], fixed, axes)
    cells = 1
    for name, text in axes.items():
        cells *= read_counted(map_question.schema_of(name), name, text)[1]
    if cells > MAX_CELLS:
        raise TooManyCells(
            f"this map has {cells:,} cells, more than the page computes ({MAX_CELLS:,}); "
            "give the command in a terminal",
            MAX_CELLS,
        )
