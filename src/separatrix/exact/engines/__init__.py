"""How the probability is obtained: four engines that must agree, and `auto`, the strongest that applies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from separatrix.constructions import Construction
from separatrix.core.parameters import UsageError, require_known
from separatrix.exact.engines import certified, closed, dense, exhaustive, grouped
from separatrix.exact.engines.outcome import EngineRefusal, Outcome
from separatrix.exact.engines.sampling import Sampling
from separatrix.mechanisms import Mechanism

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Engine:
    """One way to obtain the probabilities at a point, and what can be expected of it."""

    name: str
    title: str
    """What it does, in a line."""
    answer: Callable[[Construction, Mechanism, Sampling], Outcome]
    draws: bool
    """Whether it draws the reader's signs: only then are there a seed, an interval and a number format."""
    proves: bool = False
    """Whether its numbers are proved: what lies between two of them was not decided."""
    literal: bool = False
    """Whether it takes all n tokens, one by one."""
    at_once: bool = False
    """Whether it answers many points at once where they have a closed form."""

    def solve(
        self, construction: Construction, mechanism: Mechanism, sampling: Sampling | None = None
    ) -> Outcome:
        """The probabilities at one point, or an EngineRefusal."""
        self.refuse_unused(sampling)
        return self.answer(construction, mechanism, sampling or Sampling())

    def covers(self, other: str) -> bool:
        """Whether the answer may be that of the engine `other`: it is that one, or `auto`."""
        return self.name in (other, "auto")

    def refuse_unused(self, sampling: Sampling | None) -> None:
        """Complain where draws are described to an engine that draws nothing.

        >>> ENGINES["closed"].refuse_unused(Sampling(seed=3))
        Traceback (most recent call last):
            ...
        separatrix.core.errors.UsageError: the closed engine draws nothing; leave out seed, or use dense
        """
        given = [] if sampling is None else list(sampling.chosen())
        if given and not self.draws:
            raise UsageError(
                f"the {self.name} engine draws nothing; leave out {', '.join(given)}, or use dense"
            )

    def unused(self, sampling: Sampling | None) -> str:
        """What to add to the evidence where `auto` found an engine that draws nothing.

        >>> ENGINES["certified"].unused(Sampling(draws=2000, seed=1))
        '; nothing was drawn: draws=2000, seed=1 made no difference'
        """
        given = {} if sampling is None or self.draws else sampling.chosen()
        named = ", ".join(f"{name}={value}" for name, value in given.items())
        return f"; nothing was drawn: {named} made no difference" if given else ""


def _auto(construction: Construction, mechanism: Mechanism, sampling: Sampling) -> Outcome:
    """The strongest answer; that of a number format by engines that draw, since closed forms have none."""
    tried = [engine for engine in STRENGTH if engine.draws or not sampling.in_format]
    before = ["closed forms have no number format"] if sampling.in_format else []
    return strongest(tried, lambda engine: engine.answer(construction, mechanism, sampling), before)


def strongest(
    engines: Iterable[Engine], ask: Callable[[Engine], Answer], refusals: Sequence[str] = ()
) -> Answer:
    """The first answer; if all refuse, an EngineRefusal that says why each did, what takes most first."""
    reasons = list(refusals)
    for engine in engines:
        try:
            return ask(engine)
        except EngineRefusal as refused:
            reasons.append(f"{engine.name}: {refused.reason}")
    raise EngineRefusal(f"no engine can answer this ({'; '.join(reversed(reasons))})")


STRENGTH = (
    Engine(
        "certified",
        "exact fractions by balls and rationals, every comparison decided",
        lambda x, mechanism, _: certified.solve(x, mechanism),
        draws=False,
        proves=True,
    ),
    Engine(
        "closed",
        "the closed form in float64, whole grids at once",
        lambda x, mechanism, _: closed.solve(x, mechanism),
        draws=False,
        at_once=True,
    ),
    Engine("grouped", "distinct tokens with their counts, signs sampled", grouped.solve, draws=True),
    Engine("dense", "all n tokens, any mechanism, signs sampled", dense.solve, draws=True, literal=True),
)
"""The strongest first."""
AUTO = Engine("auto", "the strongest of the others that applies", _auto, draws=True)
ENGINES = {engine.name: engine for engine in (AUTO, *STRENGTH)}


def engine_named(name: str) -> Engine:
    """The engine of that name, or a UsageError that lists them all.

    >>> engine_named("dense").literal
    True
    """
    require_known("engine", name, ENGINES)
    return ENGINES[name]


def solve(
    construction: Construction, mechanism: Mechanism, engine: str = "auto", sampling: Sampling | None = None
) -> Outcome:
    """The probabilities at one point, by the engine named; `auto` takes the strongest that applies."""
    return engine_named(engine).solve(construction, mechanism, sampling)


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
    "exhaustive",
    "grouped",
    "solve",
    "strongest",
]
