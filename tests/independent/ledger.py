"""The prediction ledger, computed a second time from documents of experiments.

Nothing of Separatrix is imported here. An experiment is the JSON that `separatrix learn --json` prints; the
probability of telling a construction's labels apart is handed in.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

CLOSE = 0.015
"""Two scores nearer than this are alike (`separatrix learn --help` and docs/trained-evidence.md)."""
ENOUGH_BYTES = 128
"""Bytes of state for each pair that hold a key and a value of 16 float32 numbers each: 2 * 16 * 4."""
NORMAL_97_5 = 1.959963984540054
LEAST_PAIRS = 4


@dataclass(frozen=True)
class Trained:
    """What one experiment says of one mechanism."""

    task: str
    words: str
    mechanism: str
    median: float
    floor: float
    ceiling: float
    sign: int
    """1 where a larger score is better, -1 where it is an error."""
    proved: float | None
    state_bytes: int | None
    pairs: int | None

    @property
    def share(self) -> float:
        """How far from floor to ceiling training came; 0 if it is no better than the floor."""
        gap = self.ceiling - self.floor
        return max(0.0, (self.median - self.floor) / gap) if gap else 0.0


def collect(documents: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Trained]:
    """Return every trained mechanism of every experiment once; an experiment is named by its words."""
    rows = list[Trained]()
    for words, document in documents:
        for entry in document["mechanisms"]:
            known = any(row.words == words and row.mechanism == entry["mechanism"] for row in rows)
            if entry["trained"] is None or known:
                continue
            rows.append(
                Trained(
                    document["task"],
                    words,
                    entry["mechanism"],
                    median(entry["trained"]["seeds"]),
                    document["floor"],
                    document["ceiling"],
                    1 if document["ceiling"] >= document["floor"] else -1,
                    entry["proved_ceiling"],
                    entry["state_bytes"],
                    document["parameters"].get("pairs"),
                )
            )
    return rows


def ranks(numbers: Sequence[float]) -> list[float]:
    """Ranks from 1 on; equal numbers share the mean of theirs."""
    return [
        sum(other < number for other in numbers) + (1 + sum(other == number for other in numbers)) / 2
        for number in numbers
    ]


def spearman(one: Sequence[float], other: Sequence[float]) -> float | None:
    """The correlation of ranks; None for fewer than four pairs or a constant side."""
    if len(one) < LEAST_PAIRS or len({*one}) == 1 or len({*other}) == 1:
        return None
    x, y = ranks(one), ranks(other)
    mean_x, mean_y = math.fsum(x) / len(x), math.fsum(y) / len(y)
    covariance = math.fsum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True))
    variances = math.fsum((a - mean_x) ** 2 for a in x) * math.fsum((b - mean_y) ** 2 for b in y)
    return covariance / math.sqrt(variances)


def interval(correlation: float | None, count: int) -> tuple[float, float] | None:
    """95 % by Fisher's transformation with the variance (1 + r²/2)/(n - 3) of Bonett and Wright."""
    if correlation is None or abs(correlation) > 1 - 1e-9:
        return None
    centre = 0.5 * math.log((1 + correlation) / (1 - correlation))
    half = NORMAL_97_5 * math.sqrt((1 + correlation**2 / 2) / (count - 3))
    return math.tanh(centre - half), math.tanh(centre + half)


Pair = tuple[str, str, float, float]


def ceilings(rows: Sequence[Trained]) -> tuple[list[Pair], int]:
    """Proved ceilings against training: the pairs, and how many stay below by more than `CLOSE`."""
    chosen = [row for row in rows if row.proved is not None]
    pairs = [(row.words, row.mechanism, row.sign * float(row.proved or 0), row.sign * row.median) for row in chosen]
    return pairs, sum(proved - trained > CLOSE for _, _, proved, trained in pairs)


def constructions(rows: Sequence[Trained], probability: Callable[[Trained], float | None]) -> tuple[list[Pair], int]:
    """P(tells apart) against training: the pairs, and how many are on opposite sides by more than a half."""
    pairs, misses = list[Pair](), 0
    for row in rows:
        chance = probability(row)
        if chance is not None:
            pairs.append((row.words, row.mechanism, chance, row.sign * row.median))
            misses += abs(chance - row.share) > 0.5
    return pairs, misses


def states(rows: Sequence[Trained]) -> tuple[list[Pair], int]:
    """Bytes of state for each pair to recall: the pairs, and how many had enough and came not half way."""
    pairs, misses = list[Pair](), 0
    for row in rows:
        if row.task == "mqar" and row.state_bytes is not None and row.proved is None and row.pairs is not None:
            pairs.append((row.words, row.mechanism, row.state_bytes / row.pairs, row.sign * row.median))
            misses += row.state_bytes / row.pairs > ENOUGH_BYTES and row.share < 0.5
    return pairs, misses
