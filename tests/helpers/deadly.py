"""What workers do in tests of a cluster in place of their work; it imports nothing that takes time."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence


class Word(str):
    """In place of a cell."""

    turn_seconds = 2.0


def work(cells: Sequence[str], seconds: float, checkpoints: object) -> list[str]:
    """Echo the cells; `die` kills the worker, `after SECONDS FILE` does so once, so long after it."""
    word, *rest = cells[0].split()
    time.sleep(0.02)
    if word == "die":
        os._exit(1)
    if word == "after" and not os.path.exists(rest[1]):  # noqa: PTH110
        with open(rest[1], "w"):  # noqa: PTH123
            threading.Timer(float(rest[0]), os._exit, [1]).start()
    return list(cells)
