"""How the margin grows with the number of tokens, on the ladder of lengths that every card asks for."""

from __future__ import annotations

from dataclasses import dataclass

from separatrix.constructions import Construction
from separatrix.laws import Law, find_scaling
from separatrix.mechanisms import Mechanism
from separatrix.parameters import SeparatrixError

LENGTHS = "1e3:1e12:10:log"
"""Lengths asked for; where every token is needed, `scaling` takes shorter ones, and the card says which."""


@dataclass(frozen=True)
class Growth:
    """What `separatrix scaling CONSTRUCTION MECHANISM n=1e3:1e12:10:log --of margin` finds."""

    law: Law | None
    lengths: tuple[int, ...] = ()
    """The lengths that were used."""
    why: str = ""
    """Why there is no law, where there is none."""


def growth_of_margin(point: Construction, mechanism: Mechanism) -> Growth:
    """The law of the margin as n grows and everything else stays as it is at this point.

    >>> from separatrix.constructions import Spike
    >>> from separatrix.mechanisms import Linear
    >>> growth_of_margin(Spike.read(Spike.example), Linear()).law.spelled
    '-1.0000 ± 4e-09'
    """
    asked = {**point.parameters.shown(), "n": LENGTHS}
    try:
        found = find_scaling(point.name, mechanism, asked)
    except SeparatrixError as refused:
        return Growth(None, why=str(refused))
    return Growth(found.law, tuple(value.n for value in found.values if value.n is not None))
