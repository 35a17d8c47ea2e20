"""The page's arithmetic, which needs no browser, by node's own test runner."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_arithmetic_of_the_page() -> None:
    files = sorted(str(each) for each in HERE.glob("*.test.js"))
    assert files
    found = subprocess.run(["node", "--test", *files], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout + found.stderr
