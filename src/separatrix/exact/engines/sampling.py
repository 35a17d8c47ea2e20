"""Sampling options: the number of draws, the seed and the number format."""

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
"""Draws before the first interim look, and the share of the error probability for interim looks."""


COUNTED, LITERAL = 6400, 400
"""Maximum draws with token groups, which are cheap, and with dense tokens: just enough for a verdict."""


def enough_draws(construction: Construction, mechanism: Mechanism) -> int:
    """Return the maximum draws for one verdict; sampling stops earlier if the verdict is decided."""
    return COUNTED if mechanism.takes_counts and construction.has_groups else LITERAL


def _nobody(done: int, most: int) -> None:
    """Ignore progress."""


@dataclass(frozen=True)
class Sampling:
    """How the reader's signs are sampled, for example `Sampling(draws=99)`."""

    draws: int = 400
    seed: int = 0
    confidence: float = 0.95
    dtype: str = "float64"
    decide: tuple[Fraction, ...] = ()
    """Levels of P(tells apart): sampling stops once the interval lies on one side of each level."""
    told: Callable[[int, int], None] = field(default=_nobody, compare=False, repr=False)
    """A progress callback, called with the number of draws done and their maximum."""

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
        """The number format as a torch dtype."""
        dtype: torch.dtype = getattr(torch, self.dtype)
        return dtype

    @property
    def in_format(self) -> bool:
        """Whether a lower-precision number format is requested, which only sampling can answer."""
        return self.dtype != DTYPES[0]

    def changed_options(self) -> dict[str, object]:
        """Return the options that differ from their defaults."""
        usual = Sampling()
        names = ("draws", "seed", "confidence", "dtype")
        return {name: getattr(self, name) for name in names if getattr(self, name) != getattr(usual, name)}

    def looks(self) -> list[tuple[int, float]]:
        """Return the numbers of draws at which the interval is examined, with its confidence level.

        The error probabilities of all looks add up to 1 - confidence (Bonferroni), so sampling may stop at
        any of them.

        >>> Sampling(draws=100, decide=(Fraction(1, 100),)).looks()
        [(25, 0.995), (50, 0.995), (100, 0.96)]
        """
        early: list[int] = []
        while self.decide and FIRST_LOOK << len(early) < self.draws:
            early.append(FIRST_LOOK << len(early))
        if not early:
            return [(self.draws, self.confidence)]
        doubt = 1 - self.confidence
        early_share, last = EARLY_DOUBT * doubt / len(early), (1 - EARLY_DOUBT) * doubt
        return [*((draws, 1 - early_share) for draws in early), (self.draws, 1 - last)]
