"""Sweeps on Dask clusters, of real processes: they bring the same numbers, whatever dies on the way."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("distributed", reason="the extra is not installed: pip install 'separatrix[dask]'")

import dask
import psutil
from distributed import Client, LocalCluster

import deadly
from deadly import Word
from separatrix.core.parameters import SeparatrixError, UsageError
from separatrix.sweeps import cluster as module
from separatrix.sweeps.cluster import DaskExecutor
from separatrix.sweeps.dask_setup import TRIMMING, settings
from separatrix.sweeps.executors import BATCHES_PER_WORKER, BatchOutcome, LocalExecutor
from separatrix.sweeps.plan import Plan, read_plan
from separatrix.sweeps.progress import Progress
from separatrix.sweeps.run import run
from separatrix.sweeps.store import CellResult, Store, frame, open_store, results
from separatrix.sweeps.training_runs import TrainingRun
from separatrix.sweeps.work import WorkBatch
from separatrix.sweeps.worker import OtherCode, get_environment, work
from training_plan import runs
from traps import installed, lay_traps

pytestmark = pytest.mark.exhaustive
CHEAP = """
[[sweep]]
construction = "spike"
mechanisms = ["softmax", "linear"]
engine = "closed"
[sweep.parameters]
a1 = "0.5:1.5:{count}"
n = [1000, 100000]
d = 102
m = 12
a0 = 0.01
b = 0.2
c = 0.1
"""
SLOW = """
[[sweep]]
construction = "spike"
mechanisms = ["softmax"]
engine = "dense"
draws = 40
seeds = "0:{last}"
[sweep.parameters]
n = 300
d = 102
m = 12
a0 = 0.01
a1 = 0.7
b = 0.2
c = 0.1
"""
SEPARATRIX = "from separatrix.cli import main; main()"
DASK = "from distributed.cli.dask_{} import main; main()"
WORKER = DASK.format("worker")
WITHOUT = "import sys; sys.modules['separatrix'] = None; "


@pytest.fixture(scope="module")
def local() -> Iterator[LocalCluster]:
    """Two worker processes, made in Python."""
    before = dict(os.environ)
    with (
        dask.config.set(settings()),
        LocalCluster(
            n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=":0", silence_logs="CRITICAL"
        ) as cluster,
    ):
        yield cluster
    os.environ.clear()  # nannies change that of the process they are in
    os.environ.update(before)


class Programs:
    """A scheduler and workers as a user starts them, each in a group of its own."""

    def __init__(self, folder: Path, without: bool = False) -> None:
        self.folder, self.started = folder, list[subprocess.Popen[bytes]]()
        file = folder / "scheduler.json"
        words = ("--host", "127.0.0.1", "--port", "0", "--dashboard-address", "127.0.0.1:0", "--no-dashboard")
        self.scheduler = self.dask("scheduler", *words, "--scheduler-file", str(file), without=without)
        until(file.exists)
        self.address: str = json.loads(file.read_text())["address"]

    def start(self, code: str, *words: str) -> subprocess.Popen[bytes]:
        return self.run([sys.executable, "-c", code, *words])

    def run(self, command: list[str], cwd: Path | None = None) -> subprocess.Popen[bytes]:
        with (self.folder / f"log{len(self.started)}").open("wb") as log:
            program = subprocess.Popen(command, cwd=cwd, stdout=log, stderr=log, start_new_session=True)
        self.started.append(program)
        return program

    def dask(self, what: str, *words: str, without: bool = False) -> subprocess.Popen[bytes]:
        return self.start(WITHOUT * without + DASK.format(what), *words)

    def worker(self) -> subprocess.Popen[bytes]:
        return self.start(SEPARATRIX, "worker", self.address, "--workers", "1")

    def close(self) -> None:
        for program in self.started:
            with suppress(ProcessLookupError):
                os.killpg(program.pid, signal.SIGKILL)
            program.wait()


@pytest.fixture
def programs(tmp_path: Path) -> Iterator[Programs]:
    with closing(Programs(tmp_path)) as programs:
        yield programs


@contextmanager
def connected(address: str) -> Iterator[DaskExecutor]:
    with closing(DaskExecutor(address)) as executor:
        yield executor


def until(true: Callable[[], Any], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.05)


def require_same(plan: Plan, store: Store) -> None:
    """Every cell is stored once, with the numbers that it has when it is computed here."""
    stored = {row["id"]: row for row in frame(store).iter_rows(named=True)}
    cells = {cell.id: cell for _, cell in plan}
    assert stored.keys() == cells.keys()
    for cell in cells.values():
        ((found,),) = cell.run([cell], get_environment())
        row = stored[cell.id]
        for name in ("status", "verdict", "engine", "p0", "p1", "q", "distinguish", "low", "high", "margin"):
            assert row[name] == getattr(found, name, found.findings.get(name)), name


def finish(executor: DaskExecutor, expected: int) -> list[BatchOutcome]:
    found: list[BatchOutcome] = []
    end = time.monotonic() + 60
    while len(found) < expected and time.monotonic() < end:
        found += executor.wait(0.5)
    return found


def test_a_sweep_has_the_values_of_its_cells(local: LocalCluster, tmp_path: Path) -> None:
    plan, store = read_plan(CHEAP.format(count=40)), open_store(str(tmp_path / "s.db"), create=True)
    with connected(local.scheduler_address) as executor:
        assert executor.workers == 2
        progress = run(plan, store, executor)
    assert (progress.done, progress.lost) == (plan.count, 0)
    require_same(plan, store)


def test_training_runs_end_there_as_they_do_here(
    local: LocalCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Handed back at every checkpoint, with the same numbers to the last bit."""
    monkeypatch.setattr(TrainingRun, "turn_seconds", 0.0)
    plan, store = runs(), open_store(str(tmp_path / "s.db"), create=True)
    with connected(local.scheduler_address) as executor:
        assert run(plan, store, executor).done == plan.count
    found = dict(results(store, kind="training").select("id", "loss").iter_rows())
    for _, each in plan:
        (here,) = work([each], 600.0)
        assert isinstance(here, CellResult)
        assert here.findings["outcome"] == "diverged" or found[each.id] == here.findings["loss"]


