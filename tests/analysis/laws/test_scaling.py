"""How margins, bits, 1-P, critical n and cost grow."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

import separatrix as sx
from cases import BASE, spike
from separatrix.analysis.laws import NoScaling
from separatrix.analysis.laws.margins import margin
from separatrix.analysis.laws.quantities import Noise
from separatrix.analysis.laws.scaling_result import Scaling
from separatrix.cli.application import app
from separatrix.core.parameters import UsageError
from separatrix.exact.engines import EngineRefusal, dense, solve
from separatrix.mechanisms import examples, mechanism_named
from separatrix.pages.plots import suffixes
from separatrix.pages.scaling import sentences

REST = {name: value for name, value in BASE.items() if name != "n"}
LONG = "1e3:1e9:7:log"


def scaling(mechanism: Any, of: str = "margin", construction: str = "spike", **changes: object) -> Scaling:
    """At the usual point, with n growing unless something else does."""
    return sx.scaling(construction, mechanism, {"n": LONG, **REST, **changes}, of=of)


def test_softmax_margin_is_constant() -> None:
    found = scaling("softmax")
    assert found.law.power_law
    assert found.law.form is not None
    assert found.law.form.name == "constant"
    assert found.law.exponent == pytest.approx(0, abs=1e-6)
    assert {int(value.x): round(value.y, 5) for value in found.values}[10**6] == 1.19998


def test_linear_margin_falls_as_one_over_n() -> None:
    found = scaling("linear")
    assert found.law.power_law
    assert found.law.exponent == pytest.approx(-1, abs=1e-7)
    assert found.formula == "5.98967 n^-1"
    assert found.closed_form is not None
    assert found.closed_form.limit == "5.98967 n^-1, n far above 5"
    assert found.engine == "certified"


def test_margins_of_a_users_own_do_not_scatter() -> None:
    """Its weights are the same at every length, also where they were drawn."""

    def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        scores = (1 + q @ k.mT) ** 2
        return scores @ v / scores.sum(-1, keepdim=True)

    found = scaling(attend, n="100:1600:5:log")
    assert not found.law.power_law
    assert {value.noise for value in found.values} == {Noise.NONE}


def test_power_margin_falls_as_one_over_n_in_the_end() -> None:
    found = scaling("power:beta=4")
    assert found.law.power_law
    assert found.law.interval[0] <= -1 <= found.law.interval[1]
    assert found.law.since == 1e5


def test_fixed_taylor_order_has_logarithms_in_it() -> None:
    """Its limit is n^-1 too, approached as 1/log n: any exponent read off these lengths would be wrong."""
    found = scaling("taylor:order=2")
    assert found.law.power_law is False
    assert "powers of a logarithm" in found.law.reason


def test_bits_of_linear_grow_with_the_logarithm() -> None:
    found = scaling("linear", of="bits")
    assert found.law.power_law is False
    assert found.law.form is not None
    assert found.law.form.name == "logarithm"
    assert found.law.form.constants[1] == pytest.approx(1 / math.log(2), rel=0.01)


def test_bits_that_are_a_logarithm_only_in_the_end_are_named_too() -> None:
    found = scaling("power:beta=4", of="bits")
    assert found.law.form is not None
    assert "a logarithm fits from 1e+06 on" in found.law.reason


def test_miss_is_exponential_in_m() -> None:
    found = scaling("softmax", of="miss", n=10**6, m="1:12:12")
    assert found.law.power_law is False
    assert found.law.form is not None
    assert found.law.form.name == "exponential"
    assert math.exp(found.law.form.constants[1]) == pytest.approx(0.5, rel=1e-3)


def test_miss_keeps_its_digits_where_p_is_nearly_one() -> None:
    found = scaling("softmax", of="miss", n=10**6, m="10:30:3")
    outcome = solve(spike(n=10**6, m=30), mechanism_named("softmax"), "certified")
    silent, neither = 1 - outcome.p0, 1 - outcome.p0 - outcome.only
    assert found.values[-1].y == pytest.approx(float(1 - silent**30 + neither**30), rel=1e-12)


def test_sampled_miss_comes_with_a_confidence_interval() -> None:
    sampling = sx.Sampling(draws=1000)
    given = {**REST, "n": 1000, "m": "1:8:8"}
    found = sx.scaling("spike", "softmax", given, of="miss", engine="grouped", sampling=sampling)
    assert found.law.power_law is False
    assert found.law.form is not None
    assert found.law.form.name == "exponential"
    shown = found.as_json()["values"][0]
    assert shown["low"] < shown["miss"] < shown["high"]


def test_critical_n_is_exponential_in_the_degree() -> None:
    """beta = log n / log(R/r) [ours], so n grows by R/r = 5 with each degree."""
    found = sx.scaling("spike", "power", {**REST, "beta": "4:8:5"}, of="critical_n")
    assert found.law.form is not None
    assert found.law.form.name == "exponential"
    assert math.exp(found.law.form.constants[1]) == pytest.approx(5, rel=1e-3)


def test_where_float32_goes_blind_has_a_logarithm_in_it() -> None:
    """Linear's margin is nearly a1²/(b+c)n for a large a1, and rounding is in units of sqrt(log n)."""
    found = sx.scaling("spike", "linear", {**REST, "a1": "1000:100000:4:log"}, of="lost_fp32")
    assert found.law.power_law is False
    assert "powers of a logarithm" in found.law.reason
    assert found.law.exponent == pytest.approx(2 + 0.5 / math.log(1e18), abs=0.02)


