"""Maps: what the axes mean, that every cell is right, and what is written."""

from __future__ import annotations

import io
import json
import math
import random
import re
import shlex
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import separatrix as sx
from cases import BASE
from expectations import assert_refused, run
from separatrix.analysis import maps
from separatrix.analysis.maps import Map
from separatrix.analysis.maps.plane import Step
from separatrix.constructions.lengths import nearest_multiple
from separatrix.constructions.spike import Spike
from separatrix.core.numbers.spelling import for_people
from separatrix.core.parameters import UsageError, split_mechanisms
from separatrix.core.parameters.ranges import read_counted
from separatrix.exact.engines import Sampling, certified
from separatrix.exact.engines.outcome import significant_bits
from separatrix.exact.verdicts import verdict
from separatrix.pages.maps import captions
from separatrix.pages.maps.figure import PlaneAxis, map_figure
from separatrix.pages.maps.page import draw_result, map_page
from separatrix.pages.maps.picture import zero_lines
from separatrix.pages.plots import suffixes

FIXED = {name: value for name, value in BASE.items() if name not in ("a1", "n")}
WORDS = [f"{name}={value}" for name, value in FIXED.items()]
PLANE = ["a1=0.5:1.5:5", "n=1e3:1e9:4:log"]


def points(name: str, text: str) -> tuple[Any, ...]:
    span, count = read_counted(Spike.schema, name, text)
    return span.points(count)


def small(**more: Any) -> Map:
    asked: dict[str, Any] = {"a1": "0.5:1.5:5", "n": "1e3:1e9:4:log", **FIXED, **more}
    return sx.map("spike", ["softmax", "linear"], **asked)


def test_linear_axes_are_exact() -> None:
    assert points("a1", "0.1:0.4:4") == tuple(Fraction(i, 10) for i in (1, 2, 3, 4))
    assert points("a1", "0:1:4") == (0, Fraction(1, 3), Fraction(2, 3), 1)


def test_log_axes_are_short_and_keep_their_ends() -> None:
    assert points("n", "1e3:1e18:4:log") == (10**3, 10**8, 10**13, 10**18)
    values = points("a1", "0.123456789:7:9:log")
    assert values[0] == Fraction("0.123456789")
    assert values[-1] == 7
    assert all(len(str(float(value))) <= 8 for value in values[1:-1])
    assert all(isinstance(value, int) for value in points("n", "1e3:1e18:40:log"))


def test_a_whole_axis_takes_no_value_twice() -> None:
    assert points("m", "1:5:40") == (1, 2, 3, 4, 5)


@given(
    st.fractions(min_value=Fraction(1, 1000), max_value=1000, max_denominator=1000),
    st.fractions(min_value=Fraction(1, 1000), max_value=1000, max_denominator=1000),
    st.integers(2, 300),
    st.sampled_from(["", ":log"]),
)
def test_axes_rise_from_end_to_end(one: Fraction, other: Fraction, count: int, log: str) -> None:
    low, high = sorted((one, other))
    if low == high:
        return
    values = points("a1", f"{low}:{high}:{count}{log}")
    assert (values[0], values[-1]) == (low, high)
    assert len(values) == count
    assert all(early < late for early, late in pairwise(values))


@given(st.integers(1, 10**20), st.integers(2, 10**6))
def test_n_moves_to_the_nearest_multiple(n: int, step: int) -> None:
    moved = nearest_multiple(n, step)
    assert moved % step == 0
    assert moved >= 3 or moved == n
    assert abs(moved - n) <= step / 2 or moved == step * math.ceil(3 / step)


PLANES: list[tuple[str, dict[str, str]]] = [
    ("softmax", {"a1": "0.5:1.5:30", "n": "1e3:1e18:30:log"}),
    ("linear", {"n": "1e3:1e18:30:log", "tau": "0.15:0.25:30", "a1": "1.2"}),
    ("softmax", {"d": "4:60:30", "n": "10:1e9:30:log", "a1": "0.8"}),
    ("softmax", {"d": "4:60:30", "a1": "0.5:1.5:30", "n": "1000"}),
    ("softmax", {"b": "0.1:0.5:30", "m": "1:30:30", "a1": "0.8", "n": "1000"}),
    ("power", {"beta": "1:20:30", "n": "1e3:1e9:30:log", "a1": "1.2"}),
    ("power", {"n": "1e3:1e9:30:log", "beta": "1:20:30", "a1": "1.2"}),
]


