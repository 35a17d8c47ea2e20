"""Plans by the protocol: the benchmarks that come with separatrix, and small ones on small data."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tiny_data
from documents import require_document
from expectations import assert_refused
from expectations import run as command
from separatrix.analysis.evidence.conclusions import BesideFloor, TrainingWord, compare_with_floor
from separatrix.analysis.evidence.estimates import PairedDifference, SeedSummary, compare_pairs, median_rank
from separatrix.analysis.evidence.experiments import learn_plan, read_plan_experiments
from separatrix.analysis.evidence.training_result import MechanismEvidence, SeedRun, TrainingResult
from separatrix.core.errors import UsageError
from separatrix.pages.learned.markdown import evidence_table
from separatrix.sweeps.plan import read_plan
from separatrix.sweeps.plan_toml import PlanError
from separatrix.sweeps.store import results
from separatrix.sweeps.sweep import find_plan, plan_named, shipped_plans
from separatrix.training.tasks import REAL_TASKS, RealTask, task_named
from sweep_tools import Inline

BENCHMARKS = ("benchmarks", "benchmarks-large")
DATA = ("digits", "mnist", "cifar10", "imdb", "enwik8")
NEEDED = tuple(name for name in DATA if name != "imdb")
"""What the default plan of benchmarks needs."""
TINY = """
name = "tiny"
mechanisms = ["softmax", "elu"]
seeds = "1:2"
"""
SIZES = "width = 4, heads = 1, depth = 1, mlp = 0, steps = 2, every = 2, batch = 2, validation = 4, tests = 4"
for each in (*REAL_TASKS, "listops"):
    shorter = "parameters.n = 8\n" if each in ("imdb", "enwik8") else ""
    TINY += f"[[learn]]\nname = '{each}'\ntask = '{each}'\n{shorter}setting = {{ {SIZES} }}\npilots = 1\n"
    TINY += "rates = [0.01, 0.03]\n" if each == "digits" else "rates = 0.01\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder with every data set, small; whatever is run is run in this process."""
    made = tmp_path / "data"
    tiny_data.expect_tiny(monkeypatch)
    for name in DATA:
        tiny_data.lay(made / name, name)
    monkeypatch.setenv("SEPARATRIX_DATA", str(made))
    monkeypatch.setattr("separatrix.analysis.evidence.runs.executor_for", lambda *_: Inline())
    return made


@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_plan_of_benchmarks_has_every_data_set_and_keeps_the_protocol(name: str) -> None:
    plan = plan_named(name)
    asked = [each for some in read_plan_experiments(plan).values() for each in some]
    too_hard = {"imdb"} if name == "benchmarks" else set()  # it stays below its floor in the time there is
    assert {each.task.name for each in asked} == {*REAL_TASKS, "listops"} - too_hard
    assert all(median_rank(len(each.seeds)) and each.pilots for each in asked)  # a median can be above a floor
    for each in asked:
        spelled = [mechanism.spelled for mechanism in each.mechanisms]
        assert spelled[0] == "softmax"
        assert "identity-features:normalised=no" in spelled  # the paper's own pair
    pilots = sum(len(each.setting.grid) > 1 for each in asked)
    assert pilots >= 2
    runs = [len(each.seeds) + (len(each.setting.grid) > 1) * len(each.setting.grid) for each in asked]
    mechanisms = [len(each.mechanisms) for each in asked]
    assert plan.count == sum(x * y for x, y in zip(runs, mechanisms, strict=True))


