"""Best readers: thresholds against brute force, weights against naive attention, words against both."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

import separatrix as sx
from cases import BASE, POINT, spike
from command import run
from separatrix.cli.readers import readers as command
from separatrix.constructions import Construction, construction_named
from separatrix.core.numbers.formats import round_to, round_to_format
from separatrix.exact.engines import EngineRefusal
from separatrix.exact.outputs._base import Feature
from separatrix.exact.outputs.floats import FloatOutputs
from separatrix.exact.outputs.proved import kernel_of, proved_outputs
from separatrix.exact.verdicts import Readers, Word
from separatrix.exact.verdicts.linear_reader import _from_hull, best_witness, simplest_between
from separatrix.mechanisms import Mechanism, mechanism_named
from separatrix.mechanisms._types import Attended, Counts, Keys, Queries, Values

SMALL = {"n": 16, "d": 6, "m": 3, "a0": "0.05", "a1": "1.1", "b": "0.55", "c": "0.3"}
EVERY = "every reader of what attention returns"


def words(found: Readers) -> list[tuple[str, str]]:
    return [(each.word.value, each.readers.split(" (")[0]) for each in found.statements]


def test_linear_on_the_spike_is_blind_by_this_reader_alone() -> None:
    found = sx.readers("spike", "linear", **BASE, noise_sd="0.01")
    assert words(found) == [("not with this reader", "the fixed reader"), ("can", "linear readers of one row")]
    assert found.linear is not None
    assert found.linear.verified
    assert found.linear.witness.fires_on == 1
    assert found.linear.witness.gap == pytest.approx(0.00601731, rel=1e-4)
    assert found.auc is not None
    assert found.auc.best_linear == pytest.approx(norm.cdf(0.00601731 / (math.sqrt(2) * 0.01)), abs=1e-5)
    assert found.auc.probe == pytest.approx(norm.cdf(0.00596576 / math.sqrt(102 * 2) / 0.01), abs=1e-5)


def test_softmax_on_the_spike_needs_no_better_reader() -> None:
    found = sx.readers("spike", "softmax", **BASE)
    assert words(found)[0] == ("can", "the fixed reader")
    assert found.threshold is not None
    assert found.fixed.outcome.distinguish <= found.threshold.outcome.distinguish <= 1 - 0.5**12
    assert found.auc is None


@pytest.mark.parametrize(
    ("construction", "spelling"),
    [
        ("duplication", "softmax"),
        ("duplication", "linear"),
        ("duplication", "power:beta=5/2"),
        ("injectivity", "linear"),
        ("injectivity", "identity-features"),
        ("injectivity", "relu-features"),
        ("parity", "linear"),
    ],
)
def test_equal_rows_defeat_every_reader(construction: str, spelling: str) -> None:
    found = sx.readers(construction, spelling, **construction_named(construction).example)
    assert words(found) == [("cannot", EVERY)]
    assert found.linear is None
    assert all(kept.same for kept in found.formats.values())


@pytest.mark.parametrize(
    ("construction", "spelling"),
    [("duplication", "identity-features:normalised=no"), ("injectivity", "softmax"), ("parity", "power:beta=6")],
)
def test_and_are_not_claimed_where_there_is_a_witness(construction: str, spelling: str) -> None:
    found = sx.readers(construction, spelling, **construction_named(construction).example)
    assert ("can", "linear readers of one row") in words(found)
    assert "cannot" not in {word for word, _ in words(found)}


@pytest.mark.parametrize(("construction", "spelling"), [("injectivity", "dpfp"), ("routing", "linear")])
def test_equal_in_float64_is_no_proof(construction: str, spelling: str) -> None:
    found = sx.readers(construction, spelling, **construction_named(construction).example)
    assert words(found) == [("not with this reader", "the fixed reader"), ("open", EVERY)]
    assert "not proved" in found.statements[-1].evidence


def test_a_coordinate_of_its_own_survives_bf16_where_the_sum_does_not() -> None:
    """At n=1e5 all signs + give one bf16 number for both labels; the outputs' first features differ."""
    kept = sx.readers("spike", "linear", **{**BASE, "n": 10**5}).formats
    assert (kept["bf16"].same, kept["bf16"].same_probe) == (False, True)
    assert (kept["fp32"].same, kept["fp32"].same_probe) == (False, False)