@pytest.mark.parametrize(("mechanism", "open_"), PLANES)
def test_every_cell_is_what_fractions_say(mechanism: str, open_: dict[str, str]) -> None:
    parameters = {**FIXED, **open_}
    found = maps.map("spike", [mechanism], parameters)
    (asked,), (layer,), pick = found.questions, found.layers, random.Random(0)
    for _ in range(12):
        cell = pick.randrange(layer.values.shape[0]), pick.randrange(layer.values.shape[1])
        chosen = found.grid.at(cell)
        truth = certified.solve(asked.point(chosen), asked.mechanism(chosen))
        assert layer.values[cell] == pytest.approx(truth.distinguish, rel=1e-9, abs=1e-300)


def test_the_first_axis_runs_across_and_the_second_up() -> None:
    found = small()
    assert (found.x.name, found.y.name) == ("a1", "n")
    assert found.layers[0].values.shape == (4, 5)
    point = {**FIXED, "a1": "1", "n": 10**9}
    truth = verdict("spike", "softmax", point).outcome.distinguish
    assert found.layers[0].values[3, 2] == pytest.approx(truth)


@pytest.mark.parametrize("of", ["distinguish", "fire_d0", "fire_d1", "margin", "bits"])
def test_every_quantity_by_the_command_of_its_cell(of: str) -> None:
    found = small(of=of, a1="0.5:1.5:3", n="1050:1e6:3:log")
    for layer, values in enumerate(found.layers):
        for cell in ((0, 0), (1, 2), (2, 1)):
            command = captions.command(found, layer, cell)
            construction, mechanism, *words = shlex.split(command)[2:]
            answer = verdict(construction, mechanism, dict(word.split("=") for word in words))
            truth = answer.bits if of == "bits" else getattr(answer.outcome, of)
            assert values.values[cell] == pytest.approx(truth, rel=1e-9, abs=1e-300)


def test_what_was_moved_is_said_and_used() -> None:
    found = small(n="1040:1e6:3:log")
    assert found.grid.n is not None
    assert found.grid.n[:, 0].tolist() == [1000, 32200, 10**6]
    assert "2 of 3 places" in found.length_remark
    assert "n=1040 to n=1000" in found.length_remark
    assert small().length_remark == ""


def test_where_d_moves_n_moves_with_it() -> None:
    found = sx.map("spike", "softmax", d="4:12:3", a1="0.5:1.5:3", n=1001, m=1, a0="0.01", b="0.2", c="0.1")
    assert found.grid.n is not None
    assert found.grid.n.tolist() == [[1002, 1002, 1000]]


def test_a_difference_is_one_layer() -> None:
    found = small(difference=True)
    softmax, linear = found.layers
    (shown,) = found.panels
    assert np.array_equal(shown.values, softmax.values - linear.values)
    assert found.as_json()["layers"][0]["mechanism"] == "softmax − linear"


def test_mechanisms_are_split_at_the_right_commas() -> None:
    assert split_mechanisms("softmax,power:beta=2,linear") == ["softmax", "power:beta=2", "linear"]
    assert split_mechanisms("gla:a=1,b=2,taylor:order=2") == ["gla:a=1,b=2", "taylor:order=2"]


def test_sampled_cells_have_intervals_and_an_estimate_comes_first() -> None:
    steps: list[Step] = []
    parameters = {**FIXED, "a1": "0.6:0.8:3", "n": "1e3:1e5:2:log"}
    sampling = Sampling(draws=200, confidence=0.9999)
    found = maps.map("spike", ["softmax"], parameters, engine="grouped", sampling=sampling, tell=steps.append)
    exact = maps.map("spike", ["softmax"], parameters).layers[0]
    (layer,) = found.layers
    assert layer.engine == "grouped"
    assert ((layer.low <= exact.values) & (exact.values <= layer.high)).all()
    assert (layer.low < layer.high).all()
    assert exact.has_interval is False
    assert layer.has_interval is True
    assert steps[0].done == 3
    assert steps[0].seconds > 0
    assert [step.done for step in steps] == [3, 4, 5, 6]
    assert {step.total for step in steps} == {6}
    words = shlex.split(captions.command(found, 0, (0, 0)))
    assert words[-6:] == ["--engine", "grouped", "--draws", "200", "--confidence", "0.9999"]