def test_floors_stand_beside_every_result_and_nothing_is_computed_twice(folder: Path, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/runs.db"
    found = learn_plan(read_plan(TINY), url)
    every = [each for part in found.parts for each in part.results]
    assert {each.task.name for each in every} == {*REAL_TASKS, "listops"}
    for each in every:
        assert each.floor_by
        assert [one.mechanism for one in each.mechanisms] == ["softmax", "elu"]
        assert all(one.trained is not None and len(one.trained.scores) == 2 for one in each.mechanisms)
    kept = results(url, kind="floor")
    assert set(kept["task"]) == set(REAL_TASKS)
    shown = {each.task.name: each.floor for each in every}
    assert dict(zip(kept["task"], kept["floor"], strict=True)) == {name: shown[name] for name in REAL_TASKS}
    runs = results(url, kind="training")
    assert sorted(runs.filter(task="digits")["purpose"]) == ["pilot"] * 4 + ["test"] * 4
    assert set(runs.filter(task="imdb")["purpose"]) == {"test"}
    again = learn_plan(read_plan(TINY), url)
    assert results(url, kind="training").height == runs.height
    assert [part.as_json() for part in again.parts] == [part.as_json() for part in found.parts]
    text = evidence_table(found.parts, "separatrix learn --plan tiny")
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == 2 + 2 * len(every)
    for each in every:
        beside = [row for row in rows if row.startswith(f"| {each.task.spelling}, 2 steps |")]
        assert len(beside) == 2
        assert all(f"{each.floor:.4f}: {each.floor_by}" in row for row in beside)


def test_the_command_writes_page_table_and_figure(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan, url = tmp_path / "tiny.toml", f"sqlite:///{tmp_path}/runs.db"
    head = TINY.partition("[[learn]]")
    plan.write_text(head[0] + "[[learn]]" + head[2].partition("[[learn]]")[0])
    asked = ("learn", "--plan", str(plan), "--store", url, "--out")
    for ending, begins in ((".html", b"<!doctype html>"), (".png", b"\x89PNG"), (".md", b"`separatrix learn")):
        to = tmp_path / f"found{ending}"
        code, out, told = command(capsys, *asked, str(to))
        assert (code, "floor" in out) == (0, True), told
        assert to.read_bytes()[:30].lower().startswith(begins.lower())
    code, out, _ = command(capsys, *asked, str(tmp_path / "found.json"), "--json")
    assert require_document("learned_report", out)["parts"][0]["found"][0]["floor_by"]
    code, out, told = command(capsys, "report", "--store", url, "--out", str(tmp_path / "report"))
    assert (code, "sweep tiny" in out) == (0, True), told
    (floor,) = results(url, kind="floor")["floor"]
    text = (tmp_path / "report" / "report.html").read_text()
    tested = [row for row in text.split("<tr>") if ">softmax<" in row and "scratch" in row]
    assert any(f">{floor:.4f}<" in row for row in tested)


@pytest.mark.parametrize("name", NEEDED)
def test_missing_data_is_refused_in_one_line_before_anything_is_run(
    name: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for file in (folder / name).iterdir():
        file.unlink()
    with pytest.raises(UsageError, match=f"separatrix data fetch {name}$") as told:
        learn_plan("benchmarks", f"sqlite:///{tmp_path}/runs.db")
    assert "\n" not in str(told.value)
    assert not (tmp_path / "runs.db").exists()


def test_the_command_refuses_missing_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SEPARATRIX_DATA", str(tmp_path))
    monkeypatch.setattr("separatrix.training.data.digits.find_spec", lambda _: None)
    assert_refused(capsys, "separatrix data fetch digits", tmp_path, "learn", "--plan", "benchmarks")


def test_a_sweep_says_who_runs_plans_with_pilots(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"sqlite:///{tmp_path}/none.db"
    assert_refused(capsys, "learn --plan benchmarks", tmp_path, "sweep", "benchmarks", "--store", url)
    with pytest.raises(UsageError, match="pilot runs choose the learning rates of benchmarks"):
        find_plan("benchmarks")
    with pytest.raises(UsageError, match="pilots choose the rates of"):
        list(read_plan(TINY))
    assert_refused(capsys, "a plan names its tasks", tmp_path, "learn", "needle", "--plan", "benchmarks")
    assert set(BENCHMARKS) < set(shipped_plans())


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("pilots = 1", "pilots = -1", "pilots = -1 must be a whole number from 0"),
        ("pilots = 1", "pilots = true", "pilots = True must be a whole number"),
        ("pilots = 1", "pilots = 1\ntest = true", "whose rates pilots choose are tested, and begin from"),
        ("pilots = 1", "pilots = 1\nstart = 'witness'", "and begin from scratch"),
        ("pilots = 1", "", "digits of tiny has no pilots to choose its rates"),
        ('"1:2"', "[3]", "digits of tiny has one seed; an interval takes two or more"),
    ],
)
def test_mistakes_are_told(old: str, new: str, says: str) -> None:
    with pytest.raises((PlanError, UsageError), match=re.escape(says)):
        read_plan_experiments(read_plan(TINY.replace(old, new)))


def evidence(mechanism: str, *scores: float) -> MechanismEvidence:
    task = task_named("smnist").read({})
    runs = tuple(SeedRun(seed, score, 1, None, None, 1.0) for seed, score in enumerate(scores))
    unknown: dict[str, Any] = dict.fromkeys(("proved", "witness", "tuned_witness", "parameters", "state_bytes"))
    return MechanismEvidence(
        mechanism=mechanism, setting=task.default_setting(), pilots={}, tuned_seeds=(),
        lr=task.default_setting().grid[0],
        lr_window=(), runs=runs, failed=(), word=TrainingWord.UNKNOWN, sentence="", **unknown,
    )  # fmt: skip


def smnist(*some: MechanismEvidence, paired: tuple[PairedDifference, ...] = ()) -> TrainingResult:
    task = task_named("smnist").read({})
    return TrainingResult(task, task.default_setting(), 1, "?", 0.9, "a line", some, paired)


def summary(*scores: float) -> SeedSummary:
    return SeedSummary(scores)


def test_only_six_seeds_beyond_the_floor_are_better_than_it() -> None:
    assert compare_with_floor(summary(3.5, 3.6, 3.4), 3.1, -1) is BesideFloor.BELOW
    assert compare_with_floor(summary(*[2.9, 2.91, 2.9] * 2), 3.1, -1) is BesideFloor.ABOVE
    assert compare_with_floor(summary(2.9, 2.91, 2.9), 3.1, -1) is BesideFloor.AT  # three seeds show nothing
    assert compare_with_floor(summary(0.95), 0.9, 1) is BesideFloor.AT
    assert compare_with_floor(summary(*[0.95] * 5, 0.5), 0.9, 1) is BesideFloor.AT
    assert compare_with_floor(summary(*[0.95] * 8, 0.5), 0.9, 1) is BesideFloor.ABOVE
    assert compare_with_floor(None, 0.9, 1) is BesideFloor.FAILED
    failed = replace(evidence("softmax", *[0.95] * 5), failed=("out of memory",))
    assert smnist(failed).beside_floor == {"softmax": BesideFloor.AT}


def test_nothing_is_concluded_of_what_is_not_better_than_the_floor() -> None:
    low = smnist(evidence("softmax", 0.80, 0.81), evidence("elu", 0.70, 0.71))
    assert set(low.beside_floor.values()) == {BesideFloor.BELOW}
    (line,) = low.conclusions
    assert "says nothing about mechanisms" in line
    scores = {
        "softmax": [0.970 + 0.001 * seed for seed in range(9)],
        "elu": [0.950 + 0.0015 * seed for seed in range(9)],
        "delta": [0.970 + 0.001 * (8 - seed) for seed in range(9)],
        "window": [0.76 + 0.001 * seed for seed in range(9)],
    }
    paired = compare_pairs({name: dict(enumerate(some)) for name, some in scores.items()})
    every = [evidence(name, *some) for name, some in scores.items()]
    lines = smnist(*every, paired=paired).conclusions
    assert lines[0] == "nothing can be concluded about window: not shown to be better than the floor"
    assert lines[1] == "softmax is better than elu by 0.0180 (adjusted p = 0.023)"
    assert lines[2].startswith("delta is better than elu by 0.0180 (adjusted p = ")
    assert lines[3] == "no significant difference between softmax and delta"
    assert len(lines) == 4
    few = {name: some[:6] for name, some in scores.items()}
    paired = compare_pairs({name: dict(enumerate(some)) for name, some in few.items()})
    lines = smnist(*(evidence(name, *some) for name, some in few.items()), paired=paired).conclusions
    assert not any("is better than" in line for line in lines)
    assert lines[-1].startswith("6 seeds cannot show a difference among 6 pairs")


def test_a_task_on_real_data_is_known_by_its_floor_in_every_plan() -> None:
    for name in BENCHMARKS:
        for some in read_plan_experiments(plan_named(name)).values():
            assert all(isinstance(each.task, RealTask) or each.task.name == "listops" for each in some)
