"""Maps of a quantity over two parameters, and boundaries in one."""

from separatrix.analysis.maps.boundary import boundary
from separatrix.analysis.maps.boundary_result import Boundary, BoundaryCurve
from separatrix.analysis.maps.map_result import Layer, Map
from separatrix.analysis.maps.plane import map

__all__ = ["Boundary", "BoundaryCurve", "Layer", "Map", "boundary", "map"]
