"""Reports of stored sweeps: numbers as they are stored, text that stays text, and what two sweeps share."""

from __future__ import annotations

import base64
import json
import math
import re
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from sqlalchemy import Table

from documents import require_document
from expectations import run
from separatrix.core.parameters import UsageError
from separatrix.pages.store import curves, mechanisms, planes, write_report
from separatrix.pages.store.groups import group_cells
from separatrix.pages.store.stored_cells import StoredCells, open_cells
from separatrix.sweeps.store import CellResult, CellStatus, Environment, Store, StoreError, frame, open_store, selection
from separatrix.sweeps.store.compare import Comparison, compare
from separatrix.sweeps.store.reader import Reader as StoreReader
from separatrix.sweeps.store.schema import cells
from separatrix.sweeps.store.sweep_list import list_sweeps

HERE = Environment("laptop", {"python": "3.11", "separatrix": "0.1.0"})
EVIL = "<script>alert(1)</script>"
Row = tuple[str, dict[str, Any], CellResult]


def cell(
    p: float | None = 0.5,
    mechanism: str = "softmax",
    construction: str = "spike",
    interval: tuple[float, float] | None = None,
    seed: int | None = None,
    environment: Environment = HERE,
    asked: str = "closed",
    answer: Mapping[str, Any] | None = None,
    **parameters: str,
) -> Row:
    """A finished cell; without `interval` it is exact."""
    question = {
        "construction": construction,
        "mechanism": mechanism,
        "parameters": parameters,
        "n": None,
        "asked": asked,
        "delta": "0.01",
        "draws": None if interval is None else 100,
        "seed": seed,
        "confidence": None if interval is None else 0.95,
        "dtype": None if interval is None else "float64",
        "until_decided": None if interval is None else 0,
        "code": "c",
    }
    low, high = (p, p) if interval is None else interval
    word = None if p is None else "blind" if p <= 0.01 else "distinguishes" if p >= 0.99 else "partial"
    found: dict[str, Any] = {
        "verdict": word,
        "engine": "closed" if interval is None else "dense",
        "distinguish": p,
        "low": low,
        "high": high,
        "margin": 0.25,
        **(answer or {}),
    }
    ended = {name: found.pop(name) for name in ("status", "message") if name in found}
    told = CellResult(seconds=0.5, finished="2026-11-16", environment=environment, findings=found, **ended)
    return "", question, told


def refused(message: str, **more: Any) -> Row:
    nothing = {"status": CellStatus.REFUSED, "verdict": None, "engine": None, "margin": None, "message": message}
    return cell(None, answer=nothing, **more)


def fill(store: Store, parts: Mapping[str, Sequence[Row]], name: str = "demo", plan: str = "plan") -> int:
    """A sweep of these cells."""
    number = store.begin_sweep(f"{name}{len(list_sweeps(store)[0])}", name, plan)
    for part, rows in parts.items():
        named = [(f"{number}-{part}-{i}", question, result) for i, (_, question, result) in enumerate(rows)]
        store.add(named)
        store.add_members(number, [(id_, part) for id_, _, _ in named])
    return number


@pytest.fixture
def store(tmp_path: Path) -> Store:
    (tmp_path / "store").mkdir()
    return open_store(f"sqlite:///{tmp_path}/store/results.db", create=True)


