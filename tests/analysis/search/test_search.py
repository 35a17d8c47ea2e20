"""Searching for what one mechanism tells apart and another does not."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import optuna
import pytest
import torch
from flint import arb, ctx, fmpq
from optuna.distributions import BaseDistribution, IntDistribution
from optuna.storages.journal import JournalFileBackend, JournalStorage
from optuna.trial import create_trial
from rich.console import Console
from torch import Tensor

import separatrix as sx
from command import invoke
from separatrix.analysis.search import InputFinding, PointFinding, check_findings
from separatrix.analysis.search.instance import (
    Instance,
    build_description,
    list_entries,
    read_instance,
    recognise_family,
)
from separatrix.analysis.search.separation import read, separation
from separatrix.analysis.search.shrink import instance_size, instance_steps, shrink_instance
from separatrix.analysis.search.space import EDITS, FEW, MANY, draw
from separatrix.analysis.search.trials import open_log
from separatrix.cli import search as command
from separatrix.constructions import Description, TokenGroup
from separatrix.core.parameters import UsageError
from separatrix.exact.outputs.attention import attend
from separatrix.exact.outputs.formulas import FORMULAS, PRECISION, NoAnswer, formula_rows
from separatrix.mechanisms import mechanism_named

UNNORMALISED = "identity-features:normalised=no"
SPELLINGS = [
    "softmax",
    "softmax:temperature=1/2",
    "logn-softmax",
    "hardmax",
    "linear",
    "power:beta=3",
    "taylor:order=2",
    "relu",
    "squared-relu",
    "identity-features",
    UNNORMALISED,
    "relu-features",
    "relu-features:normalised=no",
    "squared-relu-features",
]


def drawn(number: int, edit: str = "keys", counts: tuple[int, ...] = FEW) -> Instance:
    """A random instance of the search space."""
    rng = random.Random(number)
    return draw(lambda name, low, high: rng.randint(low, high), edit, counts)


def vectors(*rows: str) -> tuple[tuple[Fraction, ...], ...]:
    return tuple(tuple(Fraction(x) for x in row.split()) for row in rows)


def label(query: str, *tokens: tuple[str, str, int]) -> Description:
    kinds = tuple(TokenGroup(*vectors(key, value), count) for key, value, count in tokens)
    return Description(vectors(query), kinds)


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_the_exact_evaluator_is_the_definition(spelling: str) -> None:
    mechanism, answered = mechanism_named(spelling), 0
    for number in range(40):
        one = drawn(number, counts=MANY[:4]).d0
        try:
            with ctx.workprec(PRECISION):
                rows = formula_rows(mechanism, one)
        except NoAnswer:
            continue
        assert rows is not None
        q, k, v = (
            torch.tensor([[float(x) for x in row] for row in table], dtype=torch.float64)[None, None]
            for table in (one.queries, [kind.key for kind in one.groups], [kind.value for kind in one.groups])
        )
        counts = torch.tensor([[[float(kind.count) for kind in one.groups]]], dtype=torch.float64)
        defined = mechanism.definition(q, k, v, counts)[0, 0]
        exact = torch.tensor([[float(arb(each.value)) for each in row] for row in rows], dtype=torch.float64)
        scale = 1 + float(v.abs().max()) + float(exact.abs().max())
        # Linear scores of either sign may nearly cancel: only sums that do not are compared closely.
        assert float((exact - defined).abs().max()) <= 1e-9 * scale
        answered += 1
    assert answered >= 10


def test_every_formula_is_tested() -> None:
    assert {spelling.partition(":")[0] for spelling in SPELLINGS} == set(FORMULAS)


def test_fractional_powers_and_others_are_left_to_float64() -> None:
    instance = drawn(1)
    assert formula_rows(mechanism_named("power:beta=1/2"), instance.d0) is None
    assert formula_rows(mechanism_named("elu"), instance.d0) is None
    assert read(mechanism_named("elu"), instance).evidence == "float64"


def test_what_cancels_is_rational_even_under_softmax() -> None:
    twice = Instance(label("2", ("1", "3", 1), ("0.5", "1", 2)), label("2", ("1", "3", 2), ("0.5", "1", 4)))
    found = separation(mechanism_named(UNNORMALISED), mechanism_named("softmax"), twice)
    assert (found.y.margin, found.y.evidence, found.way) == (fmpq(0), "exact", "equal")
    alone = Instance(label("1", ("1", "3", 1)), label("4", ("1", "3", 1)))
    assert read(mechanism_named("softmax"), alone).margin == fmpq(0)


def _faint(gap: int) -> Instance:
    """The token that is `gap` below the other in its logit carries 0 or 1."""
    top, low = (str(2 * gap), "0", 1), str(gap)
    return Instance(label("1", top, (low, "0", 1)), label("1", top, (low, "1", 1)))


SAME_UNDER_LOG_N = Instance(label("1", ("1", "1", 1), ("0", "0", 3)), label("1", ("1/2", "1", 4), ("0", "0", 12)))
"""4 is 16^(1/2), which balls do not know."""


@pytest.mark.parametrize(
    ("x", "y", "instance", "way", "told"),
    [
        ("linear", "softmax", _faint(24), "drowned", "drowned, apart by 3.77513e-11 of the scale (balls, proved)"),
        ("linear", "softmax", _faint(200), "drowned", "drowned, apart by 1.3839e-87 of the scale"),
        (UNNORMALISED, "logn-softmax", SAME_UNDER_LOG_N, "near", "; not proved equal"),
        ("linear", "sparsemax", _faint(24), "near", "near, apart by 0 of the scale (float64, not proved); not"),
        ("linear", "hardmax", _faint(24), "equal", "equal (exact)"),
    ],
)
def test_equal_is_said_of_what_is_proved_equal(
    x: str, y: str, instance: Instance, way: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = separation(mechanism_named(x), mechanism_named(y), instance)
    assert found.way == way
    assert (found.y.is_equal, way) in {(True, "equal"), (None, "near"), (False, "drowned")}
    finding = InputFinding.build(mechanism_named(x), mechanism_named(y), instance, shrunk=True)
    command._print_inputs(Console(width=200), finding, x, y)
    shown = capsys.readouterr().out
    assert told in shown
    assert ("equal" in shown.replace("not proved equal", "")) == (way == "equal")


def test_the_margin_is_a_proved_bound() -> None:
    spike = Instance(label("4", ("0.5", "1", 1), ("0.5", "0", 10**6)), label("4", ("4", "1", 1), ("0.5", "0", 10**6)))
    found = separation(mechanism_named("softmax"), mechanism_named("linear"), spike)
    assert found.x.evidence == "balls"
    assert found.y.margin == fmpq(8, 1000008) - fmpq(1, 1000001)
    assert found.way == "drowned"
    weight = 1 / (1 + 10**6 * torch.tensor(-14.0, dtype=torch.float64).exp().item())
    assert abs(float(found.x.margin) - (weight - 1 / (1 + 10**6))) < 1e-12


def test_a_row_without_weights_is_no_answer() -> None:
    dead = Instance(label("-1", ("1", "1", 1)), label("-2", ("1", "1", 1)))
    with pytest.raises(NoAnswer, match="add up to zero"):
        read(mechanism_named("relu-features"), dead)


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_changes_its_own_part_alone(edit: str) -> None:
    for number in range(30):
        instance = drawn(number, edit)
        assert instance.differs_in in ((), (EDITS[edit],))
        assert read_instance(json.loads(json.dumps(instance.as_json()))) == instance
        assert build_description(list_entries(instance.d0)) == instance.d0


def test_shrinking_ends_where_no_step_is_left() -> None:
    x, y = mechanism_named(UNNORMALISED), mechanism_named("softmax")

    def holds(one: Instance) -> bool:
        return one.differs_in == ("counts",) and separation(x, y, one).way == "equal"

    start = next(one for number in range(200) if holds(one := drawn(number, "counts")) and len(one.d0.groups) > 2)
    small = shrink_instance(start, holds)
    assert small == Instance(label("1", ("1", "1", 1)), label("1", ("1", "1", 2)))
    assert not any(instance_size(step) < instance_size(small) and holds(step) for step in instance_steps(small))
    assert recognise_family(small) == ("duplication", "only counts differ, each 2 times as large in D1")


def test_shrinking_keeps_a_mirror_a_mirror() -> None:
    start = next(one for number in range(50) if (one := drawn(number, "order")).is_mirrored)
    small = shrink_instance(start, lambda one: one.is_mirrored)
    assert small.is_mirrored
    assert len(small.d0.groups) == 2


@pytest.mark.parametrize(
    ("d0", "d1", "family"),
    [
        (label("1 2", ("1 0", "1", 1)), label("2 4", ("1 0", "1", 1)), "collinear queries"),
        (label("1 2", ("1 0", "1", 1)), label("2 2", ("1 0", "1", 1)), "another query"),
        (label("1", ("1", "1", 2), ("2", "1", 3)), label("1", ("1", "1", 4), ("2", "1", 6)), "duplication"),
        (label("1", ("1", "1", 2), ("2", "1", 3)), label("1", ("1", "1", 4), ("2", "1", 3)), "recount"),
        (label("1", ("1", "1", 1), ("2", "1", 30)), label("1", ("4", "1", 1), ("2", "1", 30)), "spike"),
        (label("1", ("1", "1", 1), ("2", "1", 3)), label("1", ("4", "1", 1), ("2", "1", 3)), "collinear keys"),
        (label("1", ("1", "1", 1), ("2", "1", 3)), label("1", ("1", "4", 1), ("2", "1", 3)), "another value"),
        (label("1", ("1", "1", 1), ("2", "0", 1)), label("1", ("2", "0", 1), ("1", "1", 1)), "order"),
        (label("1", ("1", "1", 1)), label("2", ("4", "1", 1)), "mixed"),
    ],
)
def test_families_are_recognise_family(d0: Description, d1: Description, family: str) -> None:
    assert recognise_family(Instance(d0, d1))[0] == family


REDISCOVERED = [
    ("softmax", "linear", "spike", 150),
    (UNNORMALISED, "softmax", "duplication", 60),
    ("softmax", "relu-features", "collinear queries", 60),
]


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in range(1, 5))])
@pytest.mark.parametrize(("x", "y", "family", "budget"), REDISCOVERED)
def test_known_separations_are_rediscovered(x: str, y: str, family: str, budget: int, seed: int) -> None:
    found = sx.search(x, y, seed=seed, budget=budget)
    hits = [each for each in found.findings if each.family == family]
    assert hits, [each.family for each in found.findings]
    best = hits[0]
    assert isinstance(best, InputFinding)
    assert best.way == ("drowned" if family == "spike" else "equal")
    assert {best.x.evidence, best.y.evidence} <= {"exact", "balls"}
    assert len(best.instance.d0.groups) <= 2
    assert len(best.instance.d0.queries) == 1
    if family == "collinear queries":
        assert best.sentence == "D1's query is 2 × D0's"


def run(*words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Call `separatrix search` in this process."""
    return invoke("search", *words, cwd=cwd)


