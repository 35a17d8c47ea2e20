"""Words and numbers: there is no picture."""

from separatrix.pages.plots.drawing import NONE

DRAWING = NONE
