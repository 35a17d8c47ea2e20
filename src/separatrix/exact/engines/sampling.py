"""How the reader's signs are drawn: how many draws, from which seed, in which number format."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

from separatrix.constructions import Construction
from separatrix.core.parameters import UsageError
from separatrix.core.tensors import torch
from separatrix.mechanisms import Mechanism

MOST_DRAWS = 10_000_000
DTYPES = ("float64", "float32", "float16", "bfloat16")
FIRST_LOOK = 25
EARLY_DOUBT = 0.2
"""Draws before the first look, and the share of the doubt that goes to looks before the last."""


COUNTED, LITERAL = 6400, 400
"""The most draws with token groups, which cost little, and with literal tokens: just enough for a verdict."""


def enough_draws(construction: Construction, mechanism: Mechanism) -> int:
    """The most draws for one verdict, where the drawing stops once it is decided."""
    return COUNTED if mechanism.takes_counts and construction.has_groups else LITERAL


def _nobody(done: int, most: int) -> None:
    """Who hears of draws unless somebody wants to."""


@dataclass(frozen=True)
class Sampling:
    """How many draws of the reader's signs, from which seed, in which number format: `Sampling(draws=99)`."""

    draws: int = 400
    seed: int = 0
    confidence: float = 0.95
    dtype: str = "float64"
    decide: tuple[Fraction, ...] = ()
    """Probabilities: no more draws once the interval lies to one side of each of them."""
    told: Callable[[int, int], None] = field(default=_nobody, compare=False, repr=False)
    """Hears how many draws are done, and how many there are at most."""

    def __post_init__(self) -> None:
        if not isinstance(self.draws, int) or not 1 <= self.draws <= MOST_DRAWS:
            limits = f"a whole number, 1 to {MOST_DRAWS:,}"
            raise UsageError(f"draws={self.draws} is out of range; it must be {limits}")
        if not 0 < self.confidence < 1:
            raise UsageError(f"confidence={self.confidence} is out of range; it must lie between 0 and 1")
        if self.seed < 0:
            raise UsageError(f"seed={self.seed} is negative; seeds start at 0")
        if self.dtype not in DTYPES:
            raise UsageError(f"dtype={self.dtype} is not one of {', '.join(DTYPES)}")

    @property
    def torch_dtype(self) -> torch.dtype:
        """The number format as torch names it."""
        dtype: torch.dtype = getattr(torch, self.dtype)
        return dtype

    @property
    def in_format(self) -> bool:
        """Whether the answer of a number format is asked for, which only tokens in that format can give."""
        return self.dtype != DTYPES[0]

    def chosen(self) -> dict[str, object]:
        """What was asked for by name, and differs from what is usual."""
        usual = Sampling()
        names = ("draws", "seed", "confidence", "dtype")
        return {name: getattr(self, name) for name in names if getattr(self, name) != getattr(usual, name)}

    def looks(self) -> list[tuple[int, float]]:
        """After how many draws the interval is looked at, and its confidence then.

        The doubts of all looks add up to 1 - confidence, so all their intervals hold at once with that
        confidence (Bonferroni), and it does not matter at which of them the drawing stops.

        >>> Sampling(draws=100, decide=(Fraction(1, 100),)).looks()
        [(25, 0.995), (50, 0.995), (100, 0.96)]
        """
        early: list[int] = []
        while self.decide and FIRST_LOOK << len(early) < self.draws:
            early.append(FIRST_LOOK << len(early))
        if not early:
            return [(self.draws, self.confidence)]
        doubt = 1 - self.confidence
        each, last = EARLY_DOUBT * doubt / len(early), (1 - EARLY_DOUBT) * doubt
        return [*((draws, 1 - each) for draws in early), (self.draws, 1 - last)]
