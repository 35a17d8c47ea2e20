"""How a quantity grows with a parameter: what is read, and the law that is fitted to it."""

from separatrix.laws.powerlaw import Law, exact_law
from separatrix.laws.scaling import table
from separatrix.laws.scaling_result import Scaling, ScalingRow
from separatrix.laws.several import Scalings, scaling

__all__ = ["Law", "Scaling", "ScalingRow", "Scalings", "exact_law", "scaling", "table"]
