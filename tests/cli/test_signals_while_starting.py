"""A sweep that is ended while its workers start ends in good order, with nothing computed."""

from __future__ import annotations

import importlib
import signal
from pathlib import Path

import pytest

from separatrix.sweeps.executors import Executor

PLAN = """
mechanisms = ["softmax"]
[[sweep]]
construction = "plain"
engine = "closed"
parameters = { n = 9, m = 3 }
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_it_is_heard(number: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module, heard = importlib.import_module("separatrix.sweeps.sweep"), []
    start = module.executor_for

    def ended(*given: object) -> Executor:
        signal.raise_signal(number)
        started: Executor = start(*given)
        return started

    monkeypatch.setattr(module, "executor_for", ended)
    before = signal.signal(number, lambda *_: pytest.fail("not heard"))
    try:
        (tmp_path / "plan.toml").write_text(PLAN)
        store = f"sqlite:///{tmp_path / 'results.db'}"
        module.sweep(tmp_path / "plan.toml", store, workers=1, hear=lambda: heard.append(number))
    finally:
        signal.signal(number, before)
    assert heard == [number]
