"""The cost of mechanisms on this machine: time, memory, operations, state."""

from separatrix.analysis.costs.cost import Bench, CostCurve, Disagreement, bench, measure

__all__ = ["Bench", "CostCurve", "Disagreement", "bench", "measure"]
