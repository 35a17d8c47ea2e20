"""Results in Python: a line, a table for a notebook, a plot, a frame, a file."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from matplotlib.figure import Figure

import separatrix as sx
from cases import BASE
from documents import Page, require_document, require_result
from separatrix.claims import Ledger, check_claim, claim_named
from separatrix.core.result import Result

AROUND = {name: value for name, value in BASE.items() if name not in ("n", "a1")}
PLANE = {**AROUND, "a1": "0.5:1.5:7", "n": "1e3:1e18:5:log"}
LENGTHS = [10**3, 10**4, 10**5, 10**6]
MANY = ("softmax", "linear", "relu", "elu", "power:beta=4")
RANGE = {**AROUND, "a1": "0.5:1.5"}


COMPUTED: dict[str, Callable[[], Result]] = {
    "verdict": lambda: sx.verdict("spike", "softmax", BASE),
    "sampled": lambda: sx.verdict("spike", "softmax", BASE, engine="grouped", sampling=sx.Sampling(draws=20)),
    "verdicts": lambda: sx.verdict("spike", ["softmax", "linear", "gla"], BASE),
    "many verdicts": lambda: sx.verdict("spike", list(MANY), BASE),
    "map": lambda: sx.map("spike", "softmax", PLANE),
    "two layers": lambda: sx.map("spike", "softmax,linear", PLANE),
    "boundary": lambda: sx.boundary("spike", "softmax", RANGE, n=1000),
    "no crossing": lambda: sx.boundary("spike", "linear", RANGE, n=10**6),
    "curve": lambda: sx.boundary("spike", "softmax", RANGE, over="n=1e3:1e6:3:log"),
    "scaling": lambda: sx.scaling("spike", "linear", {**AROUND, "a1": "1.2"}, n=LENGTHS),
    "scalings": lambda: sx.scaling("spike", [*MANY, "gla"], {**AROUND, "a1": "1.2"}, n=LENGTHS, engine="closed"),
    "readers": lambda: sx.readers("spike", "linear", BASE),
    "proof": lambda: sx.prove("spike", "softmax", a1="0.8"),
    "proofs": lambda: sx.prove("spike", ["softmax", "linear", "gla"]),
    "weights": lambda: sx.weights("spike", "linear", BASE),
    "atlas": lambda: sx.atlas("softmax,linear", "spikes,duplication"),
    "bench": lambda: sx.bench("linear", lengths=[16, 32]),
    "choice": lambda: sx.choose(20_000, must="critical", mechanisms="softmax,elu,delta"),
    "ledger": lambda: Ledger((check_claim(claim_named("threshold")),)),
    "sweep": lambda: sx.Progress(7, sweep="paper", number=1, done=5, refused=2, store="results.db"),
    "search": lambda: sx.search("identity-features:normalised=no", "softmax", budget=10),
}
"""One of each kind that takes no training and no contract."""


class Results(dict[str, Result]):
    """Results by name, each computed when it is first asked for: a worker runs some of the tests only."""

    def __missing__(self, name: str) -> Result:
        self[name] = COMPUTED[name]()
        return self[name]


@pytest.fixture(scope="module")
def results() -> Results:
    return Results()


WORDS = ("search", "ledger", "sweep")
"""What has no picture."""
NAMES = (
    *("verdict", "sampled", "map", "two layers", "boundary", "no crossing", "curve", "scaling", "readers"),
    *("verdicts", "many verdicts", "scalings", "proof", "proofs", "weights", "atlas", "bench", "choice", *WORDS),
)


@pytest.mark.parametrize("name", NAMES)
def test_a_result_is_a_line_a_table_and_a_file(name: str, results: Results, tmp_path: Path) -> None:
    every_format = name in ("verdict", "two layers")
    require_result(results[name], tmp_path, (".png", ".svg", ".pdf") if every_format else (".svg",))


@pytest.mark.parametrize("name", [each for each in NAMES if each not in ("two layers", *WORDS)])
def test_a_plot_is_on_the_axes_that_are_given(name: str, results: Results) -> None:
    axes = Figure().subplots()
    assert results[name].plot(axes) is axes
    assert axes.has_data() or axes.texts
    other = results[name].plot()
    assert other is not axes
    assert isinstance(other.figure, Figure)


def test_what_takes_long_as_a_command_is_as_its_schema_says(results: Results) -> None:
    require_document("atlas", results["atlas"].as_json())
    require_document("bench", results["bench"].as_json())


def test_a_map_of_two_has_two_panels(results: Results) -> None:
    found = results["two layers"]
    axes = Figure().subplots(1, 2)
    assert found.plot(axes) is axes
    titles = [each.get_title() or each.get_title(loc="left") for each in axes]
    assert titles == ["softmax", "linear, margin (P ≤ 5×10⁻⁶)"]
    assert found.plot().shape == (2,)
    with pytest.raises(sx.UsageError, match="this has 2 panels; give as many axes in a list, not 1"):
        found.plot(axes[0])
    with pytest.raises(sx.UsageError, match="there is no picture of this Search"):
        results["search"].plot()


def test_what_is_drawn_is_what_was_found(results: Results) -> None:
    found = sx.scaling("spike", "linear", {**AROUND, "a1": "1.2"}, n=LENGTHS)
    x, y = found.plot().lines[0].get_data()
    assert list(x) == [float(value.x) for value in found.values]
    assert list(y) == [value.y for value in found.values]
    verdict = sx.verdict("spike", "softmax", BASE)
    widths = [bar.get_width() for bar in verdict.plot().patches]
    assert widths == [verdict.outcome.fire_d0, verdict.outcome.fire_d1, verdict.outcome.distinguish]
    plane = sx.map("spike", "softmax", PLANE)
    assert np.array_equal(plane.plot().collections[0].get_array(), plane.layers[0].values)


def test_frames_hold_what_json_holds(results: Results) -> None:
    frame = results["two layers"].to_frame()
    shown = results["two layers"].as_json()
    assert frame["distinguish"].to_list() == [p for layer in shown["layers"] for row in layer["values"] for p in row]
    both = pl.concat([sx.verdict("spike", each, BASE).to_frame() for each in ("softmax", "linear")])
    assert both["verdict"].to_list() == ["distinguishes", "blind"]
    assert both["n"].to_list() == [1000, 1000]
    assert results["no crossing"].to_frame().shape == (0, 10)
    large = sx.verdict("spike", "softmax", {**BASE, "n": 10**20}).to_frame()
    assert large["n"].to_list() == [str(10**20)]


class _Odd(Result):
    """What a stranger's names may do."""

    kind = "search"
    summary = "<script>alert(1)</script>\x1b[2J" + "x" * 1000

    def rows(self) -> list[dict[str, object]]:
        return [{"<b>": "=cmd()", "y": None}, {"<b>": "<img src=x>", "y": 2.0}]

    def as_json(self) -> list[dict[str, object]]:
        return self.rows()


