"""The limits of every reader: against naive attention, simulated decisions, and at other n."""

from __future__ import annotations

import json
import math
import random
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from flint import ctx
from scipy.stats import norm

import separatrix as sx
from cases import BASE
from expectations import assert_refused, run
from separatrix.analysis.maps.quantities import Accuracy
from separatrix.constructions import construction_named
from separatrix.constructions.lengths import admissible
from separatrix.constructions.spike import Spike
from separatrix.core.numbers.logforms import rational
from separatrix.exact.outputs.growth_laws import GrowthLaw, Shares, distance_laws, margin_law
from separatrix.exact.outputs.kernels import probe_margin, rational_model, with_kernel
from separatrix.exact.outputs.proved import proved_outputs
from separatrix.exact.verdicts.best_reader import BestReader, best_reader
from separatrix.mechanisms import Softmax, mechanism_named

KERNELS = {
    "softmax": np.exp,
    "softmax:temperature=2": lambda x: np.exp(x / 2),
    "linear": lambda x: x,
    "power:beta=3": lambda x: x**3,
    "taylor:order=2": lambda x: 1 + x + x**2 / 2,
}
POINTS = (
    {"n": 16, "d": 6, "a0": "0.05", "a1": "1.1", "b": "0.55", "c": "0.3"},
    {"n": 12, "d": 14, "a0": "0", "a1": "0.7", "b": "0.2", "c": "0.4"},
    {"n": 60, "d": 5, "a0": "0.4", "a1": "0.5", "b": "1", "c": "0.1"},
)


def limits(construction: str, mechanism: str, point: dict[str, Any], noise: str = "0.5") -> BestReader:
    """The limits at a point, without the readers that take longer."""
    at = construction_named(construction).read({"m": 1, **point})
    unit = mechanism_named(mechanism)
    result = best_reader(at, unit, proved_outputs(at, unit), Fraction(noise))
    assert result is not None
    return result


