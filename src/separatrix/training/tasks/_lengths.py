"""Tasks whose samples to train with are shorter than those to choose and to test with."""

from __future__ import annotations

from typing import ClassVar

from separatrix.core.parameters import Constraint, Natural, Parameters, between
from separatrix.training.tasks._base import Split, Task

MOST = 16384


class Lengths(Parameters):
    """How long samples are to train with, and how long to validate and test with."""

    trained: Natural
    tested: Natural
    also: str | None = None
    """Further lengths at which a finished run is tested once, with commas between them: 64,256."""
    constraints: ClassVar[tuple[Constraint, ...]] = (
        between("trained", 2, MOST),
        between("tested", 2, MOST),
        Constraint(
            ("trained", "tested"),
            lambda p: p.trained <= p.tested,
            lambda p: f"tested={p.tested} must be trained={p.trained} or more",
        ),
        Constraint(
            ("trained", "also"),
            lambda p: p.also is None or all(p.trained <= each <= MOST for each in p.further),
            lambda p: (
                f"also={p.also} must be lengths from trained={p.trained} to {MOST}, with commas between them"
            ),
        ),
    )

    @property
    def further(self) -> tuple[int, ...]:
        """The lengths of `also`; one that is no length is 0."""
        words = [] if self.also is None else self.also.split(",")
        digits = [word.isascii() and word.isdigit() and len(word) <= len(str(MOST)) for word in words]
        return tuple(int(each) if good else 0 for each, good in zip(words, digits, strict=True))

    def length(self, split: Split) -> int:
        """How long the samples of a split are."""
        return self.trained if split is Split.TRAIN else self.tested

    def first_asked(self, split: Split) -> int:
        """Before it nothing is asked: of longer samples only what lies beyond the trained length counts."""
        return 0 if self.length(split) == self.trained else self.trained


class LengthTask(Task):
    """A task that may be asked at several lengths."""

    parameters: Lengths

    def further(self) -> dict[int, Task]:
        changed = [{**self.parameters.shown(), "tested": each} for each in self.parameters.further]
        made = [self.read({name: x for name, x in each.items() if name != "also"}) for each in changed]
        return dict(zip(self.parameters.further, made, strict=True))
