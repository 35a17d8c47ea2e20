"""The figures: each file has its drawing for paper and its interactive form."""

from separatrix.pages.figures import attention, hoeffding, line, margin, phase, sweeps

__all__ = ["attention", "hoeffding", "line", "margin", "phase", "sweeps"]