def told(found: sx.Search) -> dict[str, Any]:
    return {name: value for name, value in found.as_json().items() if name != "budget"}


def test_a_search_goes_on_as_if_it_had_not_stopped(tmp_path: Path) -> None:
    study = tmp_path / "search.log"
    whole = sx.search("softmax", "taylor:order=2", budget=110, seed=3)
    sx.search("softmax", "taylor:order=2", budget=50, seed=3, study=study)
    half = study.read_bytes()
    study.write_bytes(half + b'{"op_code": 4, "worker')
    again = sx.search("softmax", "taylor:order=2", budget=110, seed=3, study=study)
    assert told(again) == told(whole)
    assert study.read_bytes().startswith(half)
    assert len(study.read_text().splitlines()) == 1 + whole.trials
    kept = study.read_bytes()
    assert told(sx.search("softmax", "taylor:order=2", budget=110, seed=3, study=study)) == told(whole)
    assert study.read_bytes() == kept


SOFTMAX_OVER_LINEAR = "softmax over linear, inputs, seed 0"


def written_log(path: Path, search: str = SOFTMAX_OVER_LINEAR, **attributes: Any) -> str:
    """Write a log with one trial of softmax over linear, with changed attributes, and return its text."""
    distributions: dict[str, BaseDistribution] = {}

    def suggest(name: str, low: int, high: int) -> int:
        distributions[name] = IntDistribution(low, high)
        return low

    draw(suggest, "counts", FEW)
    trial = create_trial(
        params={name: kind.low for name, kind in distributions.items()},
        distributions=distributions,
        value=0.0,
        user_attrs={"question": "counts equal", "found": False, "failed": None} | attributes,
    )
    with open_log(path, search) as log:
        log.add(trial)
    return path.read_text()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("rubbish", "is not the log of a search"),
        ("[1, 2]\n", "is not the log of a search"),
        ("\x00\x80\n", "is not the log of a search"),
        ("[" * 3000 + "\n", "is not the log of a search"),
        ('{"op_code": 99, "worker_id": "x"}\n', "is not the log of a search"),
        ('{"op_code": 0, "worker_id": "x", "study_name": "mine", "directions": [2]}\n', "is not the log"),
    ],
)
def test_a_foreign_study_file_is_refused_and_left_as_it_was(tmp_path: Path, text: str, complaint: str) -> None:
    study = tmp_path / "search.log"
    study.write_text(text)
    with pytest.raises(UsageError) as refused:
        sx.search("softmax", "linear", budget=5, study=study)
    assert complaint in str(refused.value)
    assert len(refused.value.lines) == 1
    assert study.read_text() == text


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"search": "softmax over relu, inputs, seed 0"}, "belongs to another search (softmax over relu"),
        ({"search": "softmax over linear, inputs, seed 1"}, "belongs to another search"),
        ({"question": "names"}, "is damaged (KeyError: 'names')"),
        ({"found": True}, "trial 1 does not answer its question, though it says so"),
    ],
)
def test_a_wrong_trial_is_refused_and_the_file_is_left_as_it_was(
    tmp_path: Path, changes: dict[str, Any], complaint: str
) -> None:
    text = written_log(tmp_path / "search.log", **changes)
    with pytest.raises(UsageError) as refused:
        sx.search("softmax", "linear", budget=5, study=tmp_path / "search.log")
    assert complaint in str(refused.value)
    assert (tmp_path / "search.log").read_text() == text