def test_fp16_loses_the_spike_below_its_smallest_number() -> None:
    found = sx.readers("spike", "linear", **{**BASE, "n": 10**10})
    assert ("cannot", "every reader of outputs stored in fp16") in words(found)
    weight = 1.5 / (1.5 + (10**10 - 1) * 0.3)
    assert np.float16(1.2 * weight * math.sqrt(math.log(10**10))) == 0
    assert not found.formats["bf16"].same


def test_equal_once_stored_is_what_the_format_shows() -> None:
    """Spikes 1e-5 apart: attention in float64 on all tokens, rounded, is the same in bf16 only."""
    found = sx.readers("spike", "softmax", {**BASE, "n": 300, "a0": "1", "a1": "1.00001"})
    rows = [FloatOutputs(found.construction, _Plain(), 0).rows[label] for label in (0, 1)]
    d0, d1 = (torch.from_numpy(each * found.construction.unit).float() for each in rows)
    for name, dtype in (("bf16", torch.bfloat16), ("fp32", torch.float32)):
        assert found.formats[name].same is bool((d0.to(dtype) == d1.to(dtype)).all())
    assert ("cannot", "every reader of outputs stored in bf16") in words(found)


@given(st.floats(-1e6, 1e6), st.sampled_from(["fp16", "fp32", "bf16"]))
def test_rounding_is_that_of_the_formats(x: float, name: str) -> None:
    found = float(round_to_format(np.array(x), name))
    if name == "bf16":
        expected = float(round_to(Fraction(x), 8)) if abs(x) > 2.0**-120 else found
    else:
        with np.errstate(over="ignore"):
            expected = float(np.float16(x) if name == "fp16" else np.float32(x))
    assert found == expected


def naive(tokens: Any, kernel: str) -> np.ndarray[Any, Any]:
    """Attention written out once more, in NumPy."""
    logits = (tokens.queries @ tokens.keys.mT).numpy()
    scores = np.exp(logits - logits.max(1, keepdims=True)) if kernel == "softmax" else logits
    values = np.eye(len(tokens.keys)) if tokens.values is None else tokens.values.numpy()
    return (scores / scores.sum(1, keepdims=True)) @ values


@pytest.mark.parametrize("kernel", ["softmax", "linear"])
@pytest.mark.parametrize(
    ("construction", "changes"),
    [
        ("spike", {**SMALL, "n": 60}),
        ("spike", {**SMALL, "n": 60, "form": "identity"}),
        ("cross", {**SMALL, "n": 60, "r_Q": 1}),
        ("location", {"n": 60, "d": 12, "m": 3}),
        ("plain", {"n": 60, "m": 3}),
        ("majority", {"n": 60, "m": 3}),
        ("spikes", {"n": 60, "m": 3}),
        ("averaging", {"n": 60, "m": 3}),
    ],
)
def test_the_weights_tell_literal_tokens_apart(construction: str, changes: dict[str, object], kernel: str) -> None:
    """The reader that is reported, applied to all tokens by other code, fires on one label alone."""
    found = sx.readers(construction, kernel, changes)
    assert found.linear is not None
    assert found.linear.verified
    made, witness = found.construction, found.linear.witness
    weights = np.zeros(made.signs)
    for span, weight in found.linear.weights():
        first, _, last = span.partition("-")
        weights[int(first) - 1 : int(last or first)] = float(weight)
    fired = [
        (naive(made.dense(label, 0, torch.float64), kernel) / made.unit @ weights).max() > float(witness.threshold)
        for label in (0, 1)
    ]
    assert fired == [witness.fires_on == 0, witness.fires_on == 1]