class Reader(HTMLParser):
    """The tags of a page, its text, and the data of its plots."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""
        self.plots: dict[str, Any] = {}
        self._script: str | None = None
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        given = dict(attrs)
        assert not {"src", "srcset", "onerror", "onload", "onclick"} & given.keys()
        if tag == "script":
            self._script = given.get("id") or ""

    def handle_endtag(self, tag: str) -> None:
        if tag == "script":
            self._script = None

    def handle_data(self, data: str) -> None:
        if self._script is None:
            self.text += data
        elif self._script:
            self.plots[self._script] = json.loads(data)


def made(store: Store, tmp_path: Path, **chosen: int) -> Reader:
    return Reader(write_report(store, tmp_path / "out", **chosen).page.read_text())


def map_values(plot: Mapping[str, Any], layer: int = 0, name: str = "values") -> list[list[float | None]]:
    """Return the numbers of a map in a page, None where there is none."""
    packed = np.frombuffer(zlib.decompress(base64.b64decode(plot["numbers"])), np.uint8)
    arrays = np.ascontiguousarray(packed.reshape(8, -1).T).view("<f8").reshape(-1, *plot["heading"]["shape"])
    rows = arrays[plot["heading"]["layers"][layer]["arrays"][name]].tolist()
    return [[None if math.isnan(value) else value for value in row] for row in rows]


def read_cells(store: Store, sweep: int | None) -> StoredCells:
    with open_cells(store, sweep) as (stored, _):
        return stored


def drawn_curves(store: Store) -> Reader:
    section = curves.curves_section(group_cells(read_cells(store, None)))
    return Reader("" if section is None else section.body)


def test_the_page_has_every_section_and_needs_no_network(store: Store, tmp_path: Path) -> None:
    line = [cell(i / 4, n=str(10**i), a1="1") for i in range(5)]
    plane = [cell((x + y) / 6, n=str(10 + y), a1=str(x)) for x in range(4) for y in range(4)]
    one = fill(store, {"line": line, "plane": [*plane, refused("no engine answers", n="3", a1="1")]}, plan="p = 1")
    fill(store, {"line": line[:3]})
    page = (written := write_report(store, tmp_path / "out", one, 2)).page.read_text()
    read = Reader(page)
    assert re.findall(r'<section id="(\w+)">', page) == [
        *("changes", "curves", "maps", "mechanisms", "refused", "made")
    ]
    assert "link" not in read.tags
    assert "default-src 'none'" in page
    assert "Sweep demo, number 1" in read.text
    assert "P is known for 21 cells: 21 closed" in read.text
    assert "computing time11 s" in read.text
    assert "Engines: closed. Hosts: laptop." in read.text
    assert "python 3.11, separatrix 0.1.0" in read.text
    assert "<details><summary>The plan</summary><pre>p = 1</pre></details>" in page
    options = f"--store {store.location} --sweep 1"
    assert f"separatrix results {options} " in read.text
    assert f"separatrix report {options} --against 2 --out {tmp_path}/out " in read.text
    assert "random signs" in read.text
    assert "cannot" not in read.text.lower()
    assert written.cells == {"done": 21, "refused": 1}
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "report.html",
        "results.csv",
        "results.parquet",
    ]


def test_the_tables_have_every_stored_cell(store: Store, tmp_path: Path) -> None:
    fill(store, {"b": [cell(0.3, n="7")], "a": [cell(0.1, n="2"), refused("why", mechanism="gla", n="2")]})
    write_report(store, tmp_path / "out")
    table = pl.read_parquet(tmp_path / "out/results.parquet")
    stored = frame(store, None, 1)
    assert table.columns == stored.columns
    assert table.sort("id").equals(stored.sort("id"))
    assert table["part"].to_list() == ["a", "a", "b"]
    assert pl.read_csv(tmp_path / "out/results.csv")["distinguish"].to_list() == [None, 0.1, 0.3]


def test_curves_draw_the_stored_numbers(store: Store) -> None:
    exact = {10: 0.125, 100: 0.25, 1000: None, 10**4: 0.9999999}
    rows = [refused("too long", n=str(n)) if p is None else cell(p, n=str(n)) for n, p in exact.items()]
    rows += [cell(0.4, "linear", interval=(0.3, 0.6), seed=seed, n=str(n)) for n in (10, 1000) for seed in (0, 1)]
    fill(store, {"part": rows[::-1]})
    plots = drawn_curves(store).plots
    assert list(plots) == ["curve-0-0-0", "curve-0-0-1"]
    line, markers = plots["curve-0-0-0"]["series"]
    assert line["x"] == list(exact)
    assert line["y"] == list(exact.values())
    assert line["line"]
    assert markers["x"] == [10, 10, 1000, 1000]
    assert not markers["line"]
    assert markers["y"] == [0.4] * 4
    assert (markers["low"], markers["high"]) == ([0.3] * 4, [0.6] * 4)
    assert markers["texts"][1] == "sampled, 100 draws, seed 1, float64"
    margins = plots["curve-0-0-1"]
    assert margins["y"]["log"]
    assert margins["series"][0]["y"] == [0.25, 0.25, None, 0.25]
    assert margins["series"][1]["low"] is None


def test_margins_that_are_not_positive_are_left_out_and_counted(store: Store) -> None:
    fill(store, {"part": [cell(0.5, n=str(n), answer={"margin": float(n)}) for n in (-1, 0, 2, 3)]})
    read = drawn_curves(store)
    assert read.plots["curve-0-0-1"]["series"][0]["y"] == [None, None, 2, 3]
    assert "2 margins are not positive and not drawn." in read.text


@pytest.mark.parametrize(("values", "is_log"), [((1, 10, 1000), True), ((1, 10, 999), False), ((0, 10, 10**6), False)])
def test_axes_are_logarithmic_over_three_decades(store: Store, values: tuple[int, ...], is_log: bool) -> None:
    fill(store, {"part": [cell(n=str(n)) for n in values]})
    assert drawn_curves(store).plots["curve-0-0-0"]["x"]["log"] == is_log


def test_few_values_of_the_others_are_panels_and_many_are_none(store: Store) -> None:
    fill(store, {"part": [cell(n=str(n), form=form) for n in (1, 2, 3) for form in ("relu", "identity")]})
    read = drawn_curves(store)
    assert {name[:9] for name in read.plots} == {"curve-0-0", "curve-0-1"}
    assert "form=identity" in read.text
    fill(store, {"part": [cell(n=str(n), form=str(form)) for n in (1, 2, 3) for form in "abcdefg"]})
    assert drawn_curves(store).plots == {}


def test_two_values_make_no_curve(store: Store) -> None:
    fill(store, {"part": [cell(n="1"), cell(n="2")]})
    assert curves.curves_section(group_cells(read_cells(store, None))) is None


def test_a_parameter_that_follows_another_is_no_axis_of_its_own(store: Store) -> None:
    fill(store, {"part": [cell(n=str(n), d=str(2 * n), m="3") for n in (1, 2, 3)]})
    read = drawn_curves(store)
    assert list(read.plots) == ["curve-0-0-0", "curve-0-0-1"]
    assert "Fixed: m=3. d changes with n." in read.text


def test_some_of_many_mechanisms_are_drawn(store: Store) -> None:
    many = [cell(k / 20, f"mechanism_{k}", n=str(n)) for k in range(13) for n in range(1, 12)]
    fill(store, {"part": many})
    read = drawn_curves(store)
    assert len(read.plots) > 0
    assert "Drawn: 12 of 13 mechanisms; results.csv has all." in " ".join(read.text.split())


def test_one_mechanism_looks_the_same_in_every_plot(store: Store) -> None:
    names = ("softmax", "mine", "other")
    both = [cell(0.5, name, n=str(n)) for name in names for n in (1, 2, 3)]
    fill(store, {"all": both, "one": [cell(0.5, "other", n=str(n)) for n in (4, 5, 6)]})
    plots = drawn_curves(store).plots
    looks = [(line["colour"], tuple(line["dash"])) for line in plots["curve-0-0-0"]["series"]]
    (other,) = plots["curve-1-0-0"]["series"]
    assert (other["colour"], tuple(other["dash"])) == looks[2]
    assert len(set(looks)) == 3


def test_what_is_thinned_is_said(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    long = [cell(0.5, n=str(n)) for n in range(1, 502)]
    sampled = [cell(0.5, "linear", interval=(0.4, 0.6), n=str(n)) for n in range(1, 81)]
    fill(store, {"a": long + sampled, "b": [cell(n=str(n)) for n in (1, 2, 3)]})
    read = drawn_curves(store)
    exact, markers = read.plots["curve-0-0-0"]["series"]
    shown = exact["x"]
    assert (len(shown), shown[0], shown[-1], len(markers["x"])) == (400, 1, 501, 60)
    assert "of up to 501 exact points of one mechanism 400 are drawn" in read.text
    assert "of up to 80 sampled cells of one mechanism 60 are drawn" in read.text
    monkeypatch.setattr(curves, "MAX_CURVES", 1)
    assert "1 curve is not drawn besides" in drawn_curves(store).text


def test_maps_draw_the_stored_numbers(store: Store) -> None:
    rows = {(x, y): (x + 5 * y) / 32 for x in range(5) for y in range(4) if (x, y) != (2, 3)}
    cells = [cell(p, name, a1=str(x), n=str(10**y)) for (x, y), p in rows.items() for name in ("softmax", EVIL)]
    cells += [cell(0.0, "elsewhere", a1="9", n="1e9")]
    fill(store, {"part": cells})
    found = group_cells(read_cells(store, None))
    section = planes.maps_section(found)
    assert section is not None
    assert curves.curves_section(found) is None
    read = Reader(section.body)
    assert list(read.plots) == ["map-0-0-0"]
    heading = read.plots["map-0-0-0"]["heading"]
    assert [layer["mechanism"] for layer in heading["layers"]] == ["softmax", EVIL]
    assert [axis["values"] for axis in heading["axes"]] == [[*"01234"], ["1", "10", "100", "1000"]]
    assert [axis["log"] for axis in heading["axes"]] == [False, True]
    expected = [[rows.get((x, y)) for x in range(5)] for y in range(4)]
    for i, layer in enumerate(heading["layers"]):
        assert (layer["scale"]["low"], layer["scale"]["high"]) == (0, 1)
        assert map_values(read.plots["map-0-0-0"], i) == expected
    assert "1 mechanism has too few cells here for a map." in read.text


def test_seeds_are_averaged_in_a_map_and_it_says_so(store: Store) -> None:
    fill(
        store,
        {
            "part": [
                cell(0.2 + 0.2 * seed, interval=(0.1, 0.9), seed=seed, a1=str(x), n=str(y))
                for x in range(4)
                for y in range(4)
                for seed in (0, 1)
            ]
        },
    )
    section = planes.maps_section(group_cells(read_cells(store, None)))
    assert section is not None
    read = Reader(section.body)
    assert np.allclose(map_values(read.plots["map-0-0-0"]), 0.3)
    assert "their mean is shown" in read.text
    assert "P: 32 sampled." in read.text


def test_a_grid_of_three_by_four_is_no_map(store: Store) -> None:
    fill(store, {"part": [cell(a1=str(x), n=str(y)) for x in range(3) for y in range(4)]})
    found = group_cells(read_cells(store, None))
    assert planes.maps_section(found) is None
    assert len(drawn_curves(store).plots) == 2 * (4 + 3)


def test_thinned_maps_say_so(store: Store) -> None:
    fill(store, {"part": [cell(a1=str(x), n=str(y)) for x in range(150) for y in range(4)]})
    section = planes.maps_section(group_cells(read_cells(store, None)))
    assert section is not None
    assert "Thinned: 75 × 4 of 150 × 4 values are drawn" in section.body


def test_who_is_ahead(store: Store) -> None:
    rows = [
        *(cell(p, "softmax", n=str(n)) for n, p in enumerate((0.9, 0.5, 0.5, 0.7, 0.1))),
        *(cell(p, "linear", n=str(n)) for n, p in enumerate((0.1, 0.5, 0.5 + 1e-14))),
        cell(0.6, "linear", interval=(0.55, 0.65), seed=0, n="3"),
        cell(0.5, "linear", interval=(0.05, 0.9), seed=0, n="4"),
        refused("no", mechanism="gla", n="0"),
    ]
    fill(store, {"part": rows, "again": rows[:0]})
    found = {row["mechanism"]: row for row in mechanisms.summarise(read_cells(store, None)).to_dicts()}
    assert (found["softmax"]["ahead"], found["softmax"]["shared"]) == (2, 5)
    assert (found["linear"]["ahead"], found["linear"]["shared"]) == (0, 5)
    assert found["gla"]["shared"] is None
    assert found["softmax"]["median"] == 0.5
    section = mechanisms.mechanisms_section(read_cells(store, None))
    assert section is not None
    text = Reader(section.body).text
    assert "2 of 5 points5 closed" in text
    assert "3 closed, 2 sampled" in text
    assert "1 not computed" in text


def test_many_constructions_are_seen_at_a_glance(store: Store, tmp_path: Path) -> None:
    words = {"spike": ["blind", "blind", "partial"], "plain": ["distinguishes"], "<b>": ["undecided"]}
    rows = [
        cell(0.5, construction=kind, n=str(i), answer={"verdict": word})
        for kind, all_words in words.items()
        for i, word in enumerate(all_words)
    ]
    fill(store, {"": rows[:3]}, name="one")
    assert "most frequent" not in made(store, tmp_path / "one").text
    fill(store, {"": rows}, name="three")
    page = made(store, tmp_path / "three")
    assert "The most frequent verdict" in page.text
    assert "B 67" in page.text
    assert "b" not in page.tags[page.tags.index("table") :]


def test_what_no_figure_shows_is_said(store: Store, tmp_path: Path) -> None:
    line = [cell(i / 4, n=str(10**i), a1="1") for i in range(5)]
    fill(store, {"line": line, "pair": [cell(0.5, n=n, a1="2") for n in ("7", "8")]})
    assert "In no curve and no map" in made(store, tmp_path).text
    assert "the cells of pair (2)" in made(store, tmp_path).text


def test_a_cell_in_two_parts_counts_once(store: Store) -> None:
    number = fill(store, {"part": [cell(n="1")]})
    store.add_members(number, [(f"{number}-part-0", "second"), ("not finished", "second")])
    stored = read_cells(store, number)
    assert (stored.cells.height, stored.distinct.height, stored.unfinished) == (2, 1, 1)
    assert mechanisms.summarise(stored)["cells"].to_list() == [1]


def test_a_report_reads_every_cell_from_the_store_once(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Page, CSV, Parquet and comparison are made of what one reading left in a file."""
    one = fill(store, {"part": [cell(i / 10, n=str(i), a1="1") for i in range(1, 9)]})
    two = fill(store, {"part": [cell(i / 11, n=str(i), a1="1") for i in range(1, 5)]})
    read = list[Any]()
    read_rows = StoreReader.read

    def record_ids(reader: StoreReader, table: Table, *words: Any) -> Iterator[Any]:
        for rows in read_rows(reader, table, *words):
            read.extend(values[0] for values in rows if table is cells)
            yield rows

    monkeypatch.setattr(StoreReader, "read", record_ids)
    monkeypatch.setattr(selection, "CHUNK", 3)
    written = write_report(store, tmp_path / "out", one, two)
    assert len(read) == len(set(read)) == 12
    assert pl.read_csv(written.tables[0]).height == pl.read_parquet(written.tables[1]).height == 8
    assert written.comparison is not None
    assert (written.comparison.changed, written.comparison.only_one) == (4, 4)


