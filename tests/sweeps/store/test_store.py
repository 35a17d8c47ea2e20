"""The store in a SQLite file: everything it must stand."""

from __future__ import annotations

import ast
import csv
import itertools
import json
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from sqlalchemy import event

import separatrix
from expectations import run
from separatrix.core.parameters import SeparatrixError, UsageError
from separatrix.sweeps.store import (
    DamageWarning,
    NoStore,
    StoreError,
    frame,
    open_store,
    results,
    select_cells,
    selection,
    sqlite_file,
)
from separatrix.sweeps.store.maintenance import repair_store
from separatrix.sweeps.store.schema import TABLES
from separatrix.sweeps.store.sweep_list import list_sweeps
from store_battery import PROGRAM, StoreBattery
from stored import contents, row

ONE_LINE = r"^[^\n]*$"


def url_of(path: Path) -> str:
    return f"sqlite:///{path}"


def beside(path: Path) -> list[str]:
    """What is in the folder of a store."""
    return sorted(each.name for each in path.parent.iterdir())


def files_of(path: Path) -> dict[str, bytes]:
    """The bytes of a store, and of its log of what is not in the file yet."""
    names = (path.name, f"{path.name}-wal")
    return {name: (path.parent / name).read_bytes() for name in names if (path.parent / name).exists()}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "results.db"


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of many pages, with something in every table."""
    path = tmp_path_factory.mktemp("sound") / "results.db"
    store = open_store(url_of(path), create=True)
    for start in range(0, 300, 100):
        store.add(map(row, range(start, start + 100)))
    number = store.begin_sweep("key", "paper", "the text of the plan")
    store.add_members(number, [(row(i)[0], "part") for i in range(300)])
    return path


@pytest.fixture(scope="module")
def shared_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    return url_of(tmp_path_factory.mktemp("shared") / "results.db")


class TestSqlite(StoreBattery):
    @pytest.fixture
    def url(self, path: Path) -> str:
        return url_of(path)


def test_making_a_store_leaves_nothing_beside_it(path: Path) -> None:
    store = open_store(url_of(path), create=True, check=True)
    assert beside(path) == ["results.db"]
    store.add([row(0)])
    contents(store)
    open_store(url_of(path), check=True)
    assert beside(path) == ["results.db"]


def test_a_store_that_cannot_be_made_is_not_there(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(sqlite_file, "put_in_place", fails)
    with pytest.raises(StoreError, match=r"^cannot make the store .*results\.db: no space left on device$"):
        open_store(url_of(path), create=True)
    assert beside(path) == []


@pytest.mark.parametrize("links", [True, False])
def test_creators_at_once(path: Path, links: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """All find no file and make one; one is put in place, and no other is ever put over it."""
    made, put = [], sqlite_file.put_in_place

    def meet(source: Path, target: Path) -> None:
        made.append(source)
        while len(made) < 4:
            time.sleep(0.001)
        put(source, target)

    def unknown(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(sqlite_file, "put_in_place", meet)
    if not links:
        monkeypatch.setattr(os, "link", unknown)

    def create(number: int) -> None:
        for _ in range(100):
            try:
                return open_store(url_of(path), create=True).add([row(number)])
            except StoreError:  # without links, the file may be half written when it is first looked at
                assert not links
        raise AssertionError("never made")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(create, range(4)))
    assert [each[0] for each in contents(open_store(url_of(path)))] == sorted(row(i)[0] for i in range(4))
    assert beside(path) == ["results.db"]


@pytest.mark.exhaustive
def test_killed_while_making_a_store(path: Path) -> None:
    """There is a whole store, or none."""
    chance = random.Random(1)
    for _ in range(3):
        program = subprocess.Popen([*PROGRAM, "add", url_of(path), "0", "0", "0"])
        time.sleep(0.4 + 0.3 * chance.random())
        program.kill()
        program.wait()
        if path.exists():
            assert contents(open_store(url_of(path), check=True)) == []
            path.unlink()


@pytest.mark.parametrize("bytes_", [b"", b"SQLite", b"n,d,m\n1,2,3\n" * 500, b"SQLite format 3\0" + b"x" * 496])
@pytest.mark.parametrize("create", [True, False])
def test_files_that_are_no_store(path: Path, bytes_: bytes, create: bool) -> None:
    path.write_bytes(bytes_)
    with pytest.raises(StoreError, match=ONE_LINE):
        open_store(url_of(path), create=create, check=create)
    assert path.read_bytes() == bytes_
    assert beside(path) == ["results.db"]


def test_a_database_of_something_else(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("CREATE TABLE songs (title TEXT); INSERT INTO songs VALUES ('Ode');")
    before = path.read_bytes()
    for create in (True, False):
        with pytest.raises(StoreError, match=r"is a database of another program; give another store$"):
            open_store(url_of(path), create=create, check=create)
    assert path.read_bytes() == before


def test_places_where_no_store_can_be(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"is a folder, not a store"):
        open_store(url_of(tmp_path), create=True)
    with pytest.raises(UsageError, match=r"there is no folder .*nowhere$"):
        open_store(url_of(tmp_path / "nowhere" / "results.db"), create=True)
    with pytest.raises(NoStore, match=r"there is no store .*; make one with: separatrix sweep plan.toml"):
        results(url_of(tmp_path / "results.db"))
    for url in ("mysql://host/x", "sqlite://", "sqlite:///:memory:", "postgresql://u:secret@h:abc/x", "x://"):
        with pytest.raises(UsageError, match=ONE_LINE) as raised:
            open_store(url, create=True)
        assert "secret" not in str(raised.value)
    assert list(tmp_path.iterdir()) == []


@contextmanager
def powerless(folder: Path) -> Iterator[None]:
    """Without the right to write to a folder; root gives its rights up for a while."""
    root = os.geteuid() == 0
    if root:
        for each in (folder, *folder.parents):
            if not each.stat().st_mode & 1:
                pytest.skip(f"others may not enter {each}, so root's rights cannot be given up")
    folder.chmod(0o555)
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)
        folder.chmod(0o755)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that others may enter, which those of pytest are not."""
    made = Path(subprocess.check_output(["mktemp", "-d"], text=True).strip())
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


