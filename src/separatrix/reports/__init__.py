"""The paper's theorem, from a summary of it: ledger, sweeps, figures and one self-contained page."""

from separatrix.reports.effort import FULL, Effort
from separatrix.reports.reproduce import Reproduction, reproduce

__all__ = ["FULL", "Effort", "Reproduction", "reproduce"]