def test_the_cells_of_a_report_are_shared_not_copied(store: Store) -> None:
    """Groups, answers and distinct cells of a large store are the same memory, where nothing is left out."""
    names = ("zeta", "softmax")
    fill(store, {part: [cell(0.5, name, n=str(i), a1="1") for i in range(9) for name in names] for part in "ab"})
    stored = read_cells(store, None)
    assert stored.distinct is stored.cells
    assert stored.cells["mechanism"].unique(maintain_order=True).to_list() == ["softmax", "zeta"]
    assert [name for name in stored.cells.columns if name.startswith("at:")] == ["at:n"]
    for group in group_cells(stored):
        assert group.answered_cells is group.cells
        assert (group.cells.height, group.cells["part"].unique().to_list()) == (18, [group.part])


def test_a_page_begins_with_the_finding(store: Store, tmp_path: Path) -> None:
    rows = [cell(p, mechanism, n=str(n)) for mechanism, p in (("softmax", 1.0), ("linear", 0.0)) for n in range(9)]
    fill(store, {"part": [*rows, cell(0.5, "softmax", n="9")]})
    text = " ".join(made(store, tmp_path).text.split())
    assert "Softmax tells D0 from D1 in 9 of 10 cells; linear is blind in every cell." in text
    titled = "softmax tells D0 from D1 in 9 of 10 cells; linear is blind at every n shown"
    assert text.index("linear is blind in every cell") < text.index(titled) < text.rindex("How it was made")


