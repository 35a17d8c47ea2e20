"""How the probability is obtained: four engines that must agree, and `auto`, the strongest that applies."""

from __future__ import annotations

from separatrix.constructions import Construction
from separatrix.engines import certified, dense, exact, exhaustive, grouped
from separatrix.engines._base import EngineRefusal, Outcome
from separatrix.engines.options import DRAWLESS, in_format, refuse_unused
from separatrix.engines.sampling import Sampling
from separatrix.mechanisms import Mechanism
from separatrix.parameters import UsageError, nearest

ENGINES = ("auto", "certified", "exact", "grouped", "dense")


def solve(
    construction: Construction, mechanism: Mechanism, engine: str = "auto", sampling: Sampling | None = None
) -> Outcome:
    """The probabilities at one point, by an engine of ENGINES; `auto` takes the strongest that applies.

    The answer of a number format is asked of sampling engines alone: closed forms have none.
    """
    refuse_unused(engine, sampling)
    if engine == "auto":
        return _strongest(construction, mechanism, sampling)
    if engine == "certified":
        return certified.solve(construction, mechanism)
    if engine == "exact":
        return exact.solve(construction, mechanism)
    if engine == "grouped":
        return grouped.solve(construction, mechanism, sampling)
    if engine == "dense":
        return dense.solve(construction, mechanism, sampling)
    raise UsageError(
        f"there is no engine {engine}{nearest(engine, list(ENGINES))}; there are: {', '.join(ENGINES)}"
    )


def _strongest(construction: Construction, mechanism: Mechanism, sampling: Sampling | None) -> Outcome:
    refusals = []
    if in_format(sampling):
        refusals.append("closed forms have no number format")
    for engine in (each for each in ENGINES[1:] if each not in DRAWLESS or not in_format(sampling)):
        try:
            return solve(construction, mechanism, engine, None if engine in DRAWLESS else sampling)
        except EngineRefusal as refused:
            refusals.append(f"{engine}: {str(refused).split('; use --engine')[0]}")
    raise EngineRefusal(f"no engine can answer this ({'; '.join(refusals)})")


__all__ = [
    "ENGINES",
    "EngineRefusal",
    "Outcome",
    "Sampling",
    "certified",
    "dense",
    "exact",
    "exhaustive",
    "grouped",
    "solve",
]
