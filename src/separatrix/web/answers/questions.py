"""Verdicts, maps, boundaries and certificates."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from separatrix.engines import EngineRefusal, Sampling
from separatrix.maps import Map, Step, boundary, boundary_curve
from separatrix.maps import map as map_plane
from separatrix.numbers.json import finite, json_text
from separatrix.parameters import UsageError, split_mechanisms
from separatrix.parameters.ranges import read_counted, split_axes
from separatrix.reports.maps import captions, write_map
from separatrix.verdicts import Verdict, Verdicts, certify, verdict, write_certificate
from separatrix.verdicts.question import question
from separatrix.verdicts.verdict import verdict as verdict_on_one
from separatrix.web.answers._base import SLOW, Tell, answer, by_closed_form, document, written
from separatrix.web.lanes import Slow

MOST_CELLS = 250_000
"""Of a map on the page: 500 by 500."""
MOST_SLOW_CELLS = 2_500
"""Of a map that is made a cell at a time."""
LONGEST_QUICK = 0.4
"""Seconds that a map may take to be answered at once."""

Words = Mapping[str, str]


def sampling_of(options: Words) -> Sampling:
    """How to sample, from options as they are typed."""
    usual = Sampling()
    try:
        return Sampling(
            int(options.get("draws", usual.draws)),
            int(options.get("seed", usual.seed)),
            float(options.get("confidence", usual.confidence)),
            options.get("dtype", usual.dtype),
        )
    except ValueError:
        raise UsageError("--draws and --seed are whole numbers, --confidence is a number") from None


@answer
def verdicts(
    construction: str, mechanisms: str, words: Words, options: Words, quick: bool, tell: Tell
) -> bytes:
    """What `separatrix verdict --json` prints."""
    engine, delta = options.get("engine", "auto"), options.get("delta", "0.01")
    sampling = sampling_of(options)
    chosen: list[Any] = list(split_mechanisms(mechanisms))
    if not quick:
        asked: Any = chosen if len(chosen) > 1 else mechanisms
        return document(
            verdict(construction, asked, dict(words), engine=engine, delta=delta, sampling=sampling)
        )
    if sampling.in_format:
        raise Slow(SLOW)
    found: list[Verdict] = [
        by_closed_form(engine, partial(_verdict, construction, each, words, delta)) for each in chosen
    ]
    return document(found[0] if len(found) == 1 else Verdicts(tuple(found)))


def _verdict(construction: str, mechanism: str, words: Words, delta: str, engine: str) -> Verdict:
    return verdict_on_one(construction, mechanism, words, engine=engine, delta=delta)


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
    for each value of y: `values` of every layer, `low` and `high` where there is an interval, `formula` where
    one of the boundary is known (its zeros are the boundary).
    """
    found = _map(construction, mechanisms, words, options, quick, tell)
    heading: dict[str, Any] = dict(found.as_json())
    arrays: list[tuple[dict[str, Any], Any]] = []
    for place, layer in enumerate(found.shown):
        names = ("values", "low", "high") if layer.has_interval else ("values",)
        arrays += [({"layer": place, "name": name}, getattr(layer, name)) for name in names]
        known = found.boundary_formula(layer)
        if known is not None:
            formula, values = known
            said = {"formula": formula.formula, "tag": formula.tag, "limit": formula.limit}
            arrays.append(({"layer": place, "name": "formula", **said}, values))
    heading["layers"] = [
        {name: each[name] for name in ("mechanism", "engine", "evidence", "remark")}
        for each in heading["layers"]
    ]
    heading |= {
        "arrays": [said for said, _ in arrays],
        "shape": list(found.places.shape),
        "title": captions.title(found),
        "sentences": captions.sentences(found),
        "command": captions.made_by(found),
    }
    head = json_text(finite(heading), indent=None).encode()
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
    _refuse_large(construction, mechanisms, words, MOST_CELLS)

    def step(so_far: Step) -> None:
        if quick and so_far.seconds > LONGEST_QUICK:
            raise Slow(SLOW)
        if so_far.total > MOST_SLOW_CELLS:
            raise UsageError(
                f"{so_far.mechanism} has no closed form for whole maps; {so_far.total:,} cells one by one "
                f"are more than the page makes ({MOST_SLOW_CELLS:,}); take fewer, or give the command in "
                "a terminal"
            )
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


def _refuse_large(construction: str, mechanisms: str, words: Words, most: int) -> None:
    """Refuse more cells than a page has points before any of them is made."""
    axes, fixed = split_axes(words)
    asked = question(construction, (split_mechanisms(mechanisms) or [mechanisms])[0], fixed, axes)
    cells = 1
    for name, text in axes.items():
        cells *= read_counted(asked.schema_of(name), name, text)[1]
    if cells > most:
        raise UsageError(
            f"this map has {cells:,} cells, more than the page makes ({most:,}); "
            "give the command in a terminal"
        )


@answer
def boundaries(
    construction: str, mechanisms: str, words: Words, options: Words, quick: bool, tell: Tell
) -> bytes:
    """What `separatrix boundary --json` prints, for one mechanism; a curve with `over`."""
    level, engine = options.get("at", "0.5"), options.get("engine", "auto")
    sampling = sampling_of(options)
    if "over" in options:
        if quick:
            raise Slow(SLOW)
        return document(
            boundary_curve(
                construction,
                mechanisms,
                dict(words),
                options["over"],
                at=level,
                engine=engine,
                sampling=sampling,
                tell=lambda what: tell({"what": what}),
            )
        )
    if not quick:
        return document(
            boundary(
                construction, mechanisms, dict(words), probability=level, engine=engine, sampling=sampling
            )
        )
    return document(
        by_closed_form(
            engine, lambda name: boundary(construction, mechanisms, words, probability=level, engine=name)
        )
    )


@answer
def certificate(
    construction: str, mechanisms: str, words: Words, options: Words, quick: bool, tell: Tell
) -> bytes:
    """The file that `separatrix verdict --certificate` writes."""
    found = verdict_on_one(
        construction, mechanisms, words, engine="certified", delta=options.get("delta", "0.01")
    )
    try:
        document_of = certify(found.construction, found.mechanism, found.delta)[1]
    except EngineRefusal as refused:
        raise UsageError(f"there is no certificate of this: {refused.reason}") from None
    return written(".json", lambda out: write_certificate(out, document_of))