def test_a_damaged_line_of_a_log_is_noticed(tmp_path: Path) -> None:
    study = tmp_path / "search.log"
    sx.search("softmax", "taylor:order=2", budget=8, seed=3, study=study)
    lines = study.read_text().splitlines()
    for damaged in (lines[-1][:-5], "rubbish"):
        study.write_text("\n".join([*lines[:-1], damaged]) + "\n")
        with pytest.raises(UsageError, match="is damaged"):
            sx.search("softmax", "taylor:order=2", budget=9, seed=3, study=study)


def test_a_log_is_an_optuna_study_without_pickles(tmp_path: Path) -> None:
    study = tmp_path / "search.log"
    found = sx.search("softmax", "linear", budget=4, study=study)
    assert [path.name for path in tmp_path.iterdir()] == ["search.log"]
    assert all(isinstance(json.loads(line), dict) for line in study.read_text().splitlines())
    storage = JournalStorage(JournalFileBackend(str(study)))
    (loaded,) = optuna.get_all_study_summaries(storage)
    assert (loaded.study_name, loaded.n_trials) == (f"separatrix search: {SOFTMAX_OVER_LINEAR}", found.trials)


def test_two_searches_on_one_log(tmp_path: Path) -> None:
    """The second is refused, and writes nothing; once the first has ended it can use the log."""
    study = tmp_path / "search.log"
    with open_log(study, "x over y"):
        written = study.read_bytes()
        with (
            pytest.raises(UsageError, match="is in use by another search; wait until it ends"),
            open_log(study, "x over y"),
        ):
            pass
        assert study.read_bytes() == written
    with open_log(study, "x over y") as log:
        assert log.study.trials == []


