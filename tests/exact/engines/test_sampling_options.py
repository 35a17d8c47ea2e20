"""Options that only sampling uses, where the answer is exact: a number format is never ignored in silence."""

from __future__ import annotations

import json
import pickle
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import separatrix as sx
from cases import BASE
from expectations import run
from separatrix.analysis.laws import scaling
from separatrix.core.parameters import UsageError
from separatrix.exact.engines import EngineRefusal, Sampling
from separatrix.exact.engines.sampling import MOST_DRAWS
from separatrix.sweeps.plan import read_plan
from separatrix.sweeps.plan_toml import PlanError

SMALL: dict[str, Any] = {**BASE, "n": 40, "d": 12, "m": 4}
WORDS = [f"{name}={value}" for name, value in SMALL.items()]
HALF = Sampling(draws=40, dtype="bfloat16")


def test_a_number_format_is_answered_in_that_format(capsys: pytest.CaptureFixture[str]) -> None:
    found = sx.verdict("spike", "softmax", sampling=HALF, **SMALL)
    assert found.outcome.engine == "dense"
    assert "bfloat16" in found.outcome.evidence
    single = sx.verdict("spike", "softmax", sampling=Sampling(draws=40, dtype="float32"), **SMALL)
    assert (single.outcome.engine, "float32" in single.outcome.evidence) == ("grouped", True)
    _, out, _ = run(capsys, "verdict", "spike", "softmax", *WORDS, "--dtype", "bfloat16", "--json")
    printed = json.loads(out)
    assert (printed["engine"], "bfloat16" in printed["evidence"]) == ("dense", True)


def test_a_number_format_that_no_engine_can_answer_in() -> None:
    with pytest.raises(EngineRefusal, match=r"dense: .*grouped: .*; closed forms have no number format"):
        sx.verdict("spike", "softmax", sampling=HALF, **{**SMALL, "n": 10**18})