def naive_rows(point: dict[str, Any], a: float, form: str, kernel: Any, query: float | None = None) -> Any:
    """Every output row of attention on all tokens, in units of sqrt(log n)."""
    n, d, b, c = point["n"], point["d"], float(point["b"]), float(point["c"])
    tokens = np.zeros((n, d))
    for j in range(n):
        tokens[j, 1 + j * (d - 2) // n] = b
        tokens[j, d - 1] = c
    tokens[n // 2, 0] = a
    weights = np.ones((d, d)) if form == "ones" else np.eye(d)
    logits = math.log(n) * tokens @ weights @ tokens.T
    if query is not None:
        logits = math.log(n) * query * np.tile(tokens.sum(1), (n, 1))
    scores = kernel(logits)
    return scores / scores.sum(1, keepdims=True) @ tokens


@pytest.mark.parametrize(("point", "form", "mechanism"), [*product(POINTS, ("ones", "identity", "cross"), KERNELS)])
def test_distances_are_those_of_naive_attention(point: dict[str, Any], form: str, mechanism: str) -> None:
    query = 0.9 if form == "cross" else None
    d0, d1 = (naive_rows(point, float(point[name]), form, KERNELS[mechanism], query) for name in ("a0", "a1"))
    squares = ((d1 - d0) ** 2).sum(1)
    more = {"r_Q": "0.9"} if query else {"form": form}
    result = limits("cross" if query else "spike", mechanism, {**point, **more})
    assert result.one_row.distance == pytest.approx(math.sqrt(squares.max()), rel=1e-9)
    assert result.all_rows.distance == pytest.approx(math.sqrt(squares.sum()), rel=1e-9)
    assert result.all_rows.rows == point["n"]
    assert result.one_row.rows == 1


def test_accuracy_is_the_share_of_right_likelihood_decisions() -> None:
    point, noise = POINTS[0], 0.3
    d0, d1 = (naive_rows(point, float(point[name]), "ones", KERNELS["softmax"]) for name in ("a0", "a1"))
    rng, draws = np.random.default_rng(0), 40_000
    for rows, limit in (
        ([n_row := int(((d1 - d0) ** 2).sum(1).argmax())], limits("spike", "softmax", point, "0.3").one_row),
        (list(range(point["n"])), limits("spike", "softmax", point, "0.3").all_rows),
    ):
        assert n_row == point["n"] // 2
        difference, middle = (d1 - d0)[rows].ravel(), ((d1 + d0) / 2)[rows].ravel()
        right = 0
        for mean, sign in ((d0, -1), (d1, 1)):
            noisy = mean[rows].ravel() + noise * rng.standard_normal((draws // 2, len(difference)))
            right += int((sign * ((noisy - middle) @ difference) > 0).sum())
        assert limit.accuracy == pytest.approx(right / draws, abs=4 * 0.5 / math.sqrt(draws))
        assert limit.total_variation == pytest.approx(2 * limit.accuracy - 1, rel=1e-12)
        assert limit.accuracy == pytest.approx(norm.cdf(limit.distance / (2 * noise)), rel=1e-12)


def test_one_row_and_all_rows_of_linear_attention_at_the_reference_point() -> None:
    found = sx.readers("spike", "linear", **BASE, noise_sd="0.5").every_reader
    assert found is not None
    assert found.one_row.accuracy == pytest.approx(0.502401, abs=1e-6)
    assert found.all_rows.accuracy == pytest.approx(0.575457, abs=1e-6)
    assert found.all_rows.distance == pytest.approx(math.sqrt(1000) * found.one_row.distance, rel=1e-12)
    assert "near chance for one row" in found.sentence
    assert found.one_row.law is not None
    assert found.all_rows.law is not None
    assert (found.one_row.law.exponent, found.all_rows.law.exponent) == (-1, Fraction(-1, 2))


def test_equal_rows_leave_a_guess() -> None:
    found = sx.readers("duplication", "softmax", noise_sd=1).every_reader
    assert found is not None
    assert (found.one_row.accuracy, found.all_rows.accuracy, found.one_row.total_variation) == (0.5, 0.5, 0)


def test_a_lipschitz_reader_stays_within_the_distance() -> None:
    point = POINTS[0]
    d0, d1 = (naive_rows(point, float(point[name]), "ones", KERNELS["softmax"]) for name in ("a0", "a1"))
    limit, rng = limits("spike", "softmax", point).one_row, np.random.default_rng(1)
    row = point["n"] // 2
    for _ in range(200):
        weights, centre = rng.standard_normal((5, point["d"])), rng.standard_normal(point["d"])
        weights /= np.linalg.norm(weights, axis=1, keepdims=True)
        for read in (lambda x, w=weights: (w @ x).max(), lambda x, c=centre: float(np.linalg.norm(x - c))):
            assert abs(read(d1[row]) - read(d0[row])) <= limit.distance * (1 + 1e-12)


def test_float_outputs_give_the_same_limits() -> None:
    proved = sx.readers("spike", "linear", **POINTS[0], m=3, noise_sd=1).every_reader
    drawn = sx.readers("spike", "identity-features", **POINTS[0], m=3, noise_sd=1).every_reader
    elu = sx.readers("spike", "elu", **POINTS[0], m=3, noise_sd=1).every_reader
    assert proved is not None
    assert drawn is not None
    assert elu is not None
    assert drawn.one_row.distance == pytest.approx(proved.one_row.distance, rel=1e-6)
    assert elu.evidence.startswith("float64")
    assert elu.all_rows.rows == 16
    assert elu.one_row.law is None


def holds(law: GrowthLaw, n: int, value: Any) -> bool:
    """Whether the bounds contain a value at n, in balls."""
    scaled = value * rational(Fraction(n)) ** int(-law.exponent) if law.exponent.denominator == 1 else None
    if scaled is None:
        from flint import arb

        scaled = value * arb(n) ** arb(rational(-law.exponent))
    low, high = (rational(bound) for bound in law.bounds)
    return bool(scaled >= low or (scaled - low).contains(0)) and bool(scaled <= high or (scaled - high).contains(0))


def random_point(chance: random.Random) -> dict[str, Any]:
    d = chance.choice([4, 5, 12, 102])
    a0 = Fraction(chance.choice([0, 0, 1, 2, 30, 60]), 100)
    a1 = a0 + Fraction(chance.randint(1, 150), 100)
    b, c = (Fraction(chance.randint(1, 60), 100) for _ in range(2))
    n = (d - 2) * max(2, round(10 ** chance.uniform(0.4, 6)))
    return {"n": n, "d": d, "m": 1, "a0": a0, "a1": a1, "b": b, "c": c}


SPELLINGS = ("softmax", "softmax:temperature=2", "linear", "power:beta=3", "power:beta=1/2", "taylor:order=3")


@pytest.mark.parametrize("mechanism", SPELLINGS)
@pytest.mark.parametrize("kind", ["spike", "cross"])
def test_laws_hold_at_every_larger_n_that_is_tried(kind: str, mechanism: str) -> None:
    """The margin is that of the certified engine, the distances those of exact outputs; n up to 1e30."""
    chance, unit = random.Random(f"{kind} {mechanism}"), mechanism_named(mechanism)
    construction, tried = construction_named(kind), 0
    for _ in range(12):
        point = random_point(chance) | ({"r_Q": Fraction(chance.randint(1, 150), 100)} if kind == "cross" else {})
        first = construction.read(point)
        margin, (one_row, all_rows) = margin_law(first, unit), distance_laws(first, unit)
        assert margin is not None
        for exponent in (0, 0.01, chance.uniform(0, 1), chance.uniform(0, 24), 24):
            later = {**point, "n": round(max(margin.start, point["n"]) * 10**exponent)}
            at = construction.read(admissible(construction, later))
            if at.n < margin.start:
                continue
            tried += 1
            with ctx.workprec(600):
                value = probe_margin(with_kernel(unit), rational_model(at))[2]
                assert holds(margin, at.n, value), (point, at.n, margin)
                found = best_reader(at, unit, proved_outputs(at, unit), None)
                assert found is not None
                for law, limit in ((one_row, found.one_row), (all_rows, found.all_rows)):
                    if law is not None and at.n >= law.start:
                        scaled = limit.distance / float(at.n) ** float(law.exponent)
                        assert law.low * (1 - 1e-9) <= scaled <= law.high * (1 + 1e-9), (point, at.n, law)
    assert tried > 45


def test_laws_at_the_reference_point() -> None:
    point = Spike.read(BASE)
    linear, softmax = (margin_law(point, mechanism_named(name)) for name in ("linear", "softmax"))
    assert linear is not None
    assert softmax is not None
    assert linear.statement == "for every n >= 1000: 5.965762 <= n margin <= 5.989667"
    assert softmax.statement == "for every n >= 1000: 1.195236 <= margin <= 1.2"
    assert linear.bounds[1] == 6 - Fraction("0.01") * Fraction(31, 30), "rational, so nothing is rounded"
    assert softmax.bounds[1] == Fraction(6, 5)


def test_the_weight_below_the_threshold_does_not_increase_at_once() -> None:
    """A lower bound of n^(1-s) f from its value at the first n is false where n^s (1-s) < 1: s = 0.99, n = 4."""
    point = Spike.read({"n": 4, "d": 4, "m": 1, "a0": "0", "a1": "0.9", "b": "0.1", "c": "0.1"})
    shares = Shares(point, Softmax(), 0)
    assert shares.power(1) == Fraction(99, 100)
    law = margin_law(point, Softmax())
    assert law is not None
    with ctx.workprec(200):
        scaled = [shares.margin(n) * rational(Fraction(n)) ** 1 / n for n in (4, 100)]
        values = [float(x) * n ** (1 - 0.99) for x, n in zip(scaled, (4, 100), strict=True)]
    assert values[1] < values[0] - 0.05, "the naive bound would be values[0]"
    assert law.low <= min(values)
    assert law.low > 0.9 * min(values), "and the bound is not loose"


@pytest.mark.parametrize(
    ("construction", "mechanism", "parameters"),
    [
        ("spike", "elu", {}),
        ("spike", "linear", {"form": "identity"}),
        ("plain", "softmax", {}),
        ("spike", "power:beta=100000", {}),
    ],
)
def test_no_law_where_none_is_proved(construction: str, mechanism: str, parameters: dict[str, str]) -> None:
    kind = construction_named(construction)
    point = kind.read({**kind.example, **parameters})
    assert margin_law(point, mechanism_named(mechanism)) is None
    assert distance_laws(point, mechanism_named(mechanism)) == (None, None)


@pytest.mark.parametrize(("form", "rows"), [*product(("ones", "identity", "cross"), ("one", "all"))])
def test_maps_of_accuracy_agree_with_readers(form: str, rows: str) -> None:
    of = f"accuracy:noise=0.5,rows={rows}"
    name, more = ("cross", {}) if form == "cross" else ("spike", {"form": form})
    found = sx.map(name, "linear,softmax", a1="0.5:1.5:2", n=[10**3, 10**18], of=of, **more)
    assert found.layers[0].engine == ("outputs" if form == "identity" else "closed")
    for layer, mechanism in zip(found.layers, ("linear", "softmax"), strict=True):
        for (row, n), (column, a1) in product(enumerate((10**3, 10**18)), enumerate(("0.5", "1.5"))):
            kind = construction_named(name)
            accuracy, _ = Accuracy.parse(of).at(
                kind.read({**kind.example, "n": n, "a1": a1, **more}), mechanism_named(mechanism)
            )
            assert layer.values[row, column] == pytest.approx(accuracy, abs=1e-12)
    assert found.quantity == ("accuracy:noise=0.5" if rows == "one" else of)
    assert f"of {rows} row" in found.summary


def test_the_command_of_a_cell_and_the_page(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["a1=0.5:1.5:2", "n=1e3:1e6:2", "--of", "accuracy:noise=0.5"]
    _, out, _ = run(capsys, "map", "spike", "linear", *words)
    text = " ".join(out.split())
    assert "separatrix readers spike linear a1=1.5 n=1000 d=102 m=12 a0=0.01 b=0.2 c=0.1 --noise 0.5" in text
    assert "What holds for one row does not hold for all rows together." in text
    assert "accuracy of the best reader of one row, noise sd 0.5 on spike" in text
    code, _, _ = run(capsys, "map", "spike", "linear", *words, "--out", str(tmp_path / "map.html"))
    assert code == 0
    assert "accuracy of the best reader of one row" in (tmp_path / "map.html").read_text()


@pytest.mark.parametrize(
    ("of", "message"),
    [
        ("accuracy", "accuracy needs the standard deviation of the noise; write accuracy:noise=0.5"),
        ("accuracy:noise=0", "noise=0 is out of range; it must be 1e-9 to 1e9"),
        ("accuracy:noise=x", "noise=x is not a number"),
        ("accuracy:noise=1,rows=two", "there is no number of rows two; there are: one, all"),
        ("accuracy:noise=1,row=one", "accuracy has no row; it has noise and rows: accuracy:noise=0.5,rows=all"),
        ("accuracies", "there is no quantity accuracies (did you mean accuracy?)"),
    ],
)
def test_wrong_accuracies_are_refused(
    of: str, message: str, capsys: pytest.CaptureFixture[str], tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert_refused(capsys, message, tmp_path, "map", "spike", "linear", "a1=0.5:1.5:2", "n=1e3:1e6:2", "--of", of)


def test_no_engine_for_an_accuracy() -> None:
    with pytest.raises(sx.UsageError, match="no engine draws signs; leave out engine=grouped"):
        sx.map("spike", "linear", a1="0.5:1.5:2", n="1e3:1e6:2", of="accuracy:noise=1", engine="grouped")


def test_the_command_prints_both_limits_and_their_laws(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "readers", "spike", "linear", "--noise", "0.5")
    text = " ".join(out.split())
    assert "best possible, one row accuracy 0.502401 at sd 0.5 (total variation 0.004801); distance 0.00601734" in text
    assert "best possible, all rows accuracy 0.575457 at sd 0.5" in text
    assert "for every n >= 1000: 6.017342 <= n distance <= 6.041457" in text
    assert "near chance for one row; of all 1,000 rows, 0.575457" in text
    _, out, _ = run(capsys, "readers", "spike", "linear", "--json")
    document = json.loads(out)["every_reader"]
    assert document["noise"] is None
    assert document["one_row"]["accuracy"] is None
    assert document["one_row"]["law"]["from"] == 1000


@pytest.mark.parametrize("noise", [(), ("--noise", "1")])
def test_a_difference_that_float64_does_not_show_is_not_called_0(
    noise: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    _, out, _ = run(capsys, "readers", "routing", "linear", *noise)
    text = " ".join(out.split())
    assert "best possible, one row no difference found in float64" in text
    assert "No difference found in float64 between the outputs of D0 and D1." in text
    assert "differ by 0" not in text
    assert "distance 0" not in text