def test_a_map_of_one_colour_shows_the_margin(store: Store, tmp_path: Path) -> None:
    plane = [(x, y) for x in range(1, 6) for y in range(1, 6)]
    fill(store, {"part": [cell(0.0, answer={"margin": 10.0 ** -(x + y)}, x=str(x), y=str(y)) for x, y in plane]})
    read = made(store, tmp_path)
    (layer,) = read.plots["map-0-0-0"]["heading"]["layers"]
    assert (layer["title"], layer["coloured"], layer["scale"]["log"]) == (*("softmax, margin (P = 0)", "margin"), True)
    values = [value for row in map_values(read.plots["map-0-0-0"], name="margin") for value in row]
    assert values == pytest.approx([10.0 ** -(x + y) for x, y in plane])


def test_names_that_polars_would_take_for_patterns_are_names(store: Store, tmp_path: Path) -> None:
    odd = [{"^.*$": str(i), "*": "x\u202e"} for i in range(1, 5)]
    fill(store, {"part": [cell(i / 9, **point) for i, point in enumerate(odd)]})
    assert "^.*$" in made(store, tmp_path).text


def test_a_parameter_without_a_name_is_shown(store: Store, tmp_path: Path) -> None:
    """An unnamed column would be renamed by polars, and missed."""
    fill(store, {"part": [cell(i / 9, **{"": str(i)}, n="7") for i in range(1, 5)]})
    read = made(store, tmp_path)
    assert "P(tells apart) against part" in " ".join(read.text.split())
    assert read.plots["curve-0-0-0"]["series"][0]["x"] == [1, 2, 3, 4]
    for table in (pl.read_csv(tmp_path / "out/results.csv"), pl.read_parquet(tmp_path / "out/results.parquet")):
        assert [str(value) for value in table[""]] == ["1", "2", "3", "4"]


