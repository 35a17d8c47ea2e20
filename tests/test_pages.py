"""Pages of the documentation and the README: what they show is what happens, what they link is there."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import separatrix as sx
from expectations import run
from pages import DOCS, PAGES, ROOT, Snippet, parse_words, run_command, run_page, snippets

LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(each, marks=[] if each.name == "README.md" else [pytest.mark.exhaustive])
        for each in PAGES
        if snippets(each)
    ],
    ids=named,
)
def test_what_a_page_shows_is_what_happens(
    page: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.syspath_prepend(tmp_path)
    run_page(page, lambda words: run(capsys, *words)[:2])
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_what_a_page_links_is_there(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for target in LINK.findall(text):
        if not re.match(r"https?:|#|mailto:", target):
            assert (page.parent / target.split("#")[0]).exists(), f"{named(page)} links {target}"


def test_every_page_is_in_the_contents() -> None:
    listed = re.findall(r"^[a-z][a-z/-]+$", (DOCS / "index.md").read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(
        str(page.relative_to(DOCS).with_suffix("")) for page in PAGES if page.parent != ROOT and page.stem != "index"
    )


def test_one_term_for_the_probability_that_is_computed() -> None:
    """People read P(tells apart) everywhere, in docstrings, schemas and pages."""
    other = re.compile(r"P\[(distinguishes|tells)|P\((distinguishes|tells D0)|P\(tells\)")
    sources = [*(ROOT / "src").rglob("*.py"), *(ROOT / "src").rglob("*.j2"), *PAGES]
    assert not [named(each) for each in sources if other.search(each.read_text())]


@pytest.mark.parametrize("shown", ["7 8\n", "9\n…\n", "1 2 4\n", "4 1\n"])
def test_what_a_command_does_not_print_is_found_out(shown: str) -> None:
    snippet = Snippet(PAGES[0], 1, "console", "", "")
    with pytest.raises(AssertionError, match=r"README\.md, line 1"):
        run_command(snippet, "separatrix anything", shown, lambda words: (0, "1 2 3\n4 5 6\n"))
    run_command(snippet, "separatrix anything", "1 … 3\n…\n5\n6\n", lambda words: (0, "1 2 3\n4 5 6\n"))


@pytest.mark.parametrize("words", [["verdikt"], ["verdict", "spike", "softmax", "--certify"], ["store"], ["claim"]])
def test_words_that_the_parser_does_not_know_are_found_out(words: list[str]) -> None:
    with pytest.raises(Exception, match=r"certif|no command|issing"):
        parse_words(words)


def test_every_public_name_is_on_the_page_of_python() -> None:
    text = (DOCS / "reference" / "python.md").read_text()
    documented = set(re.findall(r"^\.\. auto\w+:: (?:separatrix\.)?(\w+)", text, re.MULTILINE))
    assert {*sx.__all__, "map"} <= documented | {"CONSTRUCTIONS", "MECHANISMS"}  # which have pages of their own


def test_every_picture_of_the_gallery_is_what_its_command_writes() -> None:
    drawn = runpy.run_path(str(DOCS / "draw.py"))["pictures"]()
    text = (DOCS / "gallery.md").read_text()
    assert len(drawn) == text.count("![") == text.count("```console") >= 10
    for file, commands in drawn.values():
        assert commands[-1].split()[-1] == f"docs/{file}"


def test_a_picture_is_drawn_again(tmp_path: Path) -> None:
    words = [sys.executable, str(DOCS / "draw.py"), "--into", str(tmp_path), "bits"]
    subprocess.run(words, check=True, capture_output=True)
    assert (tmp_path / "docs" / "gallery" / "bits.png").read_bytes()[:4] == b"\x89PNG"
