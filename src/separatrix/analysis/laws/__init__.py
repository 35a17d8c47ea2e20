"""The growth of a quantity with a parameter, and the law fitted to it."""

from separatrix.analysis.laws.powerlaw import Law, exact_law
from separatrix.analysis.laws.scaling import certify_scaling, scaling
from separatrix.analysis.laws.scaling_result import NoScaling, Scaling, ScalingRow, Scalings

__all__ = ["Law", "NoScaling", "Scaling", "ScalingRow", "Scalings", "certify_scaling", "exact_law", "scaling"]