def test_no_more_in_flight_than_there_is_room_for(local: LocalCluster, tmp_path: Path) -> None:
    plan, store = read_plan(CHEAP.format(count=100)), open_store(str(tmp_path / "s.db"), create=True)
    flying: list[int] = []
    with connected(local.scheduler_address) as executor:

        def watch(_: Progress) -> None:
            flying.append(len(local.scheduler.tasks))
            assert executor.vacancies >= 0

        progress = run(plan, store, executor, tell=watch)
        until(lambda: not local.scheduler.tasks, 5)
    assert progress.done == plan.count
    assert 0 < max(flying) <= 2 * BATCHES_PER_WORKER + 2  # two may be finished, and not yet forgotten


def test_a_worker_with_other_code(local: LocalCluster) -> None:
    _, cell = next(iter(read_plan(CHEAP.format(count=2))))
    with connected(local.scheduler_address) as executor:
        executor.submit(WorkBatch((replace(cell, code="0" * 16),)))
        with pytest.raises(OtherCode, match="another version of the code for softmax on spike"):
            finish(executor, 1)


def test_a_time_limit_on_a_cluster(local: LocalCluster) -> None:
    _, cell = next(iter(read_plan(CHEAP.format(count=2))))
    with closing(DaskExecutor(local.scheduler_address, cell_timeout=60.0)) as executor:
        executor.submit(WorkBatch((cell,)))
        (found,) = finish(executor, 1)
        with Client(local.scheduler_address, set_as_default=False) as client:
            beside = client.run(lambda: len(psutil.Process().children()))
    assert found.results is not None
    assert found.results[0].status == "done"
    assert max(beside.values()) == 1


def test_workers_of_a_local_cluster_do_not_trim(local: LocalCluster) -> None:
    with Client(local.scheduler_address, set_as_default=False) as client:
        assert set(client.run(os.getenv, TRIMMING).values()) == {None}
        assert set(client.run(os.getenv, "OMP_NUM_THREADS").values()) == {"1"}