def test_cells_without_an_answer_stay_empty_and_are_counted() -> None:
    asked = {"d": "102:300002:2", "a1": "0.8:1:2", "n": 600_000, "m": 1, "a0": "0.01", "b": "0.2", "c": "0.1"}
    (layer,) = maps.map("spike", ["softmax"], asked, engine="certified").layers
    assert np.isnan(layer.values).tolist() == [[False, True], [False, True]]
    assert layer.remark.startswith("2 cells have no answer: certified fractions would have")


def test_constructions_without_a_closed_form_are_mapped_too() -> None:
    found = sx.map("dispersion", ["softmax", "logn-softmax"], n="10:1e6:3:log", gap="1:10:3", m=12)
    for layer, values in enumerate(found.layers):
        mechanism = found.questions[layer].label
        for row, gap in enumerate(found.y.values):
            truth = verdict("dispersion", mechanism, {"n": 10**6, "gap": gap, "m": 12}).outcome.distinguish
            assert values.values[row, 2] == pytest.approx(truth)


def test_bits_are_infinite_where_nothing_differs() -> None:
    assert significant_bits(np.float64(1.0), np.float64(0.0)) == math.inf
    assert significant_bits(np.float64(1.0), np.float64(-0.25)) == 2


def write(found: Map, folder: Path, ending: str) -> Path:
    out = folder / f"map{ending}"
    found.save(out)
    assert [path.name for path in folder.iterdir()] == [out.name]
    return out


@pytest.mark.parametrize("ending", suffixes("map"))
def test_every_ending_can_be_written(ending: str, tmp_path: Path) -> None:
    assert write(small(), tmp_path, ending).stat().st_size > 500


def test_npz_needs_no_pickles(tmp_path: Path) -> None:
    found = small(n="1040:1e9:4:log")
    with np.load(write(found, tmp_path, ".npz"), allow_pickle=False) as arrays:
        assert np.array_equal(arrays["distinguish"], [layer.values for layer in found.layers])
        assert arrays["mechanisms"].tolist() == ["softmax", "linear"]
        assert arrays["n_used"][0, 0] == "1000"
        assert arrays["n"][0, 0] == 1040
        assert arrays["a1_used"].tolist() == [["0.5", "0.75", "1", "1.25", "1.5"]]


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_tables_have_a_row_for_each_cell(ending: str, tmp_path: Path) -> None:
    found = small(n="1040:1e9:4:log", difference=True)
    path = write(found, tmp_path, ending)
    exact = {"a1_used": pl.String, "n_used": pl.String}
    rows = pl.read_parquet(path) if ending == ".parquet" else pl.read_csv(path, schema_overrides=exact)
    assert rows.height == 3 * 20
    chosen = rows.filter(mechanism="softmax", a1_used="1.25", n_used="1000")
    assert chosen["distinguish"].item() == pytest.approx(found.layers[0].values[0, 3], rel=1e-12)
    assert chosen["low"].item() == chosen["high"].item()
    both = rows.filter(mechanism="softmax − linear", a1_used="1.25", n_used="1000")
    assert both["distinguish"].item() == pytest.approx(found.panels[0].values[0, 3])


def test_the_page_begins_with_what_was_found() -> None:
    both = sx.map("spike", "softmax,linear", a1="0.5:1.5:9", n="1e3:1e9:3:log")
    share = float((both.layers[0].values >= 0.99).mean())
    told = f"Linear attention is blind at every n shown; softmax tells D0 from D1 on {share:.0%} of the map"
    assert captions.finding(both) == told
    assert re.search(f"<h1>{re.escape(told)}</h1>", map_page(both))
    elsewhere = sx.map("spike", "linear", a1="0.5:1.5:4", b="0.1:0.3:3")
    assert captions.finding(elsewhere) == "Linear attention is blind everywhere on this map"
    bits = sx.map("spike", "linear", a1="0.5:1.5:4", n="1e3:1e9:3:log", of="bits")
    low, high = (for_people(float(end(bits.layers[0].values)), 3) for end in (np.min, np.max))
    assert captions.finding(bits) == f"Linear needs {low} to {high} bits"