def test_folders_and_files_that_may_not_be_written_to(open_folder: Path) -> None:
    path = open_folder / "results.db"
    with powerless(open_folder), pytest.raises(UsageError, match=r"may not be written to$"):
        open_store(url_of(path), create=True)
    open_store(url_of(path), create=True).add([row(0)])
    before = path.read_bytes()
    with powerless(open_folder), pytest.raises(SeparatrixError, match=ONE_LINE) as raised:
        open_store(url_of(path), check=True).add([row(1)])
    assert "damaged" not in str(raised.value)
    assert path.read_bytes() == before
    path.chmod(0o000)
    with powerless(open_folder), pytest.raises(UsageError, match=r"^cannot read .*: permission denied$"):
        open_store(url_of(path))


def warned(attempt: Callable[[], object]) -> str:
    """What a user is warned of, or told in one line; nothing if all is well."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        told = complaint(attempt)
    return "; ".join([told, *(str(each.message) for each in found)]).strip("; ")


def complaint(attempt: Callable[[], object]) -> str:
    """What a user is told, in one line; nothing if all is well."""
    told = ""
    try:
        attempt()
    except SeparatrixError as error:
        told = str(error)
    assert re.match(ONE_LINE, told)
    return told


def is_refused(path: Path, expected: list[tuple[Any, ...]]) -> bool:
    """Refused in one line, at the latest when its cells are read; else all are there. No byte is changed."""
    before, kept = files_of(path), []

    def attempt() -> None:
        store = open_store(url_of(path), create=True, check=True)
        kept.extend(contents(store))
        frame(store, None, 1)

    told = warned(attempt)
    assert re.search("left unchanged|is damaged: |is damaged and ", told) or kept == expected, told
    assert set(kept) <= set(expected)
    assert files_of(path) == before
    return bool(told)


def test_truncated_files_are_refused(sound: Path, path: Path) -> None:
    whole, expected = sound.read_bytes(), contents(open_store(url_of(sound)))
    chance = random.Random(2)
    sizes = {0, 1, 15, 16, 99, 100, 511, 512, 4095, 4096, 4097, len(whole) - 4096, len(whole) - 1}
    sizes |= {chance.randrange(len(whole)) for _ in range(30)} | {4096 * i for i in range(1, 12)}
    for size in sizes:
        path.write_bytes(whole[:size])
        assert is_refused(path, expected), size


def test_rubbish_is_refused(sound: Path, path: Path) -> None:
    """Whole pages, the beginning, the end, all: noticed for certain."""
    whole, expected = sound.read_bytes(), contents(open_store(url_of(sound)))
    chance = random.Random(3)
    pages = len(whole) // 4096
    places = [(0, 16), (0, 100), (0, 4096), (0, len(whole)), (len(whole) // 2, len(whole) // 2)]
    places += [(4096 * page, 4096) for page in range(1, pages, 3)]
    for start, length in places:
        path.write_bytes(whole[:start] + chance.randbytes(length) + whole[start + length :])
        assert is_refused(path, expected), (start, length)
        path.write_bytes(whole[:start] + bytes(length) + whole[start + length :])
        assert is_refused(path, expected), (start, length)


@pytest.mark.parametrize(
    "count", [pytest.param(15, marks=pytest.mark.brief), pytest.param(100, marks=pytest.mark.exhaustive)]
)
def test_a_little_rubbish_is_refused_or_harmless(sound: Path, path: Path, count: int) -> None:
    """A few bytes anywhere: no cell is ever other than it was stored."""
    whole, expected = sound.read_bytes(), contents(open_store(url_of(sound)))
    chance, refused = random.Random(4), 0
    for _ in range(count):
        start, length = chance.randrange(len(whole)), chance.choice((1, 2, 4, 16, 64))
        path.write_bytes((whole[:start] + chance.randbytes(length) + whole[start + length :])[: len(whole)])
        refused += is_refused(path, expected)
    assert refused > count / 2


def test_one_wrong_letter_in_a_row_is_noticed(sound: Path, path: Path) -> None:
    """Each column that a result is read from, with a value of the same length in place of the stored one."""
    shutil.copy(sound, path)
    with closing(sqlite3.connect(path)) as connection:
        names = [name for _, name, *_ in connection.execute("PRAGMA table_info(cells)")]
        stored = dict(zip(names, connection.execute("SELECT * FROM cells").fetchone(), strict=True))
    whole = path.read_bytes()
    texts = [name for name, value in stored.items() if isinstance(value, str) and name != "environment"]
    assert {"parameters", "verdict", "p0", "mechanism"} <= set(texts)
    for name in texts:
        wrong = re.sub(r"\w", lambda letter: "8" if letter[0] == "1" else "1", stored[name], count=1)
        if name == "parameters":
            wrong = stored[name].replace("1", "8", 1)
        path.write_bytes(whole)
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA foreign_keys = OFF")
            connection.execute(f"UPDATE cells SET {name} = ? WHERE rowid = 1", [wrong])
            connection.commit()
        store = open_store(url_of(path), check=name != "id")
        with pytest.warns(DamageWarning, match="is damaged: 1 cell is altered; the intact rows are used"):
            assert frame(store).height == 299
    path.write_bytes(whole.replace(b"here{", b"hare{"))
    assert path.read_bytes() != whole
    with pytest.warns(DamageWarning, match="is damaged: 1 environment is altered; the intact rows are used"):
        assert set(frame(open_store(url_of(path), check=True))["host"]) == {None}


def test_a_locked_store(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_file, "LOCK_TIMEOUT", 0.05)
    store = open_store(url_of(path), create=True)
    store.add([row(0)])
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match=r"is locked by another program; wait until it ends"):
            store.add([row(1)])
        assert len(contents(open_store(url_of(path), create=True, check=True))) == 1
        other.execute("ROLLBACK")
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        other.execute("UPDATE sweeps SET name = name")
        for attempt in (lambda: store.add([row(1)]), lambda: open_store(url_of(path), check=True)):
            with pytest.raises(StoreError, match=r"is locked by another program; wait until it ends"):
                attempt()
        other.execute("ROLLBACK")
    store.add([row(1)])
    assert len(contents(store)) == 2


def test_a_disk_that_is_full(path: Path) -> None:
    store = open_store(url_of(path), create=True)
    store.add(map(row, range(50)))

    def limit(connection: Any, _: object) -> None:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages + 2}")

    event.listen(store.engine, "connect", limit)
    with pytest.raises(StoreError, match=r"cannot grow: the disk is full; free some space"):
        store.add(map(row, range(50, 5000)))
    event.remove(store.engine, "connect", limit)
    assert len(contents(open_store(url_of(path), check=True))) == 50
    store.add(map(row, range(50, 100)))
    assert len(contents(store)) == 100


MOUNT = 'mount -t tmpfs -o size=512k none "$0" && cd "$0" && "$@" && cp results.db* ..'
"""With its log, which there may be no room to write back."""


@pytest.mark.exhaustive
def test_a_disk_that_is_really_full(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    alone = ["unshare", "--mount", "sh", "-c"]
    if (
        shutil.which("unshare") is None
        or subprocess.run(
            [*alone, 'mount -t tmpfs -o size=64k none "$0"', str(small)], capture_output=True, check=False
        ).returncode
    ):
        pytest.skip("no right to mount a small disk here")
    command = [*alone, MOUNT, str(small), *PROGRAM, "fill_up", "sqlite:///results.db", "0"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    count, message = done.stdout.splitlines()
    assert "disk is full" in message or "disk reports an error" in message, message
    kept = contents(open_store(url_of(tmp_path / "results.db"), check=True))
    assert int(count) > 0
    assert [each[0] for each in kept] == sorted(row(i)[0] for i in range(100 * int(count)))


@pytest.mark.exhaustive
def test_killed_while_adding(path: Path) -> None:
    """Whatever was acknowledged is there, and no batch by half."""
    open_store(url_of(path), create=True)
    chance, first = random.Random(5), 0
    for _ in range(4):
        command = [*PROGRAM, "add_for_ever", url_of(path), str(first)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
            assert program.stdout is not None
            told = [int(program.stdout.readline())]
            time.sleep(0.15 * chance.random())
            program.send_signal(signal.SIGKILL)
            told += [int(line) for line in program.stdout.read().splitlines()]
        store = open_store(url_of(path), create=True, check=True)
        kept = len(contents(store))
        assert kept % 100 == 0
        assert set(range(first, told[-1] + 1)) == set(told)
        assert told[-1] + 1 <= kept // 100 <= told[-1] + 2  # the last one may be stored but not acknowledged
        first = kept // 100
    assert [each[0] for each in contents(store)] == sorted(row(i)[0] for i in range(100 * first))


def test_a_log_that_was_left_is_read_and_kept_when_the_file_is_refused(sound: Path, path: Path) -> None:
    """As a power cut leaves it: what was committed last is in the log alone."""
    with closing(sqlite3.connect(sound)) as connection:
        connection.execute("BEGIN")
        connection.execute("SELECT * FROM cells").fetchone()
        open_store(url_of(sound)).add([row(1000)])
        log = sound.with_name("results.db-wal").read_bytes()
        whole = sound.read_bytes()
    path.write_bytes(whole)
    path.with_name("results.db-wal").write_bytes(log)
    assert len(contents(open_store(url_of(path), check=True))) == 301
    path.write_bytes(whole[:8192] + bytes(len(whole) - 8192))
    path.with_name("results.db-wal").write_bytes(log)
    before = files_of(path)
    with pytest.raises(StoreError, match="is damaged"):
        open_store(url_of(path), create=True, check=True)
    assert files_of(path) == before


CHANGES = [
    "UPDATE cells SET verdict = 7.5",
    "UPDATE cells SET verdict = x'80045d'",
    "UPDATE cells SET distinguish = 'much'",
    "UPDATE cells SET seed = 'few'",
    "UPDATE cells SET seed = 2.5",
    "UPDATE cells SET parameters = '{'",
    "UPDATE cells SET parameters = x'ff'",
    "UPDATE cells SET parameters = CAST(x'ff' AS TEXT)",
    "UPDATE cells SET parameters = '__import__(\"os\").abort()'",
    "UPDATE cells SET parameters = '{\"n\": ' || replace(hex(zeroblob(50000)), '00', '[') || '}'",
    "UPDATE cells SET parameters = '{\"n\": ' || replace(hex(zeroblob(900)), '00', '[') || "
    "replace(hex(zeroblob(900)), '00', ']') || '}'",
    "UPDATE environments SET versions = '['",
    "UPDATE environments SET versions = '[7]'",
    "UPDATE environments SET host = x'00'",
    "DELETE FROM environments",
    "CREATE TRIGGER t AFTER INSERT ON cells BEGIN DELETE FROM cells; END",
    "CREATE VIEW v AS SELECT * FROM cells",
]


UNREADABLE = ["ALTER TABLE cells RENAME COLUMN verdict TO verdicts", "DROP TABLE environments"]


@pytest.mark.parametrize("change", [*CHANGES, *UNREADABLE])
@pytest.mark.parametrize("sealed", [True, pytest.param(False, marks=pytest.mark.exhaustive)])
def test_contents_that_no_sweep_made(path: Path, change: str, sealed: bool) -> None:
    store = open_store(url_of(path), create=True)
    store.add([row(0)])
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(change)
        if not sealed:
            connection.execute("UPDATE cells SET checksum = 0")
        connection.commit()
    shown: list[pl.DataFrame] = []
    questions = [{}, {"n": "1:1e9"}, {"a1": "1:2"}, {"form": "ones"}, {"nothing": "1"}]
    for conditions in questions:
        told = warned(lambda asked=conditions: shown.append(results(url_of(path), **asked)))
        assert told
        assert len(told) < 500
    assert all(set(one["verdict"]) <= {"blind"} for one in shown)
    assert "environments" in change or not any(one.height for one in shown)


def test_a_parameter_called_as_a_column_hides_none(path: Path) -> None:
    store = open_store(url_of(path), create=True)
    store.add([row(0, {"mechanism": "linear", "id": "7", "part": "x", "parameters": "y"})])
    shown = frame(store).row(0, named=True)
    assert (shown["mechanism"], shown["id"]) == ("softmax", row(0)[0])
    assert (shown["parameter_mechanism"], shown["parameter_id"]) == ("linear", 7)


def test_a_deleted_store_is_a_deleted_store(path: Path) -> None:
    """Looking makes no file, and what a deleted store left beside it is not brought back."""
    store = open_store(url_of(path), create=True)
    store.add([row(0)])
    with closing(sqlite3.connect(path)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM cells").fetchone()
        store.add([row(1)])
        assert path.with_name("results.db-wal").stat().st_size > 0
        path.unlink()
    for attempt in (lambda: frame(store), lambda: store.add([row(2)])):
        with pytest.raises(StoreError, match=r"was deleted while it was used$"):
            attempt()
    with pytest.raises(NoStore):
        open_store(url_of(path))
    assert not path.exists()
    with pytest.raises(UsageError, match=r"results\.db-wal is the log of a store that was deleted; delete it, too$"):
        open_store(url_of(path), create=True)
    path.with_name("results.db-wal").unlink()
    anew = open_store(url_of(path), create=True)
    assert contents(anew) == []
    with pytest.raises(StoreError, match=r"was replaced while it was used; repeat the command$"):
        store.add([row(2)])
    anew.add([row(3)])
    assert [each[0] for each in contents(open_store(url_of(path), check=True))] == [row(3)[0]]


@pytest.mark.parametrize("log", [False, True])
def test_a_store_that_may_not_be_written_to_is_read(open_folder: Path, log: bool) -> None:
    path = open_folder / "results.db"
    store = open_store(url_of(path), create=True)
    store.add([row(0)])
    if log:  # as a crash leaves it: the last commit is in the log alone
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("BEGIN")
            connection.execute("SELECT * FROM cells").fetchone()
            store.add([row(1)])
            kept = files_of(path)
        for name, content in kept.items():
            (open_folder / name).write_bytes(content)
        (open_folder / "results.db-shm").unlink(missing_ok=True)
    before = beside(path)
    for each in open_folder.iterdir():
        each.chmod(0o444)
    with powerless(open_folder):
        if log:
            with pytest.raises(StoreError, match=r"cannot be opened; check that its folder .* may be written to"):
                open_store(url_of(path), check=True)
        else:
            looked = open_store(url_of(path), check=True)
            assert [each[0] for each in contents(looked)] == [row(0)[0]]
            assert list_sweeps(looked)[0] == []
    assert beside(path) == before


def test_a_store_that_is_written_to_while_it_is_read_without_locks(open_folder: Path) -> None:
    path = open_folder / "results.db"
    store = open_store(url_of(path), create=True)
    store.add([row(0)])
    with powerless(open_folder):
        looked = open_store(url_of(path))
        assert len(contents(looked)) == 1
    store.add(map(row, range(1, 50)))
    assert len(contents(looked)) == 50


@pytest.mark.parametrize("name", ["100%.db", "what?.db", "a#b?c=%41.db", "mode=ro&x"])
@pytest.mark.parametrize("form", ["{}", "sqlite:///{}"])
def test_names_of_files_are_taken_letter_by_letter(tmp_path: Path, name: str, form: str) -> None:
    url = form.format(tmp_path / name)
    open_store(url, create=True, check=True).add([row(0)])
    assert [each.name for each in tmp_path.iterdir()] == [name]
    assert len(results(url)) == 1


def damaged_pages(path: Path, whole: bytes, table: str) -> Iterator[int]:
    """Write the store again and again, each time with one leaf page of a table that says it is empty."""
    path.write_bytes(whole)
    with closing(sqlite3.connect(path)) as connection:
        asked = "SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf' AND ncell > 1"
        try:
            pages = [page for (page,) in connection.execute(asked, [table])]
        except sqlite3.OperationalError:
            pytest.skip("this SQLite has no dbstat")
    for page in pages:
        start = 4096 * (page - 1) + 3  # two bytes: how many rows there are
        path.write_bytes(whole[:start] + b"\0\0" + whole[start + 2 :])
        yield page


@pytest.mark.parametrize("table", ["cells", "sqlite_autoindex_cells_1", "members", "sweeps", "environments"])
def test_rows_that_vanish_with_a_page_are_missed(
    sound: Path, path: Path, table: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A page that claims to hold nothing is no error to SQLite: the count says that something is missing."""
    whole, expected = sound.read_bytes(), set(contents(open_store(url_of(sound))))
    tried = 0
    for page in itertools.islice(damaged_pages(path, whole, table), 0, None, 5):
        tried += 1
        code, out, err = run(capsys, "results", "--store", str(path), "--sweep", "1", "--csv")
        assert code in (1, 2), page
        assert re.search(r"is damaged: [^\n]* (is|are) lost|is damaged and is left unchanged", err), err
        code, out, _ = run(capsys, "store", "check", "--store", str(path), "--json")
        assert (code, json.loads(out)["sound"]) == (1, False), page
        saved = tmp_path / f"saved-{page}.db"
        assert run(capsys, "store", "repair", "--store", str(path), "--out", str(saved))[0] == 0
        assert run(capsys, "store", "check", "--store", str(saved))[0] == 0
        assert set(contents(open_store(str(saved)))) <= expected
        with pytest.raises(StoreError, match="is damaged"):
            open_store(str(path), create=True, check=True)
    assert tried or table in ("sweeps", "environments")