def test_refusals_are_grouped_by_message(store: Store, tmp_path: Path) -> None:
    failed = cell(None, "gla", answer={"status": CellStatus.FAILED, "message": "out of memory", "verdict": None}, n="9")
    fill(store, {"part": [*(refused("no kernel", mechanism=name, n="7") for name in "abcdef"), failed]})
    text = made(store, tmp_path).text
    assert "no kernelrefused6a, b, c, d and 2 morespike a n=7 --engine closed" in text
    assert "out of memoryfailed1glaspike gla n=9" in text
    assert "No cell has an answer yet" in text


def test_nothing_from_the_store_is_markup(store: Store, tmp_path: Path) -> None:
    bad = f"{EVIL}\"'><img src=x onerror=alert(1)>$style</script>%{{x}}"
    place = Environment(bad, {bad: bad})
    same = {"mechanism": bad, "construction": bad, "environment": place, "asked": bad}
    odd = {"verdict": bad, "engine": bad, "evidence": bad}
    line = [cell(0.5, answer=odd, **same, **{bad: str(n)}, other=bad) for n in (1, 2, 3)]
    line += [cell(0.5, interval=(0.4, 0.6), **same, **{bad: "4"}, other=bad)]
    line += [
        cell(0.5, **{**same, "mechanism": f"{bad}{i}", "construction": "wide"}, n=str(n))
        for i in range(13)
        for n in (1, 2, 3)
    ]
    plane = [cell(0.5, **same, **{bad: str(x)}, y=str(y)) for x in range(4) for y in range(4)]
    fill(store, {bad: [*line, refused(bad, **same)], f"{bad}2": plane}, name=bad, plan=bad)
    fill(store, {bad: [cell(0.25, **same, **{bad: "1"}, other=bad)]}, name=bad, plan=bad)
    read = made(store, tmp_path, sweep=1, against=2)
    assert read.text.count(EVIL) > 20
    assert "img" not in read.tags
    assert read.tags.count("script") == len(read.plots) + 1
    assert len(read.plots) == 5
    assert EVIL in json.dumps([*read.plots.values()])  # as text, which scripts give to text nodes