FORMULA_WEIGHTS = {
    "w = n^(a r_Q)": lambda a, r, n: n ** (a * 0.7),
    "w = n^(a(a+b+c))": lambda a, r, n: n ** (a * (a + r)),
    "w = (a+b+c)/(b+c)": lambda a, r, n: (a + r) / r,
    "w = ((a+b+c)/(b+c))^beta": lambda a, r, n: ((a + r) / r) ** 4,
}


@pytest.mark.parametrize("construction", ["spike", "cross"])
@pytest.mark.parametrize("mechanism", ["softmax", "linear", "power:beta=4"])
@pytest.mark.parametrize("of", ["margin", "bits"])
@pytest.mark.parametrize("a1", ["0.6", "1.2"])
def test_closed_forms_are_what_is_computed(construction: str, mechanism: str, of: str, a1: str) -> None:
    """The formula as displayed, evaluated here by hand, gives every computed value."""
    extra = {"r_Q": "0.7"} if construction == "cross" else {}
    result = sx.scaling(construction, mechanism, {**REST, "a1": a1, "n": "1e2:1e12:6:log", **extra}, of=of)
    form = result.closed_form
    assert form is not None
    formula, share, weight_text = form.formula.split(", ")
    assert share == "f = w/(w+n-1)"
    assert formula == {"margin": "a1 f(a1) - a0 f(a0)", "bits": "log2((b+c + a1 f(a1))/margin)"}[of]
    r, amplitudes = float(REST["b"]) + float(REST["c"]), (float(REST["a0"]), float(a1))
    for value in result.values:
        n = float(value.x)
        weights = [FORMULA_WEIGHTS[weight_text](a, r, n) for a in amplitudes]
        d0, d1 = (a * w / (w + n - 1) for a, w in zip(amplitudes, weights, strict=True))
        expected = d1 - d0 if of == "margin" else math.log2((r + d1) / (d1 - d0))
        assert expected == pytest.approx(value.y, rel=1e-9)
    if form.exponent is not None and result.law.power_law:
        assert result.law.interval[0] - 1e-6 <= form.exponent <= result.law.interval[1] + 1e-6


def test_softmax_below_its_boundary_loses_a_power_of_n() -> None:
    """a1(a1+b+c) = 0.54: the margin falls as n^-0.46, seen once n^-0.46 is small."""
    found = scaling("softmax", a1="0.6", n="1e6:1e30:9:log")
    assert found.law.power_law
    assert found.closed_form is not None
    assert found.closed_form.exponent == pytest.approx(0.54 - 1)
    assert found.law.exponent == pytest.approx(0.54 - 1, abs=1e-6)


@pytest.mark.parametrize("mechanism", ["softmax", "linear", "power:beta=3", "taylor:order=2"])
def test_margins_agree_between_engines(mechanism: str) -> None:
    point, attends = spike(n=400), mechanism_named(mechanism)
    found = {engine: margin(point, attends, engine) for engine in ("certified", "closed", "grouped", "dense")}
    for each in found.values():
        assert each.value == pytest.approx(found["certified"].value, rel=1e-9)
        assert each.v1 == pytest.approx(found["certified"].v1, rel=1e-9)


