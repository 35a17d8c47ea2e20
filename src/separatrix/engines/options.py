"""What is asked of drawing, where an engine may draw nothing."""

from __future__ import annotations

from separatrix.engines.sampling import Sampling
from separatrix.parameters import UsageError

DRAWLESS = ("certified", "exact")
"""Engines that draw nothing: their answers have no seed, no interval and no number format."""


def in_format(sampling: Sampling | None) -> bool:
    """Whether the answer of a number format is asked for, which only tokens in that format can give."""
    return sampling is not None and sampling.dtype != Sampling().dtype


def refuse_unused(engine: str, sampling: Sampling | None) -> None:
    """Complain where draws are described to an engine that draws nothing.

    >>> refuse_unused("exact", Sampling(seed=3))
    Traceback (most recent call last):
        ...
    separatrix.errors.UsageError: the exact engine draws nothing; leave out seed, or use dense
    """
    given = [] if sampling is None else list(sampling.chosen())
    if engine in DRAWLESS and given:
        raise UsageError(f"the {engine} engine draws nothing; leave out {', '.join(given)}, or use dense")


def unused(engine: str, sampling: Sampling | None) -> str:
    """What to add to the evidence where `auto` found an engine that draws nothing.

    >>> unused("certified", Sampling(draws=2000, seed=1))
    '; nothing was drawn: draws=2000, seed=1 made no difference'
    """
    given = {} if sampling is None else sampling.chosen()
    if engine not in DRAWLESS or not given:
        return ""
    return f"; nothing was drawn: {', '.join(f'{k}={v}' for k, v in given.items())} made no difference"