@pytest.mark.parametrize("value", ["", "abc", "1e301", "-1e305", "1e-320", "nan", "1/0", "0x10", "∞"])
def test_odd_parameters_do_not_stop_the_page(store: Store, tmp_path: Path, value: str) -> None:
    fill(store, {"part": [*(cell(n=str(n)) for n in (1, 2, 3)), cell(0.75, n=value)]})
    read = made(store, tmp_path)
    assert read.plots["curve-0-0-0"]["series"][0]["x"] == [1, 2, 3]
    assert "1 cell has no number for n that can be drawn" in read.text


@pytest.mark.parametrize(
    "answer",
    [
        {"distinguish": None},
        {"distinguish": math.inf, "margin": math.inf},
        {"distinguish": 7.0, "low": None, "high": None, "verdict": None, "engine": None},
        {"low": 0.9, "high": 0.1, "margin": -math.inf, "verdict": "superb"},
        {"status": "sleeping", "message": None},
    ],
    ids=str,
)
def test_odd_answers_do_not_stop_the_page(store: Store, tmp_path: Path, answer: dict[str, Any]) -> None:
    odd = cell(0.5, answer=answer, n="4")
    fill(store, {"part": [*(cell(n=str(n)) for n in (1, 2, 3)), odd]})
    fill(store, {"part": [odd]})
    write_report(store, tmp_path / "out", 1, 2)
    assert "Comparison of two sweeps" in Reader((tmp_path / "out/report.html").read_text()).text


