"""One explorer for all tests of a process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from explorer import Explorer, running


@pytest.fixture(scope="session")
def explorer() -> Iterator[Explorer]:
    with running() as found:
        yield found
