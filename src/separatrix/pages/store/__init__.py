"""A sweep in a results store as one page with its tables."""

from separatrix.pages.store.report import StoreReport, write_report

__all__ = ["StoreReport", "write_report"]
