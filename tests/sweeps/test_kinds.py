"""Work of another kind than verdicts: run, killed, gone on with, kept with its files, and queried."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from sqlalchemy import select, text

from documents import require_document
from expectations import run as command
from postgres_server import Server, program, running
from separatrix.core.parameters import UsageError
from separatrix.sweeps.executors import LocalExecutor
from separatrix.sweeps.plan import read_plan
from separatrix.sweeps.run import run
from separatrix.sweeps.store import (
    CellStatus,
    Checkpoint,
    DamageWarning,
    File,
    Store,
    StoreError,
    frame,
    open_store,
    results,
    rows,
)
from separatrix.sweeps.store.files import list_files, read_checkpoints, read_curves, read_file, write_checkpoint
from separatrix.sweeps.store.maintenance import backup_store, check_store, repair_store
from separatrix.sweeps.store.opening import require_complete
from separatrix.sweeps.store.schema import files
from separatrix.sweeps.store.sweep_list import list_sweeps
from separatrix.sweeps.work import BatchResults, WorkBatch
from separatrix.sweeps.worker import OtherCode, work
from stored import row
from sweep_tools import SMALL, Inline, Instant, is_session_gone
from toy_training import EVERY, Toys, Training, toys

NUMBERS = itertools.count()
WITHOUT = ("seconds", "finished", "host", "versions")


@pytest.fixture(scope="module")
def server() -> Iterator[Server | None]:
    with running() if program("initdb") is not None else nullcontext() as made:
        yield made


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.exhaustive)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'results.db'}"
    server: Server | None = request.getfixturevalue("server")
    if server is None:
        pytest.skip("PostgreSQL is not installed (Debian: apt-get install postgresql)")
    return server.schema(f"kinds_{next(NUMBERS)}")


@pytest.fixture
def store(url: str) -> Store:
    return open_store(url, create=True)


@pytest.fixture
def lite(tmp_path: Path) -> Store:
    return open_store(f"sqlite:///{tmp_path / 'lite.db'}", create=True)


class Turns(Inline):
    """Hands work back at every checkpoint, and loses some of it."""

    def __init__(self, deaths: int = 0) -> None:
        super().__init__()
        self.deaths = deaths

    def wait(self, seconds: float) -> list[Any]:
        batch = self._waiting.pop(0)
        self.batch = batch
        self._waiting.insert(0, batch)
        return super().wait(seconds)

    def compute(self, cells: Sequence[Any]) -> BatchResults | None:
        back = work(cells, 0.0, self.batch.checkpoints)
        if self.batch.checkpoints and self.deaths:
            self.deaths -= 1
            return None
        return back


def kept(store: Store) -> list[dict[str, Any]]:
    """All that was trained, but for when and where, with the files beside."""
    found = []
    for each in results(store, kind="training").drop(WITHOUT).iter_rows(named=True):
        names = list_files(store, each["id"])
        found.append({**each, "files": {name: read_file(store, each["id"], name) for name in names}})
    return found


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What is kept of runs that nothing interrupts."""
    whole = open_store(f"sqlite:///{tmp_path_factory.mktemp('whole') / 'results.db'}", create=True)
    assert run(toys(), whole, Inline()).done == 6
    return kept(whole)


def test_training_is_queried_by_what_it_found(store: Store, url: str, capsys: pytest.CaptureFixture[str]) -> None:
    done = run(toys(), store, Inline())
    run(read_plan(SMALL), store, Instant())
    assert (done.done, done.failed) == (6, 0)
    found = results(store, kind="training")
    assert (found.schema["loss"], found.schema["last"]) == (pl.Float64, pl.Int64)
    assert found.columns[:7] == ["mechanism", "task", "rate", "budget", "loss", "last", "word"]
    assert found["threads"].to_list() == [2] * 6
    for conditions, count in (
        ({"word": "solved"}, 3),
        ({"word": "solved,diverged"}, 6),
        ({"loss": "1e3:"}, 3),
        ({"loss": ":1e3", "seed": "1"}, 1),
        ({"last": "40.0"}, 6),
        ({"rate": "0.02"}, 3),
        ({"mechanism": "linear"}, 0),
    ):
        assert results(store, kind="training", **conditions).height == count, conditions
    assert results(store, kind="training", limit=2).height == 2
    exact = found["loss"][0]
    assert results(store, kind="training", loss=repr(exact))["loss"].to_list() == [exact]
    verdicts = results(store)
    assert verdicts.height > 6
    assert not {"loss", "kind"} & set(verdicts.columns)
    asked = ("results", "--store", url, "--kind")
    code, out, _ = command(capsys, *asked, "training", "rate=2", "--json")
    assert code == 0
    printed = require_document("work", out)
    assert {(each["kind"], each["word"], each["parameters"]["budget"]) for each in printed} == {
        ("training", "diverged", "40")
    }
    code, out, _ = command(capsys, *asked, "training")
    assert (code, "diverged" in out) == (0, True)
    code, _, told = command(capsys, *asked, "trainin")
    assert (code, "there are: training, verdict" in told) == (2, True)
    assert command(capsys, "results", "--store", url, "kind=training")[0] == 2
    assert [(each.name, each.cells) for each in list_sweeps(store)[0]] == [("toys", 6), ("small", verdicts.height)]
    assert results(store, sweep="toys", kind="training").height == 6
    assert results(store, sweep="toys").height == 0


