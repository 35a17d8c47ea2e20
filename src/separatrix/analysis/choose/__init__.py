"""The choice of a mechanism for a length, a number format and a memory budget."""

from separatrix.analysis.choose.budget import Budget
from separatrix.analysis.choose.choice import Choice, ChoiceRow, ChoiceStatus, choose
from separatrix.analysis.choose.construction_cells import ChoiceCell

__all__ = ["Budget", "Choice", "ChoiceCell", "ChoiceRow", "ChoiceStatus", "choose"]
