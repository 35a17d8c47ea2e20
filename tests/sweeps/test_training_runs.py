"""Training runs as work of the store: identity, files, checkpoints, faults."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sqlalchemy import select

from expectations import run as command
from separatrix.core.parameters import UsageError
from separatrix.mechanisms import mechanism_from
from separatrix.pages.store import write_report
from separatrix.sweeps.code import TRAINING_MODULES, find_sources, training_code
from separatrix.sweeps.estimate import CostBasis, estimate
from separatrix.sweeps.run import run
from separatrix.sweeps.run import run as run_of_sweeps
from separatrix.sweeps.store import Checkpoint, Store, StoreError, open_store, results
from separatrix.sweeps.store.files import list_files, read_checkpoints, read_curves, read_file, write_checkpoint
from separatrix.sweeps.store.schema import files
from separatrix.sweeps.training_runs import TrainingRun, training_run
from separatrix.sweeps.work import BatchResults, WorkList
from separatrix.sweeps.worker import work
from separatrix.training.learning import RunConfig, build_model, score_model, train
from separatrix.training.learning import checkpoint as checkpoint_file
from separatrix.training.learning.witnesses import build_witness
from separatrix.training.tasks import Split, task_named
from sweep_tools import Inline
from toy_training import toys
from training_plan import LONG, needle, runs, trained

WITHOUT = ("seconds", "finished", "host", "versions")


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'results.db'}"


@pytest.fixture
def store(url: str) -> Store:
    return open_store(url, create=True)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


class Turns(Inline):
    """Goes on from checkpoints, and hands a run back after so many seconds, at first at every checkpoint."""

    def __init__(self, turn: float = 0.0) -> None:
        super().__init__()
        self.turn = turn

    def wait(self, seconds: float) -> list[Any]:
        self.batch = self._waiting[0]
        return super().wait(seconds)

    def compute(self, cells: Sequence[Any]) -> BatchResults | None:
        return work(cells, self.turn, self.batch.checkpoints)


def kept(store: Store) -> list[dict[str, Any]]:
    """All that was trained, but for when and where, with the files beside."""
    found = []
    for each in results(store, kind="training").drop(WITHOUT).iter_rows(named=True):
        names = list_files(store, each["id"])
        found.append({**each, "files": {name: read_file(store, each["id"], name) for name in names}})
    return found


def test_runs_are_kept_with_all_that_they_found(store: Store, url: str, capsys: pytest.CaptureFixture[str]) -> None:
    done = run(runs(), store, Inline())
    assert (done.done, done.failed) == (5, 0)
    found = results(store, kind="training")
    assert found.columns[:5] == ["mechanism", "task", "n", "dz", "strength"]
    assert set(found["outcome"]) <= {"solved", "unsolved", "diverged"}
    assert results(store, kind="training", outcome="diverged")["rate"].to_list() == [10**9]
    assert results(store, kind="training", mechanism="gla", seed="1", n="8", task="needle").height == 1
    row = results(store, kind="training", mechanism="softmax", seed="0").row(0, named=True)
    setting = needle().default_setting(width=8, batch=4, every=5, validation=16, tests=32, steps=20)
    alone = train(RunConfig(needle(), "softmax", setting, 0.01, 0, test=True))
    assert (row["score"], row["validation_score"], row["loss"]) == (alone.score, alone.validation, alone.loss)
    assert (row["last_step"], row["weight_count"], row["state_bytes"]) == (
        alone.steps,
        alone.parameter_count,
        alone.state_bytes,
    )
    assert list_files(store, row["id"]) == ["curves.parquet", "weights.npz"]
    curves = read_curves(store, row["id"])
    assert curves.rows() == list(alone.curves.rows())
    model = build_model(needle(), "softmax", setting, 7)
    with np.load(BytesIO(read_file(store, row["id"], "weights.npz")), allow_pickle=False) as weights:
        state = {name: torch.tensor(weights[name]) for name in weights.files if name != "version"}
    model.load_state_dict(state)
    assert score_model(model, needle(), needle().samples(32, Split.TEST)) == row["score"]
    code, out, _ = command(capsys, "results", "--store", url, "--kind", "training", "outcome=diverged", "--json")
    assert code == 0
    (printed,) = json.loads(out)
    assert printed["diverged_at"] >= 1
    assert printed["parameters"]["width"] == "8"


def test_a_pilot_has_no_score_and_is_another_run(store: Store) -> None:
    pilot, final = trained(pilot=True), trained()
    assert pilot.id != final.id
    run(WorkList("pilots", (("a", pilot),)), store, Inline())
    (row,) = results(store, kind="training").iter_rows(named=True)
    assert ("score" in row, row["purpose"]) == (False, "pilot")


def test_the_identity_is_what_determines_a_run() -> None:
    first = trained()
    assert trained("softmax", rate="1e-2").id == first.id
    assert trained(rates="0.1,0.2").id == first.id
    assert trained(pilot=True, tests=5).id == trained(pilot=True).id
    others = [
        trained(seed=1),
        trained(rate="0.02"),
        trained("elu"),
        trained(width=16),
        trained(tests=5),
        trained(start="witness"),
        trained(start="witness:0.5"),
        trained(pilot=True),
        trained(device="cuda"),
        replace(first, code="0" * 16),
    ]
    assert len({first.id, *(each.id for each in others)}) == len(others) + 1
    assert trained(start="witness:1.0").id == trained(start="witness").id
    assert first.current_code() == first.code


def test_the_code_of_a_run_is_that_of_its_task_mechanism_and_training() -> None:
    kind = type(needle())
    codes = {
        training_code(each, mechanism_from(name), witness)
        for each in (kind, task_named("spike"))
        for name in ("softmax", "gla")
        for witness in (False, True)
    }
    assert len(codes) == 8
    sources = find_sources(TRAINING_MODULES)
    for name in (
        "layers.attention",
        "layers.model",
        "training.learning.checkpoint",
        "training.tasks.setting",
        "mechanisms.learned",
    ):
        assert f"separatrix.{name}" in sources
    for name in ("training.tasks.needle", "training.learning.witnesses", "mechanisms.kernels.softmax", "sweeps.code"):
        assert f"separatrix.{name}" not in sources


def test_runs_that_are_handed_back_end_as_if_they_were_not(store: Store, tmp_path: Path) -> None:
    whole = open_store(f"sqlite:///{tmp_path / 'whole.db'}", create=True)
    run(runs(), whole, Inline())
    assert run(runs(), store, Turns()).done == 5
    assert kept(store) == kept(whole)
    assert read_checkpoints(store, [work.id for _, work in runs()]) == {}


@pytest.mark.exhaustive
def test_killed_training_goes_on_from_its_checkpoints(store: Store, url: str, tmp_path: Path) -> None:
    program = [sys.executable, str(Path(__file__).parents[1] / "helpers" / "training_plan.py"), url]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    asked = select(files.c.cell).where(files.c.name == ".checkpoint")
    with subprocess.Popen(program, start_new_session=True, env=environment) as process:
        end = time.monotonic() + 200
        while not store.select(asked):
            assert process.poll() is None
            assert time.monotonic() < end
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGKILL)
    left = [cell for (cell,) in store.select(asked)]
    assert left
    chosen = WorkList("rest", tuple((part, work) for part, work in runs(LONG) if work.id in left[:1]))
    began = {cell: found.seconds for cell, found in read_checkpoints(store, left).items()}
    run(chosen, store, Turns(60.0))
    whole = open_store(f"sqlite:///{tmp_path / 'whole.db'}", create=True)
    run(chosen, whole, Inline())
    ours, theirs = ({row["id"]: row for row in kept(each)}[left[0]] for each in (store, whole))
    assert ours == theirs
    took = dict(results(store, kind="training").select("id", "seconds").rows())
    assert took[left[0]] > began[left[0]] > 0


def test_faults_are_results_of_their_own_and_the_rest_goes_on(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    good, other, nothing = trained(seed=5), trained(seed=6), trained("elu", start="witness", rope=100)
    bad = trained("training_plan:broken")
    with monkeypatch.context() as older:
        older.setattr(checkpoint_file, "VERSION", 0)
        (left,) = work([other], 0.0)
        assert isinstance(left, Checkpoint)
    write_checkpoint(store, other.id, left)
    plan = WorkList("faults", tuple(("a", each) for each in (bad, other, nothing, good)))
    done = run(plan, store, Turns())
    assert (done.done, done.failed, done.refused) == (1, 2, 1)
    told = dict(results(store, kind="training", status="failed,refused").select("mechanism", "message").rows())
    assert told == {
        bad.mechanism: f"{bad.mechanism} fails in backward, at step 1: RuntimeError: no gradient here",
        "softmax": "the checkpoint has version 0, and this program reads version 1; continue with the "
        "program that wrote it, or start again with --retry-failed",
        "elu": "there are no constructed weights for elu on needle n=8",
    }
    again = run(WorkList("again", (("a", other),)), store, Inline(), retry_failed=True)
    assert (again.done, again.failed) == (1, 0)


def test_a_full_disk_while_checkpointing_is_no_end(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise StoreError("the store cannot grow: the disk is full")

    monkeypatch.setattr(sys.modules[run_of_sweeps.__module__], "write_checkpoint", full)
    done = run(runs(), store, Turns())
    assert (done.done, done.failed) == (5, 0)
    assert done.notes[0] == (
        "a checkpoint of the training of softmax on needle could not be stored: the store cannot grow: the disk is full"
    )
    assert len(done.notes) == 2


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"rate": "0"}, "rate=0 must be above 0"),
        ({"rate": "fast"}, "rate=fast is not a number"),
        ({"start": "withness"}, "start=withness is neither scratch nor witness"),
        ({"start": "witness:-1"}, "the noise must be 0 or more"),
        ({"width": 0}, "width=0 is out of range; width must be 1 or more"),
    ],
)
def test_what_is_no_run_is_said_in_one_line(given: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint) as told:
        trained(**given)
    assert "\n" not in str(told.value)


def test_a_run_of_other_code_is_not_trained() -> None:
    assert isinstance(trained(), TrainingRun)
    assert training_run(needle(), "softmax", needle().default_setting(), 0.5, 1).rate == "0.5"


def test_a_perturbed_witness_is_where_a_run_begins(store: Store) -> None:
    exact, noisy = (trained(start=f"witness:{noise}", width=32, rate="1e-12") for noise in ("0", "0.3"))
    run(WorkList("witnesses", (("a", exact), ("a", noisy))), store, Inline())
    found = {row["start"]: row for row in results(store, kind="training").iter_rows(named=True)}
    witness = build_witness(needle(), "softmax", needle().default_setting(width=32))
    assert witness is not None
    assert found["witness:0"]["score"] == score_model(witness, needle(), needle().samples(32, Split.TEST))
    with np.load(BytesIO(read_file(store, noisy.id, "weights.npz")), allow_pickle=False) as weights:
        moved = torch.tensor(weights["head.weight"]) - witness.head.weight.detach()
    size = witness.head.weight.detach().square().mean().sqrt()
    assert 0.1 < (moved.square().mean().sqrt() / size).item() < 0.6


def test_a_report_shows_the_runs_of_a_sweep(store: Store, url: str, tmp_path: Path) -> None:
    failing = ("first", trained("training_plan:broken"))
    run(replace(runs(), items=(*runs().items, failing)), store, Inline())
    written = write_report(store, tmp_path / "report")
    assert written.cells == {"done": 5, "failed": 1}
    assert [path.name for path in written.tables] == ["results.csv", "results.parquet", "training.csv"]
    page = written.page.read_text()
    found = results(store, kind="training", mechanism="gla")
    mean, least, most = (found["score"].mean(), found["score"].min(), found["score"].max())
    assert "5 training runs are finished." in page
    assert f"{mean:.4f} ({least:.4f} to {most:.4f})" in page
    assert page.count('id="training-') == 2  # warm-up differs
    assert "fails in backward, at step 1" in page
    assert "not finished yet" not in page
    assert (tmp_path / "report" / "training.csv").read_text().count("\n") == 7


def test_a_report_bears_what_is_no_run_of_ours(store: Store, tmp_path: Path) -> None:
    assert run(toys(), store, Inline()).done == 6
    assert write_report(store, tmp_path / "report").cells == {"done": 6}


def test_the_time_of_a_run_is_estimated_from_a_checkpoint() -> None:
    class Quarter(Turns):
        def compute(self, cells: Sequence[Any]) -> BatchResults | None:
            (begun,) = work(cells[:1], 0.0)
            assert isinstance(begun, Checkpoint)
            return [replace(begun, seconds=30.0)]

    plan = WorkList("runs", tuple(("a", trained(seed=seed)) for seed in range(3)))
    found = estimate(plan, None, Quarter())
    assert (found.missing, found.seconds_from) == (3, CostBasis(known=0, tried=1, guessed=0))
    assert found.seconds == pytest.approx(4 + 3 * 120, abs=0.1)  # a quarter of the steps took 30 s
