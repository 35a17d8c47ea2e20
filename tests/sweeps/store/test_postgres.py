"""The store in a PostgreSQL database: a real server, real programs, and its sudden death."""

from __future__ import annotations

import itertools
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

from postgres_server import PASSWORD, Server, program, running
from separatrix.cli import main
from separatrix.core.parameters import UsageError
from separatrix.sweeps.executors import LocalExecutor
from separatrix.sweeps.plan import read_plan
from separatrix.sweeps.progress import Progress
from separatrix.sweeps.run import run
from separatrix.sweeps.store import NoStore, Store, StoreError, frame, open_store, parse_address, results
from store_battery import PROGRAM, StoreBattery
from stored import contents, row
from sweep_tools import HEAD, SMALL, Instant

pytestmark = [
    pytest.mark.exhaustive,
    pytest.mark.skipif(
        program("initdb") is None, reason="PostgreSQL is not installed (Debian: apt-get install postgresql)"
    ),
]
NUMBERS = itertools.count()
ONE_LINE = r"^[^\n]*$"
PLAN = (
    HEAD
    + """
[[sweep]]
name = "closed"
engine = "closed"
parameters = { a1 = "0.5:1.5:12", n = "1e2:1e9:12:log" }
[[sweep]]
name = "drawn"
engine = "grouped"
draws = 20
seeds = [1, 2]
parameters = { a1 = 1.2, n = "100:300:3" }
"""
)
ANSWERS = ("id", "part", "mechanism", "parameters", "seed", "verdict", "status", "distinguish", "low", "high", "p0")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running() as made:
        yield made


@pytest.fixture
def url(server: Server) -> str:
    return server.schema(f"store_{next(NUMBERS)}")


@pytest.fixture(scope="module")
def shared_url(server: Server) -> str:
    return server.schema("shared")


def plain(url: str) -> str:
    """As psycopg itself takes it."""
    return url.replace("+psycopg", "")


class TestPostgres(StoreBattery):
    pass


def swept(store: Store, executor: LocalExecutor) -> list[tuple[object, ...]]:
    """The answers of the small plan, in one order."""
    run(read_plan(PLAN), store, executor)
    return sorted(frame(store, None, 1).select(ANSWERS).rows())


@pytest.fixture(scope="module")
def executor() -> Iterator[LocalExecutor]:
    made = LocalExecutor(1)
    yield made
    made.close()


@pytest.fixture(scope="module")
def expected(executor: LocalExecutor, tmp_path_factory: pytest.TempPathFactory) -> list[tuple[object, ...]]:
    """What the small plan gives in a SQLite file."""
    path = tmp_path_factory.mktemp("expected") / "results.db"
    return swept(open_store(f"sqlite:///{path}", create=True), executor)


def test_a_sweep_gives_the_same_in_every_database(
    url: str, executor: LocalExecutor, expected: list[tuple[object, ...]]
) -> None:
    assert len(expected) == 2 * 12 * 12 + 2 * 2 * 3
    assert swept(open_store(url, create=True), executor) == expected


def test_a_server_that_dies_in_the_middle_of_a_sweep(
    url: str, server: Server, executor: LocalExecutor, expected: list[tuple[object, ...]]
) -> None:
    """One line; what was kept is there when it is back, and the same command goes on from it."""
    store, told = open_store(url, create=True), [0]

    def tell(progress: Progress) -> None:
        if told[-1] <= 20 < progress.finished:
            server.stop()
        told.append(progress.finished)

    server.stop()
    server.start(fsync=True)
    lost = LocalExecutor(1)
    try:
        with pytest.raises(StoreError, match=ONE_LINE) as raised:
            run(read_plan(PLAN), store, lost, tell=tell)
    finally:
        lost.close()
        server.start()
    assert "stored results are kept" in str(raised.value)
    assert PASSWORD not in str(raised.value)
    kept = {each[0] for each in contents(open_store(url))}
    assert told[-1] <= len(kept) < len(expected)
    again = run(read_plan(PLAN), store, executor)
    assert again.kept == len(kept)
    assert sorted(frame(store, None, 1).select(ANSWERS).rows()) == expected


def test_a_server_that_freezes(url: str, server: Server) -> None:
    """For long: one line, and the same command goes on when it is back. For a moment: nobody notices."""
    plan, told, timers = read_plan(PLAN), list[int](), list[threading.Timer]()

    def freeze(so_far: Progress, seconds: float) -> None:
        told.append(so_far.finished)
        if so_far.finished > 20 and not timers:
            timers.append(threading.Timer(seconds, server.send, [signal.SIGCONT]))
            server.send(signal.SIGSTOP)
            timers[0].start()

    open_store(url, create=True)
    try:
        with pytest.raises(StoreError, match=ONE_LINE) as raised:
            run(plan, open_store(url, timeout=2.0), Instant(), tell=lambda so_far: freeze(so_far, 60.0))
    finally:
        server.send(signal.SIGCONT)
        timers.pop().cancel()
    silent = r"does not respond \((no answer for 2 s|connection timeout expired)\); stored results are kept"
    assert re.search(silent, str(raised.value))
    assert re.search(r"\(\d+ cells? that w\w+ computed or begun could not be stored\)$", str(raised.value))
    assert PASSWORD not in str(raised.value)
    assert told[-1] <= frame(open_store(url)).height < plan.count
    again = run(plan, open_store(url, timeout=30.0), Instant(), tell=lambda so_far: freeze(so_far, 1.0))
    timers.pop().join()
    assert again.finished == plan.count == frame(open_store(url)).height


