"""Settings of every test run: one torch thread, no deadlines, and optional checks of tensor shapes."""

from __future__ import annotations

import pytest
import torch
from hypothesis import settings

torch.set_num_threads(1)  # Tests already run in parallel.
settings.register_profile("separatrix", deadline=None)  # Machines are noisy.
settings.load_profile("separatrix")


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

        install_import_hook(["separatrix.mechanisms", "separatrix.reader"], "beartype.beartype")
