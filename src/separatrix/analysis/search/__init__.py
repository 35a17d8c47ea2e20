"""Search for instances that one mechanism tells apart and another does not."""

from separatrix.analysis.search.inputs import InputFinding
from separatrix.analysis.search.points import PointFinding
from separatrix.analysis.search.run import THRESHOLDS, FindingsCheck, Search, check_findings, search

__all__ = ["THRESHOLDS", "FindingsCheck", "InputFinding", "PointFinding", "Search", "check_findings", "search"]