def test_the_page_is_whole_and_knows_every_cell(tmp_path: Path) -> None:
    found = small(n="1040:1e9:4:log")
    text = write(found, tmp_path, ".html").read_text()
    assert "default-src 'none'" in text
    assert not re.search(r"""(src|href)=["']https?:""", text.split("</main>")[0])
    assert found.length_remark in text
    heading = json.loads(text.split('type="application/json" id="map">')[1].split("</script>")[0])["heading"]
    assert heading["n_used"] == [["1000"], ["102600"], ["10131600"], ["1e9"]]
    assert [axis["name"] for axis in heading["axes"]] == ["a1", "n"]
    fixed = [["d", "102"], ["m", "12"], ["a0", "0.01"], ["b", "0.2"], ["c", "0.1"]]
    assert heading["place"]["words"][2:] == fixed
    assert "a1(a1+b+c) = 1 [ours]" in text
    assert "separatrix map spike softmax,linear a1=0.5:1.5:5" in text


def test_the_known_boundary_is_drawn_where_it_lies() -> None:
    found = sx.map("spike", "softmax", **FIXED | {"b": "0.1:0.5:51", "a1": "0.5:1.5:101", "n": 10**6})
    axes = PlaneAxis.of(found.x), PlaneAxis.of(found.y)
    (panel,) = map_figure(found).panels
    assert panel.formula is not None
    assert panel.formula["formula"] == "a1(a1+b+c) = 1"
    ((b, a1),) = zero_lines(*axes, panel.numbers["formula"])
    assert np.allclose(a1 * (a1 + b + 0.1), 1, atol=1e-3)
    ((b, a1),) = zero_lines(*axes, panel.coloured_numbers - 0.5)
    assert (a1 * (a1 + b + 0.1) < 1).all()


def test_the_lines_of_number_formats_lie_where_their_bits_run_out(tmp_path: Path) -> None:
    plane = {**{name: BASE[name] for name in ("d", "m", "a0", "b", "c")}, "a1": "0.5:1.5:21", "n": "1e3:1e18:61:log"}
    found = sx.map("spike", "linear", plane, of="bits")
    figure, shared, a0 = map_figure(found), 0.3, 0.01
    names = ["bfloat16, 8 bits", "float16, 11 bits", "float32, 24 bits", "float64, 53 bits"]
    assert [*figure.levels] == names
    for name, level in figure.levels.items():
        pieces = zero_lines(figure.x, figure.y, figure.panels[0].coloured_numbers - level)
        assert pieces
        for a1, n in ((x, y) for xs, ys in pieces for x, y in zip(xs, ys, strict=True)):
            one, none = (a * (w := (a + shared) / shared) / (w + n - 1) for a in (a1, a0))
            assert math.log2((shared + one) / (one - none)) == pytest.approx(int(name.split()[1]), abs=0.02)
    texts = [text.get_text() for text in draw_result(found).axes[0].texts]
    assert texts == ["bfloat16", "float16", "float32", "float64"]


