"""What a card and the atlas show of a mechanism on one construction."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from separatrix.analysis.cards.card import Card
from separatrix.analysis.cards.construction_result import ConstructionResult, NoConstructionResult
from separatrix.core.numbers.spelling import whole_for_people
from separatrix.pages.verdict_words import LETTERS, MARKS, RESCUES, probability


@dataclass(frozen=True)
class ShownStanding:
    """The texts of one cell; empty where there is no answer."""

    name: str
    """The construction."""
    word: str
    evidence: str
    """The probability with its interval, and what stands behind it; or why there is none."""
    p: str = ""
    growth: str = ""
    law: str = ""
    """The growth in at most nine characters."""
    bits: str = ""
    blind_from: str = ""
    letter: str = ""
    """Of the word, or of who tells apart what this reader does not."""


def shown(found: ConstructionResult | NoConstructionResult) -> ShownStanding:
    """The cell of a standing."""
    if isinstance(found, NoConstructionResult):
        return ShownStanding(found.name, found.word, found.evidence, letter=LETTERS[found.word])
    outcome = found.verdict.outcome
    low, high = outcome.interval
    where = "" if low == high else f" in [{low:.4g}, {high:.4g}]"
    rescued = "" if found.rescue is None else f"; {found.rescue.by.value}: {found.rescue.evidence}"
    return ShownStanding(
        name=found.name,
        word=found.word,
        evidence=f"P = {outcome.distinguish:.6g}{where}; {outcome.engine}: {outcome.evidence}{rescued}",
        letter=_letter(found),
        p=f"{MARKS[found.point.kind]} {probability(outcome.distinguish)}",
        growth=exponent(found),
        law=exponent(found) if len(exponent(found)) < 10 else "other law",
        bits=bits(found),
        blind_from=blind_from(found),
    )


def _letter(found: ConstructionResult) -> str:
    if found.rescue is None or found.word not in ("blind", "saturated"):
        return LETTERS[found.word]
    return RESCUES[found.rescue.by.value][0]


WORST = ("none", "blind", "saturated", "undecided", "partial", "distinguishes")


def worst_first(card: Card, others: Sequence[Card]) -> list[tuple[str, list[ShownStanding]]]:
    """The cells of a card and of others by construction, those on which it fails first."""
    columns = [{cell.name: shown(cell) for cell in each.constructions.values()} for each in (card, *others)]
    rows = [(name, [column[name] for column in columns]) for name in columns[0]]
    return sorted(rows, key=lambda row: WORST.index(row[1][0].word))


def exponent(found: ConstructionResult) -> str:
    """How the margin grows with n: its power of n, or the name of its law."""
    law = found.growth.law
    if law is None:
        return "–"
    return f"n^{law.exponent:+.2f}".replace("-", "−") if law.name == "power law" else law.name


def bits(found: ConstructionResult) -> str:
    """The significant bits needed, or nothing where the margin is not known."""
    needed = found.verdict.bits
    return "" if math.isnan(needed) else f"{needed:.3g}"


def blind_from(found: ConstructionResult) -> str:
    """The length from which on it is blind, about where that was sampled; or that none was found."""
    start = found.blindness.blind_from_n
    if start is None:
        return f"none found up to {whole_for_people(found.blindness.blind_searched_to)}"
    size = f"{start:,}" if start < 10**6 else f"{start:.3g}".replace("e+", "e")
    return size if found.blindness.blind_from_n_is == "exact" else f"≈{size}"
