"""Refuse wrong parameters and options at once, before a request waits for a slow process."""

from __future__ import annotations

from collections.abc import Mapping

from separatrix.analysis.maps import QUANTITIES
from separatrix.analysis.maps.boundary import parse_level, read_second_axis, search_span, split_range
from separatrix.constructions import construction_named
from separatrix.constructions.reference import read_completed
from separatrix.core.parameters import all_parameters, require_known, split_mechanisms
from separatrix.core.parameters.ranges import Number, read_counted, split_axes
from separatrix.exact.engines import engine_named
from separatrix.exact.verdicts.question import Question, question
from separatrix.exact.verdicts.verdict import parse_delta
from separatrix.mechanisms.load import mechanism_from
from separatrix.web.answers._base import Tell, Words, answer, how_called, sampling_of
from separatrix.web.answers.maps import MOST_CELLS, refuse_large

VALID = b"{}"


@answer
def check_verdicts(
    construction: str, mechanisms: str, words: Words, options: Words, quick: bool, tell: Tell
) -> bytes:
    """Check the arguments of `verdicts` and `certificate`."""
    _require_options(options)
    parse_delta(options.get("delta", "0.01"))
    kind = construction_named(construction)
    read_completed(kind, all_parameters(dict(words), {}, kind.schema.model_fields))
    for name in split_mechanisms(mechanisms):
        mechanism_from(name)
    return VALID


@answer
def check_boundary(
    construction: str, mechanisms: str, words: Words, options: Words, quick: bool, tell: Tell
) -> bytes:
    """Check the arguments of `boundaries`."""
    _require_options(options)
    parse_level(options.get("at", "0.5"))
    over = read_second_axis(options.get("over"), words)
    name, text, fixed = split_range(words, options.get("over"))
    asked = question(construction, mechanisms, fixed, (name, *over))
    first: dict[str, Number] = {name: search_span(asked, name, text).start}
    for second, counted in over.items():
        first[second] = read_counted(asked.schema_of(second), second, counted)[0].start
    _require_point(asked, first)
    return VALID


@answer
def check_map(
    construction: str, mechanisms: str, words: Words, options: Words, quick: bool, tell: Tell
) -> bytes:
    """Check the arguments of maps, in whatever form they are answered."""
    _require_options(options)
    require_known("quantity", options.get("of", "distinguish"), QUANTITIES)
    refuse_large(construction, mechanisms, words, MOST_CELLS)
    axes, fixed = split_axes(words)
    for mechanism in split_mechanisms(mechanisms):
        asked = question(construction, mechanism, fixed, axes)
        spans = {name: read_counted(asked.schema_of(name), name, text)[0] for name, text in axes.items()}
        _require_point(asked, {name: span.start for name, span in spans.items()})
    return VALID


@answer
def check_card(mechanisms: str, options: Words, quick: bool, tell: Tell) -> bytes:
    """Check the arguments of `card`."""
    for name in (mechanisms, *split_mechanisms(options.get("against", ""))):
        mechanism_from(name, **how_called(options))
    return VALID


def _require_options(options: Words) -> None:
    engine_named(options.get("engine", "auto")).refuse_unused(sampling_of(options))


def _require_point(asked: Question, first: Mapping[str, Number]) -> None:
    """Read the construction and the mechanism at the first value of each range."""
    asked.mechanism(first)
    asked.point(first)
