"""Searching for what one mechanism tells apart and another does not."""

from separatrix.searches._base import SearchFinding
from separatrix.searches.check import FindingsCheck, check_findings
from separatrix.searches.inputs import InputFinding
from separatrix.searches.instance import Instance, read_instance
from separatrix.searches.points import PointFinding
from separatrix.searches.run import BUDGET, SPACES, THRESHOLDS, Search, search
from separatrix.searches.separation import Reading, Separation, separation

__all__ = [
    "BUDGET",
    "SPACES",
    "THRESHOLDS",
    "FindingsCheck",
    "InputFinding",
    "Instance",
    "PointFinding",
    "Reading",
    "Search",
    "SearchFinding",
    "Separation",
    "check_findings",
    "read_instance",
    "search",
    "separation",
]
