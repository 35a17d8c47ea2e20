"""Where the line runs: maps over two parameters, boundaries in one."""

from separatrix.analysis.maps.analytic import Analytic, analytic
from separatrix.analysis.maps.boundary import boundary
from separatrix.analysis.maps.boundary_curve import BoundaryCurve, boundary_curve
from separatrix.analysis.maps.certificate import certify_boundary
from separatrix.analysis.maps.crossings import Boundary, Crossing
from separatrix.analysis.maps.layers import PROBABILITIES, QUANTITIES, Layer, Step
from separatrix.analysis.maps.plane import Map, extremes, map
from separatrix.core.parameters.ranges import Axis, Span
from separatrix.exact.verdicts.question import Question

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
