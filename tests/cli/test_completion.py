"""Half-typed names, as a shell asks for them."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from separatrix.cli import completion
from separatrix.mechanisms import MECHANISMS


def completed(words: str, place: int) -> list[str]:
    """What bash is offered for the word at that place."""
    asked = {"_SEPARATRIX_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(place)}
    command = [sys.executable, "-c", "from separatrix.cli import main; main()"]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **asked}, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "place", "offered"),
    [
        ("separatrix verd", 1, ["verdict"]),
        ("separatrix verdict spike softmax,lin", 3, ["softmax,linear", "softmax,linformer"]),
        ("separatrix list claims theor", 3, ["theorem", "theorem-from-n"]),
        ("separatrix verdict spike softmax --engine cer", 5, ["certified"]),
    ],
)
def test_a_shell_is_offered_commands_and_names(words: str, place: int, offered: list[str]) -> None:
    assert completed(words, place) == offered


def test_names_are_those_that_there_are() -> None:
    assert completion.mechanisms("") == list(MECHANISMS)
    assert completion.constructions("spi") == ["spike", "spikes"]
    assert completion.tasks("need") == ["needle"]
    assert completion.claims("nothing-like-it") == []
    assert completion.lists("con") == ["constructions"]
    assert completion.schemas("verd") == ["verdict", "verdicts"]


def test_names_are_completed_without_torch() -> None:
    code = """
import sys
from separatrix.cli import completion
names = [each(text) for each in (*completion.LISTS.values(), completion.schemas) for text in ("", "s")]
print(len(names), {"torch", "scipy.stats", "matplotlib"} & set(sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "16 set()"
