"""The figures of the reproduction."""

from separatrix.pages.figures import attention, hoeffding, line, margin, phase, sweeps

__all__ = ["attention", "hoeffding", "line", "margin", "phase", "sweeps"]