def test_what_cannot_be_drawn_on_or_written_to_is_said(results: Results, tmp_path: Path) -> None:
    for name in ("verdict", "atlas", "two layers"):
        with pytest.raises(sx.UsageError, match="plot draws on matplotlib axes, and str is something else"):
            results[name].plot("above")
    with pytest.raises(sx.UsageError, match="is a folder; name a file in it"):
        results["verdict"].save(tmp_path)
    with pytest.raises(sx.UsageError, match="does not say what to write"):
        results["verdict"].save(tmp_path / "verdict.txt")
    assert not list(tmp_path.iterdir())


def test_numbers_in_a_line_are_spelled_for_people(results: Results) -> None:
    assert "n from 1000 to 10¹⁸ (5)" in repr(results["map"])
    assert "n from 1000 to 10⁶ (3 values)" in repr(results["curve"])
    assert "1.6556×10⁻⁶" in sx.verdict("spike", "linear")._repr_html_()


def test_names_of_strangers_do_no_harm(tmp_path: Path) -> None:
    odd = _Odd()
    assert len(repr(odd)) <= 200
    assert "\x1b" not in repr(odd)
    assert Page(odd._repr_html_()).tags == {"div", "p", "table", "tbody", "tr", "th", "td"}
    odd.save(tmp_path / "odd.csv")
    assert "'=cmd()" in (tmp_path / "odd.csv").read_text()


def test_plots_leave_pyplot_alone() -> None:
    program = (
        "import sys, separatrix as sx; found = sx.verdict('spike', 'softmax'); "
        "repr(found); found._repr_html_(); before = 'matplotlib' in sys.modules; found.plot(); "
        "print(before, 'matplotlib.pyplot' in sys.modules, 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False False False\n"
