"""The figures: each file has its data, its drawing for paper and its interactive form."""

from separatrix.reports.figures import attention, hoeffding, margin, phase, sweeps

__all__ = ["attention", "hoeffding", "margin", "phase", "sweeps"]
