"""Words for what is stored: parameters, counts, probabilities. Templates escape them."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from separatrix.reports.commands import number as number_
from separatrix.reports.commands import spelled
from separatrix.reports.pages import short
from separatrix.reports.verdict_words import MARKS


def words(parameters: Mapping[str, str]) -> str:
    """Parameters as one would type them.

    >>> words({"n": "100000000", "form": "identity"})
    'n=1e8 form=identity'
    """
    return short(" ".join(f"{name}={spelled(value)}" for name, value in parameters.items()))


def count(number: int, noun: str) -> str:
    """A number of things.

    >>> count(1, "cell has"), count(1200, "cell has")
    ('1 cell has', '1,200 cells have')
    """
    if number == 1:
        return f"1 {noun}"
    word, _, verb = noun.partition(" ")
    plural = {"has": " have", "is": " are", "": ""}[verb]
    return f"{number:,} {word}s{plural}"


def chance(p: float) -> str:
    """P in four digits, never rounded to certainty.

    >>> chance(0.99976), chance(0.999999), chance(1.0), chance(2.5e-7)
    ('0.9998', '> 0.9999', '1', '2.5×10⁻⁷')
    """
    return "> 0.9999" if 0.99995 <= p < 1 else number_(p)


def evidence(cells: pl.DataFrame) -> str:
    """How the probabilities of these cells are known: `840 exact, 20 sampled`."""
    counts = cells.filter(pl.col("kind") != "none").group_by("kind").len().sort("kind")
    kinds = dict(counts.iter_rows())
    return ", ".join(f"{kinds[kind]:,} {kind}" for kind in MARKS if kind in kinds)
