"""The atlas, cell by cell, and the cards of mechanisms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from separatrix import catalog
from separatrix.analysis.cards.assessment import assess, find_call_failure
from separatrix.analysis.cards.atlas import atlas, find_sort_key, select_cells
from separatrix.analysis.cards.card import Card
from separatrix.analysis.cards.construction_result import AtlasVerdict, reference_points
from separatrix.constructions import Construction, construction_named
from separatrix.contract import CHECKS, lattice
from separatrix.core.parameters import SeparatrixError, UsageError, split_mechanisms
from separatrix.exact.engines import solve
from separatrix.exact.verdicts import DELTA, Verdict
from separatrix.mechanisms import Mechanism
from separatrix.mechanisms.calling import calling_of
from separatrix.mechanisms.custom import CustomMechanism
from separatrix.mechanisms.load import mechanism_from
from separatrix.pages.verdict_words import LETTERS, MARKS, MEANINGS, RESCUES
from separatrix.web.answers._base import SLOW, Tell, answer, by_closed_form, document, how_called
from separatrix.web.workers import Slow

MOST_CELLS = 120
"""Of the atlas in one request: a row of it, or two columns."""
AFTER_CONTRACT = 3
"""Steps of a card after contract and constructions: likeness, and the cost of softmax and its own."""

Words = Mapping[str, str]


@answer
def atlas_table(mechanisms: str, own: list[str], options: Words, quick: bool, tell: Tell) -> bytes:
    """The rows and columns of the atlas, before any cell is made; one's own mechanisms come first."""
    chosen, columns = _asked(mechanisms, options)
    find_sort_key(options.get("sort", "family"), columns)
    rows = [{**_row(each), "own": False} for each in chosen]
    if not mechanisms and not options.get("family"):
        rows = [{**_row(mechanism_from(name)), "asked_as": name, "own": True} for name in own] + rows
    return document(
        {
            "mechanisms": rows,
            "constructions": [_column(name, reference_points()[name]) for name in columns],
            "words": [
                {"word": word, "letter": LETTERS[word], "meaning": meaning}
                for word, meaning in MEANINGS.items()
            ],
            "rescues": [
                {"by": by, "letter": letter, "meaning": meaning} for by, (letter, meaning) in RESCUES.items()
            ],
            "marks": MARKS,
        }
    )


def _asked(mechanisms: str, options: Words) -> tuple[list[Mechanism], list[str]]:
    return select_cells(mechanisms or None, options.get("constructions"), options.get("family"))


def _row(mechanism: Mechanism) -> dict[str, Any]:
    name = mechanism.spelled
    return {"mechanism": name, "asked_as": name, "family": mechanism.family, "formula": mechanism.formula}


def _column(name: str, point: Construction) -> dict[str, Any]:
    return {
        "name": name,
        "construction": point.name,
        "title": construction_named(point.name).title,
        "parameters": point.parameters.as_json(),
    }


@answer
def atlas_order(mechanisms: str, options: Words, quick: bool, tell: Tell) -> bytes:
    """Nothing, or why rows cannot be sorted so."""
    find_sort_key(options["sort"], _asked(mechanisms, options)[1])
    return b"{}"


@answer
def atlas_verdicts(mechanisms: str, options: Words, quick: bool, tell: Tell) -> bytes:
    """The cells of the atlas that a closed form answers, at the reference points alone."""
    chosen, columns = _asked(mechanisms, options)
    found = ((name, _at_once(reference_points()[name], each)) for each in chosen for name in columns)
    return document(
        [AtlasVerdict.from_verdict(name, each).as_json() for name, each in found if each is not None]
    )


def _at_once(point: Construction, mechanism: Mechanism) -> Verdict | None:
    """The verdict by the strongest engine that draws nothing; None where there is none."""
    try:
        outcome = by_closed_form("auto", lambda engine: solve(point, mechanism, engine))
    except SeparatrixError:
        return None
    return Verdict(point, mechanism, outcome, DELTA)


@answer
def atlas_cells(mechanisms: str, options: Words, quick: bool, tell: Tell) -> bytes:
    """What `separatrix atlas --json` prints."""
    chosen, columns = _asked(mechanisms, options)
    find_sort_key(options.get("sort", "family"), columns)
    cells = len(chosen) * len(columns)
    if cells > MOST_CELLS:
        raise UsageError(
            f"these are {cells:,} cells, more than the page makes at once ({MOST_CELLS}); name some with "
            "--mechanisms and --constructions, or give the command in a terminal"
        )
    if quick:
        raise Slow(SLOW)
    return document(
        atlas(
            chosen,
            options.get("constructions"),
            sort=options.get("sort", "family"),
            tell=lambda done, total, what: tell({"done": done, "total": total, "what": what}),
        )
    )


@answer
def mechanism_heading(mechanisms: str, options: Words, quick: bool, tell: Tell) -> bytes:
    """What is known of a mechanism before anything is computed of it."""
    one = mechanism_from(mechanisms, **how_called(options))
    own = isinstance(one, CustomMechanism)
    name = one.name
    known = next((mechanism for mechanism in catalog.list_mechanisms() if mechanism["name"] == name), None)
    about = known or {
        "name": name,
        "family": "your own" if own else one.family,
        "formula": one.formula,
        "parameters": [],
        "source": "",
    }
    return document(
        {
            "mechanism": one.spelled,
            "listed": {**about, **catalog.describe_mechanism(name)},
            "calling": [] if not own or find_call_failure(one) else calling_of(one).words,
            "special_cases": [
                edge
                for edge in lattice.list_special_cases()
                if name in (edge["special"].partition(":")[0], edge["general"].partition(":")[0].split()[0])
            ],
        }
    )


@answer
def card(mechanisms: str, options: Words, quick: bool, tell: Tell) -> bytes:
    """What `separatrix assess --json` prints; the card as far as it is comes with the steps."""
    against = split_mechanisms(options.get("against", ""))
    if quick:
        raise Slow(SLOW)
    only_contract = options.get("quick", "no") == "yes"
    one_card = len(CHECKS) + (0 if only_contract else len(reference_points()) + AFTER_CONTRACT)
    total, done = one_card * (1 + len(against)), 0

    def step(what: str) -> None:
        nonlocal done
        tell({"what": what, "done": min(done, total), "total": total})
        done += 1

    def on_update(found: Card) -> None:
        tell({"card": found.as_json(), "done": min(done, total), "total": total})

    return document(
        assess(mechanisms, against, step, **how_called(options), quick=only_contract, on_update=on_update)
    )
