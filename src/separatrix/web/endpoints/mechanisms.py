"""The atlas, cell by cell, and the cards of mechanisms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from separatrix import catalog
from separatrix.analysis.cards.card import Card
from separatrix.analysis.cards.construction_result import AtlasCell, AtlasVerdict, reference_points
from separatrix.constructions import Construction, construction_named
from separatrix.core.documents import Document
from separatrix.core.parameters import SeparatrixError, UsageError, split_mechanisms
from separatrix.core.schemas import lists
from separatrix.core.schemas._base import Values
from separatrix.exact.engines import solve
from separatrix.exact.verdicts import DELTA, Verdict
from separatrix.mechanisms import Mechanism
from separatrix.mechanisms.load import mechanism_from
from separatrix.web.endpoints._base import MechanismName, Options, endpoint, solve_without_draws
from separatrix.web.workers import Report, Slow

MAX_ATLAS_CELLS = 120
"""The cells of one request: a row of the atlas, or two columns."""
STEPS_AFTER_CONSTRUCTIONS = 3
"""Steps of a card after contract and constructions: its likeness, and the costs of softmax and its own."""
MIN_CALL_OPTIONS = {"width": 1, "heads": 1, "seed": 0}
"""The least value of each option that is a whole number."""
NO_WORDS_ATLAS = "of the atlas, which is at reference points"
NO_WORDS_CARD = "of a card; parameters are part of the name"
ATLAS_OPTIONS = {
    "mechanisms": "Comma-separated names (default: all).",
    "constructions": "Comma-separated names (default: all).",
    "family": "Only these families, comma-separated.",
    "sort": "family, name, seen, or a construction.",
}
CALL_OPTIONS = {
    "width": "For your own mechanism: the width of a head that it takes.",
    "heads": "For your own mechanism: the number of heads that it takes.",
    "scale": "For your own mechanism: multiply queries by this; sqrt undoes a hidden 1/sqrt(width).",
    "seed": "For your own class: seed for its initial weights.",
}


@dataclass(frozen=True)
class AtlasMechanism(Document):
    """A row of the atlas."""

    mechanism: str
    """As cells spell it."""
    asked_as: str
    """As a request names it."""
    family: str
    formula: str
    own: bool
    """Whether it was named on the command line."""


@dataclass(frozen=True)
class AtlasColumn(Document):
    """A construction of the atlas at its reference point."""

    name: str
    construction: str
    title: str
    parameters: Values


@dataclass(frozen=True)
class VerdictMeaning(Document):
    """The word and the letter of a verdict."""

    word: str
    letter: str
    meaning: str


@dataclass(frozen=True)
class RescueMeaning(Document):
    """The letter for cells that another reader tells apart."""

    by: str
    letter: str
    meaning: str


@dataclass(frozen=True)
class AtlasTable(Document):
    """The atlas without its cells."""

    mechanisms: list[AtlasMechanism]
    constructions: list[AtlasColumn]
    words: list[VerdictMeaning]
    rescues: list[RescueMeaning]
    marks: dict[str, str]
    """The mark of each kind of evidence."""


@endpoint("/atlas/table", AtlasTable, options=ATLAS_OPTIONS, why_no_words=NO_WORDS_ATLAS)
def describe_atlas(options: Options, own_mechanisms: list[str]) -> AtlasTable:
    """The rows and columns of the atlas, before any cell is computed; your own mechanisms come first."""
    from separatrix.pages.verdict_words import LETTERS, MARKS, MEANINGS, RESCUES

    selection, columns = _select_cells(options)
    rows = [_describe_row(mechanism, mechanism.spelled, own=False) for mechanism in selection]
    if not options.get("mechanisms") and not options.get("family"):
        rows = [_describe_row(mechanism_from(name), name, own=True) for name in own_mechanisms] + rows
    return AtlasTable(
        mechanisms=rows,
        constructions=[_describe_column(name, reference_points()[name]) for name in columns],
        words=[VerdictMeaning(word, LETTERS[word], meaning) for word, meaning in MEANINGS.items()],
        rescues=[RescueMeaning(by, letter, meaning) for by, (letter, meaning) in RESCUES.items()],
        marks=MARKS,
    )


def _select_cells(options: Options) -> tuple[list[Mechanism], list[str]]:
    """Return the mechanisms and columns that the options select; an empty option selects all."""
    from separatrix.analysis.cards.atlas import find_sort_key, select_cells

    selection, columns = select_cells(
        *(options.get(name) or None for name in ("mechanisms", "constructions", "family"))
    )
    find_sort_key(options.get("sort") or "family", columns)
    return selection, columns


def _describe_row(mechanism: Mechanism, asked_as: str, own: bool) -> AtlasMechanism:
    return AtlasMechanism(mechanism.spelled, asked_as, mechanism.family, mechanism.formula, own)


def _describe_column(name: str, point: Construction) -> AtlasColumn:
    title = construction_named(point.name).title
    return AtlasColumn(name, point.name, title, point.parameters.as_json())


@endpoint("/atlas/verdicts", list[AtlasVerdict], options=ATLAS_OPTIONS, why_no_words=NO_WORDS_ATLAS)
def solve_atlas_verdicts(options: Options) -> list[AtlasVerdict]:
    """The cells that a closed form answers at once, at the reference points alone; others are left out.

    The page sorts them; `--sort` is only checked.
    """
    selection, columns = _select_cells(options)
    verdicts = []
    for mechanism in selection:
        for name in columns:
            verdict = _solve_exactly(reference_points()[name], mechanism)
            if verdict is not None:
                verdicts.append(AtlasVerdict.from_verdict(name, verdict))
    return verdicts


def _solve_exactly(point: Construction, mechanism: Mechanism) -> Verdict | None:
    """Return the verdict of the strongest engine that draws nothing; None if there is none."""
    try:
        outcome = solve_without_draws("auto", partial(solve, point, mechanism))
    except (SeparatrixError, Slow):
        return None
    return Verdict(point, mechanism, outcome, DELTA)


@dataclass(frozen=True)
class ComputedCells(Document):
    """The cells that were computed since the explorer was started."""

    verdicts: list[AtlasVerdict]
    cells: list[AtlasCell]


@endpoint("/atlas/known", ComputedCells, in_server=True)
def list_computed_cells(cached_documents: Callable[..., list[Any]]) -> dict[str, Any]:
    """The cells that were computed since the explorer was started, and that are still cached."""
    answers = {"verdicts": solve_atlas_verdicts, "cells": compute_atlas}
    contents = {}
    for name, function in answers.items():
        cells = [cell for document in cached_documents(function) for cell in document]
        # The same cell may be part of several answers, for example of another order of the rows.
        by_place = {(cell["mechanism"], cell["construction"]): cell for cell in cells}
        contents[name] = list(by_place.values())
    return contents


@endpoint("/atlas", list[AtlasCell], options=ATLAS_OPTIONS, why_no_words=NO_WORDS_ATLAS)
def compute_atlas(options: Options, is_quick: bool, report: Report) -> Document:
    """What `separatrix atlas --json` prints, of some cells."""
    from separatrix.analysis.cards.atlas import atlas

    selection, columns = _select_cells(options)
    cells = len(selection) * len(columns)
    if cells > MAX_ATLAS_CELLS:
        raise UsageError(
            f"these are {cells:,} cells, more than the page makes at once ({MAX_ATLAS_CELLS}); name some "
            "with --mechanisms and --constructions, or give the command in a terminal"
        )
    if is_quick:
        raise Slow
    return atlas(
        selection,
        options.get("constructions") or None,
        sort=options.get("sort") or "family",
        tell=lambda done, total, cell: report({"done": done, "total": total, "what": cell}),
    )


@dataclass(frozen=True)
class MechanismHeading(Document):
    """What is known of a mechanism before anything is computed."""

    mechanism: str
    listed: lists.ListedMechanism
    """What `separatrix list mechanisms NAME --json` prints."""
    calling: list[str]
    """For your own mechanism: how it is called, one sentence each, a hidden scale first."""
    special_cases: list[lists.Edge]
    """What `separatrix list mechanisms --lattice --json` prints of it."""


@endpoint("/mechanism/{mechanism:path}", MechanismHeading, options=CALL_OPTIONS, why_no_words=NO_WORDS_CARD)
def describe_mechanism(mechanism: MechanismName, options: Options) -> MechanismHeading:
    """What is known of a mechanism before anything is computed: formula, source, special cases."""
    from separatrix.analysis.cards.assessment import find_call_failure
    from separatrix.contract import lattice
    from separatrix.mechanisms.calling import calling_of
    from separatrix.mechanisms.custom import CustomMechanism

    subject = mechanism_from(mechanism, **_read_call_options(options))
    is_own, name = isinstance(subject, CustomMechanism), subject.name
    row = next((row for row in catalog.list_mechanisms() if row["name"] == name), None)
    if row is None:
        family = "your own" if is_own else subject.family
        row = {"name": name, "family": family, "formula": subject.formula, "parameters": [], "source": ""}
    return MechanismHeading(
        mechanism=subject.spelled,
        listed={**row, **catalog.describe_mechanism(name)},  # type: ignore[typeddict-item]
        calling=[] if not is_own or find_call_failure(subject) else calling_of(subject).words,
        special_cases=[
            edge  # type: ignore[misc]
            for edge in lattice.list_special_cases()
            if name in (edge["special"].partition(":")[0], edge["general"].partition(":")[0].split()[0])
        ],
    )


@endpoint(
    "/assess/{mechanism:path}",
    Card,
    options={
        "against": "Mechanisms to compare with, with commas.",
        "quick": "yes: the contract alone.",
        **CALL_OPTIONS,
    },
    why_no_words=NO_WORDS_CARD,
)
def assess_mechanism(mechanism: MechanismName, options: Options, is_quick: bool, report: Report) -> Card:
    """What `separatrix assess --json` prints.

    A client that accepts `application/x-ndjson` gets the unfinished card in lines of progress, once the
    contract is checked and after each construction, and the whole card at the end.
    """
    from separatrix.analysis.cards.assessment import assess
    from separatrix.contract import CHECKS

    against, call_options = split_mechanisms(options.get("against", "")), _read_call_options(options)
    if is_quick:
        for name in (mechanism, *against):
            mechanism_from(name, **call_options)
        raise Slow
    only_contract = options.get("quick", "no") == "yes"
    steps_after_contract = 0 if only_contract else len(reference_points()) + STEPS_AFTER_CONSTRUCTIONS
    total, done = (len(CHECKS) + steps_after_contract) * (1 + len(against)), 0

    def step(activity: str) -> None:
        nonlocal done
        # The number of steps is an estimate, which must not show more than all of them.
        report({"what": activity, "done": min(done, total), "total": total})
        done += 1

    def report_card(unfinished: Card) -> None:
        report({"card": unfinished.as_json(), "done": min(done, total), "total": total})

    return assess(mechanism, against, step, **call_options, quick=only_contract, on_update=report_card)


def _read_call_options(options: Options) -> dict[str, Any]:
    """Read how a user's own mechanism is called."""
    values: dict[str, Any] = {"scale": options["scale"]} if "scale" in options else {}
    for name, least in MIN_CALL_OPTIONS.items():
        if name in options:
            if not options[name].isdecimal() or int(options[name]) < least:
                raise UsageError(f"--{name}={options[name]} is no whole number from {least} on")
            values[name] = int(options[name])
    return values
