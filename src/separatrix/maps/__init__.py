"""Where the line runs: maps over two parameters, boundaries in one."""

from separatrix.maps.analytic import Analytic, analytic
from separatrix.maps.boundary import boundary
from separatrix.maps.boundary_curve import BoundaryCurve, boundary_curve
from separatrix.maps.certificate import certify_boundary
from separatrix.maps.crossings import Boundary, Crossing
from separatrix.maps.layers import PROBABILITIES, QUANTITIES, Layer, Step
from separatrix.maps.plane import Map, extremes, map
from separatrix.parameters.ranges import Axis, Span
from separatrix.verdicts.question import Question

__all__ = [
    "PROBABILITIES",
    "QUANTITIES",
    "Analytic",
    "Axis",
    "Boundary",
    "BoundaryCurve",
    "Crossing",
    "Layer",
    "Map",
    "Question",
    "Span",
    "Step",
    "analytic",
    "boundary",
    "boundary_curve",
    "certify_boundary",
    "extremes",
    "map",
]
