"""How a quantity grows with a parameter: what is read, and the law that is fitted to it."""

from separatrix.analysis.laws.powerlaw import Law, exact_law
from separatrix.analysis.laws.scaling import table
from separatrix.analysis.laws.scaling_result import Scaling, ScalingRow
from separatrix.analysis.laws.several import Scalings, scaling

__all__ = ["Law", "Scaling", "ScalingRow", "Scalings", "exact_law", "scaling", "table"]
