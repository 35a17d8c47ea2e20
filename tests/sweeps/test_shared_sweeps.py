"""Sweeps that share a store: each cell is computed by one of them, and by another if that one is gone."""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from sqlalchemy import text

from postgres_server import Server, program, running
from separatrix.cli.sweep import Bar
from separatrix.sweeps import backlog as backlog_module
from separatrix.sweeps.plan import Plan, read_plan
from separatrix.sweeps.progress import Progress
from separatrix.sweeps.run import run
from separatrix.sweeps.store import CellStatus, Store, frame, open_store
from separatrix.sweeps.store.leases import LEASE_SECONDS, RENEWAL_SECONDS, Leases, describe_process, is_process_gone
from separatrix.sweeps.verdict_cells import VerdictCell
from separatrix.sweeps.work import BatchResults
from stored import failed, row
from sweep_tools import HEAD, HERE, SMALL, Inline, Instant, evaluate

run_module = sys.modules["separatrix.sweeps.run"]
NAMES = ("status", "verdict", "distinguish", "low", "high", "p0", "p1", "margin")
NUMBERS = itertools.count()
IDS = [row(i)[0] for i in range(40)]
CELLS = 120
TEXT = HEAD + '[[sweep]]\nengine = "closed"\nparameters = { a1 = "0.5:1.5:12", n = "1e2:1e9:5:log" }'


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    if program("initdb") is None:
        pytest.skip("PostgreSQL is not installed (Debian: apt-get install postgresql)")
    with running() as made:
        yield made


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty place in either database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'shared.db'}"
    made: Server = request.getfixturevalue("server")
    return made.schema(f"shared_{next(NUMBERS)}")


@pytest.fixture
def store(url: str) -> Store:
    return open_store(url, create=True)


def age_leases(store: Store, seconds: float) -> None:
    """Change leases as if they had been renewed so many seconds earlier."""
    with store.writing() as connection:
        connection.execute(text("UPDATE separatrix_leases SET until = until - :s"), {"s": seconds})


def count_leases(store: Store) -> tuple[int, int]:
    """The number of runs with leases, and of leases."""
    with store.reading() as connection:
        counts = text("SELECT count(DISTINCT run), count(*) FROM separatrix_leases")
        runs, leases = connection.execute(counts).one()
    return runs, leases


def test_a_cell_has_one_owner(store: Store) -> None:
    one, two = Leases(store), Leases(store)
    assert one.acquire(IDS[:20], 40).mine == set(IDS[:20])
    assert two.acquire(IDS[10:30], 40).mine == set(IDS[20:30])
    assert one.acquire(IDS[15:25], 40).mine == set(IDS[15:20]), "what it has, it may take again"
    assert (one.find_others(IDS), two.find_others(IDS)) == (set(IDS[20:30]), set(IDS[:20]))
    assert two.acquire(IDS, 3).mine == set(IDS[20:23]), "no more than it asked for, the first that are free"
    assert two.acquire(IDS[30:], 3).mine == set(IDS[30:33])
    two.release()
    two.acquire(IDS[20:30], 40)
    one.release()
    assert two.find_others(IDS) == set()
    assert two.acquire(IDS, 40).mine == set(IDS)
    two.release()
    assert count_leases(store) == (0, 0)


def test_what_is_stored_is_nobodys(store: Store) -> None:
    one, two = Leases(store), Leases(store)
    one.acquire(IDS[:5], 40)
    store.add(row(i) for i in range(3))
    assert count_leases(store) == (1, 2)
    found = two.acquire(IDS[:6], 40)
    assert (found.mine, found.stored) == ({IDS[5]}, dict.fromkeys(IDS[:3], CellStatus.DONE))
    assert count_leases(store) == (2, 3)


def test_what_failed_is_tried_again_by_one_sweep_only(store: Store) -> None:
    store.add([failed(0), failed(1)])  # on 2 January 2026
    assert Leases(store).acquire(IDS[:1], 40).stored == {IDS[0]: CellStatus.FAILED}
    again = Leases(store)
    assert again.acquire(IDS[:1], 40, since="2026-01-02T04:00:00+00:00").mine == {IDS[0]}
    assert again.acquire(IDS[1:2], 40, since="2026-01-02T03:00:00+00:00").stored == {IDS[1]: CellStatus.FAILED}