@pytest.mark.parametrize("spelling", ["softmax", "linear", "power:beta=3"])
@pytest.mark.parametrize(
    "made",
    [
        spike(**SMALL),
        spike(**SMALL, form="identity"),
        spike(**{**SMALL, "n": 4}, form="identity"),
        spike(**{**SMALL, "b": "1.2", "m": 1}, form="identity"),
        spike(**{**SMALL, "a1": "0.6", "b": "0.9", "m": 1}, form="identity"),
        construction_named("plain").read({"n": 7, "m": 3, "peak": "0.7"}),
        construction_named("majority").read({"n": 50, "m": 3, "groups": 3}),
    ],
)
def test_no_threshold_beats_the_best_one(made: Construction, spelling: str) -> None:
    """Every sign vector and every threshold between two pre-activations, by brute force."""
    mechanism = mechanism_named(spelling)
    found = sx.readers(made.name, mechanism, _given(made))
    signs = np.array(list(product((1, -1), repeat=made.signs)))
    peaks = []
    for label in (0, 1):
        tokens = made.dense(label, 0, torch.float64)
        values = torch.eye(len(tokens.keys)).double() if tokens.values is None else tokens.values
        rows = mechanism.definition(*(x[None, None] for x in (tokens.queries, tokens.keys, values)))[0, 0]
        peaks.append((rows.numpy() @ signs.T).max(0) / made.unit)
    levels = np.unique(np.round(np.concatenate([[0.0], *peaks]), 12))
    taus = (levels[1:] + levels[:-1])[levels[:-1] >= 0] / 2
    best = 0.0
    for tau in taus:
        p0, only = (peaks[0] > tau).mean(), ((peaks[0] <= tau) & (peaks[1] > tau)).mean()
        best = max(best, (1 - p0) ** made.m - (1 - p0 - only) ** made.m)
    assert found.threshold is not None
    assert found.threshold.outcome.distinguish == pytest.approx(best, abs=1e-12)
    assert found.threshold.outcome.engine == "certified"


def test_the_best_threshold_is_not_on_the_edge_of_rounding() -> None:
    """Both labels are 0.1 and 1 here, up to rounding: 1 itself would be too close to call."""
    found = sx.readers("regression", "nystrom", {"n": 100, "m": 12}, sampling=sx.Sampling(draws=20))
    assert found.threshold is not None
    assert 0.15 < found.threshold.tau < 0.95
    assert found.threshold.outcome.distinguish > 0.9


def test_thresholds_stay_where_constructions_take_them() -> None:
    found = sx.readers("critical", "linear", {"n": 10**300, "m": 12})
    assert found.threshold is not None
    assert found.threshold.outcome.distinguish == 0
    assert ("can", "linear readers of one row") in words(found)


def test_numbers_too_small_to_write_out() -> None:
    """The other tokens' weights are n to the power of -1e12."""
    found = sx.readers("spike", "softmax", {**BASE, "a1": 10**6})
    assert words(found)[0] == ("can", "the fixed reader")
    assert found.linear is not None
    assert found.linear.witness.gap == pytest.approx(1e6)


def _given(made: Construction) -> dict[str, object]:
    return dict(made.parameters.as_json())


@pytest.mark.parametrize("spelling", ["softmax", "linear", "taylor:order=2", "relu-features", "based"])
@pytest.mark.parametrize(
    "made",
    [
        spike(),
        spike(form="identity"),
        construction_named("cross").read({**BASE, "r_Q": 1}),
        construction_named("location").read({"n": 1000, "m": 12}),
        construction_named("recall").read({"n": 64, "m": 12}),
        construction_named("level").read({"n": 1000, "m": 12}),
    ],
)
def test_exact_rows_are_those_of_the_definition(made: Construction, spelling: str) -> None:
    mechanism = mechanism_named(spelling)
    exact, literal = proved_outputs(made, mechanism), FloatOutputs(made, mechanism, literal=True)
    rng = np.random.default_rng(0)
    for label in (0, 1):
        for _ in range(3):
            few = [Fraction(int(w), 16) for w in rng.integers(-16, 16, len(exact.features))]
            many = [w for each, w in zip(exact.features, few, strict=True) for _ in range(each.copies)]
            one, other = exact.reading(label, few), literal.reading(label, many)
            assert other[0] <= one[0] <= one[1] <= other[1]


def test_a_feature_map_is_its_kernel_only_where_nothing_is_negative() -> None:
    made = construction_named("routing").read({"n": 8, "m": 12})
    with pytest.raises(EngineRefusal, match="no scalar kernel"):
        kernel_of(made, mechanism_named("relu-features"))
    assert kernel_of(spike(), mechanism_named("relu-features")).name == "linear"


