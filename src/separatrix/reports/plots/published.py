"""Words and numbers: there is no picture."""

from separatrix.reports.plots.drawing import NONE

DRAWING = NONE
