"""Which mechanism to take: what each still sees at a length in a number format, and what it keeps."""

from separatrix.analysis.choose.budget import Budget
from separatrix.analysis.choose.choice import Choice, Row, Status, choose
from separatrix.analysis.choose.sight import Cell

__all__ = ["Budget", "Cell", "Choice", "Row", "Status", "choose"]
