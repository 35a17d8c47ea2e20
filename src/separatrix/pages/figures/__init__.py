"""The figures of the reproduction."""

from separatrix.pages.figures import attention, hoeffding, line, margin, phase, proofs, sweeps

__all__ = ["attention", "hoeffding", "line", "margin", "phase", "proofs", "sweeps"]