def test_the_trial_of_the_tests_is_a_trial(tmp_path: Path) -> None:
    written_log(tmp_path / "search.log")
    assert sx.search("softmax", "linear", budget=2, study=tmp_path / "search.log").trials == 2


@pytest.mark.parametrize(
    ("x", "y", "options", "complaint"),
    [
        ("softmax", "softmax", {}, "X and Y are both softmax"),
        ("softmax:temperature=1", "softmax", {}, "X and Y are both softmax"),
        ("sofmax", "linear", {}, "there is no mechanism sofmax (did you mean softmax?)"),
        ("softmax", "linear", {"budget": 0}, "budget=0 is out of range"),
        ("softmax", "linear", {"seed": -1}, "seed=-1 is out of range"),
        ("softmax", "linear", {"seconds": 0.0}, "seconds=0.0 is out of range"),
        ("softmax", "linear", {"space": "input"}, "there is no space input (did you mean inputs?)"),
        ("softmax", "linear", {"study": "nowhere/x.log"}, "there is no folder nowhere"),
    ],
)
def test_bad_requests_are_refused(x: str, y: str, options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UsageError) as refused:
        sx.search(x, y, **options)
    assert complaint in str(refused.value)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["softmax"], "name two mechanisms"),
        (["softmax", "linear", "--out", "found.txt"], "let it end in one of .json"),
        (["--check", "nowhere.json"], "cannot read nowhere.json"),
    ],
)
def test_bad_requests_are_one_line(tmp_path: Path, words: list[str], complaint: str) -> None:
    done = run(*words, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert complaint in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_found_printed_written_and_checked(tmp_path: Path) -> None:
    done = run(UNNORMALISED, "softmax", "--budget", "30", "--out", "found.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for part in ("duplication: only counts differ", "2 × key 1 value 1", "equal (exact)"):
        assert part in done.stdout
    assert max(len(line) for line in done.stdout.splitlines()) <= 80
    report = check_findings(tmp_path / "found.json")
    assert report.holds
    spoiled = json.loads((tmp_path / "found.json").read_text())
    spoiled["findings"][0]["instance"]["d1"] = spoiled["findings"][0]["instance"]["d0"]
    (tmp_path / "spoiled.json").write_text(json.dumps(spoiled))
    checked = run("--check", "spoiled.json", "--json", cwd=tmp_path)
    assert checked.returncode == 1
    assert json.loads(checked.stdout)["holds"] is False


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"x": "os:getcwd"}, "name both mechanisms on the command line"),
        ({"findings": []}, "holds no finding"),
        ({"findings": [{"kind": "inputs", "instance": {}}]}, "instance.d0: Field required"),
        ({"findings": [{"kind": "magic"}]}, "of kind inputs or construction"),
        ({"findings": [{"kind": "construction", "construction": "spike", "parameters": {}}]}, "needs n"),
        ({"findings": 3}, "does not hold the findings of a search"),
    ],
)
def test_files_are_data_alone(tmp_path: Path, change: dict[str, Any], complaint: str) -> None:
    whole = {"x": "softmax", "y": "linear", "findings": []}
    path = tmp_path / "found.json"
    path.write_text(json.dumps({**whole, **change}))
    with pytest.raises(UsageError) as refused:
        check_findings(path)
    assert complaint in str(refused.value)