def test_curves_and_files_beside_a_row(store: Store, expected: list[dict[str, Any]]) -> None:
    run(toys(), store, Inline())
    assert kept(store) == expected
    first = expected[0]
    assert list_files(store, first["id"]) == ["curves.parquet", "weights.npz"]
    curve = read_curves(store, first["id"])
    assert curve.columns == ["step", "name", "value"]
    assert (curve["step"].to_list(), curve["value"][-1]) == (list(range(40)), first["loss"])
    weights = np.load(BytesIO(read_file(store, first["id"], "weights.npz")), allow_pickle=False)
    assert weights["x"].shape == (3,)
    with pytest.raises(UsageError, match=r"no file weight\.npz \(did you mean weights\.npz\?\); there are: "):
        read_file(store, first["id"], "weight.npz")


@pytest.mark.parametrize("deaths", [0, 2])
def test_work_that_is_handed_back_goes_on_elsewhere(
    store: Store, expected: list[dict[str, Any]], tmp_path: Path, deaths: int
) -> None:
    log = tmp_path / "log"
    done = run(toys(str(log)), store, Turns(deaths))
    assert (done.done, done.lost) == (6, deaths)
    assert kept(store) == expected
    lines = [line.split() for line in log.read_text().splitlines()]
    assert {int(number) for _, word, number in lines if word == "from"} == set(range(0, 41, EVERY))
    assert len([1 for _, word, _ in lines if word == "step"]) == 6 * 40 + deaths * EVERY
    assert read_checkpoints(store, [each["id"] for each in expected]) == {}
    assert check_store_counts(store) == 12


def check_store_counts(store: Store) -> int:
    return len(store.select(select(files.c.name)))


@pytest.mark.exhaustive
def test_a_killed_sweep_goes_on_from_its_checkpoints(url: str, expected: list[dict[str, Any]], tmp_path: Path) -> None:
    log, store = tmp_path / "log", open_store(url, create=True)
    command = [sys.executable, str(Path(__file__).parents[1] / "helpers" / "toy_training.py"), url, str(log)]
    with subprocess.Popen(command, start_new_session=True) as process:
        end = time.monotonic() + 120
        while not store.select(select(files.c.cell).where(files.c.name == ".checkpoint")):
            assert process.poll() is None
            assert time.monotonic() < end
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGKILL)
    assert is_session_gone(process.pid)
    left = {cell for (cell,) in store.select(select(files.c.cell).where(files.c.name == ".checkpoint"))}
    stored = set(results(store, kind="training")["id"])
    assert left
    assert not left & stored
    log.unlink()
    executor = LocalExecutor(2)
    try:
        done = run(toys(str(log)), store, executor)
    finally:
        executor.close()
    assert done.done == 6 - len(stored)
    lines = [line.split() for line in log.read_text().splitlines()]
    begun = [int(number) for _, word, number in lines if word == "from"]
    assert len([number for number in begun if number >= EVERY]) >= len(left)
    assert kept(store) == expected
    assert check_store(url).sound


def test_what_goes_wrong_with_a_run_is_its_result(lite: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "MAX_FILE_BYTES", 8000)
    first = toys(steps=3).works[0]
    names = ("broken", "impolite", "large", "killer", "softmax")
    assert isinstance(first, Training)
    plan = Toys(tuple(replace(first, mechanism=name, seed=i) for i, name in enumerate(names)))
    done = run(plan, lite, Inline())
    assert (done.done, done.failed) == (1, 4)
    told = dict(results(lite, kind="training", status="failed").select("mechanism", "message").rows())
    assert told == {
        "broken": "ArithmeticError: no gradient",
        "impolite": "ValueError: status: the store has other columns of this name",
        "large": "ValueError: weights.npz has 9,000 bytes, more than 8,000",
        "killer": "SystemExit: killed",
    }
    again = run(Toys(plan.works[:1]), lite, Inline(), retry_failed=True)
    assert again.failed == 1


def test_the_limit_of_a_cell_is_for_all_its_turns(lite: Store) -> None:
    executor = Turns()
    executor.cell_timeout = 0.3
    plan = Toys(toys(pause=0.02).works[:1])
    assert run(plan, lite, executor).failed == 1
    assert "limit" in results(lite, kind="training")["message"][0]
    assert check_store_counts(lite) == 0


def test_threads_belong_to_the_kind() -> None:
    (trained,) = work(toys().works[:1], 60.0)
    assert trained.findings["threads"] == torch.get_num_threads() == 2
    cell = next(iter(read_plan(SMALL)))[1]
    work([cell], 60.0)
    assert torch.get_num_threads() == 1