@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(1, 4))
def test_the_direction_from_a_hull_is_the_widest(seed: int, rows: int, width: int) -> None:
    rng = np.random.default_rng(seed)
    hull, row = rng.normal(size=(rows, width)), rng.normal(size=width)
    w = _from_hull(hull, row)
    assert _from_hull(hull, rng.dirichlet(np.ones(rows)) @ hull) is None or rows == 1
    if w is not None and np.linalg.norm(w) < 1e6:
        gap = ((row - hull) @ w).min() / np.linalg.norm(w)
        others = rng.normal(size=(200, width))
        assert ((row - hull) @ others.T / np.linalg.norm(others, axis=1)).min(0).max() <= gap + 1e-9


@given(st.fractions(-100, 100), st.fractions(-100, 100))
def test_the_simplest_number_between(one: Fraction, other: Fraction) -> None:
    if one == other:
        return
    low, high = sorted((one, other))
    found = simplest_between(low, high)
    assert low < found < high
    for bottom in range(1, min(found.denominator, 300)):
        assert not low < Fraction(math.floor(low * bottom) + 1, bottom) < high


def rows_alone(d0: list[list[float]], d1: list[list[float]]) -> FloatOutputs:
    """Outputs that nobody computed."""
    made = object.__new__(FloatOutputs)
    made.rows, made.counts = [np.array(d0), np.array(d1)], (len(d0), len(d1))
    made.sizes = [np.abs(each) for each in made.rows]
    made.features, made.evidence = tuple(Feature(i + 1) for i in range(len(d0[0]))), "made up"
    return made


def test_a_row_inside_the_others_is_read_by_its_absence() -> None:
    corners = [[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]]
    found = best_witness(rows_alone(corners, [[0.1, 0.1]] * 4))
    assert found is not None
    assert found.fires_on == 0
    assert best_witness(rows_alone(corners, [*corners[:3], [0.0, -2.0]])) is not None
    assert best_witness(rows_alone(corners, corners)) is None


@pytest.mark.parametrize("seed", range(6))
def test_the_gap_of_the_best_reader_is_the_distance_to_the_hull(seed: int) -> None:
    """By random directions, one row more or less in D1; with the labels exchanged it fires on the other one."""
    rng = np.random.default_rng(seed)
    quiet, loud = rng.normal(size=(4, 3)), [*rng.normal(size=(2, 3)), np.array([9.0, -4.0, 2.0])]
    directions = rng.normal(size=(40_000, 3)) * [0.3, 0.3, 0.3] + loud[-1] - quiet.mean(0)
    unit = directions / np.linalg.norm(directions, axis=1, keepdims=True)
    widest = float((max_reading(loud, unit) - max_reading(quiet, unit)).max())
    for rows, more in ((quiet, loud), (quiet, [*loud, loud[0]]), ([*quiet[:3]], [*loud])):
        found = best_witness(rows_alone(np.array(rows).tolist(), np.array(more).tolist()))
        assert found is not None
        assert found.fires_on == 1
        assert found.gap >= widest * (1 - 2e-3) or len(rows) == 3
        swapped = best_witness(rows_alone(np.array(more).tolist(), np.array(rows).tolist()))
        assert swapped is not None
        assert swapped.fires_on == 1 or swapped.gap == pytest.approx(found.gap, rel=2e-3)
    corner = best_witness(rows_alone([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]], [[3.0, 0.2]]))
    assert corner is not None
    assert (corner.fires_on, corner.gap) == (1, pytest.approx(math.hypot(2, 0.2), rel=1e-3))


def max_reading(rows: Any, unit: Any) -> Any:
    return (np.array(rows) @ unit.T).max(axis=0)


def test_rounding_is_no_witness() -> None:
    assert best_witness(rows_alone([[1.0, 2.0]], [[1.0 + 1e-11, 2.0]])) is None
    assert best_witness(rows_alone([[1.0, 2.0]], [[1.0 + 1e-7, 2.0]])) is not None


class _Plain(Mechanism):
    """Softmax that no exact engine knows of."""

    name, formula, source, family = "plain-softmax", "softmax", "here", "custom"

    def definition(
        self, q: Queries, k: Keys, v: Values, counts: Counts | None = None, causal: bool = False
    ) -> Attended:
        logits = q @ k.mT if counts is None else q @ k.mT + counts.log()[..., None, :]
        return logits.softmax(-1) @ v


