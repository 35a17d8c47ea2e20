"""Engines compute the probabilities: four that must agree, and `auto`, the strongest one that applies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from separatrix.constructions import Construction
from separatrix.core.parameters import UsageError, require_known
from separatrix.exact.engines import certified, closed, dense, grouped
from separatrix.exact.engines.outcome import EngineRefusal, Outcome
from separatrix.exact.engines.sampling import Sampling
from separatrix.mechanisms import Mechanism

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Engine:
    """A way to compute the probabilities at a point, with its properties."""

    name: str
    title: str
    """A one-line description."""
    answer: Callable[[Construction, Mechanism, Sampling], Outcome] | None
    """Computes the probabilities, or raises an EngineRefusal. None for `auto`, which tries the others."""
    draws: bool
    """Whether it samples the reader's signs; only then do a seed, an interval and a number format apply."""
    proves: bool = False
    """Whether its bounds are proved: an interval then means an undecided comparison, not sampling error."""
    literal: bool = False
    """Whether it computes all n tokens one by one."""
    at_once: bool = False
    """Whether it evaluates many points at once, if they have a closed form."""

    def solve(self, construction: Construction, mechanism: Mechanism, sampling: Sampling | None = None) -> Outcome:
        """Return the probabilities at one point, or raise an EngineRefusal."""
        sampling = sampling or Sampling()
        if self.answer is not None:
            return self.answer(construction, mechanism, sampling)
        # Number formats need engines that sample: closed forms have none.
        candidates = [engine for engine in STRENGTH if engine.draws or not sampling.in_format]
        reasons = ["closed forms have no number format"] if sampling.in_format else []
        return strongest(candidates, lambda engine: engine.solve(construction, mechanism, sampling), reasons)

    def covers(self, name: str) -> bool:
        """Whether the engine called `name` may give the answer: it is this engine, or this is `auto`."""
        return self.name in (name, "auto")

    def refuse_unused(self, sampling: Sampling | None) -> None:
        """Raise a UsageError if sampling options are given to an engine that does not sample.

        >>> ENGINES["closed"].refuse_unused(Sampling(seed=3))
        Traceback (most recent call last):
            ...
        separatrix.core.errors.UsageError: the closed engine draws nothing; leave out seed, or use dense
        """
        options = [] if sampling is None else list(sampling.changed_options())
        if options and not self.draws:
            raise UsageError(f"the {self.name} engine draws nothing; leave out {', '.join(options)}, or use dense")

    def describe_unused(self, sampling: Sampling | None) -> str:
        """Describe sampling options that had no effect because `auto` chose an engine that does not sample.

        >>> ENGINES["certified"].describe_unused(Sampling(draws=2000, seed=1))
        '; nothing was drawn: draws=2000, seed=1 made no difference'
        """
        options = {} if sampling is None or self.draws else sampling.changed_options()
        settings = ", ".join(f"{name}={value}" for name, value in options.items())
        return f"; nothing was drawn: {settings} made no difference" if options else ""


STRENGTH = (
    Engine(
        "certified",
        "exact fractions by balls and rationals, every comparison decided",
        certified.solve,
        draws=False,
        proves=True,
    ),
    Engine("closed", "the closed form in float64, whole grids at once", closed.solve, draws=False, at_once=True),
    Engine("grouped", "distinct tokens with their counts, signs sampled", grouped.solve, draws=True),
    Engine("dense", "all n tokens, any mechanism, signs sampled", dense.solve, draws=True, literal=True),
)
"""All engines but `auto`, the strongest first."""
AUTO = Engine("auto", "the strongest of the others that applies", None, draws=True)
ENGINES = {engine.name: engine for engine in (AUTO, *STRENGTH)}


def engine_named(name: str) -> Engine:
    """Return the engine called `name`, or raise a UsageError that lists all engines.

    >>> engine_named("dense").literal
    True
    """
    require_known("engine", name, ENGINES)
    return ENGINES[name]


def solve(
    construction: Construction, mechanism: Mechanism, engine: str = "auto", sampling: Sampling | None = None
) -> Outcome:
    """Return the probabilities at one point; `auto` takes the strongest engine that applies."""
    requested_engine = engine_named(engine)
    requested_engine.refuse_unused(sampling)
    return requested_engine.solve(construction, mechanism, sampling)


def strongest(engines: Iterable[Engine], ask: Callable[[Engine], Answer], refusals: Sequence[str] = ()) -> Answer:
    """Return the first answer, or raise an EngineRefusal with the reason of every engine."""
    reasons = list(refusals)
    for engine in engines:
        try:
            return ask(engine)
        except EngineRefusal as refusal:
            reasons.append(f"{engine.name}: {refusal.reason}")
    # The most general engine comes first: its reason is usually the one to remedy.
    raise EngineRefusal(f"no engine can answer this ({'; '.join(reversed(reasons))})")


__all__ = [
    "ENGINES",
    "STRENGTH",
    "Engine",
    "EngineRefusal",
    "Outcome",
    "Sampling",
    "certified",
    "closed",
    "dense",
    "engine_named",
    "grouped",
    "solve",
    "strongest",
]
