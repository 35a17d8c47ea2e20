"""A sweep in a results store as one page with its tables."""

from separatrix.pages.store.write import Written, write_report

__all__ = ["Written", "write_report"]
