"""How the margin grows with the number of tokens, on the ladder of lengths that every card asks for."""

from __future__ import annotations

from dataclasses import dataclass

from separatrix.analysis.laws import Law, scaling
from separatrix.analysis.laws.margins import is_literal
from separatrix.constructions import Construction
from separatrix.core.parameters import SeparatrixError
from separatrix.mechanisms import Mechanism

FAR, NEAR = "1e3:1e12:10:log", "200:1600:4:log"
"""The lengths asked for: with token groups, and where every token is needed."""


@dataclass(frozen=True)
class Growth:
    """What `separatrix scaling CONSTRUCTION MECHANISM n=1e3:1e12:10:log … --of margin` finds."""

    law: Law | None
    lengths: tuple[int, ...] = ()
    """The lengths that were used."""
    why: str = ""
    """Why there is no law, where there is none."""


def growth_of_margin(point: Construction, mechanism: Mechanism) -> Growth:
    """The law of the margin as n grows and everything else stays as it is at this point.

    >>> from separatrix.constructions.spike import Spike
    >>> from separatrix.mechanisms import Linear
    >>> growth_of_margin(Spike.read(Spike.example), Linear()).law.exponent_text
    '-1.0000 ± 4×10⁻⁹'
    """
    lengths = NEAR if is_literal(point, mechanism) else FAR
    try:
        found = scaling(point.name, mechanism, {**point.parameters.shown(), "n": lengths})
    except SeparatrixError as refused:
        return Growth(None, why=str(refused))
    return Growth(found.law, tuple(value.n for value in found.values if value.n is not None))
