"""How the probability is obtained: four engines that must agree, and `auto`, the strongest that applies."""

from __future__ import annotations

from separatrix.constructions import Construction
from separatrix.engines import certified, dense, exact, exhaustive, grouped
from separatrix.engines._base import EngineRefusal, Outcome
from separatrix.engines.sampling import Sampling
from separatrix.mechanisms import Mechanism
from separatrix.parameters import UsageError, nearest

ENGINES = ("auto", "certified", "exact", "grouped", "dense")


def solve(
    construction: Construction, mechanism: Mechanism, engine: str = "auto", sampling: Sampling | None = None
) -> Outcome:
    """The probabilities at one point, by the engine named; `auto` takes the strongest that applies."""
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
    for engine in ENGINES[1:]:
        try:
            return solve(construction, mechanism, engine, sampling)
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
