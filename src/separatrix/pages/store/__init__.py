"""A sweep in a results store as one page with its tables."""

from separatrix.pages.store.report import write_report

__all__ = ["write_report"]
