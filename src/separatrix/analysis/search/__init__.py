"""Searching for what one mechanism tells apart and another does not."""

from separatrix.analysis.search._base import SearchFinding
from separatrix.analysis.search.check import FindingsCheck, check_findings
from separatrix.analysis.search.inputs import InputFinding
from separatrix.analysis.search.instance import Instance, read_instance
from separatrix.analysis.search.points import PointFinding
from separatrix.analysis.search.run import BUDGET, SPACES, THRESHOLDS, Search, search
from separatrix.analysis.search.separation import Reading, Separation, separation

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
