"""How a quantity grows with a parameter: what is read, and the law that is fitted to it."""

from separatrix.laws.powerlaw import Law, exact_law
from separatrix.laws.scaling import scaling, table
from separatrix.laws.scaling_result import Scaling, ScalingRow

__all__ = ["Law", "Scaling", "ScalingRow", "exact_law", "scaling", "table"]
