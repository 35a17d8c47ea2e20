"""What was learned, read from stored runs: the same numbers as training gave, and no run more."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from separatrix.analysis.evidence.predictions import check_predictions
from separatrix.analysis.evidence.protocol import learn
from separatrix.analysis.evidence.published import Agreement
from separatrix.analysis.evidence.stored import (
    NOT_STORED,
    count_stored_tasks,
    read_training,
    stored_predictions,
    stored_reproductions,
)
from separatrix.core.errors import UsageError
from separatrix.mechanisms import Mechanism, mechanism_from
from separatrix.sweeps.store import Store, open_store, results
from separatrix.sweeps.store.schema import cells
from stored import replace_row

TINY = {"n": 8, "steps": 20, "every": 10, "width": 8, "batch": 8, "validation": 64, "tests": 200}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"sqlite:///{tmp_path_factory.mktemp('stored')}/runs.db"


@pytest.fixture(scope="module")
def trained(url: str) -> Any:
    return learn("needle", "softmax,elu", TINY, seeds=2, store=url, workers=1, rates="0.001,0.01")


@pytest.fixture
def store(trained: Any, url: str) -> Store:
    return open_store(url, read_only=True)


def test_stored_runs_say_what_training_said(trained: Any, store: Store) -> None:
    before = len(results(store, kind="training"))
    found = read_training(store, "needle", mechanism_from)
    assert found.skipped_reasons == ()
    (again,) = found.results
    assert again.as_json() == trained.as_json()
    assert [run.curve for run in again["softmax"].runs] == [run.curve for run in trained["softmax"].runs]
    assert len(results(store, kind="training")) == before
    (counted,) = count_stored_tasks(store)
    assert (counted.task, counted.runs, counted.finished) == ("needle", before, before)
    assert read_training(store, "mqar", mechanism_from).results == ()


def test_runs_without_pilots_are_an_experiment_of_each_rate(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/runs.db"
    one, other = (
        learn("needle", "softmax", TINY, seeds=2, store=url, workers=1, rates=rate) for rate in ("0.001", "0.01")
    )
    found = read_training(open_store(url), "needle", mechanism_from).results
    assert [each.as_json() for each in found] == [one.as_json(), other.as_json()]


def test_what_may_not_be_loaded_is_named_and_not_shown(trained: Any, store: Store) -> None:
    def load(name: str) -> Mechanism:
        if name == "elu":
            raise UsageError("it is not known here")
        return mechanism_from(name)

    found = read_training(store, "needle", load)
    assert [each.mechanism for each in found.results[0].mechanisms] == ["softmax"]
    assert found.skipped_reasons == ("elu on needle n=8: it is not known here",)
    assert found.results[0]["softmax"].as_json() == trained["softmax"].as_json()


def test_pilots_alone_are_no_evidence(trained: Any, url: str, tmp_path: Path) -> None:
    copy = Path(f"{tmp_path}/copy.db")
    copy.write_bytes(Path(url.removeprefix("sqlite:///")).read_bytes())
    changed = open_store(f"sqlite:///{copy}")
    with changed.writing() as connection:
        for each in connection.execute(select(cells)).mappings().all():
            if each["parameters"]["purpose"] == "test" and each["mechanism"] == "elu":
                replace_row(changed, connection, cells, {**each, "mechanism": "nobody:knows"})

    def load(name: str) -> Mechanism:
        if ":" in name:
            raise UsageError("a store names no code")
        return mechanism_from(name)

    found = read_training(changed, "needle", load)
    assert [each.mechanism for each in found.results[0].mechanisms] == ["softmax"]
    assert "nobody:knows on needle n=8: a store names no code" in found.skipped_reasons
    (untested,) = [each for each in found.skipped_reasons if each.startswith("elu on needle n=8: ")]
    assert "runs are stored, and were not scored on the test samples; test = true in the" in untested


def test_the_prediction_ledger_is_that_of_the_runs(trained: Any, store: Store) -> None:
    made = [each.as_json() for each in stored_predictions(store, mechanism_from)]
    assert json.dumps(made) == json.dumps([each.as_json() for each in check_predictions([trained])])


def test_published_numbers_that_are_not_stored_have_no_verdict(trained: Any, store: Store) -> None:
    for some in (store, None):
        entries = {each.name: each for each in stored_reproductions(some, mechanism_from).entries}
        assert entries["s5-factors"].verdict is Agreement.AGREES
        parity = entries["parity-softmax"]
        assert (parity.verdict, parity.why, parity.ours) == (Agreement.NONE, NOT_STORED, None)
        assert parity.as_json()["command"] == "separatrix learn --published parity-softmax"
