"""The reproduction: the page stands alone, says what was found, and every number in it can be had again."""

from __future__ import annotations

import base64
import csv
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import polars as pl
import pytest
import torch
from scipy.stats import binom
from typer.testing import CliRunner

from documents import require_document
from separatrix.analysis import maps
from separatrix.analysis.weights import weights
from separatrix.checker import check_proof
from separatrix.claims import CLAIMS, SECTIONS, Claim, ClaimStatus, Entry, Finding, Ledger, Point
from separatrix.claims.paper import Reproduction, sweeps
from separatrix.claims.paper import figures as computed
from separatrix.claims.paper.figures import BASE, MECHANISMS
from separatrix.claims.paper.proofs import prove_statements
from separatrix.claims.paper.reproduction import Effort
from separatrix.cli.application import app
from separatrix.constructions.spike import Spike
from separatrix.core.files.folder import Folder
from separatrix.core.parameters import SeparatrixError, UsageError
from separatrix.exact.engines import certified
from separatrix.exact.proofs import prove
from separatrix.exact.reader import FourLayerNetwork
from separatrix.exact.verdicts import verdict
from separatrix.mechanisms import mechanism_named
from separatrix.pages import figures
from separatrix.pages.charts import Chart
from separatrix.pages.commands import Command
from separatrix.pages.figures._base import PaperFigure
from separatrix.pages.maps.figure import MapFigure, map_figure
from separatrix.pages.maps.scales import quantity_scale
from separatrix.pages.pages import typeset_prose, typeset_statement
from separatrix.pages.paper import paper_style
from separatrix.pages.reproduce import reproduce
from separatrix.pages.reproduction_page import _ledger_parts
from separatrix.sweeps.plan import load_plan, read_plan
from separatrix.sweeps.run import run
from separatrix.sweeps.store import Answer, CellStatus, StoreError, open_store
from separatrix.sweeps.sweep import shipped_plans
from separatrix.sweeps.work import BatchResults, make_result
from sweep_tools import HERE, Inline

QUICK = Effort(map_side=27, mechanisms=("softmax", "linear", "elu", "window:size=4", "hardmax"))
"""Small maps and five mechanisms in the tables: one for each way in which margins and verdicts are found."""
VALUES = {
    "n": [100, 1000, 5000, 10**9],
    "d": [6, 42, 102, 1002],
    "m": [1, 8, 12, 40],
    "a0": [0.01, 0.66, 0.75, 1],
    "a1": [0.4, 0.7, 1.2, 1.6],
    "c": [0.05, 0.45, 0.75, 1],
}
FOREIGN = Claim(
    "evil", "0", "ours", "<script>alert(1)</script> & more", "computed", lambda: _finding(ClaimStatus.FAILS)
)


def _finding(status: ClaimStatus) -> Finding:
    return Finding(status, "compared <a> with <b>", "3 < 4", (Point({"n": 3}, True, p=0.5),), "n > 2")


def _commands(figure: PaperFigure) -> list[Command]:
    """The commands of a figure and of its panels."""
    return [*figure.commands, *(command for panel in figure.panels for command in panel.commands)]


