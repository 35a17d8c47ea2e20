"""Settings and fixtures of all tests: one torch thread, no deadlines, optional checks of tensor shapes."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from itertools import islice

import pytest
import torch
from hypothesis import settings

torch.set_num_threads(1)  # Tests already run in parallel.
settings.register_profile("separatrix", deadline=None)  # Machines are noisy.
settings.load_profile("separatrix")

collect_ignore = ["tests/mutants.py"]  # It runs in an environment of its own: `make mutants`.


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--typed-shapes`."""
    parser.addoption(
        "--typed-shapes",
        action="store_true",
        help="check the shapes in the signatures of mechanisms and readers at every call (slow)",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Install jaxtyping's import hook before any module of ours is imported, if shapes are to be checked."""
    if config.getoption("--typed-shapes"):
        from jaxtyping import install_import_hook

        install_import_hook(["separatrix.mechanisms", "separatrix.exact.reader"], "beartype.beartype")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start long tests first, so that no worker of pytest-xdist is left with one at the end.

    With `--dist worksteal` every worker begins with an equal part of the list.
    """
    long_items = [item for item in items if item.get_closest_marker("long")]
    others = iter([item for item in items if not item.get_closest_marker("long")])
    worker_count = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    parts: list[pytest.Item] = []
    for worker in range(worker_count):
        size = (len(items) - len(parts)) // (worker_count - worker)
        first = long_items[worker::worker_count]
        parts += [*first, *islice(others, max(0, size - len(first)))]
    items[:] = [*parts, *others]


FEW_CHECKS = ("form", "repeatable", "finite", "causality", "chunks", "normalised")


@pytest.fixture
def few_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reduce the contract to a few checks, for tests of cards; the checks have tests of their own."""
    from separatrix.contract import CHECKS

    some = {name: check for name, check in CHECKS.items() if name in FEW_CHECKS}
    monkeypatch.setattr("separatrix.contract._base.CHECKS", some)


@pytest.fixture
def default_signals() -> Iterator[None]:
    """Start child processes with the default reaction to signals.

    A child inherits signals that are ignored, as nohup ignores SIGHUP, and a shell SIGINT in background jobs.
    """
    ignored = [
        number
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        if signal.getsignal(number) == signal.SIG_IGN
    ]
    for number in ignored:
        signal.signal(number, signal.SIG_DFL)
    yield
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)
