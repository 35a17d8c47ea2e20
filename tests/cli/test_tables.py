"""Tables in narrow terminals: no digit is ever cut, whatever the width."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from expectations import run
from separatrix.cli.terminal import new_table

PLAN = """
seeds = [0]
[[sweep]]
construction = "spike"
mechanisms = ["softmax", "power:beta=4", "window:size=64"]
engine = "closed"
[sweep.parameters]
n = [470600, 1000000]
m = [12, 13]
a0 = ["0.012345", "0.012346"]
a1 = ["0.693147", "1.234567"]
"""
WORD = re.compile(r"\S*\d\S*")


def rendered(rows: list[list[str]], titles: list[str], width: int, gap: int, pad_edge: bool) -> str:
    table = new_table(*titles, gap=gap, pad_edge=pad_edge)
    for row in rows:
        table.add_row(*row)
    out = io.StringIO()
    Console(width=width, file=out).print(table)
    return out.getvalue()


words = st.text("abc0123456789.,-", min_size=1, max_size=14)
cells = st.lists(words, min_size=0, max_size=5).map(" ".join)


@given(
    rows=st.integers(1, 6).flatmap(
        lambda count: st.lists(st.lists(cells, min_size=count, max_size=count), min_size=1, max_size=4)
    ),
    with_titles=st.booleans(),
    width=st.integers(20, 100),
    gap=st.integers(1, 2),
    pad_edge=st.booleans(),
)
@settings(max_examples=200, deadline=None)
def test_every_number_is_whole_at_every_width(
    rows: list[list[str]], with_titles: bool, width: int, gap: int, pad_edge: bool
) -> None:
    titles = [f"t{place}" for place in range(len(rows[0]))] if with_titles else []
    shown = rendered(rows, titles, width, gap, pad_edge)
    assert all(len(line) <= width for line in shown.splitlines())
    expected = sorted(word for row in rows for cell in row for word in WORD.findall(cell))
    whole = sorted(word for word in WORD.findall(shown) if not re.fullmatch(r"t\d:?", word))
    assert whole == expected


def test_a_table_that_fits_is_printed_as_before() -> None:
    shown = rendered([["softmax", "4706"], ["linear", "1"]], ["name", "n"], 80, 2, True)
    assert [line.rstrip() for line in shown.splitlines()] == ["name     n", "softmax  4706", "linear   1"]


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from separatrix.sweeps.sweep import sweep

    folder = tmp_path_factory.mktemp("tables")
    (folder / "plan.toml").write_text(PLAN)
    sweep(folder / "plan.toml", f"sqlite:///{folder / 'results.db'}", workers=1)
    return folder / "results.db"


@pytest.mark.parametrize(
    "words",
    [
        ("results", "--limit", "8"),
        ("list", "sweeps"),
        ("list", "mechanisms", "--lattice"),
        ("schema",),
        ("readers", "spike", "softmax", "n=4700"),
        ("verdict", "spike", "softmax,power:beta=4,linear", "n=4700"),
        ("verdict", "spike", "softmax", "n=4700"),
        ("prove", "spike", "softmax,linear", "n=4700"),
        ("boundary", "spike", "softmax", "a1=0.5:1.5", "--over", "n=1000:4700:3"),
        ("scaling", "spike", "softmax", "n=1e3:1e6:4:log"),
    ],
    ids=" ".join,
)
def test_commands_print_the_same_numbers_at_every_width(
    words: tuple[str, ...], stored: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ("--store", f"sqlite:///{stored}") if words[0] == "results" or words[-1] == "sweeps" else ()
    found = {}
    for width in (100, 80, 60):
        monkeypatch.setenv("COLUMNS", str(width))
        code, out, err = run(capsys, *words, *store)
        assert code in (0, 1), err
        found[width] = set(re.findall(r"\d+(?:[.,]\d+)*", out)), out
    for width in (80, 60):
        lost = found[100][0] - found[width][0]
        assert not lost, (width, lost, found[width][1])
