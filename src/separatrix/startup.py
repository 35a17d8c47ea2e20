"""Starting other Python processes so that they import nothing from the current folder.

Python puts the current folder before everything else for `python -c` and `python -m`, which is how
multiprocessing starts its helpers: a queue.py that lies there would be taken for Python's own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

SAFE_PATH = "PYTHONSAFEPATH"


@contextmanager
def safe_path() -> Iterator[None]:
    """Processes that are started meanwhile, and those they start, leave the current folder off their path."""
    before = os.environ.get(SAFE_PATH)
    os.environ[SAFE_PATH] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[SAFE_PATH]
        else:
            os.environ[SAFE_PATH] = before