def test_a_run_that_is_silent_has_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = Leases(store), Leases(store)
    one.acquire(IDS[:20], 40)
    age_leases(store, LEASE_SECONDS - 5)
    assert two.acquire(IDS[:10], 40).mine == set()
    age_leases(store, 10)
    assert two.find_others(IDS) == set()
    assert two.acquire(IDS[:10], 40).mine == set(IDS[:10])
    clock = time.monotonic() + RENEWAL_SECONDS + 1
    monkeypatch.setattr(time, "monotonic", lambda: clock)
    one.renew()
    assert two.find_others(IDS) == set(IDS[10:20]), "it lives, but for what was taken from it"
    two.renew()
    assert one.find_others(IDS) == set(IDS[:10])


def test_a_sign_of_life_from_the_future_is_none(store: Store) -> None:
    """A clock that was ahead and was set right keeps nobody waiting."""
    one, two = Leases(store), Leases(store)
    one.acquire(IDS, 40)
    age_leases(store, -1e6)
    assert two.find_others(IDS) == set()
    assert two.acquire(IDS, 40).mine == set(IDS)


def test_a_run_that_was_killed_on_this_machine_has_nothing(url: str, store: Store) -> None:
    child = os.fork()
    if child == 0:
        with suppress(BaseException):
            Leases(open_store(url)).acquire(IDS[:10], 40)
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    one = Leases(store)
    assert one.find_others(IDS) == set(IDS[:10])
    one.release_dead_runs()
    assert one.find_others(IDS) == set()
    assert count_leases(store) == (0, 0)


def test_processes_of_other_machines_cannot_be_seen() -> None:
    machine, number = describe_process().rsplit(" ", 1)
    assert not is_process_gone(f"{machine} {number}")
    gone = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True)
    assert is_process_gone(f"{machine} {gone.stdout.strip()}")
    assert not is_process_gone(f"elsewhere {gone.stdout.strip()}")
    assert not is_process_gone("")


