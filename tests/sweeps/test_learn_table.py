"""Tables of training runs in a plan: what they spell, and what is wrong with them, by its line."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from expectations import run as command
from separatrix.core.parameters import UsageError
from separatrix.sweeps.learn_table import LearnTable
from separatrix.sweeps.plan import read_plan
from separatrix.sweeps.plan_toml import PlanError
from separatrix.sweeps.store import CellResult, open_store, results
from separatrix.sweeps.sweep import executor_for
from separatrix.sweeps.training_runs import TrainingRun, training_run
from separatrix.sweeps.verdict_cells import VerdictCell
from separatrix.sweeps.worker import work
from separatrix.training.learning import RunConfig, train
from separatrix.training.tasks import task_named

TINY = """
mechanisms = ["softmax", { name = "power", beta = [2, 4] }]
seeds = [0, 1]

[parameters]
d = 12

[[learn]]
task = "needle"
parameters = { n = [8, 16], dz = 2 }
setting = { width = [8, 16], steps = 5, batch = 2, validation = 8, tests = 8 }
rates = [0.01, 3e-3]
start = ["scratch", "witness:0.5"]
"""


def runs(text: str) -> list[TrainingRun]:
    found = [work for _, work in read_plan(text)]
    assert all(isinstance(work, TrainingRun) for work in found)
    return found  # type: ignore[return-value]


def test_a_table_is_the_product_of_all_it_says() -> None:
    found = runs(TINY)
    assert len(found) == read_plan(TINY).count == 3 * 2 * 2 * 2 * 2 * 2
    assert len({work.id for work in found}) == len(found)
    task = task_named("needle").read({"n": 16, "dz": 2})
    setting = task.default_setting(width=8, steps=5, batch=2, validation=8, tests=8)
    one = training_run(task, "power:beta=4", setting, "0.003", 1, start="witness:0.5", pilot=True)
    assert one in found
    assert {work.purpose for work in found} == {"pilot"}
    assert {work.purpose for work in runs(TINY + "test = true")} == {"test"}


def test_what_is_not_said_is_the_default_of_the_task() -> None:
    (part,) = read_plan("[[learn]]\ntask = ['needle', 'mqar']\nmechanisms = ['elu']").parts
    assert isinstance(part, LearnTable)
    assert [(task.name, setting) for task, setting in part.setting] == [
        (name, task_named(name).default_setting()) for name in ("needle", "mqar")
    ]
    grids = [len(task_named(name).default_setting().grid) for name in ("needle", "mqar")]
    assert part.count == len(list(part.cells())) == sum(grids)
    assert {work.start for work in part.cells()} == {"scratch"}


def test_a_plan_has_tables_of_both_kinds() -> None:
    text = "[[sweep]]\nconstruction = 'dispersion'\nparameters = { n = 10, m = 3 }\nmechanisms = ['softmax']\n"
    plan = read_plan(text + "[[learn]]\ntask = 'needle'\nmechanisms = ['softmax']\nrates = 0.01")
    assert [(part, type(work)) for part, work in plan] == [("sweep 1", VerdictCell), ("learn 1", TrainingRun)]
    assert (plan.count, plan.threads) == (2, 1)
    assert len({read_plan(text).key, plan.key}) == 2


def test_a_device_is_another_run() -> None:
    here, there = ([work for _, work in read_plan(TINY, device=name)] for name in (None, "cuda:1"))
    assert not {work.id for work in here} & {work.id for work in there}
    assert {work.device for work in there if isinstance(work, TrainingRun)} == {"cuda:1"}
    with pytest.raises(PlanError, match="device=the fast one is not a device"):
        read_plan(TINY, device="the fast one")


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('"needle"', '"needel"', r"line 9: there is no task needel \(did you mean needle\?\)"),
        ("dz = 2", "dx = 2", r"line 10: needle has no parameter dx \(did you mean dz\?\)"),
        ("[8, 16], dz", "[8, 15], dz", "line 10: n=15 must be an even number"),
        ("steps = 5", "stepps = 5", "line 11: the model and its training has no parameter stepps"),
        ("steps = 5", "heads = 3", "line 11: width=8 must be a multiple of heads=3"),
        ("3e-3]", "-3]", "line 12: rate=-3 must be above 0"),
        ('"witness:0.5"', '"wittness"', "line 13: start=wittness is neither scratch nor witness"),
        ("seeds = [0, 1]", 'seeds = "0:"', "line 3: seeds = '0:' would give each run a seed of its own"),
        ('task = "needle"', "", "line 8: no task is named"),
        ('task = "needle"', 'task = "needle"\nengine = "closed"', "line 10: there is no key engine"),
        ('task = "needle"', 'task = "needle"\ntest = 3', "line 10: test = 3 is not true or false"),
        ('task = "needle"', 'task = "needle"\ndevice = "?"', r"line 10: device=\? is not a device"),
        ('"softmax"', '"sofmax"', r"line 2: there is no mechanism sofmax \(did you mean softmax\?\)"),
        ("[[learn]]", "[learn]", r"learn = .* is not made of tables: write \[\[learn\]\]"),
    ],
)
def test_mistakes_are_told_with_their_line(old: str, new: str, complaint: str) -> None:
    with pytest.raises(PlanError, match=complaint) as told:
        read_plan(TINY.replace(old, new))
    assert "\n" not in told.value.lines[0]


def test_a_plan_that_is_too_large_is_refused_at_once() -> None:
    with pytest.raises(UsageError, match="more than 10,000,000"):
        read_plan(TINY.replace("seeds = [0, 1]", "seeds = '0:999999'"))


def test_workers_are_divided_by_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    module = sys.modules[executor_for.__module__]
    monkeypatch.setattr(module, "count_cores", lambda: 6)
    monkeypatch.setattr(module, "LocalExecutor", lambda count, cell_timeout: made.append(count))
    for threads in (1, 2, 4, 8):
        executor_for(None, None, threads=threads)
    executor_for(5, None, threads=4)
    assert made == [6, 3, 1, 1, 5]


def test_a_sweep_trains(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan, url = tmp_path / "plan.toml", f"sqlite:///{tmp_path / 'results.db'}"
    plan.write_text(
        "[[learn]]\nname = 'two'\ntask = 'needle'\nparameters.n = 8\nmechanisms = ['softmax', 'gla']\n"
        "setting = { width = 8, steps = 12, every = 6, batch = 4, validation = 16 }\nrates = 0.01\n"
    )
    asked = ("sweep", str(plan), "--store", url, "--workers", "1")
    code, out, told = command(capsys, *asked)
    assert (code, "2 of 2 cells are stored" in out) == (0, True), told
    task = task_named("needle").read({"n": 8})
    setting = task.default_setting(width=8, steps=12, every=6, batch=4, validation=16)
    alone = {name: train(RunConfig(task, name, setting, 0.01, 0)) for name in ("softmax", "gla")}
    rows = results(open_store(url), kind="training").iter_rows(named=True)
    assert {row["mechanism"]: row["loss"] for row in rows} == {name: alone[name].loss for name in alone}


def test_a_device_that_is_not_there_is_the_result_of_its_run() -> None:
    (back,) = work([runs(TINY.replace('"needle"', '"needle"\ndevice = "nowhere"'))[0]], 60.0)
    assert isinstance(back, CellResult)
    assert back.message is not None
    assert back.message.startswith("device=nowhere is not available: ")
