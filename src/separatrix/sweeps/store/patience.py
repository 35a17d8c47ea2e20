"""Connections to PostgreSQL that do not wait for ever: a server that is frozen never says so."""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any

Steps = Generator[Any, Any, Any]
"""What psycopg waits for: it asks for the socket to be ready, and is told whether it is, now and then."""


def patient(driver: Any, seconds: float) -> Any:
    """psycopg's connection, which gives up a server that has been silent for so long."""

    class Patient(driver.Connection):  # type: ignore[misc]
        def wait(self, gen: Steps, *words: Any, **options: Any) -> Any:
            return super().wait(self._within(gen), *words, **options)

        def _within(self, steps: Steps) -> Steps:
            heard, ready = time.monotonic(), None
            while True:
                try:
                    wanted = steps.send(ready)
                except StopIteration as done:
                    return done.value
                ready = yield wanted
                if ready:
                    heard = time.monotonic()
                elif time.monotonic() - heard > seconds:
                    self.close()
                    raise driver.OperationalError(f"no answer for {seconds:g} s")

    return Patient
