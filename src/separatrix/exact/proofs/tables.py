"""The probabilities of one neuron for every n, from the lines of firing thresholds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from separatrix.core.errors import EngineRefusal
from separatrix.exact.engines.certified import TRIPLES, TailCounts, count_states
from separatrix.exact.engines.outcome import Neuron
from separatrix.exact.proofs.lines import FiringLine

MAX_WORK = 100_000_000
"""The largest number of steps of all lines times d-2, which take seconds to minutes."""


@dataclass(frozen=True)
class Piece:
    """The exact probabilities of one neuron from this t until the next piece, the last for ever."""

    t: int
    neuron: Neuron


def tabulate(lines: Sequence[FiringLine]) -> tuple[Piece, ...]:
    """Return the probabilities at every t, as pieces on which they are constant."""
    most = sum(line.most_steps() for line in lines)
    if most * lines[0].block_count > MAX_WORK:
        raise EngineRefusal(
            f"open: up to {most:,} changes of firing thresholds are too many to examine; take a smaller d"
        )
    changes: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for number, line in enumerate(lines):
        for t, least in line.steps:
            changes[t].append((number, _least_existing(line, least)))
    block_count = lines[0].block_count
    tails = TailCounts(block_count - 1)
    current = [block_count] * len(lines)
    # The first row to fire decides, so a label's least P is the least of its rows.
    rows = [
        [[i for i, line in enumerate(lines) if (line.label, line.signs) == (label, signs)] for signs in TRIPLES]
        for label in (0, 1)
    ]
    pieces: list[Piece] = []
    previous: list[list[int]] = []
    for t in sorted(changes):
        for number, least in changes[t]:
            current[number] = least
        counts = [[min(current[i] for i in group) for group in groups] for groups in rows]
        if counts == previous:
            continue
        previous = counts
        neuron = count_states(counts[0], counts[1], tails)
        if not pieces or pieces[-1].neuron != neuron:
            pieces.append(Piece(t, neuron))
    return tuple(pieces)


def _least_existing(line: FiringLine, least: int) -> int:
    """Return the least P at which a row exists and fires: one in a + block needs P > 0, one in a - block P < d-3.

    A row in a - block fires up to P = d-4 only; at P = d-3, that of its block with the sign + fires.
    """
    if line.own_sign < 0 and least >= line.block_count - 1:
        return line.block_count
    return max(least, 1) if line.own_sign > 0 else least