def test_a_server_that_dies_while_programs_add(url: str, server: Server) -> None:
    """Everything that was acknowledged is there, and no batch by half."""
    server.stop()
    server.start(fsync=True)
    store = open_store(url, create=True)
    command = [*PROGRAM, "fill_up", url, "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        while not store.find_statuses([row(500)[0]]):
            time.sleep(0.02)
        server.stop()
        said = program.communicate()[0]
    server.start()
    count, message = said.splitlines()
    assert "stored results are kept" in message
    kept = len(contents(open_store(url)))
    assert kept % 100 == 0
    assert 0 < int(count) <= kept // 100 <= int(count) + 1


def test_what_cannot_be_reached_is_told_in_one_line_without_the_password(server: Server) -> None:
    free = server.url().replace(f":{server.port}/", ":1/")
    wrong = server.url(password=f"{PASSWORD}x")
    cases = {
        wrong: "rejects this user with this password",
        server.url("nowhere"): 'database "nowhere" does not exist',
        server.url().replace("127.0.0.1", "nowhere.invalid"): "does not respond",
        free: "does not respond",
        f"{free}?password={PASSWORD}": "does not respond",
    }
    for url, words in cases.items():
        for create in (True, False):
            with pytest.raises(StoreError, match=ONE_LINE) as raised:
                open_store(url, create=create)
            assert words in str(raised.value)
            assert PASSWORD not in str(raised.value)


def test_an_empty_database_is_no_store(url: str) -> None:
    with pytest.raises(NoStore, match=r"is empty; fill it with: separatrix sweep plan\.toml$"):
        results(url)


def test_tables_of_others_are_left_alone(url: str) -> None:
    with psycopg.connect(plain(url)) as connection:
        connection.execute("CREATE TABLE songs (title TEXT)")
        connection.execute("INSERT INTO songs VALUES ('Ode')")
    open_store(url, create=True).add([row(0)])
    with psycopg.connect(plain(url)) as connection:
        assert connection.execute("SELECT * FROM songs").fetchall() == [("Ode",)]


def test_a_user_who_may_not_write(url: str) -> None:
    with psycopg.connect(plain(url)) as connection:
        connection.execute(f"CREATE ROLE guest LOGIN PASSWORD '{PASSWORD}'")
        connection.execute(f"GRANT USAGE ON SCHEMA {url.rpartition('%3D')[2]} TO guest")
    with pytest.raises(StoreError, match=r"rejects this user"):
        open_store(url.replace("sx:", "guest:"), create=True)


def test_without_psycopg(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(UsageError, match=r"needs the package psycopg: pip install 'separatrix\[postgres\]'$"):
        open_store("postgresql://user:secret@host/database")


def processes_below(pid: int) -> dict[int, str]:
    """The words that every process started by this one, and by those, was started with."""
    found: dict[int, str] = {}
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in map(int, task.read_text().split()):
                found[child] = Path(f"/proc/{child}/cmdline").read_text()
                found.update(processes_below(child))
    return found


def test_no_command_shows_the_password(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not in what it prints and writes, nor in the processes it starts, nor in the store."""
    monkeypatch.chdir(tmp_path)
    Path("plan.toml").write_text(SMALL)
    program = [sys.executable, "-c", "from separatrix.cli import main; main()"]
    command = [*program, "sweep", "plan.toml", "--workers", "1", "--store", url]
    seen: dict[int, str] = {}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as running:
        while running.poll() is None:
            seen.update(processes_below(running.pid))
            time.sleep(0.05)
        said = running.communicate()[0]
    assert f"look at it: separatrix results --store {shlex.quote(parse_address(url).shown)}" in said
    assert any("forkserver" in words for words in seen.values())
    for words, code in (
        ("sweep plan.toml --workers 1 --dry-run --json", 0),
        ("sweep plan.toml --workers 1 --json", 0),
        ("list sweeps", 0),
        ("results --limit 1", 0),
        ("report --out page", 0),
        ("compare 1 1", 2),
        ("compare 1 2", 2),
    ):
        monkeypatch.setattr(sys, "argv", ["separatrix", *words.split(), "--store", url])
        with pytest.raises(SystemExit) as ended:
            main()
        assert (ended.value.code or 0) == code
        said += "".join(capsys.readouterr())
    written = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    with psycopg.connect(plain(url)) as connection:
        plans = connection.execute("SELECT * FROM sweeps").fetchall()
    assert len(written) > 3
    assert PASSWORD not in f"{said} {seen} {plans}"
    assert not any(PASSWORD.encode() in each for each in written)
