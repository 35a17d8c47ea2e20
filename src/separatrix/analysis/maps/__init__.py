"""Maps of a quantity over two parameters, and boundaries in one."""

from separatrix.analysis.maps.boundary import boundary
from separatrix.analysis.maps.boundary_result import Boundary, BoundaryCurve
from separatrix.analysis.maps.map_result import Layer, Map
from separatrix.analysis.maps.plane import map
from separatrix.analysis.maps.quantities import PROBABILITIES, QUANTITIES, Accuracy, parse_quantity, quantity_label

__all__ = [
    "PROBABILITIES",
    "QUANTITIES",
    "Accuracy",
    "Boundary",
    "BoundaryCurve",
    "Layer",
    "Map",
    "boundary",
    "map",
    "parse_quantity",
    "quantity_label",
]
