"""The JSON Schema of every document: what commands print is as it says."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from copy import deepcopy
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from typer.main import get_command

import separatrix as sx
from documents import require_document
from expectations import assert_refused, run
from fuzz import PLAN
from separatrix.cli.application import app
from separatrix.core.result import Result
from separatrix.schemas import DOCUMENTS, schema
from sweep_tools import Inline

COMMANDS = (
    ("verdict", "verdict spike softmax"),
    ("verdict", "verdict spike linear n=1e18 --engine closed --noise 0.1"),
    ("verdict", "verdict rough window:size=4 n=40 d=7 m=3 a0=0.01 a1=0.6 b=0.05 c=0.1 --draws 20"),
    ("verdicts", "verdict spike softmax,gla,linear --engine closed"),
    ("check", "check proof.json"),
    ("proof", "prove spike softmax a1=0.8"),
    ("proofs", "prove spike softmax,linear,taylor:order=2"),
    ("uniform_proof", "prove spike softmax --theorem"),
    ("uniform_proof", "prove spike softmax,linear --theorem"),
    ("readers", "readers spike linear --noise 0.1"),
    ("readers", "readers dispersion gla n=30 --seed 1"),
    ("map", "map spike softmax,linear a1=0.5:1.5:3 n=1e3:1e6:3:log"),
    ("map", "map spike power beta=1:4:3 n=100:1000:2 --of bits"),
    ("map", "map spike softmax a1=0.5:1.5:2 n=102:204:2 --engine grouped --draws 20"),
    ("boundary", "boundary spike softmax a1=0.5:1.5 --scan 8"),
    ("boundary", "boundary averaging linear n=16:1e4 --scan 8"),
    ("boundary_curve", "boundary spike softmax a1=0.5:1.5 --over n=1e3:1e4:2:log --scan 8"),
    ("scaling", "scaling spike linear n=1e3:1e9:4:log"),
    ("scaling", "scaling spike softmax n=1e3:1e9:4:log --of bits"),
    ("scalings", "scaling spike softmax,linear,gla n=1e3:1e9:3:log --engine closed"),
    ("card", "assess broken:attend"),
    ("choice", "choose n=20000 memory=2GiB --must critical --mechanisms softmax,elu"),
    ("search", "search identity-features:normalised=no softmax --budget 10 --out found.json"),
    ("search", "search softmax linear --budget 6 --space both"),
    ("search_check", "search --check found.json"),
    ("claim", "claim threshold"),
    ("sweep", "sweep plan.toml --workers 1"),
    ("estimate", "sweep plan.toml --workers 1 --dry-run"),
    ("results", "results"),
    ("results", "results --sweep 1 --limit 2"),
    ("report", "report --out page"),
    ("compare", "compare 1 1 --other-store results.db"),
    ("store_check", "store check"),
    ("store_check", "store check --store proof.json"),
    ("store_repair", "store repair --out saved.db"),
    ("store_backup", "store backup copy.db"),
    ("data_sets", "data --folder ."),
    ("data_set", "data show listops --folder ."),
    ("mechanisms", "list mechanisms"),
    ("mechanisms", "list mechanisms power"),
    ("lattice", "list mechanisms --lattice"),
    ("constructions", "list constructions"),
    ("constructions", "list constructions spike"),
    ("claims", "list claims"),
    ("claims", "list claims theorem"),
    ("tasks", "list tasks parity"),
    ("engines", "list engines"),
    ("published_numbers", "list published"),
    ("plans", "list plans"),
    ("plans", "list plans atlas"),
    ("sweeps", "list sweeps"),
    ("schemas", "schema"),
)
ELSEWHERE = {
    *("atlas", "bench", "data_fetch", "data_floors", "learned", "learned_report", "ledger", "published"),
    *("illustration", "reproduce", "work"),
}
"""Held to their schemas where they are computed: `require_document` in other tests."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the commands are given."""
    made = tmp_path_factory.mktemp("documents")
    (made / "plan.toml").write_text(PLAN)
    (made / "broken.py").write_text("def attend(q, k, v):\n    raise ValueError('no')\n")
    return made


def test_what_commands_print_is_as_the_schema_says(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr(import_module("separatrix.sweeps.sweep"), "executor_for", lambda *_: Inline())
    run(capsys, "verdict", "spike", "softmax", "--certificate", "proof.json")
    for name, words in COMMANDS:
        code, out, said = run(capsys, *shlex.split(words), "--json")
        assert code in (0, 1), f"{words}: {said}"
        require_document(name, out)


def test_every_document_is_tried() -> None:
    assert {name for name, _ in COMMANDS} | ELSEWHERE == {*DOCUMENTS}
    tests = "\n".join(file.read_text() for file in Path(__file__).parent.glob("**/test_*.py"))
    assert [name for name in ELSEWHERE if f'require_document("{name}"' not in tests] == []


def test_every_command_that_prints_json_has_a_schema() -> None:
    documented = {" ".join(w for w in each.command.split() if w[0] != "-") for each in DOCUMENTS.values()}
    assert set(_printing(get_command(app))) <= {*documented, "list"}


def _printing(command: Any, name: str = "") -> Iterator[str]:
    """Commands that take --json."""
    if any("--json" in each.opts for each in command.params):
        yield name
    for word, each in getattr(command, "commands", {}).items():
        yield from _printing(each, f"{name} {word}".strip())


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_schema_is_one(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "schema", name)
    assert code == 0
    made = json.loads(out)
    Draft202012Validator.check_schema(made)
    assert made == schema(name)
    assert made["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_a_schema_notices_what_is_wrong() -> None:
    good = json.loads(json.dumps(sx.verdict("spike", "softmax").as_json()))
    require_document("verdict", good)
    for change in ({"verdict": "maybe"}, {"more": 1}, {"interval": [0]}, {"neuron": {"p0": 1}}, {"n": None}):
        with pytest.raises(AssertionError, match="verdict at "):
            require_document("verdict", {**deepcopy(good), **change})
    del good["margin"]
    with pytest.raises(AssertionError, match="'margin' is a required property"):
        require_document("verdict", good)


def test_every_result_knows_its_schema() -> None:
    for name in sx.__all__:
        kind = getattr(sx, name)
        if isinstance(kind, type) and issubclass(kind, Result):
            described = {"description": schema(kind.kind)["description"]}
            assert {**kind.json_schema(), **described} == schema(kind.kind)


def test_an_unknown_schema_is_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert_refused(capsys, "there is no schema verdicd (did you mean verdict?)", tmp_path, "schema", "verdicd")
