"""The contract runs without runtime shape checks, which slow down every inner call.

Shapes stay checked in `tests/mechanisms`: `test_extras.py` calls every mechanism, padded, decoded after a
cache, under autocast and with drawn extras.
"""

from __future__ import annotations

from collections.abc import Iterator

import jaxtyping
import pytest


@pytest.fixture(autouse=True)
def without_shape_checks() -> Iterator[None]:
    """Disable jaxtyping during a test."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