@pytest.mark.parametrize("odd", [["n", 1], {"n": [1]}], ids=str)
def test_what_no_frame_can_hold_is_refused_in_one_line(store: Store, tmp_path: Path, odd: Any) -> None:
    id_, question, result = cell(0.5)
    store.add([(id_, {**question, "parameters": odd}, result)])
    with pytest.raises(StoreError, match="1 cell is altered"):
        write_report(store, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_no_mechanism_of_a_store_is_imported(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "trap_of_a_store.py").write_text("raise SystemExit('imported')\n")
    monkeypatch.syspath_prepend(tmp_path)
    fill(store, {"part": [cell(0.5, "trap_of_a_store:Mechanism", n=str(n)) for n in (1, 2, 3)]})
    assert "trap_of_a_store:Mechanism" in made(store, tmp_path).text
    assert "trap_of_a_store" not in sys.modules


def test_the_newest_sweep_or_all_cells(store: Store, tmp_path: Path) -> None:
    store.add([("x", *cell(0.5, n="1")[1:])])
    assert "All stored cells" in made(store, tmp_path).text
    fill(store, {"part": [cell(n="2")]}, "old")
    fill(store, {"part": [cell(n="3")]}, "new")
    assert "Sweep new, number 2" in made(store, tmp_path).text
    assert "Sweep old, number 1" in made(store, tmp_path, sweep=1).text


def test_an_empty_store_or_an_unknown_sweep_is_refused(store: Store, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no cells"):
        write_report(store, tmp_path / "out")
    fill(store, {"part": []})
    assert "No cell has an answer yet" in made(store, tmp_path).text
    for chosen in ({"sweep": 7}, {"against": 7}):
        with pytest.raises(UsageError, match="there is no sweep 7"):
            write_report(store, tmp_path / "other", **chosen)
    with pytest.raises(UsageError, match="name another one"):
        write_report(store, tmp_path / "other", 1, 1)
    assert not (tmp_path / "other").exists()


def compared(store: Store, one: Sequence[Row], other: Sequence[Row]) -> Comparison:
    numbers = fill(store, {"part": one}), fill(store, {"part": other})
    return compare(*([frame(store, None, number)] for number in numbers))


SAMPLED = cell(0.5, interval=(0.4, 0.6), seed=0, n="1")
CASES = {
    "exact within rounding": (cell(0.5, n="1"), cell(0.5 + 5e-13, n="1"), (1, 0, 0)),
    "exact and apart": (cell(0.5, n="1"), cell(0.5 + 2e-12, n="1"), (0, 0, 1)),
    "another verdict and P": (cell(0.5, n="1"), cell(1.0, n="1"), (0, 1, 1)),
    "another verdict alone": (cell(0.5, n="1"), cell(0.5, n="1", answer={"verdict": "blind"}), (0, 1, 0)),
    "intervals overlap": (SAMPLED, cell(0.7, interval=(0.6, 0.8), seed=0, n="1"), (1, 0, 0)),
    "intervals apart": (SAMPLED, cell(0.7, interval=(0.61, 0.8), seed=0, n="1"), (0, 0, 1)),
    "exact inside": (SAMPLED, cell(0.41, interval=(0.41, 0.41), seed=0, n="1"), (1, 0, 0)),
    "exact outside": (SAMPLED, cell(0.39, interval=(0.39, 0.39), seed=0, n="1"), (0, 0, 1)),
    "now refused": (cell(0.5, n="1"), refused("why", n="1"), (0, 1, 0)),
    "both refused": (refused("this", n="1"), refused("that", n="1"), (1, 0, 0)),
    "other order of names": (cell(0.5, n="1", d="2"), cell(0.5, d="2", n="1"), (1, 0, 0)),
}


@pytest.mark.parametrize("name", CASES)
def test_comparison_of_one_cell(store: Store, name: str) -> None:
    one, other, expected = CASES[name]
    for found in (compared(store, [one], [other]), compared(store, [other], [one])):
        assert (found.same, found.other_verdict, found.other_probability) == expected
        assert (found.only_one, found.only_other) == (0, 0)
        assert found.identical == (found.same == 1)
        assert len(found.largest) == found.changed == 1 - found.same


@pytest.mark.parametrize(
    "other",
    [
        cell(n="2"),
        cell(mechanism="linear", n="1"),
        cell(construction="location", n="1"),
        cell(asked="certified", n="1"),
        cell(interval=(0.4, 0.6), seed=1, n="1"),
        cell(n="1", d="1"),
    ],
)
def test_other_questions_are_not_matched(store: Store, other: Row) -> None:
    found = compared(store, [cell(n="1")], [other])
    assert (found.same, found.changed, found.only_one, found.only_other) == (0, 0, 1, 1)
    assert not found.identical


def test_the_largest_changes_come_first(store: Store) -> None:
    one = [cell(0.2, n=str(n)) for n in range(150)]
    other = [refused("gone", n="0"), *(cell(0.2 + n / 200, n=str(n)) for n in range(1, 149))]
    found = compared(store, one, other)
    assert (found.changed, found.other_probability, found.only_one, len(found.largest)) == (149, 148, 1, 100)
    assert [change.parameters["n"] for change in found.largest[:3]] == ["148", "147", "146"]
    assert found.largest[0].one.word == "partial"
    assert json.loads(json.dumps(found.as_json(), allow_nan=False))["largest"][0]["how"]["asked"] == "closed"


def test_the_page_shows_what_changed(store: Store, tmp_path: Path) -> None:
    fill(store, {"part": [cell(0.5, n="1"), cell(0.5, interval=(0.4, 0.6), seed=3, n="1"), cell(n="8")]})
    fill(store, {"part": [cell(1.0, n="1"), cell(0.9, interval=(0.8, 0.95), seed=3, n="1")]})
    text = made(store, tmp_path, sweep=1, against=2).text
    assert "the same answer0another verdict1another P2only in demo 11only in demo 20" in text
    assert "Common to all: n=1 asked=closed delta=0.01." in text
    assert "partialP = 0.5; engine closeddistinguishesP = 1; engine closed−0.5" in text
    assert "P = 0.9, sampled, in [0.8, 0.95]; engine dense" in text


def test_the_commands(store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fill(store, {"part": [cell(0.5, n=str(n)) for n in (1, 2, 3)]}, "one")
    fill(store, {"part": [cell(0.5 if n < 3 else 0.75, n=str(n)) for n in (1, 2, 3)]}, "other")
    where = ("--store", store.location)
    code, out, _ = run(capsys, "report", *where, "--against", "one", "--out", str(tmp_path / "out"), "--json")
    told = require_document("report", out)
    assert (code, told["sweep"], told["cells"]) == (0, 2, {"done": 3})
    assert (told["comparison"]["same"], told["comparison"]["other_probability"]) == (2, 1)
    assert Path(told["page"]).exists()
    code, out, _ = run(capsys, "report", *where, "--out", str(tmp_path / "out"))
    assert (code, "sweep other, number 2: 3 done" in out) == (0, True)
    code, out, _ = run(capsys, "compare", "one", "other", *where)
    assert (code, "they differ" in out, "softmax on spike" in out) == (1, True, True)
    assert max(map(len, out.splitlines())) <= 80
    code, out, _ = run(capsys, "compare", "one", "1", *where, "--other-store", store.location, "--json")
    assert (code, require_document("compare", out)["identical"]) == (0, True)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["report", "--sweep", "two"], "there is no sweep two"),
        (["report", "--against", "two"], "there is no sweep two"),
        (["report", "--sweep", "one", "--against", "1"], "name another one to compare with"),
        (["compare", "one", "two"], "there is no sweep two"),
        (["compare", "one", "one", "--other-store", "nowhere.db"], "there is no store nowhere.db"),
        (["compare", "one"], "Missing argument"),
    ],
)
def test_bad_usage_is_one_line_and_writes_nothing(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], complaint: str
) -> None:
    fill(store, {"part": [cell(n="1")]}, "one")
    out = ["--out", str(tmp_path / "out")] if words[0] == "report" else []
    code, shown, err = run(capsys, *words, "--store", store.location, *out)
    assert (code, shown, err.count("\n")) == (2, "", 1)
    assert complaint in err
    assert not (tmp_path / "out").exists()