def test_what_stands_on_other_pages_is_saved(sound: Path, path: Path, tmp_path: Path) -> None:
    """A page of rubbish: reading is refused, and repair saves all rows but those of that page, which it counts."""
    whole, expected = sound.read_bytes(), set(contents(open_store(url_of(sound))))
    with closing(sqlite3.connect(sound)) as connection:
        asked = "SELECT pageno, ncell FROM dbstat WHERE name = 'cells' AND pagetype = 'leaf'"
        try:
            pages = list(connection.execute(asked))
        except sqlite3.OperationalError:
            pytest.skip("this SQLite has no dbstat")
    for page, count in (pages[0], *pages[1:-1:7], pages[-1]):
        start = 4096 * (page - 1)
        path.write_bytes(whole[:start] + bytes(4096) + whole[start + 4096 :])
        with pytest.raises(StoreError, match="is damaged and is left unchanged"):
            contents(open_store(url_of(path)))
        saved = repair_store(url_of(path), tmp_path / f"saved-{page}.db")
        lost = saved.damaged.lost["cells"]
        assert count <= lost <= count + 2  # SQLite reads ahead by a row
        kept = contents(open_store(saved.store, check=True))
        assert set(kept) < expected
        assert len(kept) == len(expected) - lost


def test_the_shown_cells_of_a_damaged_store(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 1 and a line on stderr, in every form; reports and comparisons say so in JSON."""
    store = open_store(url_of(path), create=True)
    store.add(map(row, range(6)))
    number = store.begin_sweep("k", "paper", "text")
    store.add_members(number, [(row(i)[0], "part") for i in range(6)])
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE cells SET verdict = 'partial' WHERE p0 = '3/97'")
        connection.commit()
    where, out = ["--store", str(path)], str(tmp_path / "cells.csv")
    for words, lines in (([], None), (["--csv"], 6), (["--json"], None), (["--out", out], 1)):
        code, said, err = run(capsys, "results", *where, *words)
        assert code == 1
        assert "warning: the store" in err
        assert "1 cell is altered; the intact rows are used" in err
        assert lines is None or len(said.splitlines()) == lines
    code, said, _ = run(capsys, "report", *where, "--out", str(tmp_path / "page"), "--json")
    assert (code, json.loads(said)["damaged"]) == (1, {"altered": {"cells": 1}, "lost": {}})
    code, said, _ = run(capsys, "compare", "1", "1", *where, "--other-store", str(path), "--json")
    assert (code, json.loads(said)["damaged"][0]["altered"]) == (1, {"cells": 1})
    assert run(capsys, "list", "sweeps", *where)[0] == 0


EVIL = "=cmd|' /C calc'!A0\x1b[2J\x1b]0;title\x07\u202egnp.exe\x9b31m"


def test_foreign_texts_are_harmless(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = open_store(url_of(path), create=True)
    store.add(
        [
            row(0, {"form": "+1+1", "a1": "-0.5"}, {"message": EVIL, "verdict": None}, mechanism=EVIL),
            row(1, {"form": "-2", "a1": "1"}, {"message": "@SUM(A1)"}, construction="-2+3"),
            row(2, {"=1+1": "@x"}, {"engine": "\tx"}),
        ]
    )
    number = store.begin_sweep("k", EVIL, EVIL)
    store.add_members(number, [(row(i)[0], "part") for i in range(3)])
    where, page = ["--store", str(path)], tmp_path / "page"
    shown = [
        run(capsys, "results", *where)[1],
        run(capsys, "results", *where, "--csv")[1],
        run(capsys, "results", *where, "--json")[1],
        run(capsys, "list", "sweeps", *where)[1],
        run(capsys, "report", *where, "--out", str(page))[1],
        (page / "report.html").read_text().partition("<script>")[0],
        (page / "results.csv").read_text(),
    ]
    for text in shown:
        assert not set(text) & set("\x1b\x07\x9b\u202e"), text[:300]
    table = list(csv.DictReader(shown[1].splitlines()))
    for one in table:
        assert not [text for text in one.values() if re.match(r"[=+@\t\r]|-[^\d.]", text)]
    assert not [name for name in table[0] if name.startswith("=")]
    assert {one["a1"] for one in table} >= {"-0.5"}
    assert {"'-2+3", "spike"} == {one["construction"] for one in table}
    assert {one["form"] for one in table} == {"'+1+1", "-2", "ones"}
    assert json.loads(shown[2])[-1]["construction"] == "spike"
    assert EVIL in {each["mechanism"] for each in json.loads(shown[2])}


def test_many_cells_take_no_more_memory_than_few(path: Path) -> None:
    """No chunk of a selection is larger than it should be, whatever is asked for."""
    store = open_store(url_of(path), create=True)
    store.add(map(row, range(5000)))
    with select_cells(store) as found:
        sizes = [chunk.height for chunk in found.frames()]
        assert (sum(sizes), max(sizes) <= selection.CHUNK) == (5000, True)
        assert [chunk.height for chunk in found.frames(20)] == [20]


def sources() -> list[Path]:
    package = Path(separatrix.__file__).parent
    return [*package.glob("store/**/*.py"), *package.glob("sweeps/**/*.py")]


FORBIDDEN = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "yaml", "joblib", "eval", "exec", "compile"}


@pytest.mark.parametrize("source", sources(), ids=lambda file: f"{file.parent.name}/{file.name}")
def test_what_is_stored_is_never_executed(source: Path) -> None:
    """No module that reads a store or a plan knows a way to run what it reads.

    The one exception hands our own cells to the workers of a cluster; it reads no store.
    """
    used: set[str] = set()
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.Import):
            used |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            used.add((node.module or "").partition(".")[0])
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            used.add(node.func.id)
    assert used & FORBIDDEN <= ({"pickle"} if source.name == "cluster.py" else set())


def test_opening_needs_no_heavy_packages() -> None:
    asked = "import sys, separatrix.sweeps.store; print(sorted({'torch', 'numpy', 'polars'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_rows_are_told_apart_by_their_primary_keys() -> None:
    """Two rows with one key cannot be stored, whoever writes them."""
    keys = {table.name: [column.name for column in table.primary_key] for table in TABLES}
    assert keys == {
        "environments": ["id"],
        "cells": ["id"],
        "sweeps": ["id"],
        "members": ["sweep", "cell", "part"],
        "files": ["cell", "name"],
    }
