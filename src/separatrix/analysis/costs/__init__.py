"""What a mechanism costs on this machine: time, memory, operations, state."""

from separatrix.analysis.costs.cost import Bench, Cost, CostCurve, Disagreement, bench, crossover, measure

__all__ = ["Bench", "Cost", "CostCurve", "Disagreement", "bench", "crossover", "measure"]