class Logged(Inline):
    """Writes down what it computes, and takes its time."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.file = file

    def compute(self, cells: Sequence[VerdictCell]) -> BatchResults | None:
        with self.file.open("a") as log:
            log.write(json.dumps([cell.id for cell in cells]) + "\n")
        time.sleep(0.005)
        return super().compute(cells)


@pytest.fixture(scope="module")
def plan() -> Plan:
    return read_plan(TEXT)


@pytest.fixture(scope="module")
def answers(plan: Plan) -> dict[str, tuple[object, ...]]:
    """The numbers of every cell, computed alone."""
    found = {cell.id: next(evaluate([cell], HERE))[0] for _, cell in plan}
    assert len(found) == CELLS
    known = {id_: {"status": answer.status, **answer.findings} for id_, answer in found.items()}
    return {id_: tuple(answer.get(name) for name in NAMES) for id_, answer in known.items()}


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_module, "POLL_SECONDS", 0.02)
    monkeypatch.setattr(backlog_module, "LOOK_SECONDS", 0.02)


def sweeping(plan: Plan, url: str, log: Path) -> int:
    """A sweep in a process of its own."""
    child = os.fork()
    if child == 0:
        try:
            run(plan, open_store(url, create=True), Logged(log))
            os._exit(0)
        except BaseException as error:
            os.write(2, f"{type(error).__name__}: {error}\n".encode())
            os._exit(1)
    return child


def numbers(store: Store) -> dict[str, tuple[object, ...]]:
    rows = frame(store).select("id", *NAMES).rows()
    assert len(rows) == len({row[0] for row in rows})
    return {str(first): tuple(rest) for first, *rest in rows}


@pytest.mark.usefixtures("hasty")
def test_eight_sweeps_at_once_compute_each_cell_once(
    url: str, tmp_path: Path, plan: Plan, answers: dict[str, tuple[object, ...]]
) -> None:
    """On a store that is not there when they begin; one of them wants only a part."""
    log, part = tmp_path / "log", read_plan(TEXT.replace('["softmax", "linear"]', '["linear"]'))
    assert part.count == CELLS // 2
    children = [sweeping(part if i == 3 else plan, url, log) for i in range(8)]
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 8
    computed = Counter(cell for line in log.read_text().splitlines() for cell in json.loads(line))
    assert len(computed) == CELLS
    assert set(computed.values()) == {1}
    store = open_store(url)
    assert numbers(store) == answers
    assert count_leases(store) == (0, 0)


@pytest.mark.usefixtures("hasty")
def test_sweeps_at_once_that_are_killed_at_random(
    url: str, tmp_path: Path, plan: Plan, answers: dict[str, tuple[object, ...]]
) -> None:
    log, rng = tmp_path / "log", random.Random(0)
    children = [sweeping(plan, url, log) for _ in range(3)]
    for _ in range(5):
        time.sleep(rng.uniform(0.0, 0.1))
        victim = children.pop(rng.randrange(3))
        with suppress(ProcessLookupError):
            os.kill(victim, signal.SIGKILL)
        os.waitpid(victim, 0)
        children.append(sweeping(plan, url, log))
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 3
    assert numbers(open_store(url)) == answers


@pytest.mark.usefixtures("hasty")
def test_a_sweep_waits_for_what_another_computes(store: Store) -> None:
    """It takes what the other leaves, and ends when every cell is stored."""
    plan = read_plan(SMALL)
    cells = list(dict.fromkeys(cell.id for _, cell in plan))
    by_id = {cell.id: cell for _, cell in plan}
    other, executor, told = Leases(store), Instant(), list[int]()
    other.acquire(cells[:17], 17)

    def tell(so_far: Progress) -> None:
        told.append(so_far.elsewhere)
        if so_far.elsewhere == 17 and so_far.finished == plan.count - 17:
            assert not any(cell.id in cells[:17] for batch in executor.taken for cell in batch.items)
            five = [by_id[id_] for id_ in cells[:5]]
            ((answer,),) = evaluate(five[:1], HERE)
            store.add((cell.id, cell.row(), answer) for cell in five)
            other.release()

    done = run(plan, store, executor, tell=tell)
    assert 17 in told
    assert (done.shared, done.elsewhere) == (5, 0)
    assert done.finished == plan.count
    assert frame(store).height == len(cells)
    computed = Counter(cell.id for batch in executor.taken for cell in batch.items)
    assert set(computed) == set(cells[5:])
    assert set(computed.values()) == {1}


def test_stopping_does_not_wait_for_others(store: Store) -> None:
    plan, stop = read_plan(SMALL), threading.Event()
    other = Leases(store)
    other.acquire([cell.id for _, cell in plan][:17], 17)

    def tell(so_far: Progress) -> None:
        if so_far.elsewhere and so_far.finished == plan.count - 17:
            stop.set()

    done = run(plan, store, Instant(), tell=tell, stop=stop.is_set)
    assert (done.stopped, done.elsewhere) == (True, 17)
    assert count_leases(store) == (1, 17)


def test_an_interrupt_leaves_what_was_taken_to_others(store: Store) -> None:
    class Interrupted(Inline):
        def wait(self, seconds: float) -> list[object]:  # type: ignore[override]
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(read_plan(SMALL), store, Interrupted())
    assert count_leases(store) == (0, 0)


def test_the_line_says_what_others_compute(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("separatrix.cli.sweep.LINE_SECONDS", -1.0)
    bar = Bar(None)
    bar.tell(Progress(total=100, kept=83, elsewhere=17))
    bar.tell(Progress(total=100, kept=99, elsewhere=1))
    many, one = capsys.readouterr().err.splitlines()
    assert many == "separatrix: 83 of 100 cells, 0 failed, 17 cells are being computed by another sweep"
    assert one.endswith("1 cell is being computed by another sweep")