def _stand_in(*claims: Claim, status: ClaimStatus = ClaimStatus.HOLDS) -> Ledger:
    """A ledger of claims that were not run."""
    return Ledger(tuple(Entry(claim, _finding(status), 0.0) for claim in claims))


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The six sweeps with a few values each, the first two of them on literal tokens, too."""
    text = shipped_plans()["paper"].read_text().partition("[[sweep]]")[0]
    for name, values in VALUES.items():
        text += f'[[sweep]]\nname = "{name}"\nparameters.{name} = {values}\n'
        text += f'[[sweep]]\nname = "{name}, drawn"\nengine = "dense"\ndraws = 60\n'
        text += f'seeds = "7:"\nparameters.{name} = {values[:2]}\n'
    file = tmp_path_factory.mktemp("plans") / "few.toml"
    file.write_text(text)
    return file


@pytest.fixture(scope="module")
def made(plan: Path, tmp_path_factory: pytest.TempPathFactory) -> Reproduction:
    """One quick run, shared; the claims themselves are tested elsewhere."""
    out = tmp_path_factory.mktemp("reports") / "deep" / "out"
    effort = replace(QUICK, plan=str(plan))
    return reproduce(out, True, effort, lambda tell: _stand_in(*CLAIMS, FOREIGN))


@pytest.fixture(scope="module")
def page(made: Reproduction) -> str:
    return (made.out / "report.html").read_text()


@pytest.fixture(scope="module")
def swept(plan: Path, made: Reproduction) -> tuple[sweeps.ParameterSweep, ...]:
    """The sweeps of the same quick run, from what it stored."""
    store, executor = open_store(f"sqlite:///{made.out / 'results.db'}"), Inline()
    number = run(load_plan(plan), store, executor).number
    assert not executor.taken
    return sweeps.read_sweeps(store, number)


@pytest.fixture(scope="module")
def drawn(swept: tuple[sweeps.ParameterSweep, ...]) -> tuple[PaperFigure, ...]:
    """The figures of the same quick run."""
    return (
        figures.sweeps.make_figure(swept),
        figures.phase.make_figure(computed.phase_map(27)),
        figures.attention.make_figure(computed.attention_rows()),
        figures.margin.make_figure(computed.margin_curves()),
        figures.hoeffding.make_figure(computed.hoeffding_curves()),
    )


class _Loads(HTMLParser):
    """Everything a page would fetch, and how many scripts it has."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.scripts = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.scripts += tag == "script" and not dict(attrs).get("type")
        if tag not in ("a", "svg"):
            self.addresses += [value or "" for name, value in attrs if name in ("src", "href", "srcset", "data")]


def test_all_files_are_there(made: Reproduction) -> None:
    found = {str(path.relative_to(made.out)) for path in made.out.rglob("*") if path.is_file()}
    names = ("proofs", "sweeps", "phase", "attention", "margin", "hoeffding", "line")
    assert found == {
        *("report.html", "results.db"),
        *("ledger.json", "separations.json", "scaling.json"),
        *(f"proofs/{name}.json" for name in ("softmax", "linear", "softmax-below", "theorem", "laws")),
        *("proofs/softmax.v", "proofs/linear.v"),
        *(f"figures/{name}.{kind}" for name in names for kind in ("png", "pdf", "svg")),
        *(f"sweeps/{parameter}.csv" for parameter in ("n", "d", "m", "a0", "a1", "c")),
    }
    assert found == set(made.files)
    assert not [path for path in made.out.parent.iterdir() if path != made.out]
    assert require_document("ledger", (made.out / "ledger.json").read_text()) == made.ledger.as_json()
    require_document("reproduce", made.as_json())
    begins = {".png": b"\x89PNG", ".pdf": b"%PDF", ".svg": b"<?xml"}
    for path in (made.out / "figures").iterdir():
        assert path.read_bytes().startswith(begins[path.suffix])


def test_the_page_stands_alone(page: str) -> None:
    loads = _Loads()
    loads.feed(page)
    assert all(address.startswith(("data:image/png", "data:image/svg+xml")) for address in loads.addresses)
    assert loads.scripts == 1
    assert "default-src 'none'" in page
    assert not re.search(r"@import|url\((?!#)|/work/|/home/|/root/", page)
    assert len(page) < 2_500_000


def test_every_proved_statement_has_its_certificate(made: Reproduction, page: str) -> None:
    section = page[page.index('<section id="proofs">') : page.index('<section class="figure"')]
    below = {**BASE, "a1": "0.8"}
    for name, parameters in (("softmax", BASE), ("linear", BASE), ("softmax-below", below)):
        proof = prove("spike", name.partition("-")[0], parameters)
        assert str(typeset_statement(proof.statement)) in section
        assert str(typeset_statement(proof.final_statement)) in section
        certificate = (made.out / "proofs" / f"{name}.json").read_bytes()
        assert check_proof(json.loads(certificate)).holds
        assert json.loads(certificate)["parameters"]["a1"] == parameters["a1"]
        assert f'data:application/json;base64,{base64.b64encode(certificate).decode()}" download' in section
        assert (f'href="proofs/{name}.v"' in section) == (name in MECHANISMS)
    theorem = json.loads((made.out / "proofs" / "theorem.json").read_text())
    assert [bound["verdict"] for bound in theorem] == ["distinguishes", "blind"]
    laws = json.loads((made.out / "proofs" / "laws.json").read_text())
    assert all(str(typeset_statement(law["statement"])) in section for law in laws.values())
    assert len(laws) == 4