def test_the_least_margin_over_places_counts() -> None:
    """A window at the start sees the spike among fewer tokens: only the worst place is safe to quote."""
    point, attends = spike(n=200), mechanism_named("causal-linear")
    first = [dense.probe(point, attends, label, torch.float64) for label in (0, 1)]
    assert margin(point, attends).value <= (first[1] - first[0]) / point.unit


def test_lost_digits_are_left_out_and_told() -> None:
    found = scaling("elu", n="1e3:1e18:16:log")
    assert len(found.values) < 16
    assert "left out" in found.remark
    assert "rounding" in found.remark


def test_literal_tokens_are_taken_at_shorter_lengths() -> None:
    found = scaling("window", n="1e6:1e9:4:log")
    assert [value.x for value in found.values] == [200, 400, 800, 1600, 3200]
    assert "needs every token" in found.remark
    assert found.engine == "dense"


def test_n_is_moved_to_admissible_values_and_told() -> None:
    found = scaling("linear", n="1010:100010:5:log")
    assert all(int(value.x) % 100 == 0 for value in found.values)
    assert "n is rounded to a multiple of d−2" in found.remark


def test_n_is_moved_as_d_grows_and_told() -> None:
    found = scaling("linear", n=10**6, d="12:1002:5:log")
    assert found.law.form is not None
    assert found.law.form.name == "constant"
    assert "n is rounded to a multiple of d−2" in found.remark


KNOWN = {"softmax": 0.0, "topk": 0.0, "hardmax": 0.0, "logn-softmax": 0.0, "linear": -1.0, "sigmoid": 0.45}
"""sigmoid adds up and does not average: the spike's row gets n keys of n^((a1+b+c)(b+c) - 1) each."""


@pytest.mark.exhaustive
def test_table_has_every_mechanism() -> None:
    rows = {row.mechanism: row for row in sx.scaling("spike", "all", {**REST, "n": "1e3:1e6:4:log"})}
    assert set(rows) == {each.spelled for each in examples()}
    for name, exponent in KNOWN.items():
        found = rows[name].scaling
        assert found is not None
        assert found.law.power_law
        assert found.law.interval[0] - 1e-3 <= exponent <= found.law.interval[1] + 1e-3
    for row in rows.values():
        assert not isinstance(row, NoScaling) or row.reason
        assert {"exponent", "interval", "power_law"} <= row.as_json().keys()
    assert rows["linear"].scaling is not None
    assert rows["linear"].scaling.engine == "certified"


@pytest.mark.parametrize(("mechanism", "of"), [("linear", "flops"), ("softmax", "state_bytes")])
def test_counted_costs_that_are_linear(mechanism: str, of: str) -> None:
    found = scaling(mechanism, of=of, n="64:512:4:log")
    assert found.law.power_law
    assert found.law.exponent == pytest.approx(1, abs=1e-6)


def test_softmax_costs_quadratic_operations() -> None:
    assert scaling("softmax", of="flops", n="64:512:4:log").law.exponent == pytest.approx(2, abs=1e-6)


def test_operations_are_linear_in_the_width_without_other_parameters() -> None:
    (row,) = sx.scaling("spike", ["softmax"], {"n": 64, "d": "16:128:4:log"}, of="flops")
    assert row.scaling is not None
    assert row.scaling.law.exponent == pytest.approx(1, abs=1e-6)


def test_seconds_come_with_their_scatter() -> None:
    found = scaling("linear", of="seconds", n="64:512:4:log")
    assert "noise seen in the scatter" in found.law.interval_is


@pytest.mark.parametrize("mechanism", ["delta", "linear", "elu"])
def test_a_fixed_state_is_constant(mechanism: str) -> None:
    law = scaling(mechanism, of="state_bytes", n="16:128:4:log").law
    assert law.form is not None
    assert law.form.name == "constant"


