"""Five hundred bad inputs over all commands: `fuzz.py` says what must not happen, and how to see it again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import fuzz
from separatrix.cli.application import app

FUZZ = Path(__file__).parent / "helpers" / "fuzz.py"


@pytest.mark.parametrize(
    "count",
    [pytest.param(40, marks=pytest.mark.brief), pytest.param(500, marks=[pytest.mark.exhaustive, pytest.mark.long])],
)
def test_bad_inputs(count: int) -> None:
    command = [sys.executable, str(FUZZ), "--seed", "0", "--count", str(count)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-5000:]
    assert f"{count} inputs, seed 0: none at fault" in done.stdout


def test_no_command_is_left_out() -> None:
    fuzzed = {line.split()[0] for line in (*fuzz.GOOD, *fuzz.LONG)}
    assert fuzzed >= {each.name for each in (*app.registered_commands, *app.registered_groups)}
