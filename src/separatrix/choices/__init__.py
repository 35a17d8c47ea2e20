"""Which mechanism to take: what each still sees at a length in a number format, and what it keeps."""

from separatrix.choices.budget import Budget
from separatrix.choices.choice import Choice, Row, Status, choose
from separatrix.choices.sight import Cell

__all__ = ["Budget", "Cell", "Choice", "Row", "Status", "choose"]