def test_another_version_of_the_code_is_refused() -> None:
    strange = replace(toys().works[0], code="0" * 16)
    with pytest.raises(OtherCode, match="the code for the training of softmax"):
        work([strange], 1.0)


def test_identities_tell_kinds_and_codes_apart() -> None:
    first = toys().works[0]
    assert first.id == toys("elsewhere", 1.0).works[0].id
    assert first.id != replace(first, code="0" * 16).id
    other = type("Other", (Training,), {"kind": "other"})
    assert first.id != other(*list(vars(first).values())[:5]).id


def test_checkpoints_are_replaced_and_stay_away_from_what_is_done(store: Store) -> None:
    first = toys().works[0]
    for number in range(3):
        write_checkpoint(store, first.id, Checkpoint(bytes([number]), number))
    assert read_checkpoints(store, [first.id, "else"]) == {first.id: Checkpoint(b"\2", 2.0)}
    assert list_files(store, first.id) == []
    run(Toys((replace(first, mechanism="softmax"),)), store, Instant())
    write_checkpoint(store, first.id, Checkpoint(b"late", 9.0))
    assert read_checkpoints(store, [first.id]) == {}
    require_complete(store)


@pytest.mark.parametrize("name", ["", ".hidden", "a/b", "..", "a" * 101, "a b", "ä"])
def test_names_of_files_are_plain(name: str) -> None:
    with pytest.raises(ValueError, match="is not a file name"):
        File(name, b"")


def test_a_store_with_files_is_checked_copied_and_repaired(store: Store, url: str, tmp_path: Path) -> None:
    run(toys(), store, Inline())
    write_checkpoint(store, "f" * 32, Checkpoint(b"unfinished", 1.5))
    store.add([row(1)])
    sound = check_store(url)
    assert (sound.sound, sound.cells, sound.files) == (True, 7, 13)
    copy = open_store(str(backup_store(url, tmp_path / "copy.db").copy))
    assert kept(copy) == kept(store)
    assert read_checkpoints(copy, ["f" * 32]) == {"f" * 32: Checkpoint(b"unfinished", 1.5)}
    cell = kept(store)[0]["id"]
    with store.writing() as connection:
        own = {"cell": cell, "data": b"altered"}
        connection.execute(text("UPDATE files SET data = :data WHERE cell = :cell AND name = 'weights.npz'"), own)
    hurt = check_store(url)
    assert (hurt.sound, hurt.files) == (False, 12)
    assert hurt.damaged.as_json() == {"altered": {"files": 1}, "lost": {}}
    assert hurt.damaged.description == "1 file is altered"
    with pytest.raises(StoreError, match="is damaged"):
        read_file(store, cell, "weights.npz")
    path = tmp_path / "saved.db"
    saved = repair_store(url, path)
    assert (saved.cells, saved.files) == (7, 12)
    assert check_store(str(path)).sound
    assert list_files(open_store(str(path)), cell) == ["curves.parquet"]


@pytest.mark.parametrize("data", ["1000000000000", "'text'", "-1"])
def test_what_is_no_file_takes_no_memory(lite: Store, data: str) -> None:
    write_checkpoint(lite, "f" * 32, Checkpoint(b"unfinished", 1.5))
    with lite.writing() as connection:
        connection.execute(text(f"UPDATE files SET data = {data}"))
    assert check_store(lite.location).damaged.description == "1 file is altered"
    with pytest.raises(StoreError, match="is damaged"):
        read_checkpoints(lite, ["f" * 32])


@pytest.mark.parametrize("change", ["kind = 'other'", 'findings = \'{"loss": "0.5"}\'', "kind = 'verdict'"])
@pytest.mark.parametrize("place", [0, 1])
def test_an_altered_kind_hides_nothing(store: Store, change: str, place: int) -> None:
    run(Toys(toys().works[:1]), store, Inline())
    store.add([row(1)])
    ids = [results(store, kind="training")["id"][0], row(1)[0]]
    if (change, place) == ("kind = 'verdict'", 1):
        pytest.skip("it is one")
    with store.writing() as connection:
        connection.execute(text(f"UPDATE cells SET {change} WHERE id = :id"), {"id": ids[place]})
    with pytest.warns(DamageWarning, match="1 cell is altered"):
        assert frame(store).height == 1 - place


def test_statuses_of_other_kinds_count_as_any(store: Store) -> None:
    run(toys(), store, Inline())
    again = run(toys(), store, Inline())
    assert (again.kept, again.done) == (6, 0)
    assert store.find_statuses([toys().works[0].id]) == {toys().works[0].id: CellStatus.DONE}


def test_batches_carry_their_arguments() -> None:
    first = toys().works[0]
    known = {first.id: Checkpoint(b"", 0.0)}
    assert WorkBatch((first,), checkpoints=known).arguments == ((first,), 0.2, known)
