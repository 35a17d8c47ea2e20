"""Templates: what they are given is text, nothing may be missing, and they come with the package alone."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import pytest
from jinja2 import TemplateNotFound, UndefinedError

from separatrix.pages import pages
from separatrix.pages.looks import LOOKS, SYMBOLS, Look, choose_looks

EVIL = "<script>alert(1)</script>\"'&"
NAMES = sorted(path.name for path in files("separatrix.pages").joinpath("templates").iterdir())


class Evil:
    """A figure with a text that would end its element."""

    kind = EVIL

    def as_json(self) -> dict[str, str]:
        return {"text": EVIL}


@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith(".j2")])
def test_every_template_escapes_and_wants_all_its_variables(name: str) -> None:
    source = files("separatrix.pages").joinpath("templates", name).read_text("utf-8")
    assert not re.search(r"\|\s*safe|autoescape", source)
    assert pages.environment().autoescape is True
    if name != "macros.html.j2":
        with pytest.raises(UndefinedError):
            pages.render_page(name)


def test_text_stays_text_in_every_macro() -> None:
    ui = pages.environment().get_template("macros.html.j2").module
    made = [
        ui.table([EVIL], [[EVIL]], EVIL),  # type: ignore[attr-defined]
        ui.facts([(EVIL, EVIL)], EVIL),  # type: ignore[attr-defined]
        ui.command(EVIL, EVIL),  # type: ignore[attr-defined]
        ui.paper(b"", EVIL),  # type: ignore[attr-defined]
        ui.figure(EVIL, Evil()),  # type: ignore[attr-defined]
        ui.links([pages.Section(EVIL, EVIL, pages.typeset_prose(""))]),  # type: ignore[attr-defined]
        ui.sections([pages.Section(EVIL, EVIL, pages.typeset_prose(EVIL))]),  # type: ignore[attr-defined]
        ui.legend([Look(EVIL, EVIL)], plain=True),  # type: ignore[attr-defined]
        ui.legend([Look(EVIL, EVIL, symbol="circle")]),  # type: ignore[attr-defined]
    ]
    for text in made:
        assert "alert(1)" in text
        assert "<script>alert" not in text
        assert "\"'&" not in text.split('<script type="application/json"')[0]


def test_symbols_of_pages_are_markers_of_pictures() -> None:
    from matplotlib.markers import MarkerStyle

    for path, marker in SYMBOLS.values():
        assert re.fullmatch(r"[MmLlHhVvAaZz0-9. -]+", path)
        MarkerStyle(marker)
    assert {look.symbol for look in LOOKS.values()} <= set(SYMBOLS)


def test_mechanisms_are_told_apart_without_colour_alone() -> None:
    names = [f"mechanism {i}" for i in range(8)]
    found = choose_looks([*names, "softmax"])
    assert found["softmax"].colour == LOOKS["softmax"].colour
    assert len({(found[name].colour, found[name].dash) for name in [*names, *LOOKS]}) == len(names) + len(LOOKS)


def test_nothing_is_taken_from_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.html.j2").write_text("mine")
    monkeypatch.chdir(tmp_path)
    for name in ("mine.html.j2", str(tmp_path / "mine.html.j2"), "../pages.py"):
        with pytest.raises(TemplateNotFound):
            pages.render_page(name)


def test_long_and_hidden_text_is_cut_and_shown() -> None:
    assert pages.shorten_text("x" * 500) == "x" * 399 + "…"
    assert "\u202e" not in pages.shorten_text("a\u202eb")
    assert pages.verdict_style("superb") == pages.verdict_style("none")