def test_a_report_leaves_other_files_alone(store: Store, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/mine.txt").write_text("mine")
    fill(store, {"part": [cell(n="1")]})
    write_report(store, tmp_path / "out")
    assert (tmp_path / "out/mine.txt").read_text() == "mine"
    assert len(list((tmp_path / "out").iterdir())) == 4


MIXED = """
[[sweep]]
construction = "spike"
mechanisms = ["softmax", "linear"]
engine = "closed"
parameters = { n = [1000, 10000] }

[[learn]]
task = "needle"
mechanisms = ["softmax"]
parameters = { n = 8 }
setting = { steps = 4, width = 8, batch = 4, every = 2, validation = 16, tests = 32 }
rates = [0.01]
"""


def test_training_with_the_default_seed_alone_is_reported_beside_verdicts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The default is the one seed 0, which says as much as any other."""
    from separatrix.sweeps.sweep import sweep

    (tmp_path / "mixed.toml").write_text(MIXED)
    url = f"sqlite:///{tmp_path / 'results.db'}"
    assert sweep(tmp_path / "mixed.toml", url, workers=1).done == 5
    code, out, err = run(capsys, "report", "--store", url, "--out", str(tmp_path / "report"), "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["cells"] == {"done": 5}
    page = (tmp_path / "report" / "report.html").read_text()
    assert "P is known for 4 cells" in page
    assert "Training runs" in page
    assert pl.read_csv(tmp_path / "report" / "results.csv").height == 4
    assert pl.read_csv(tmp_path / "report" / "training.csv")["seed"].to_list() == [0]
    code, out, err = run(capsys, "results", "--store", url, "--kind", "training", "--csv")
    assert "seed" in out.splitlines()[0].split(",")
