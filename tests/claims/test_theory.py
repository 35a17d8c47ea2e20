"""docs/theory.md: its sections, the claims it names, and the numbers it prints."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from expectations import run
from separatrix.claims import CLAIMS
from separatrix.constructions import CONSTRUCTIONS, Construction

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "theory.md").read_text()
SECTIONS = re.findall(r"^###? (\d+(?:\.\d+)?)\.? ", PAGE, re.MULTILINE)
MENTIONS = re.compile(r"\b(?:[Tt]heory|theory\.md|THEORY) (\d+(?:\.\d+)?)((?:(?:,| to| and) \d+(?:\.\d+)?)*)")


def commands() -> list[tuple[str, tuple[str, ...]]]:
    """Every command that the page shows, with the lines of output below it."""
    blocks = re.split(r"^```.*$", PAGE, flags=re.MULTILINE)[1::2]
    shown = [each.strip().splitlines() for block in blocks for each in block.split("$ ")[1:]]
    return [(first, tuple(lines)) for first, *lines in shown]


def named() -> dict[str, tuple[str, str]]:
    """Every claim that the page names: its section and its tag."""
    found = {}
    for part in re.split(r"^(?=###? \d)", PAGE, flags=re.MULTILINE)[1:]:
        section = part.split()[1].rstrip(".")
        for line in re.findall(r"^Checked by (.*?)\.$", part, re.MULTILINE | re.DOTALL):
            found |= {name: (section, tag) for name, tag in re.findall(r"`([a-z-]+)` \[(\w+)\]", line)}
    return found


def test_the_page_names_every_claim_in_its_section_with_its_tag() -> None:
    assert named() == {claim.name: (claim.place, claim.provenance) for claim in CLAIMS}
    assert list(named()) == [claim.name for claim in CLAIMS]
    assert len(commands()) > 10


def test_every_section_that_the_source_mentions_is_there() -> None:
    mentioned = {
        section
        for file in sorted((ROOT / "src").rglob("*.py"))
        for first, more in MENTIONS.findall(file.read_text())
        for section in (first, *re.findall(r"\d+(?:\.\d+)?", more))
    }
    assert len(mentioned) > 20
    assert mentioned <= set(SECTIONS)


@pytest.mark.parametrize("kind", CONSTRUCTIONS.values(), ids=lambda kind: kind.name)
def test_a_construction_is_listed_by_the_section_that_its_provenance_names(kind: type[Construction]) -> None:
    section = ".".join(map(str, kind.section[:2]))
    assert section in SECTIONS
    assert kind.name == "spike" or f"docs/theory.md {section}" in kind.provenance


@pytest.mark.parametrize("command", commands(), ids=lambda each: each[0])
def test_the_page_prints_what_the_command_does(
    command: tuple[str, tuple[str, ...]], capsys: pytest.CaptureFixture[str]
) -> None:
    program, *words = shlex.split(command[0])
    if program == "separatrix":
        code, out, _ = run(capsys, *words)
    else:
        done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
        code, out = done.returncode, done.stdout
    assert code == 0
    assert command[1]
    shown = " ".join(out.split())
    for line in command[1]:
        assert " ".join(line.split()) in shown
