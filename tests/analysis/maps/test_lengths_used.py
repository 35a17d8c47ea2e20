"""Where n is moved to an admissible value, what is shown is the n that was used."""

from __future__ import annotations

import csv
import io
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import separatrix as sx
from cases import BASE
from expectations import run
from separatrix.analysis import maps
from separatrix.analysis.laws import scaling
from separatrix.analysis.maps import BoundaryCurve, boundary
from separatrix.pages import bundle
from separatrix.pages.maps import captions
from separatrix.pages.maps import curve as curves
from separatrix.pages.maps.figure import map_figure

FIXED = {name: value for name, value in BASE.items() if name not in ("a1", "n")}
WITHOUT_D = {name: value for name, value in FIXED.items() if name != "d"}
MOVED = "n is rounded to a multiple of d−2: 2667 to 2700, 3333 to 3300."


def over_n() -> BoundaryCurve:
    return boundary("spike", "softmax", {**FIXED, "a1": "0.5:1.5"}, over="n=2000:4000:4", scan=11, tolerance="1e-3")


def table(found: BoundaryCurve) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(curves.as_csv(found).decode())))


def test_a_curve_over_n_has_the_n_that_were_used() -> None:
    found = over_n()
    assert found.over.values == (2000, 2700, 3300, 4000)
    assert [row["n"] for row in table(found)] == ["2000", "2700", "3300", "4000"]
    assert curves.chart(found).series[0].x == [2000, 2700, 3300, 4000]
    for value, each in zip(found.over.values, found.curve, strict=True):
        assert each.lengths == [value]
        again = sx.boundary("spike", "softmax", **FIXED, a1="0.5:1.5", n=value, scan=11, tolerance="1e-3")
        assert again.crossings == each.crossings
    shown = found.as_json()
    assert shown["moved"] == MOVED
    assert [(each["asked"], each["value"]) for each in shown["curve"]] == [
        (2000, 2000),
        (2667, 2700),
        (3333, 3300),
        (4000, 4000),
    ]


def test_the_page_and_the_text_of_a_curve_say_the_n_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    over_n().save(tmp_path / "curve.html")
    page = (tmp_path / "curve.html").read_text()
    assert MOVED in page
    assert "<h1>softmax on spike passes P = 0.5 at a1 = " in page
    assert ">2700</td>" in page
    assert ">2667</td>" not in page
    words = [f"{name}={value}" for name, value in FIXED.items()]
    options = ["--over", "n=2000:4000:4", "--scan", "11", "--tolerance", "1e-3"]
    code, out, _ = run(capsys, "boundary", "spike", "softmax", "a1=0.5:1.5", *words, *options)
    assert code == 0
    assert MOVED in " ".join(out.split())
    assert [line.split()[0] for line in out.splitlines()[2:6]] == ["2000", "2700", "3300", "4000"]


def test_values_that_are_moved_to_one_n_are_one_row() -> None:
    found = boundary("spike", "softmax", {**FIXED, "a1": "0.5:1.5"}, over="n=980:1020:5", scan=11, tolerance="1e-3")
    assert found.over.values == (1000,)
    assert [point.asked for point in found.curve] == [980]


def test_a_curve_over_d_has_a_column_with_the_n_used() -> None:
    asked = {**WITHOUT_D, "n": 1001, "a1": "0.5:1.5"}
    found = boundary("spike", "softmax", asked, over="d=10:20:4", scan=11, tolerance="1e-3")
    assert [(row["d"], row["n used"]) for row in table(found)] == [
        ("10", "1000"),
        ("13", "1001"),
        ("17", "1005"),
        ("20", "1008"),
    ]
    assert "n=1001 asked for" in curves.sentences(found)[0]
    assert found.length_remark in curves.sentences(found)
    texts = curves.chart(found).series[0].texts
    assert texts == ["n used = 1000", "n used = 1001", "n used = 1005", "n used = 1008"]


def test_where_the_search_moves_n_both_ends_say_it(capsys: pytest.CaptureFixture[str]) -> None:
    found = boundary("spike", "softmax", {**WITHOUT_D, "a1": "0.7", "d": "4:30"}, over="n=1001:1031:3")
    for row in table(found):
        used = [int(n) for n in row["n used"].split(" to ")]
        steps = [int(row["lo"]) - 2, int(row["hi"]) - 2]
        assert all(n % step == 0 for n, step in zip(used, steps, strict=True))
        assert all(abs(n - int(row["n asked for"])) <= step / 2 for n, step in zip(used, steps, strict=True))
    words = [f"{name}={value}" for name, value in WITHOUT_D.items()]
    code, out, _ = run(capsys, "boundary", "spike", "softmax", "a1=0.7", "d=4:30", "n=1001", *words)
    assert code == 0
    assert "lo  d=12 n=1000 " in out
    assert "hi  d=13 n=1001 " in out
    assert "at d=4 n=1002" in out


def test_nothing_is_said_where_nothing_is_moved() -> None:
    found = boundary("spike", "softmax", {**FIXED, "a1": "0.5:1.5"}, over="n=1000:2000:2", scan=11, tolerance="1e-3")
    assert found.length_remark == ""
    assert "n used" not in curves.columns(found)


def test_scaling_shows_the_n_used_beside_what_grows(capsys: pytest.CaptureFixture[str]) -> None:
    asked = {**WITHOUT_D, "a1": "1.2", "n": 1001, "d": "10:100:4:log"}
    found = scaling("spike", "linear", asked)
    used = {each["d"]: each["n_used"] for each in found.as_json()["values"]}
    assert used == {10: 1000, 22: 1000, 46: 1012, 100: 980}
    words = [f"{name}={value}" for name, value in asked.items()]
    _, out, _ = run(capsys, "scaling", "spike", "linear", *words)
    assert "d    n used" in out
    assert "46   1012" in out
    _, out, _ = run(capsys, "scaling", "spike", "linear,softmax", *words)
    assert "n is rounded to a multiple of d−2 at 4 of 4 places: 980 to 1,012." in out
    assert "d=10:100:4:log" in out


def a_map() -> Any:
    return maps.map("spike", ["softmax"], {**FIXED, "a1": "0.5:1.5:3", "n": "2000:4000:4"})


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_pointing_at_a_cell_of_a_map_gives_the_n_used() -> None:
    """The script of a page gives the rounded n of a cell, in its reading and in its command."""
    heading = map_figure(a_map()).describe()
    assert heading["n_used"] == [["2000"], ["2700"], ["3300"], ["4000"]]
    folder = bundle.STATIC.joinpath("js")
    script = f"""
    globalThis.window = {{ addEventListener() {{}}, matchMedia: () => ({{ matches: false }}) }};
    const heading = {json.dumps(heading)};
    const {{ cellCommands }} = await import("file://{folder}/map-figure.js");
    const {{ valuesAt }} = await import("file://{folder}/map-data.js");
    const cell = {{ column: 1, row: 1 }};
    console.log(JSON.stringify([valuesAt(heading, cell), cellCommands(heading, cell)]));
    """
    words = ["node", "--input-type=module", "-e", script]
    process = subprocess.run(words, capture_output=True, text=True, check=True)
    values, commands = json.loads(process.stdout)
    assert values == {"a1": "1", "n": "2700"}
    assert commands == [captions.command(a_map(), 0, (1, 1))]
