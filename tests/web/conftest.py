"""One explorer and one browser for all tests of a process."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from explorer import Explorer, running

CHROMIUM = shutil.which("chromium")


@pytest.fixture(scope="session")
def explorer() -> Iterator[Explorer]:
    with running() as found:
        yield found


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as found:
        yield found.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])


@pytest.fixture
def page(browser: Any, explorer: Explorer) -> Iterator[Any]:
    """A page at 1280 by 800 on which no script fails and no policy is broken."""
    with browser.new_context(base_url=explorer.address, viewport={"width": 1280, "height": 800}) as context:
        context.set_default_timeout(60_000)
        made = context.new_page()
        wrong: list[str] = []
        made.on("pageerror", lambda error: wrong.append(str(error)))
        made.on("console", lambda said: wrong.append(said.text) if "Content Security" in said.text else None)
        yield made
        assert wrong == []