@pytest.mark.parametrize("engine", ["closed", "certified"])
@pytest.mark.parametrize("given", [{"dtype": "bfloat16"}, {"draws": 10}, {"seed": 3}, {"confidence": 0.5}])
def test_engines_that_draw_nothing_refuse_to_be_told_how(
    engine: str, given: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    (name, value), sampling = next(iter(given.items())), Sampling(**given)
    complaint = f"the {engine} engine draws nothing; leave out {name}, or use dense"
    words = ["--engine", engine, f"--{name}", str(value)]
    code, out, err = run(capsys, "verdict", "spike", "softmax", *WORDS, *words)
    assert (code, out, complaint in err) == (2, "", True)
    fixed = {name: value for name, value in SMALL.items() if name != "a1"}
    with pytest.raises(UsageError, match=complaint):
        sx.verdict("spike", "softmax", engine=engine, sampling=sampling, **SMALL)
    with pytest.raises(UsageError, match=complaint):
        sx.boundary("spike", "softmax", engine=engine, sampling=sampling, a1="0.5:1.5", **fixed)
    with pytest.raises(UsageError, match=complaint):
        sx.map("spike", "softmax", engine=engine, sampling=sampling, a1="0.5:1.5:3", b="0.1:0.2:2", **_without_b())


def _without_b() -> dict[str, Any]:
    return {name: value for name, value in SMALL.items() if name not in ("a1", "b")}


def test_a_certificate_is_not_of_a_number_format(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "proof.json"
    words = ["verdict", "spike", "softmax", *WORDS, "--certificate", str(file), "--dtype", "bfloat16"]
    code, _, err = run(capsys, *words)
    assert code == 2
    assert "the certified engine draws nothing; leave out dtype" in err
    assert not file.exists()


def test_maps_answer_in_the_format() -> None:
    """A layer by whole grids, and one cell by cell."""
    whole = sx.map("spike", "softmax", sampling=HALF, a1="0.5:1.5:2", b="0.1:0.2:2", **_without_b())
    cells = sx.map("dispersion", "softmax", sampling=HALF, n="8:12:2", gap="1:2:2", m=2)
    for found in (whole, cells):
        assert (found.layers[0].engine, "bfloat16" in found.layers[0].evidence) == ("dense", True)


def test_boundaries_are_searched_in_the_format() -> None:
    fixed = {name: value for name, value in SMALL.items() if name != "a1"}
    found = sx.boundary("spike", "softmax", sampling=HALF, a1="0.1:2", scan=4, **fixed)
    assert (found.engine, "bfloat16" in found.evidence) == ("dense", True)
    assert not any(crossing.is_certified for crossing in found.crossings)


def test_scaling_laws_of_margins_have_no_format() -> None:
    parameters = {**SMALL, "n": "1e3:1e5:3:log"}
    with pytest.raises(UsageError, match="margin is computed in float64, without draws; leave out dtype=bfloat16"):
        scaling("spike", "softmax", parameters, sampling=HALF)


@pytest.mark.parametrize("top", [True, False])
def test_plans_do_not_ask_closed_forms_for_a_format(top: bool) -> None:
    """In the table itself, or among what all tables share."""
    own = '[[sweep]]\nconstruction = "spike"\nengine = "closed"\n'
    text = (
        f'dtype = "bfloat16"\nmechanisms = ["softmax"]\n{own}'
        if top
        else f'mechanisms = ["softmax"]\n{own}dtype = "bfloat16"\n'
    )
    with pytest.raises(PlanError, match="the closed engine draws nothing; leave out dtype, or use dense"):
        read_plan(text + "parameters.n = 1000\n")


def test_auto_says_that_nothing_was_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    said = "nothing was drawn: draws=2000, seed=1 made no difference"
    _, out, _ = run(capsys, "verdict", "spike", "softmax", *WORDS, "--draws", "2000", "--seed", "1")
    assert said in " ".join(out.split())
    sampling = Sampling(2000, 1)
    assert said in sx.verdict("spike", "softmax", sampling=sampling, **SMALL).outcome.evidence
    mapped = sx.map("spike", "softmax", sampling=sampling, a1="0.5:1.5:2", b="0.1:0.2:2", **_without_b())
    assert said in mapped.layers[0].evidence
    fixed = {name: value for name, value in SMALL.items() if name != "a1"}
    assert said in sx.boundary("spike", "softmax", sampling=sampling, a1="0.1:2", **fixed).evidence
    assert "nothing" not in sx.verdict("spike", "softmax", **SMALL).outcome.evidence


def test_answers_are_the_same_whatever_is_not_used() -> None:
    plain, asked = (sx.verdict("spike", "softmax", sampling=each, **SMALL) for each in (None, Sampling(7, 7)))
    assert plain.outcome.p1 == asked.outcome.p1
    assert isinstance(asked.outcome.p1, Fraction)


def test_a_refusal_is_a_reason_and_the_engines_that_would_do(capsys: pytest.CaptureFixture[str]) -> None:
    """The library knows no options; the command line says which to type."""
    with pytest.raises(EngineRefusal) as caught:
        sx.verdict("spike", "window:size=8", engine="grouped", **SMALL)
    refused = pickle.loads(pickle.dumps(caught.value))
    assert (refused.reason, refused.instead) == ("window:size=8 does not accept counts", ("dense",))
    assert str(refused) == "window:size=8 does not accept counts; engine dense would do"
    code, _, err = run(capsys, "verdict", "spike", "window:size=8", *WORDS, "--engine", "grouped")
    assert (code, "window:size=8 does not accept counts; use --engine dense" in err) == (2, True)


def test_the_library_names_arguments_and_the_command_line_their_options(capsys: pytest.CaptureFixture[str]) -> None:
    fixed = {name: value for name, value in SMALL.items() if name not in ("a1", "n")}
    with pytest.raises(UsageError, match="give one of them as `over`"):
        sx.boundary("spike", "softmax", a1="0.5:1.5", n="40:400", **fixed)
    words = ["a1=0.5:1.5", "n=40:400", *(f"{name}={value}" for name, value in fixed.items())]
    code, _, err = run(capsys, "boundary", "spike", "softmax", *words)
    assert (code, "give one of them as --over" in err) == (2, True)


@pytest.mark.parametrize(
    ("least", "most", "refused", "complaint"),
    [
        (
            {"draws": 1},
            {"draws": MOST_DRAWS},
            ({"draws": 0}, {"draws": MOST_DRAWS + 1}),
            "must be a whole number, 1 to",
        ),
        ({"confidence": 1e-9}, {"confidence": 1 - 1e-9}, ({"confidence": 0}, {"confidence": 1}), "between 0 and 1"),
        ({"seed": 0}, {"seed": 2**63}, ({"seed": -1},), "seeds start at 0"),
        ({"dtype": "float64"}, {"dtype": "bfloat16"}, ({"dtype": "int8"},), "is not one of float64"),
    ],
)
def test_options_have_limits(
    least: dict[str, Any], most: dict[str, Any], refused: tuple[dict[str, Any], ...], complaint: str
) -> None:
    for given in (least, most):
        assert Sampling(**given).changed_options() == {k: v for k, v in given.items() if v not in (0, "float64")}
    for given in refused:
        with pytest.raises(UsageError, match=complaint):
            Sampling(**given)


@pytest.mark.parametrize(
    ("draws", "looks"), [(25, [25]), (26, [25, 26]), (50, [25, 50]), (51, [25, 50, 51]), (400, [25, 50, 100, 200, 400])]
)
def test_interim_looks_share_a_fifth_of_the_doubt(draws: int, looks: list[int]) -> None:
    found = Sampling(draws, confidence=0.9, decide=(Fraction(1, 2),)).looks()
    assert [look for look, _ in found] == looks
    doubts = [1 - confidence for _, confidence in found]
    assert sum(doubts) == pytest.approx(0.1)
    assert doubts[-1] == pytest.approx(0.1 if len(looks) == 1 else 0.08)
    assert doubts[:-1] == pytest.approx([0.02 / max(1, len(looks) - 1)] * (len(looks) - 1))
    assert Sampling(draws, confidence=0.9).looks() == [(draws, 0.9)]