class _Lying(_Plain):
    """Its fast form sees a difference that its definition does not."""

    name = "lying"

    def __call__(self, q: Queries, k: Keys, v: Values, counts: Counts | None = None, causal: bool = False) -> Attended:
        return self.definition(q, k, v, counts, causal) * (1 + q.mean())


def test_weights_that_the_definition_does_not_bear_out_are_no_witness() -> None:
    point = {"n": 50, "m": 12, "gap": 5}
    honest, lying = (sx.readers("injectivity", made, point) for made in (_Plain(), _Lying()))
    assert ("can", "linear readers of one row") in words(honest)
    assert lying.linear is not None
    assert not lying.linear.verified
    assert ("open", "linear readers of one row") in words(lying)


def test_where_order_matters_the_worst_place_counts() -> None:
    point = {**SMALL, "n": 40}
    few = sx.Sampling(draws=20)
    found, again = (sx.readers("spike", "retention", point, sampling=few) for _ in range(2))
    assert found.as_json() == again.as_json()
    assert "the worst position tried" in found.outputs.evidence
    assert found.linear is not None
    made, gaps = found.construction, []
    for place in np.random.default_rng(0).integers(40, size=3):
        one = best_witness(FloatOutputs(made, mechanism_named("retention"), int(place)))
        gaps.append(0.0 if one is None else one.gap)
    assert found.linear.witness.gap == pytest.approx(min(gaps))


def test_noise_on_the_row_is_what_the_auc_says() -> None:
    """A hundred thousand noisy rows of each label, read by the weights that are given."""
    found = sx.readers("spike", "linear", **{**SMALL, "n": 60}, noise_sd="0.05")
    assert found.linear is not None
    rng, weights = np.random.default_rng(0), np.zeros(6)
    for span, weight in found.linear.weights():
        first, _, last = span.partition("-")
        weights[int(first) - 1 : int(last or first)] = float(weight)
    rows = [naive(found.construction.dense(label, 0, torch.float64), "linear")[0] for label in (0, 1)]
    noisy = [(row / found.construction.unit + 0.05 * rng.normal(size=(100_000, 6))) @ weights for row in rows]
    assert found.auc is not None
    assert (noisy[1] > noisy[0]).mean() == pytest.approx(found.auc.best_linear, abs=0.006)


def test_json() -> None:
    done = run("readers", "spike", "linear", *POINT, "--noise", "0.01", "--json")
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)
    promised = "construction mechanism parameters fixed threshold linear auc formats verdict"
    assert set(promised.split()) <= set(shown)
    assert shown["verdict"]["word"] == Word.NOT_WITH_THIS_READER
    assert {"tau", "distinguish", "engine"} <= set(shown["threshold"])
    assert {"weights", "threshold", "gap", "verified"} <= set(shown["linear"])
    assert list(shown["formats"]) == ["bf16", "fp16", "fp32", "fp64"]


def test_text_fits_eighty_columns(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for spelling in ("linear", "topk"):
        command("spike", spelling, POINT, noise="0.01")
        shown = capsys.readouterr().out
        assert f"{spelling} on spike: " in shown
        assert max(len(line) for line in shown.splitlines()) <= 80


def test_a_parameter_may_be_called_as_an_option_is(capsys: pytest.CaptureFixture[str]) -> None:
    command("majority", "linear", ["n=100", "m=12", "noise=0.3"], as_json=True)
    assert json.loads(capsys.readouterr().out)["parameters"]["noise"] == "0.3"


@pytest.mark.parametrize(
    ("more", "options", "complaint"),
    [
        (["noise=0.1"], {}, "noise is an option; write `noise` 0.1"),
        ([], {"noise": "0"}, "noise=0 is out of range"),
        (["n=abc"], {}, "n is given twice"),
        ([], {"delta": "1"}, "delta=1 is out of range"),
        ([], {"seed": -1}, "seed=-1 is negative"),
    ],
)
def test_bad_input_gets_one_line(more: list[str], options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(sx.UsageError, match=complaint):
        command("spike", "linear", [*POINT, *more], **options)