def test_a_result_lost_with_its_worker_is_computed_again(
    local: LocalCluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(module, "work", deadly.work)
    words = [f"after {i / 500} {tmp_path / str(i)}" for i in range(5)]
    batches = [WorkBatch((Word(word), "rest")) for word in words]  # type: ignore[arg-type]
    with connected(local.scheduler_address) as executor:
        for batch in batches:
            executor.submit(batch)
        found = finish(executor, len(batches))
        assert not executor.is_busy
    assert len(list(tmp_path.iterdir())) == len(batches)
    assert sorted(each.batch.items for each in found) == [batch.items for batch in batches]
    assert all(each.results in (None, list(each.batch.items)) for each in found)
    assert any(each.results for each in found)


def test_a_batch_that_kills_is_tried_alone(local: LocalCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "work", deadly.work)
    monkeypatch.setattr(local.scheduler, "allowed_failures", 1)
    killer, others = WorkBatch((Word("die"),), deaths=1), [WorkBatch((Word(i),)) for i in range(4)]  # type: ignore[arg-type]
    with connected(local.scheduler_address) as executor:
        for batch in (*others[:2], killer):
            executor.submit(batch)
        assert executor.vacancies == 0
        for batch in others[2:]:
            executor.submit(batch)
        found = finish(executor, 5)
        assert executor.vacancies > 0
    assert {each.batch.items: each.results for each in found[:4]} == {b.items: list(b.items) for b in others}
    assert found[4] == BatchOutcome(replace(killer, deaths=2), None)


def test_cancelled_tasks_are_sent_again(local: LocalCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "work", deadly.work)
    batches = [WorkBatch((Word(i),)) for i in range(20)]  # type: ignore[arg-type]
    with connected(local.scheduler_address) as executor:
        for batch in batches:
            executor.submit(batch)
        with Client(local.scheduler_address, set_as_default=False) as stranger:
            stranger.sync(stranger.scheduler.restart, stimulus_id="test", timeout=30, wait_for_workers=True)
        found = finish(executor, 20)
    assert sorted(each.batch.items for each in found) == sorted(batch.items for batch in batches)
    assert all(each.results == list(each.batch.items) for each in found)


def test_closing_leaves_the_cluster_and_nothing_on_it(local: LocalCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "work", deadly.work)
    with connected(local.scheduler_address) as executor:
        for i in range(200):
            executor.submit(WorkBatch((Word(i),)))  # type: ignore[arg-type]
    until(lambda: not local.scheduler.tasks, 10)
    with connected(local.scheduler_address) as executor:
        executor.submit(WorkBatch((Word("again"),)))  # type: ignore[arg-type]
        assert [each.results for each in finish(executor, 1)] == [["again"]]


def test_all_workers_leave(programs: Programs, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = programs.dask("worker", programs.address, "--no-nanny", "--nthreads", "1")
    with connected(programs.address) as executor:
        worker.kill()
        until(lambda: executor.workers == 0)
        assert executor.vacancies == 1, "a sweep that has nothing in flight must not take this for its end"
        executor.submit(WorkBatch((Word("waits"),)))  # type: ignore[arg-type]
        assert executor.vacancies == 0
        assert executor.wait(0.1) == []
        monkeypatch.setattr(module, "EMPTY_TIMEOUT", 0)
        with pytest.raises(SeparatrixError, match="has had no workers for an hour; finished results are st"):
            finish(executor, 1)


def test_a_scheduler_that_hangs(programs: Programs, monkeypatch: pytest.MonkeyPatch) -> None:
    programs.dask("worker", programs.address, "--no-nanny", "--nthreads", "1")
    with connected(programs.address) as executor:
        monkeypatch.setattr(module, "SILENCE_TIMEOUT", 0.5)
        monkeypatch.setattr(module, "CONNECT_TIMEOUT", 0.5)
        programs.scheduler.send_signal(signal.SIGSTOP)
        with pytest.raises(SeparatrixError, match=f"the Dask scheduler at {programs.address} is lost; finished"):
            finish(executor, 1)


def test_no_workers(programs: Programs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CONNECT_TIMEOUT", 1)
    with pytest.raises(UsageError, match=f"has no workers; .* with: separatrix worker {programs.address}"):
        DaskExecutor(programs.address)


def test_only_workers_need_separatrix(tmp_path: Path) -> None:
    _, cell = next(iter(read_plan(CHEAP.format(count=2))))
    with closing(Programs(tmp_path, without=True)) as programs:
        bare = programs.dask("worker", programs.address, "--no-nanny", "--nthreads", "1", without=True)
        with connected(programs.address) as executor:
            executor.submit(WorkBatch((cell,)))
            with pytest.raises(SeparatrixError, match="install the same packages where the workers run"):
                finish(executor, 1)
        bare.kill()
        bare.wait()
        programs.dask("worker", programs.address, "--no-nanny", "--nthreads", "1")
        with connected(programs.address) as executor:
            executor.submit(WorkBatch((cell,)))
            (found,) = finish(executor, 1)
    assert found.results is not None
    assert found.results[0].status == "done"


def test_workers_and_nannies_may_die(programs: Programs, tmp_path: Path) -> None:
    workers = [programs.worker(), programs.worker()]
    plan, store = read_plan(SLOW.format(last=49)), open_store(str(tmp_path / "s.db"), create=True)
    with Client(programs.address, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=60)
        assert set(client.nthreads().values()) == {1}
        assert set(client.run(os.getenv, TRIMMING).values()) == {None}
        processes = {client.run(os.getppid)[worker]: pid for worker, pid in client.run(os.getpid).items()}
    assert processes.keys() == {worker.pid for worker in workers}
    victims = [processes[workers[0].pid], workers[1].pid]

    def kill(progress: Progress) -> None:
        if victims and progress.done > 3 + 12 * (2 - len(victims)):
            os.kill(victims.pop(0), signal.SIGKILL)

    with connected(programs.address) as executor:
        progress = run(plan, store, executor, tell=kill)
    assert not victims
    assert progress.done == plan.count
    require_same(plan, store)
    workers[0].send_signal(signal.SIGINT)
    assert workers[0].wait(30) == 0


def test_workers_run_nothing_that_lies_where_they_are_started(programs: Programs, tmp_path: Path) -> None:
    here = tmp_path / "here"
    lay_traps(here)
    programs.run([*installed(tmp_path / "bin"), "worker", programs.address, "--workers", "1"], here)
    with Client(programs.address, set_as_default=False) as client:
        until(lambda: client.nthreads() or list(here.glob("*.ran")))
        assert list(client.run(get_environment).values()) == [get_environment()]
    assert list(here.glob("*.ran")) == []


def test_a_plain_worker_trims(programs: Programs) -> None:
    programs.dask("worker", programs.address, "--nthreads", "1", "--no-dashboard")
    with Client(programs.address, set_as_default=False) as client:
        client.wait_for_workers(1, timeout=60)
        assert set(client.run(os.getenv, TRIMMING).values()) == {"65536"}


def test_the_scheduler_may_die(programs: Programs, tmp_path: Path) -> None:
    worker, text, file = programs.worker(), SLOW.format(last=99), tmp_path / "plan.toml"
    file.write_text(text)
    url, plan = f"sqlite:///{tmp_path / 's.db'}", read_plan(text, name="plan")
    with Client(programs.address, set_as_default=False) as client:
        client.wait_for_workers(1, timeout=60)
    sweep = programs.start(SEPARATRIX, "sweep", str(file), "--store", url, "--scheduler", programs.address)
    until((tmp_path / "s.db").exists)
    store = open_store(url)
    until(lambda: frame(store).height > 5)
    programs.scheduler.kill()
    assert sweep.wait(30) == 2
    said = (tmp_path / "log2").read_text()
    assert "Traceback" not in said
    assert said.splitlines()[-1] == (
        f"separatrix: the Dask scheduler at {programs.address} is lost; finished results are stored: "
        "repeat the command when it is back"
    )
    assert worker.wait(60) is not None
    stored = frame(store).height
    assert 5 < stored < plan.count
    with closing(LocalExecutor(1)) as executor:
        progress = run(plan, store, executor)
    assert (progress.kept, progress.done) == (stored, plan.count - stored)
