"""The texts that cards and the atlas show of a mechanism on one construction."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from separatrix.analysis.cards.card import Card
from separatrix.analysis.cards.construction_result import ConstructionResult, NoConstructionResult
from separatrix.core.numbers.spelling import whole_for_people
from separatrix.pages.verdict_words import LETTERS, MARKS, RESCUES, short_probability

MAX_LAW = 9
"""Characters of a law in a narrow column."""
WORST_FIRST = ("none", "blind", "saturated", "undecided", "partial", "distinguishes")


@dataclass(frozen=True)
class StandingText:
    """The texts of one cell; empty where there is no answer."""

    name: str
    """The construction."""
    word: str
    evidence: str
    """The probability with its interval and its evidence, or the reason why there is none."""
    p: str = ""
    growth: str = ""
    law: str = ""
    """The growth of the margin in at most `MAX_LAW` characters."""
    bits: str = ""
    blind_from: str = ""
    letter: str = ""
    """Of the verdict, or of the reader that tells apart what this one does not."""


def standing_text(standing: ConstructionResult | NoConstructionResult) -> StandingText:
    """Return the texts of a standing."""
    if isinstance(standing, NoConstructionResult):
        return StandingText(standing.name, standing.word, standing.evidence, letter=LETTERS[standing.word])
    outcome, rescue = standing.verdict.outcome, standing.rescue
    low, high = outcome.interval
    interval = "" if low == high else f" in [{low:.4g}, {high:.4g}]"
    addition = "" if rescue is None else f"; {rescue.by.value}: {rescue.evidence}"
    has_rescue = rescue is not None and standing.word in ("blind", "saturated")
    growth = describe_growth(standing)
    return StandingText(
        name=standing.name,
        word=standing.word,
        evidence=f"P = {outcome.distinguish:.6g}{interval}; {outcome.engine}: {outcome.evidence}{addition}",
        letter=RESCUES[rescue.by.value][0] if rescue is not None and has_rescue else LETTERS[standing.word],
        p=f"{MARKS[standing.point.kind]} {short_probability(outcome.distinguish)}",
        growth=growth,
        law=growth if len(growth) <= MAX_LAW else "other law",
        bits="" if math.isnan(standing.verdict.bits) else f"{standing.verdict.bits:.3g}",
        blind_from=_describe_blindness(standing),
    )


def sort_worst_first(card: Card, other_cards: Sequence[Card]) -> list[tuple[str, list[StandingText]]]:
    """Return the cells of a card and of others by construction, those on which it fails first."""
    columns = [
        {standing.name: standing_text(standing) for standing in column_card.constructions.values()}
        for column_card in (card, *other_cards)
    ]
    rows = [(name, [column[name] for column in columns]) for name in columns[0]]
    return sorted(rows, key=lambda row: WORST_FIRST.index(row[1][0].word))


def describe_growth(standing: ConstructionResult) -> str:
    """Return how the margin grows with n: its power of n, or the name of its law."""
    law = standing.growth.law
    if law is None:
        return "–"
    return f"n^{law.exponent:+.2f}".replace("-", "−") if law.name == "power law" else law.name


def _describe_blindness(standing: ConstructionResult) -> str:
    """Return the length from which on it is blind, with ≈ where that was sampled."""
    start = standing.blindness.blind_from_n
    if start is None:
        return f"none found up to {whole_for_people(standing.blindness.blind_searched_to)}"
    size = f"{start:,}" if start < 10**6 else f"{start:.3g}".replace("e+", "e")
    return size if standing.blindness.blind_from_n_is == "exact" else f"≈{size}"
