"""Outputs as a number format keeps them: rounded once to the nearest, ties to even, subnormals and all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from separatrix.constructions import Label
from separatrix.numbers.formats import SIGNIFICANT_BITS, last_place, rounded
from separatrix.outputs._base import Array, Outputs

if TYPE_CHECKING:
    from separatrix.schemas import questions as documents

Bounds = tuple[Array, Array]
LABELS: tuple[Label, Label] = (0, 1)


@dataclass(frozen=True)
class Stored:
    """Both labels in one format."""

    same: bool | None
    """Whether every number of every row is the same in D0 and in D1; None where rounding is not certain."""
    ulps: float | None
    """The largest difference of two numbers, in units of the last place of the larger."""
    same_probe: bool | None
    """Whether the reading by which margins are measured is the same number, if it alone is kept."""

    def as_json(self) -> documents.StoredOutputs:
        """As `separatrix readers --json` prints it."""
        return {"same": self.same, "ulps": self.ulps, "same_probe": self.same_probe}


def stored(outputs: Outputs) -> dict[str, Stored]:
    """For each format: are the labels still apart once their outputs are kept in it?"""
    return {name: stored_in(outputs, name) for name in SIGNIFICANT_BITS}


def stored_in(outputs: Outputs, name: str) -> Stored:
    """The same for one format, as `bf16`."""
    if outputs.same:
        return Stored(True, 0.0, True)
    probes = [_kept(outputs, label, name, probe=True) for label in LABELS]
    rows = [_kept(outputs, label, name) for label in LABELS]
    if len(rows[0][0]) != len(rows[1][0]):  # every row of D1 against the nearest of D0
        nearest = np.abs(rows[1][0][:, None] - rows[0][0][None]).max(-1).argmin(1)
        rows[0] = rows[0][0][nearest], rows[0][1][nearest]
    same, ulps = _difference(rows[0], rows[1], name)
    if same and outputs.counts[0] != outputs.counts[1]:
        same = None
    return Stored(same, ulps, _difference(probes[0], probes[1], name)[0])


def _kept(outputs: Outputs, label: Label, name: str, probe: bool = False) -> Bounds:
    """Both ends of every number, in the format."""
    nearest = name == "fp64"
    if not probe:
        low, high = outputs.entries(label, nearest)
    else:
        low, high = (np.array(float(end)) for end in outputs.probe(label))
        if not nearest:
            low, high = np.nextafter(low, -np.inf), np.nextafter(high, np.inf)
    return (low, high) if nearest else (rounded(low, name), rounded(high, name))


def _difference(one: Bounds, other: Bounds, name: str) -> tuple[bool | None, float | None]:
    """Whether all numbers are the same (None: not certain), and the largest difference that is certain."""
    sure = (one[0] == one[1]) & (other[0] == other[1])
    apart = sure & (one[0] != other[0])
    if not apart.any():
        return (True, 0.0) if sure.all() else (None, None)
    with np.errstate(invalid="ignore"):
        steps = np.abs(other[0] - one[0]) / last_place(np.maximum(np.abs(one[0]), np.abs(other[0])), name)
    largest = float(steps[apart].max())
    return False, largest if np.isfinite(largest) else None
