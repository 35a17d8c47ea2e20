"""Limits that several mechanisms set their parameters."""

from __future__ import annotations

from separatrix.core.parameters import Constraint


def least(name: str, bound: int) -> Constraint:
    """`name` is `bound` or more."""
    return Constraint(
        (name,),
        lambda p: getattr(p, name) >= bound,
        lambda p: f"{name}={getattr(p, name)} is out of range; {name} must be {bound} or more",
    )


SEED = Constraint(
    ("seed",),
    lambda p: 0 <= p.seed < 2**63,
    lambda p: f"seed={p.seed} is out of range; a seed is at least 0 and below 2^63",
)
