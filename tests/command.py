"""`separatrix` in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def run(*words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """`separatrix` as a user starts it, in a terminal of 80 columns."""
    command = [sys.executable, "-c", "from separatrix.cli import main; main()", *words]
    narrow = {**os.environ, "COLUMNS": "80"}
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=narrow, check=False)
