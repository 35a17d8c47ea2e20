"""Trained evidence on the page: what `learn --json` prints, read from stored runs; nothing is trained."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from command_server import run
from documents import require_document
from explorer import Explorer, serving
from separatrix.sweeps.store import open_store, results
from separatrix.sweeps.store.schema import cells
from stored import replace_row

WORDS = ("n=8", "steps=4", "every=2", "width=8", "batch=8", "validation=32", "tests=50", "rates=0.01")
TYPED = ("learn", "needle", "softmax,elu", *WORDS, "--seeds", "2", "--store", "runs.db", "--workers", "1")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """A store of training runs, and what `learn --json` printed about them."""
    folder = tmp_path_factory.mktemp("trained")
    return folder / "runs.db", json.loads(run(*TYPED, "--json", cwd=folder).stdout)


def test_without_a_store_there_are_the_tasks_and_what_is_proved(explorer: Explorer) -> None:
    overview = explorer.get("/learn")
    listed = explorer.get("/list/tasks")
    assert listed == json.loads(run("list", "tasks", "--json").stdout)
    assert [each["name"] for each in overview["tasks"]] == [each["name"] for each in listed]
    assert not any(each["runs"] for each in overview["tasks"])
    needle = explorer.get("/learn/needle")
    assert needle["found"] == []
    ceiling = needle["task"]["ceiling"]
    # The floor is of models with a nonlinearity, the proofs of those without one: either may be higher.
    assert all(0.5 < proof["score"] < ceiling for proof in needle["proved"])
    assert "linear" in {each["mechanism"] for each in needle["proved"]}
    assert "did you mean needle" in explorer.refusal("/learn/needel")["error"]
    assert explorer.get("/ledger/predictions") == []
    published = require_document("published", explorer.get("/ledger/published"))
    assert published["counts"]["agrees"] == 2
    assert explorer.get("/list/published") == json.loads(run("list", "published", "--json").stdout)


def test_stored_runs_are_shown_as_the_command_prints_them(trained: tuple[Path, Any]) -> None:
    path, printed = trained
    before = len(results(str(path), kind="training"))
    with serving(str(path)) as found:
        (needle,) = [each for each in found.get("/learn")["tasks"] if each["runs"]]
        assert (needle["name"], needle["runs"], needle["done"]) == ("needle", before, before)
        shown = found.get("/learn/needle")
        (experiment,) = shown["found"]
        assert experiment["learned"] == printed
        assert experiment["spelled"] == "needle n=8 width=8 batch=8 steps=4 every=2 validation=32 tests=50"
        assert {(each["mechanism"], each["seed"]) for each in experiment["curves"]} == {
            (name, seed) for name in ("softmax", "elu") for seed in (1, 2)
        }
        require_document("learned", experiment["learned"])
        assert found.get("/ledger/predictions")[0]["pairs"]
    assert len(results(str(path), kind="training")) == before


def test_a_store_names_no_code(trained: tuple[Path, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(trained[0], tmp_path / "runs.db")
    (tmp_path / "mine.py").write_text(f"open({str(tmp_path / 'imported')!r}, 'w')\nraise SystemExit\n")
    monkeypatch.syspath_prepend(tmp_path)
    store = open_store(f"{tmp_path}/runs.db")
    with store.writing() as connection:
        for each in connection.execute(select(cells).where(cells.c.mechanism == "elu")).mappings().all():
            replace_row(store, connection, cells, {**each, "mechanism": "mine:attend"})
    with serving(f"{tmp_path}/runs.db") as found:
        shown = found.get("/learn/needle")
        assert [each["mechanism"] for each in shown["found"][0]["learned"]["mechanisms"]] == ["softmax"]
        assert "separatrix explore --mechanism mine:attend" in shown["waiting"][0]
    assert not (tmp_path / "imported").exists()
