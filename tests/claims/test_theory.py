"""docs/theory.md: its sections and the claims it names. tests/test_pages.py runs its commands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pages import snippets
from separatrix.claims import CLAIMS
from separatrix.constructions import CONSTRUCTIONS, Construction

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docs" / "theory.md"
PAGE = FILE.read_text()
SECTIONS = re.findall(r"^###? (\d+(?:\.\d+)?)\.? ", PAGE, re.MULTILINE)
MENTIONS = re.compile(r"\b(?:[Tt]heory|theory\.md|THEORY) (\d+(?:\.\d+)?)((?:(?:,| to| and) \d+(?:\.\d+)?)*)")


def claims_on_page() -> dict[str, tuple[str, str]]:
    """Every claim that the page names: its section and its tag."""
    claims = {}
    for part in re.split(r"^(?=###? \d)", PAGE, flags=re.MULTILINE)[1:]:
        section = part.split()[1].rstrip(".")
        for line in re.findall(r"^Checked by (.*?)\.$", part, re.MULTILINE | re.DOTALL):
            claims |= {name: (section, tag) for name, tag in re.findall(r"`([a-z-]+)` \[(\w+)\]", line)}
    return claims


def test_the_page_names_every_claim_in_its_section_with_its_tag() -> None:
    assert claims_on_page() == {claim.name: (claim.place, claim.provenance) for claim in CLAIMS}
    assert list(claims_on_page()) == [claim.name for claim in CLAIMS]


def test_every_command_of_the_page_shows_what_it_prints() -> None:
    outputs = [lines for snippet in snippets(FILE) for _, lines in snippet.commands()]
    assert len(outputs) > 10
    assert all(lines.strip() for lines in outputs)


def test_every_section_that_the_source_mentions_is_there() -> None:
    mentions = {
        section
        for file in sorted((ROOT / "src").rglob("*.py"))
        for first, more in MENTIONS.findall(file.read_text())
        for section in (first, *re.findall(r"\d+(?:\.\d+)?", more))
    }
    assert len(mentions) > 20
    assert mentions <= set(SECTIONS)


@pytest.mark.parametrize("kind", CONSTRUCTIONS.values(), ids=lambda kind: kind.name)
def test_a_construction_is_listed_by_the_section_that_its_provenance_names(kind: type[Construction]) -> None:
    section = ".".join(map(str, kind.section[:2]))
    assert section in SECTIONS
    assert kind.name == "spike" or f"docs/theory.md {section}" in kind.provenance