@pytest.mark.parametrize(
    ("changes", "of", "complaint"),
    [
        ({"n": "1e3:1e6:1:log"}, "margin", "n=1e3:1e6:1:log has one point"),
        ({"n": "1e3:1e6:2:log"}, "margin", "has two points; a slope and its change need at least 3"),
        ({"n": "1e3"}, "margin", "scaling needs one growing parameter, but has none"),
        ({"d": "102:202:3"}, "margin", "scaling needs one growing parameter, but has 2 (n, d)"),
        ({"n": "1e6:1e3:4:log"}, "margin", "runs backwards"),
        ({"n": "1e3:1e6:5000:log"}, "margin", "5,000 points"),
        ({"n": 1000, "a0": "0:0.1:4"}, "margin", "a power law needs a0 above 0"),
        ({}, "margn", "there is no quantity margn (did you mean margin?)"),
        ({}, "lost_fp32", "is itself a number of tokens"),
        ({"n": 1000}, "critical_n", "write n=start:stop"),
        ({"n": 1000, "m": "1:9:3"}, "seconds", "not on m"),
        ({}, "flops", "goes beyond 65,536"),
        ({"q": 3}, "margin", "spike has no parameter q"),
    ],
)
def test_bad_input_gets_one_line(changes: dict[str, object], of: str, complaint: str) -> None:
    with pytest.raises(UsageError) as error:
        scaling("linear", of=of, **changes)
    assert complaint in str(error.value)
    assert "\n" not in str(error.value)


def test_what_is_not_positive_has_no_exponent() -> None:
    with pytest.raises(EngineRefusal, match=r"margin is 0 at n=\d+: no exponent"):
        sx.scaling("injectivity", "linear", {"n": "16:256:5:log"} | _example("injectivity"))
    with pytest.raises(EngineRefusal, match=r"miss is 0 at"):
        sx.scaling("spike", "softmax", {**REST, "n": 1000, "m": "40:60:3"}, of="miss", engine="grouped")


def _example(name: str) -> dict[str, object]:
    return {k: v for k, v in sx.CONSTRUCTIONS[name].example.items() if k != "n"}


def test_no_crossing_has_no_critical_n() -> None:
    given = {name: value for name, value in REST.items() if name != "m"}
    with pytest.raises(EngineRefusal, match="does not pass 1/2"):
        sx.scaling("spike", "softmax", {**given, "m": "10:30:3"}, of="critical_n")


def words(**changes: object) -> list[str]:
    return [f"{name}={value}" for name, value in {"n": LONG, **REST, **changes}.items()]


def test_json_of_one_law() -> None:
    done = CliRunner().invoke(app, ["scaling", "spike", "linear", *words(), "--json"])
    assert done.exit_code == 0, done.output
    shown = json.loads(done.stdout)
    assert shown["power_law"] is True
    assert shown["exponent"] == pytest.approx(-1, abs=1e-6)
    assert shown["interval"][0] <= -1 <= shown["interval"][1]
    assert len(shown["values"]) == 7
    assert shown["closed_form"]["tag"] == "[ours]"
    assert shown["proved"]["statement"] == "for every n >= 1000: 5.965762 <= n margin <= 5.989667"
    assert (shown["proved"]["exponent"], shown["proved"]["from"]) == ("-1", 1000)
    for value in shown["values"]:
        assert shown["proved"]["low"] <= value["n"] * value["margin"] * (1 + 1e-15)
        assert value["n"] * value["margin"] * (1 - 1e-15) <= shown["proved"]["high"]


@pytest.mark.parametrize(
    ("mechanism", "changes", "statement"),
    [
        ("softmax", {}, "for every n >= 1000: 1.195236 <= margin <= 1.2"),
        ("softmax", {"a1": "0.5"}, "for every n >= 1000: 0.4920395 <= n^0.6 margin <= 0.5"),
        ("power:beta=2", {}, "for every n >= 1000: 29.28619 <= n margin <= 29.98933"),
        ("taylor:order=2", {}, None),
        ("elu", {}, ""),
    ],
)
def test_bounds_for_every_n_stand_next_to_the_fit(
    mechanism: str, changes: dict[str, str], statement: str | None
) -> None:
    engine = {"engine": "grouped"} if mechanism == "elu" else {}
    found = sx.scaling("spike", mechanism, {"n": LONG, **REST, **changes}, **engine)
    if statement == "":
        assert found.proved is None
        return
    assert found.proved is not None
    low, high = found.proved.bounds
    for value in found.values:
        scaled = Fraction(value.y) * Fraction(float(value.x) ** -float(found.proved.exponent))
        assert float(low) * (1 - 1e-9) <= scaled <= float(high) * (1 + 1e-9)
    assert statement is None or found.proved.statement == statement
    page = sentences(found)
    assert any(found.proved.statement in sentence for sentence in page)