def test_the_curves_of_the_proofs_are_the_values_at_single_n() -> None:
    data = prove_statements()
    (panel,) = figures.proofs.make_figure(data).panels
    assert isinstance(panel.plot, Chart)
    for series, proof in zip(panel.plot.series, data.proofs.values(), strict=True):
        point = dict(proof.parameters)
        points = [(n, p) for n, p in zip(series.x, series.y, strict=True) if n < 2**53]  # whole numbers as floats
        for n, p in points[:: max(1, len(points) // 20)]:
            assert verdict("spike", proof.mechanism.name, {**point, "n": int(n)}).outcome.distinguish == p


def test_other_weights_are_named_with_their_price(page: str) -> None:
    section = page[page.index('<section id="weights">') : page.index('<section id="ledger">')]
    assert "With 4 of 7 weight matrices linear attention distinguishes" in section
    for choice in weights("spike", "linear", BASE).choices:
        assert f'<span class="name">{choice.name}</span>' in section
        assert str(typeset_statement(choice.price)) in section


def test_the_page_says_what_was_found(page: str, drawn: tuple[PaperFigure, ...]) -> None:
    for claim in CLAIMS:
        assert f">{claim.name}<" in page
    assert "&lt;script&gt;alert(1)" in page
    assert "<script>alert" not in page
    for figure in drawn:
        assert typeset_prose(figure.title) in page
        assert all(typeset_prose(text) in page for text in figure.caption)
        assert figure.panels
        assert figure.commands
        assert all(f"<code>{command.line}</code>" in page for command in _commands(figure))


def test_the_finding_and_figures_come_before_the_ledger(page: str, drawn: tuple[PaperFigure, ...]) -> None:
    shown = [f'id="{each.name}"' for each in drawn]
    places = [page.index(each) for each in ("<h1>", 'class="facts', "data:image/svg+xml", *shown, 'id="ledger"')]
    assert places == sorted(places)
    assert "0.9998" in page[page.index("<h1>") : page.index("</h1>")]


def test_the_ledger_is_folded_by_the_sections_of_the_theory(page: str) -> None:
    theory = (Path(__file__).parents[2] / "docs" / "theory.md").read_text()
    for number, title in SECTIONS.items():
        assert f"\n## {number}. {title}\n" in theory
        assert f">{number}. {title} <small>" in page
    assert {claim.section for claim in CLAIMS} == set(SECTIONS)
    assert page.count('<details class="part">') == len(SECTIONS) + 1  # and that of the foreign claim


def test_a_section_that_has_a_failing_claim_is_not_folded() -> None:
    held, failed = (Entry(FOREIGN, _finding(each), 0.0) for each in (ClaimStatus.HOLDS, ClaimStatus.FAILS))
    assert [part.has_failure for part in _ledger_parts([held])] == [False]
    (part,) = _ledger_parts([held, failed])
    assert (part.has_failure, part.summary) == (True, "1 holds, 1 fails")


def test_formulas_are_typeset_without_outside_help(page: str) -> None:
    found = re.findall(r"<math.*?</math>", page)
    assert len(found) > 15
    for each in found:
        ElementTree.fromstring(each)
    assert "$" not in re.sub(r"<script.*?</script>|<style.*?</style>", "", page, flags=re.DOTALL)


def test_titles_follow_from_what_was_found(swept: tuple[sweeps.ParameterSweep, ...]) -> None:
    swapped = pl.col("mechanism").replace({"softmax": "linear", "linear": "softmax"})
    turned = tuple(replace(each, cells=each.cells.with_columns(swapped)) for each in swept)
    said, other = (figures.sweeps.make_figure(each).title for each in (swept, turned))
    assert re.fullmatch(r"Softmax tells .* in every sweep; linear attention never gets above P = 0\.0\d+", said)
    assert re.fullmatch(r"Softmax tells .* in 0 of 6 sweeps; linear attention never gets above P = 1", other)


def test_one_colour_is_not_all_that_a_panel_shows(drawn: tuple[PaperFigure, ...]) -> None:
    plot = drawn[1].panels[0].plot
    assert isinstance(plot, MapFigure)
    softmax, linear = plot.panels
    assert (softmax.title, linear.title) == ("softmax, n = 10¹⁸", "linear, n = 10¹⁸, margin (P = 0)")
    for panel in (softmax, linear):
        shades = (panel.scale.shade(panel.coloured_numbers) - panel.scale.low) / (panel.scale.high - panel.scale.low)
        assert np.nanmax(shades) - np.nanmin(shades) > 0.5


def test_a_map_of_one_colour_shows_the_margin() -> None:
    found = maps.map("spike", "softmax,linear", {"a1": "0.5:1.5:5", "n": "1e3:1e9:4:log"})
    softmax, linear = map_figure(found).panels
    assert softmax.title == "softmax"
    assert softmax.coloured_numbers is found.layers[0].values
    assert re.fullmatch(r"linear, margin \(P ≤ [\d.]+×10⁻⁶\)", linear.title)
    by_itself = maps.map("spike", "linear", {"a1": "0.5:1.5:5", "n": "1e3:1e9:4:log"}, of="margin")
    assert np.array_equal(linear.coloured_numbers, by_itself.layers[0].values)
    assert linear.scale == quantity_scale(by_itself)


def test_pictures_show_what_the_page_draws(drawn: tuple[PaperFigure, ...]) -> None:
    for figure in drawn:
        charts = [panel.plot for panel in figure.panels if isinstance(panel.plot, Chart)]
        with paper_style():
            axes = [part for part in figure.draw().axes if part.get_visible()]
        for chart, part in zip(charts, axes, strict=False):
            assert part.get_xlabel() == chart.x.label
            shown = {tuple(line.get_xdata()) for line in part.get_lines()}
            lines = [series for series in chart.series if series.look.has_line and None not in series.y]
            assert {tuple(series.x) for series in lines} <= shown, figure.name
            texts = {text.get_text() for text in part.texts}
            assert {note.text for note in chart.notes} <= texts


def test_the_page_states_the_caveat(page: str) -> None:
    caveat = page[page.index('class="caveat"') :]
    caveat = caveat[: caveat.index("</section>")]
    for words in (
        "this</em> threshold",
        "tuned threshold",
        "Θ(1) for softmax",
        "5.99/n",
        "Only a summary of the paper was at hand",
        "nothing was compared with the paper's own",
    ):
        assert words in caveat


def test_commands_print_the_numbers_beside_them(drawn: tuple[PaperFigure, ...]) -> None:
    commands = {command.line: command for figure in drawn for command in _commands(figure)}
    assert len(commands) > 15
    for command in commands.values():
        if command.arguments[0] == "reproduce":
            continue
        answer = CliRunner().invoke(app, [*command.arguments, "--json"])
        assert answer.exit_code == 0, command.line
        found = json.loads(answer.stdout)
        kind, value = re.match(r"(P|p0|margin)[ =]+([\d.]+(?:×10[⁻⁰-⁹¹²³]+)?)", command.prints).groups()
        said = float(value.translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")).replace("×10", "e"))
        meant = {"P": found["distinguish"], "margin": found["margin"], "p0": found["neuron"]["p0"]}[kind]
        assert said == pytest.approx(float(Fraction(meant)), rel=6e-4), command


def test_a_failing_claim_is_not_hidden(tmp_path: Path) -> None:
    result = Reproduction(tmp_path, _stand_in(FOREIGN, status=ClaimStatus.FAILS), (), 1.0)
    assert not result.holds
    assert result.as_json()["claims"] == {"fails": 1}


@pytest.mark.parametrize("parameter", ["n", "d", "m", "a0", "a1", "c"])
def test_tables_agree_with_the_certified_engine(made: Reproduction, parameter: str) -> None:
    with (made.out / "sweeps" / f"{parameter}.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == sweeps.COLUMNS
    assert {row["mechanism"] for row in rows} == set(MECHANISMS)
    for row in rows[:: max(1, len(rows) // 6)]:
        point = Spike.read({**BASE, parameter: row["value"]})
        exactly = certified.solve(point, mechanism_named(row["mechanism"]))
        for name in ("distinguish", "fire_d0", "fire_d1", "margin"):
            assert float(row[name]) == pytest.approx(getattr(exactly, name), rel=1e-9, abs=1e-15)
        assert float(row["bits"]) == pytest.approx(np.log2(exactly.v1 / exactly.margin), rel=1e-9)
    assert sum(row["dense"] != "" for row in rows) >= 2 * 2


def test_dense_intervals_cover_the_exact_values(tmp_path: Path) -> None:
    text = shipped_plans()["paper"].read_text().replace(", 2000, 5000]", "]")
    small = read_plan(text.replace('engine = "dense"', 'engine = "dense"\ndraws = 100'))
    store = open_store(f"sqlite:///{tmp_path / 'results.db'}", create=True)
    swept = sweeps.read_sweeps(store, run(small, store, Inline()).number)
    cells = [sweep.cells.drop_nulls("dense") for sweep in swept]
    inside = [low <= p <= high for p, low, high in pl.concat(cells)["distinguish", "low", "high"].iter_rows()]
    misses = len(inside) - sum(inside)
    assert len(inside) > 80
    assert binom.sf(misses - 1, len(inside), 0.05) > 1e-4


def test_the_store_has_what_is_drawn(made: Reproduction, swept: tuple[sweeps.ParameterSweep, ...]) -> None:
    store = f"sqlite:///{made.out / 'results.db'}"
    answer = CliRunner().invoke(app, ["results", "--store", store, "engine=dense", "n=5000,100", "--json"])
    drawn = swept[0].cells.filter(x=100).select("mechanism", "value", "seed", "dense", "low", "high").rows()
    assert [row[0] for row in drawn] == list(MECHANISMS)
    for mechanism, *estimate in drawn:
        (row,) = (row for row in json.loads(answer.stdout) if row["mechanism"] == mechanism)
        assert estimate == [str(row["parameters"]["n"]), row["seed"], row["distinguish"], *row["interval"]]


def test_a_cell_that_failed_is_not_drawn(plan: Path, tmp_path: Path) -> None:
    class Failing(Inline):
        def compute(self, cells: Sequence[Any]) -> BatchResults:
            failed = Answer(status=CellStatus.FAILED, message="out of paper")
            return [make_result(failed, 0.0, HERE) for _ in cells]

    store = open_store(f"sqlite:///{tmp_path / 'results.db'}", create=True)
    number = run(load_plan(plan), store, Failing()).number
    with pytest.raises(SeparatrixError, match="failed: out of paper"):
        sweeps.read_sweeps(store, number)


def test_a_file_that_is_no_store_is_refused_before_any_work(tmp_path: Path) -> None:
    (tmp_path / "results.db").write_text("mine")

    def never(tell: object) -> Ledger:
        raise AssertionError("work was begun")

    with pytest.raises(StoreError, match="not a store"):
        reproduce(tmp_path, True, QUICK, never)
    assert [path.name for path in tmp_path.iterdir()] == ["results.db"]
    assert (tmp_path / "results.db").read_text() == "mine"


def test_hoeffding_bounds_the_exact_value() -> None:
    for each in computed.hoeffding_curves():
        assert all(bound >= p for bound, p in zip(each.bound, each.exact, strict=True))
        assert each.enough(each.exact, 1e-3) < each.enough(each.bound, 1e-3)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_hoeffding_uses_the_attention_of_the_network(mechanism: str) -> None:
    point = Spike.read({**BASE, "n": 60, "d": 12, "a0": "0.4"})
    network = FourLayerNetwork.draw(mechanism_named(mechanism), point, seed=0)
    weights = network.layers(point.dense(0, 0, torch.float64)).attention.numpy()
    by_block = weights.reshape(len(weights), 10, 6).sum(-1)
    squared = (0.4 * weights[:, 0]) ** 2 + (0.2**2) * (by_block**2).sum(-1)
    each = [0.5 * (np.exp(-(0.1**2) / (2 * v)) + np.exp(-(0.3**2) / (2 * v))) for v in (squared[0], squared[-1])]
    assert computed.hoeffding_bound(point, mechanism) == pytest.approx(sum(each), rel=1e-12)


def test_the_phase_map_turns_at_its_boundary() -> None:
    data = computed.phase_map(27)
    side = data.a1[None, :] * (data.a1[None, :] + data.r[:, None])
    assert (data.large["softmax"][side > 1.05] > 0.9).all()
    assert (data.large["softmax"][side < 0.85] < 0.01).all()
    assert data.large["linear"].max() < 0.01


def test_attention_rows_are_rows_of_attention() -> None:
    for rows in computed.attention_rows():
        assert rows.from_spike.sum() == pytest.approx(1)
        assert rows.from_other.sum() == pytest.approx(1)
        assert (rows.mechanism == "softmax" and rows.label == 1) == (rows.from_spike.max() > 0.5)


def test_margins_meet_the_theory() -> None:
    softmax, *_, linear = computed.margin_curves()
    assert softmax.at(10**6) == pytest.approx(1.19998, rel=1e-5)
    assert linear.at(10**6) == pytest.approx(5.98964e-6, rel=1e-5)
    assert softmax.lost == dict.fromkeys(softmax.lost)


@pytest.mark.parametrize("place", ["file", "file/out", "/proc/nowhere/out"])
def test_an_unwritable_place_is_refused_before_any_work(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("mine")

    def never(tell: object) -> Ledger:
        raise AssertionError("work was begun")

    with pytest.raises(UsageError) as refused:
        reproduce(tmp_path / place, True, QUICK, never)
    assert "\n" not in str(refused.value)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_text() == "mine"


def test_an_interrupted_run_leaves_nothing_behind(tmp_path: Path) -> None:
    def interrupted(tell: object) -> Ledger:
        raise KeyboardInterrupt

    (tmp_path / "old").mkdir()
    for place in ("new", "old", "a/b/c"):
        with pytest.raises(KeyboardInterrupt):
            reproduce(tmp_path / place, True, QUICK, interrupted)
    assert [path.name for path in tmp_path.iterdir()] == ["old"]
    assert not list((tmp_path / "old").iterdir())


def test_a_rerun_leaves_foreign_files_alone(tmp_path: Path) -> None:
    files = {"report.html": b"first", "figures/a.png": b"first"}
    with Folder(tmp_path / "out") as folder:
        folder.fill(files)
    (tmp_path / "out" / "notes.txt").write_text("mine")
    (tmp_path / "out" / "figures" / "mine.png").write_text("mine")
    with Folder(tmp_path / "out") as folder:
        folder.fill({"report.html": b"second", "figures/a.png": b"second"})
    found = {str(p.relative_to(tmp_path)): p.read_text() for p in tmp_path.rglob("*") if p.is_file()}
    assert found == {
        "out/report.html": "second",
        "out/figures/a.png": "second",
        "out/notes.txt": "mine",
        "out/figures/mine.png": "mine",
    }


def test_a_file_in_the_way_is_refused_and_nothing_is_moved(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "figures").write_text("mine")
    with pytest.raises(UsageError, match="cannot write"), Folder(tmp_path / "out") as folder:
        folder.fill({"report.html": b"new", "figures/a.png": b"new"})
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["figures"]