def test_finding_nothing_proves_nothing() -> None:
    done = run("linear", "identity-features", "--budget", "12", "--json")
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)
    assert shown["found"] is False
    assert shown["caution"] == "nothing found in 12 trials; this proves nothing"


def quiet(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """The mean of all values, whoever asks."""
    return v.mean(-2, keepdim=True).expand(*q.shape[:-1], v.shape[-1])


def angry(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    raise RuntimeError("not today")


def test_mechanisms_of_the_users_own() -> None:
    found = sx.search("softmax", quiet, budget=40)
    assert any(each.family in ("another query", "collinear queries") for each in found.findings)
    findings = [each for each in found.findings if isinstance(each, InputFinding)]
    assert {finding.y.evidence for finding in findings} == {"float64"}


def test_a_mechanism_that_always_raises_is_told_of() -> None:
    found = sx.search("softmax", angry, budget=5)
    assert (found.found, found.failed, found.reason) == (False, 5, "RuntimeError: not today")


def test_recurrent_mechanisms_see_the_order() -> None:
    found = sx.search("delta", "softmax", budget=60)
    order = next(each for each in found.findings if each.family == "order")
    assert isinstance(order, InputFinding)
    assert (order.x.evidence, order.y.evidence) == ("float64", "exact")
    one = order.instance.d0
    q, k, v = (
        torch.tensor([[float(x) for x in row] for row in rows], dtype=torch.float64)[None]
        for rows in (one.queries, [kind.key for kind in one.groups], [kind.value for kind in one.groups])
    )
    assert all(kind.count == 1 for kind in one.groups)
    last = attend(mechanism_named("delta"), q, k, v, last=True)[0]
    assert last.tolist() == order.x.d0


def test_constructions_are_searched_and_checked(tmp_path: Path) -> None:
    found = sx.search(UNNORMALISED, "softmax", budget=18, space="constructions")
    assert found.trials == 18
    duplication = next(each for each in found.findings if each.family == "duplication")
    assert isinstance(duplication, PointFinding)
    assert (duplication.x.verdict, duplication.y.verdict) == ("distinguishes", "blind")
    assert int(duplication.parameters["n"]) < 100
    path = tmp_path / "found.json"
    path.write_text(json.dumps(found.as_json()))
    assert check_findings(path).holds


def test_the_clock_stops_a_search() -> None:
    found = sx.search("softmax", "linear", seconds=1e-9)
    assert (found.trials, found.out_of_time, found.found) == (0, True, False)


@pytest.mark.usefixtures("default_signals")
def test_ctrl_c_keeps_the_log_and_says_how_to_go_on(tmp_path: Path) -> None:
    study = tmp_path / "search.log"
    program = "from separatrix.cli import main; main()"
    words = ["search", "linear", "identity-features", "--budget", "100000", "--study", str(study)]
    process = subprocess.Popen(
        [sys.executable, "-c", program, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    while process.poll() is None and (not study.exists() or study.read_bytes().count(b"\n") < 5):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    try:
        out, errors = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 130, errors
    assert "to continue: give the same command again" in " ".join(out.split())
    trials = study.read_bytes().count(b"\n") - 1
    assert sx.search("linear", "identity-features", budget=trials, study=study).trials == trials