def test_other_quantities_and_axes_have_no_proved_bounds() -> None:
    assert sx.scaling("spike", "linear", {"n": LONG, **REST}, of="bits").proved is None
    assert sx.scaling("spike", "linear", {"n": 1000, **REST, "a1": "1:2:3"}).proved is None


@pytest.mark.parametrize(
    ("mechanisms", "said"),
    [("linear", "power law: margin ≈ 5.98967 n^-1"), ("softmax,linear", "constant"), ("taylor", "(-0.99)")],
)
def test_text_fits_eighty_columns(mechanisms: str, said: str) -> None:
    chosen = f"{mechanisms}:order=2,elu" if mechanisms == "taylor" else mechanisms
    done = CliRunner().invoke(app, ["scaling", "spike", chosen, *words()], env={"COLUMNS": "80"})
    assert done.exit_code == 0, done.output
    assert said in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_json_of_a_table() -> None:
    done = CliRunner().invoke(app, ["scaling", "spike", "softmax,linformer", *words(), "--json"])
    rows = json.loads(done.stdout)["rows"]
    assert [row["mechanism"] for row in rows] == ["softmax", "linformer"]
    assert rows[1]["exponent"] is None
    assert "no exponent" in rows[1]["reason"]


def test_the_library_has_the_same() -> None:
    given: dict[str, Any] = {"n": LONG, **REST}
    assert sx.scaling("spike", "linear", **given).as_json() == scaling("linear").as_json()


def test_growth_is_written_in_every_form(tmp_path: Path) -> None:
    words = ["scaling", "spike", "softmax,linear,power:beta=4", f"n={LONG}"]
    for ending in suffixes("scalings"):
        out = tmp_path / f"growth{ending}"
        done = CliRunner().invoke(app, [*words, "--out", str(out)])
        assert done.exit_code == 0, done.output
        assert f"written: {out}".replace(" ", "") in "".join(done.output.split())
        assert out.stat().st_size > 500
    rows = (tmp_path / "growth.csv").read_text().splitlines()
    assert rows[0] == "mechanism,n,n_used,margin,low,high"
    assert len(rows) == 1 + 3 * 7
    assert float(rows[8].split(",")[3]) == scaling("linear").values[0].y
    page = (tmp_path / "growth.html").read_text()
    assert "linear: n⁻¹" in page
    assert "softmax: constant" in page
    assert "http" not in page.split("<script")[0].replace("http-equiv", "")
    assert json.loads((tmp_path / "growth.json").read_text())["rows"][1]["power_law"] is True
    assert "<dc:date>" not in (tmp_path / "growth.svg").read_text()


def test_growth_of_one_mechanism_is_written_as_its_json_says(tmp_path: Path) -> None:
    out = tmp_path / "one.json"
    done = CliRunner().invoke(app, ["scaling", "spike", "linear", f"n={LONG}", "--out", str(out), "--json"])
    assert json.loads(done.output) == json.loads(out.read_text())
    words = ["scaling", "spike", "linear,softmax", f"n={LONG}", "--out", str(tmp_path / "x.tiff")]
    refused = CliRunner().invoke(app, words)
    assert isinstance(refused.exception, UsageError)
    assert list(tmp_path.iterdir()) == [out]


def test_a_law_of_the_miss_is_for_its_range() -> None:
    law = sx.scaling("spike", "softmax", n="1e5:1e9:3:log", of="miss").law  # P changes at n = 5.8e14
    assert law.reason.endswith("; in this range: P may jump beyond it")
    assert "jump" not in sx.scaling("spike", "softmax", n="1e5:1e9:3:log").law.reason
    assert "jump" not in sx.scaling("spike", "softmax", n=10**5, m="10:30:3", of="miss").law.reason