def test_text_fits_eighty_columns(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    plane = ["a1=0.5:1.5:200", "n=1e3:1e18:90:log"]
    code, out, err = run(capsys, "map", "spike", "softmax,linear", *plane, *WORDS)
    assert (code, err) == (0, "")
    assert max(map(len, out.splitlines())) <= 80
    assert "█" in out
    assert "largest" in out
    assert "n is rounded to a multiple of d−2" in out


def test_json_holds_axes_and_values(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "map", "spike", "softmax", *PLANE, *WORDS, "--json")
    shown = json.loads(out)
    assert code == 0
    assert shown["axes"][0] == {"name": "a1", "log": False, "values": ["0.5", "0.75", "1", "1.25", "1.5"]}
    assert shown["n_used"] == [[1000], [100000], [10**7], [10**9]]
    assert np.array_equal(shown["layers"][0]["values"], small().layers[0].values)


BAD: list[tuple[list[str], str]] = [
    (["a1=0.5:1.5:1", PLANE[1]], "a1=0.5:1.5:1 has one point; an axis needs at least 2"),
    (["a1=0.5:1.5:0", PLANE[1]], "has no points"),
    (["a1=0.5:1.5:2.5", PLANE[1]], "the count 2.5 is not a whole number of points"),
    (["a1=0.5:1.5:-2", PLANE[1]], "the count -2 is not a whole number of points"),
    (["a1=1.5:0.5:5", PLANE[1]], "runs backwards; write a1=0.5:1.5:5"),
    (["a1=1:1:5", PLANE[1]], "has no length"),
    (["a1=0:1:5:log", PLANE[1]], "starts at 0; a logarithmic axis needs ends above 0"),
    (["a1=-1:1:5:log", PLANE[1]], "starts at -1"),
    (["a1=0.5:1.5:5:lg", PLANE[1]], "the only word that can stand there is log"),
    (["a1=0.5:1.5", PLANE[1]], "a1=0.5:1.5 is not an axis"),
    (["a1=nan:1.5:5", PLANE[1]], "a1=nan is not a finite number"),
    (["a1=0.5:inf:5", PLANE[1]], "a1=inf is not a finite number"),
    (["a1=0.5:1.5:1e6", "n=1e3:1e9:1e6:log"], "1,000,000 by 1,000,000 has 1,000,000,000,000 cells"),
    (["a1=0.5:1.5:1e999", PLANE[1]], "has 1e999 points"),
    (["n=1e3:1e400:5:log", PLANE[0]], "goes beyond 1e300"),
    (["n=1.5:9:4", PLANE[0]], "n=1.5 is not a whole number"),
    ([PLANE[0], "n=1000"], "a map needs two axes, but there is one (a1)"),
    ([*PLANE, "tau=0.1:0.2:3"], "a map needs two axes, but there are 3 (a1, n, tau)"),
    ([*PLANE, PLANE[0]], "a1 is given twice"),
    ([PLANE[1], "a11=0.5:1.5:5", "a1=1"], "spike has no parameter a11 (did you mean a1?)"),
    ([*PLANE, "zz=1"], "spike has no parameter zz"),
    ([PLANE[1], "form=a:b:2", "a1=1"], "form is not a number"),
    (["a1=0.001:1.5:5", PLANE[1]], "a0=0.01 must be smaller than a1=0.001"),
    (["n=-9:90:5", PLANE[0]], "n=-9 is out of range"),
    ([*PLANE, "--of", "distinguishes"], "there is no quantity distinguishes (did you mean distinguish?)"),
    ([*PLANE, "of=margin"], "of is an option; write --of margin"),
    ([*PLANE, "--engine", "fast"], "there is no engine fast"),
    ([*PLANE, "--difference"], "a difference needs two mechanisms, but there is one"),
    ([*PLANE, "--out", "map.gif"], "map.gif does not say what to write"),
    ([*PLANE, "--out", "nowhere/map.html"], "there is no folder nowhere"),
    ([*PLANE, "--draws", "0"], "draws=0 is out of range"),
]


@pytest.mark.parametrize(("words", "complaint"), BAD, ids=[complaint for _, complaint in BAD])
def test_bad_input_gets_one_line(
    words: list[str],
    complaint: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert_refused(capsys, complaint, tmp_path, "map", "spike", "softmax", *words, *WORDS)


def test_a_mechanism_that_lacks_the_parameter_is_named() -> None:
    with pytest.raises(UsageError, match="beta is not a parameter of softmax"):
        sx.map("spike", ["softmax", "power"], beta="1:3:3", n="1e3:1e6:3:log", a1=1, **FIXED)
    with pytest.raises(UsageError, match="are both parameters of the mechanism"):
        maps.map("spike", ["linformer"], {**FIXED, "rank": "1:3:3", "seed": "0:2:3"})


def test_csv_of_an_open_cell_is_empty() -> None:
    asked = {"d": "102:300002:2", "a1": "0.8:1:2", "n": 600_000, "m": 1, "a0": "0.01", "b": "0.2", "c": "0.1"}
    table = maps.map("spike", ["softmax"], asked, engine="certified").to_frame()
    assert table["distinguish"].null_count() == 2
    assert b"NaN" not in io.BytesIO(table.write_csv().encode()).read()
