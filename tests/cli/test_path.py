"""The way from a verdict on the command line to its number, as CONTRIBUTING tells it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from cases import BASE

PROGRAM = """
import json, sys
from separatrix.cli.application import run
files, counting = [], False

def importing(frame):
    while frame is not None and not frame.f_code.co_filename.startswith("<frozen importlib"):
        frame = frame.f_back
    return frame is not None

def called(frame, event, _):
    global counting
    file = frame.f_code.co_filename.partition("/separatrix/")[2]
    if event != "call" or not file:
        return
    if file.startswith("cli/") and frame.f_code.co_name in ("verdict", "show"):
        counting = frame.f_code.co_name == "verdict"
    if counting and file not in files and frame.f_code.co_flags & 1 and not importing(frame):
        files.append(file)

sys.setprofile(called)
run(sys.argv[1:])
sys.setprofile(None)
json.dump(files, sys.stderr)
"""
"""Prints the files whose functions run from the command up to where its answer is shown."""


def test_the_path_from_the_command_to_the_number_is_the_one_told() -> None:
    words = [f"{name}={value}" for name, value in BASE.items()]
    program = [sys.executable, "-c", PROGRAM, "verdict", "spike", "softmax", *words]
    done = subprocess.run(program, capture_output=True, text=True, check=True)
    told = Path(__file__).parents[2].joinpath("CONTRIBUTING.md").read_text()
    section = told.split("## From the command to the number")[1].split("## ")[0]
    named = re.findall(r"`([a-z_]+/[a-z_/]+\.py)`", section)
    listed = [file for file in named if not file.startswith("tests/")]
    assert sorted(json.loads(done.stderr)) == sorted(listed)
    assert f"these {len(listed)} files" in section
    assert len(listed) <= 22
