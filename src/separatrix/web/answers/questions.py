"""Verdicts, boundaries and certificates."""

from __future__ import annotations

from functools import partial
from typing import Any

from separatrix.analysis.maps import Boundary, BoundaryCurve, boundary
from separatrix.core.parameters import UsageError, split_mechanisms
from separatrix.exact.engines import EngineRefusal
from separatrix.exact.verdicts import Verdict, Verdicts, certify, verdict, write_certificate
from separatrix.exact.verdicts.verdict import verdict as verdict_on_one
from separatrix.web.answers._base import (
    SLOW,
    Tell,
    Words,
    answer,
    by_closed_form,
    document,
    sampling_of,
    written,
)
from separatrix.web.workers import Slow


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
def boundaries(
    construction: str, mechanisms: str, words: Words, options: Words, quick: bool, tell: Tell
) -> bytes:
    """What `separatrix boundary --json` prints, for one mechanism; a curve with `over`."""
    level, engine = options.get("at", "0.5"), options.get("engine", "auto")
    if quick and "over" in options:
        raise Slow(SLOW)
    if quick:
        return document(
            by_closed_form(
                engine, lambda name: boundary(construction, mechanisms, words, probability=level, engine=name)
            )
        )
    found: Boundary | BoundaryCurve = boundary(
        construction,
        mechanisms,
        dict(words),
        over=options.get("over"),
        probability=level,
        engine=engine,
        sampling=sampling_of(options),
        tell=lambda done, total, what: tell({"what": what}),
    )
    return document(found)


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
