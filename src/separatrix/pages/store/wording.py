"""Words for what is stored: parameters, counts, probabilities. Templates escape them."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from separatrix.pages.commands import number as number_
from separatrix.pages.commands import spelled
from separatrix.pages.pages import short
from separatrix.pages.verdict_words import MARKS


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


MOST_NAMED = 4
"""Mechanisms that one sentence names."""


def finding(cells: pl.DataFrame, where: str = "in every cell") -> str:
    """Who tells D0 from D1 in all of these cells, who in none; empty where no cell has a verdict.

    >>> cells = pl.DataFrame({"mechanism": ["softmax", "linear"], "word": ["distinguishes", "blind"]})
    >>> finding(cells)
    'softmax tells D0 from D1 in every cell; linear is blind in every cell'
    """
    known = cells.filter(pl.col("word") != "none")
    shares = known.group_by("mechanism", maintain_order=True).agg(
        cells=pl.len(),
        told=(pl.col("word") == "distinguishes").sum(),
        blind=(pl.col("word") == "blind").sum(),
    )
    everywhere = shares.filter(told=pl.col("cells"))["mechanism"].to_list()
    nowhere = shares.filter(blind=pl.col("cells"))["mechanism"].to_list()
    if shares.height > MOST_NAMED:
        some = shares.filter(pl.col("told") > 0).height
        return (
            f"of {shares.height} mechanisms {some} tell D0 from D1 somewhere, {len(everywhere)} {where}; "
            f"{len(nowhere)} are blind {where}"
        )
    said = [f"{short(name, 60)} tells D0 from D1 {where}" for name in everywhere]
    for name, count, told in shares.select("mechanism", "cells", "told").iter_rows():
        if name not in (*everywhere, *nowhere):
            share = f"{told:,}" if told else "none"
            said.append(f"{short(name, 60)} tells D0 from D1 in {share} of {count:,} cells")
    return "; ".join([*said, *(f"{short(name, 60)} is blind {where}" for name in nowhere)])


def evidence(cells: pl.DataFrame) -> str:
    """How the probabilities of these cells are known: `840 exact, 20 sampled`."""
    counts = cells.filter(pl.col("kind") != "none").group_by("kind").len().sort("kind")
    kinds = dict(counts.iter_rows())
    return ", ".join(f"{kinds[kind]:,} {kind}" for kind in MARKS if kind in kinds)
