"""Tasks whose samples to train with are shorter than those to choose and to test with."""

from __future__ import annotations

from typing import ClassVar

from separatrix.parameters import Constraint, Natural, Parameters, between
from separatrix.tasks._base import Split

MOST = 16384


class Lengths(Parameters):
    """How long samples are to train with, and how long to validate and test with."""

    trained: Natural
    tested: Natural
    constraints: ClassVar[tuple[Constraint, ...]] = (
        between("trained", 2, MOST),
        between("tested", 2, MOST),
        Constraint(
            ("trained", "tested"),
            lambda p: p.trained <= p.tested,
            lambda p: f"tested={p.tested} must be trained={p.trained} or more",
        ),
    )

    def length(self, split: Split) -> int:
        """How long the samples of a split are."""
        return self.trained if split is Split.TRAIN else self.tested

    def first_asked(self, split: Split) -> int:
        """Before it nothing is asked: of longer samples only what lies beyond the trained length counts."""
        return 0 if self.length(split) == self.trained else self.trained
