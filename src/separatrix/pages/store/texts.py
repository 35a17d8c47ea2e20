"""Texts about stored cells: parameters, counts, probabilities. Templates escape them."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from separatrix.pages.commands import spell_number, spell_value
from separatrix.pages.pages import shorten_text
from separatrix.pages.verdict_words import MARKS

MAX_NAMED = 4
"""Mechanisms that one sentence names."""


def join_parameters(parameters: Mapping[str, str]) -> str:
    """Return parameters as they are typed.

    >>> join_parameters({"n": "100000000", "form": "identity"})
    'n=1e8 form=identity'
    """
    return shorten_text(" ".join(f"{name}={spell_value(value)}" for name, value in parameters.items()))


def spell_count(number: int, noun: str) -> str:
    """Return a number of things.

    >>> spell_count(1, "cell has"), spell_count(1200, "cell has")
    ('1 cell has', '1,200 cells have')
    """
    if number == 1:
        return f"1 {noun}"
    word, _, verb = noun.partition(" ")
    plural = {"has": " have", "is": " are", "": ""}[verb]
    return f"{number:,} {word}s{plural}"


def spell_probability(p: float) -> str:
    """Return P in four digits, never rounded to certainty.

    >>> spell_probability(0.99976), spell_probability(0.999999), spell_probability(1.0)
    ('0.9998', '> 0.9999', '1')
    """
    return "> 0.9999" if 0.99995 <= p < 1 else spell_number(p)


def spell_duration(seconds: float) -> str:
    """Return seconds in the unit that suits them.

    >>> spell_duration(2.58), spell_duration(200), spell_duration(9000), spell_duration(1e7)
    ('2.58 s', '3.33 min', '2.5 h', '2,778 h')
    """
    for length, unit in ((3600, "h"), (60, "min")):
        if seconds >= length:
            count = seconds / length
            return f"{count:,.3g} {unit}" if count < 1000 else f"{count:,.0f} {unit}"
    return f"{seconds:.3g} s"


def describe_verdicts(cells: pl.DataFrame, everywhere: str = "in every cell") -> str:
    """Return which mechanisms distinguish in all of these cells, and which are blind; empty without verdicts.

    >>> cells = pl.DataFrame({"mechanism": ["softmax", "linear"], "word": ["distinguishes", "blind"]})
    >>> describe_verdicts(cells)
    'softmax tells D0 from D1 in every cell; linear is blind in every cell'
    """
    shares = (
        cells.filter(pl.col("word") != "none")
        .group_by("mechanism", maintain_order=True)
        .agg(
            cells=pl.len(),
            distinguishing=(pl.col("word") == "distinguishes").sum(),
            blind=(pl.col("word") == "blind").sum(),
        )
    )
    always = shares.filter(distinguishing=pl.col("cells"))["mechanism"].to_list()
    never = shares.filter(blind=pl.col("cells"))["mechanism"].to_list()
    if shares.height > MAX_NAMED:
        sometimes = shares.filter(pl.col("distinguishing") > 0).height
        return (
            f"of {shares.height} mechanisms {sometimes} tell D0 from D1 somewhere, {len(always)} "
            f"{everywhere}; {len(never)} are blind {everywhere}"
        )
    parts = [f"{shorten_text(name, 60)} tells D0 from D1 {everywhere}" for name in always]
    for name, total, count in shares.select("mechanism", "cells", "distinguishing").iter_rows():
        if name not in (*always, *never):
            share = f"{count:,}" if count else "none"
            parts.append(f"{shorten_text(name, 60)} tells D0 from D1 in {share} of {total:,} cells")
    return "; ".join([*parts, *(f"{shorten_text(name, 60)} is blind {everywhere}" for name in never)])


def count_evidence(cells: pl.DataFrame) -> str:
    """Return the kinds of evidence of these cells: `840 closed, 20 sampled`."""
    kinds = dict(cells.filter(pl.col("kind") != "none").group_by("kind").len().iter_rows())
    return ", ".join(f"{kinds[kind]:,} {kind}" for kind in MARKS if kind in kinds)
