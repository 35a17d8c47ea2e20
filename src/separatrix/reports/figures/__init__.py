"""The figures: each file has its data, its drawing for paper and its interactive form."""

from separatrix.reports.figures import attention, hoeffding, margin, phase, sweeps
from separatrix.reports.figures._base import Drawn, Key, Panel, static_style

__all__ = ["Drawn", "Key", "Panel", "attention", "hoeffding", "margin", "phase", "static_style", "sweeps"]
