"""The JSON of about 60 commands, a certificate and the public names, compared with stored files.

`WRITE_SNAPSHOTS=1 python -m pytest tests/test_snapshots.py` writes the files again. A difference in
`git diff tests/snapshots` is a change of behaviour: explain it in the changelog, or fix it.
"""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import pytest

from command import invoke
from fuzz import PLAN

STORED = Path(__file__).parent / "snapshots"
CONSTRUCTIONS = (
    *("spike", "plain", "cross", "injectivity", "duplication", "routing", "dispersion", "critical"),
    *("averaging", "location", "regression", "recall", "majority", "parity", "spikes", "level", "rough"),
)
SEARCH = "search identity-features:normalised=no softmax --budget 10 --out found.json"
POINT = "n=400 d=42 m=8 a0=0.01 a1=1.2 b=0.2 c=0.1"
COMMANDS: dict[str, str] = {
    **{f"verdict-{name}": f"verdict {name} softmax,linear --draws 100 --seed 1" for name in CONSTRUCTIONS},
    "verdict-identity": f"verdict spike softmax,linear {POINT} form=identity",
    "verdict-kernels": f"verdict spike power:beta=4,taylor:order=8,softmax:temperature=2 {POINT}",
    "verdict-closed": "verdict spike softmax,linear n=1e18 --engine closed --noise 0.1",
    "verdict-grouped": f"verdict spike elu,sparsemax {POINT} --engine grouped --draws 200 --seed 2",
    "verdict-dense": "verdict spike gla,window:size=8 n=40 d=6 m=4 --engine dense --draws 50 --seed 3",
    "verdict-tau": f"verdict spike softmax {POINT} tau=0.3 --delta 0.05",
    "verdict-theorem": "verdict spike softmax,linear m=17 d=362 n=3600",
    "prove": "prove spike softmax a1=0.8",
    "prove-several": f"prove spike softmax,linear,taylor:order=2,relu {POINT}",
    "readers-spike": "readers spike linear --noise 0.1",
    "readers-equal-rows": "readers duplication softmax",
    "readers-recall": "readers recall delta n=16",
    "readers-noisy-softmax": "readers spike softmax --noise 0.5",
    "weights": "weights spike linear",
    "map": "map spike softmax,linear a1=0.5:1.5:4 n=1e3:1e6:4:log",
    "map-accuracy": "map spike linear a1=0.5:1.5:3 n=1e3:1e6:3:log --of accuracy:noise=0.5,rows=all",
    "map-bits": "map spike power beta=1:4:3 n=100:1000:2 --of bits",
    "boundary": "boundary spike softmax a1=0.5:1.5 --scan 16",
    "boundary-level": "boundary spike softmax a1=0.5:1.5 n=1e6 --at 0.25 --scan 16",
    "boundary-over": "boundary spike softmax a1=0.5:1.5 --over n=1e3:1e4:2:log --scan 8",
    "boundary-n": "boundary averaging linear n=16:1e4 --scan 8",
    "scaling": "scaling spike linear n=1e3:1e9:4:log",
    "scaling-bits": "scaling spike softmax,linear n=1e3:1e9:4:log --of bits",
    "choose": "choose n=20000 memory=2GiB --must critical --mechanisms softmax,linear,elu,window:size=64",
    "choose-needle": "choose n=64 dtype=float32 --must needle --mechanisms softmax,causal-linear,delta",
    "search": "search softmax linear --budget 6 --space both",
    "search-check": "search --check found.json",
    "claim-threshold": "claim threshold",
    "claim-theorem": "claim theorem",
    "sweep-dry": "sweep plan.toml --workers 1 --dry-run",
    "check": "check proof.json",
    "data": "data show listops --folder .",
    "list-mechanisms": "list mechanisms",
    "list-lattice": "list mechanisms --lattice",
    "list-constructions": "list constructions",
    "list-claims": "list claims",
    "list-tasks": "list tasks",
    "list-engines": "list engines",
    "list-published": "list published",
    "list-plans": "list plans",
    "schema": "schema",
}
VOLATILE = {"seconds", "version", "versions", "finished", "path", "slack"}
"""Values of these keys depend on the machine or the moment; only their presence is compared."""
ROUNDED = {"error", "ceiling", "floor"}
"""Values of these keys may be nothing but rounding errors."""


def prepare(folder: Path) -> None:
    """Write the files that the commands read."""
    (folder / "plan.toml").write_text(PLAN)
    for words in ("verdict spike softmax --certificate proof.json", SEARCH):
        done = invoke(*words.split(), cwd=folder)
        assert done.returncode == 0, done.stderr


def run_command(words: str, folder: Path) -> Any:
    """Return what a command prints with --json, without volatile values."""
    done = invoke(*words.split(), "--json", cwd=folder)
    assert done.returncode in (0, 1), done.stderr
    return mask(json.loads(done.stdout))


def mask(document: Any) -> Any:
    """Replace volatile values by their type."""
    if isinstance(document, dict):
        return {key: type(value).__name__ if key in VOLATILE else mask(value) for key, value in document.items()}
    return [mask(item) for item in document] if isinstance(document, list) else document


def public_names() -> dict[str, list[str]]:
    """The public names of the package."""
    import separatrix
    from separatrix import layers, testing

    modules = {"separatrix": separatrix, "separatrix.layers": layers, "separatrix.testing": testing}
    return {name: sorted(module.__all__) for name, module in modules.items()}


def compare(name: str, document: Any) -> None:
    """Require a document to be as stored, or store it if that is asked for."""
    path = STORED / f"{name}.json"
    if os.environ.get("WRITE_SNAPSHOTS"):
        text = json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False)
        path.write_text(text + "\n", encoding="utf-8")
    assert differences(document, json.loads(path.read_text(encoding="utf-8"))) == []


def differences(document: Any, stored: Any, place: str = "") -> list[str]:
    """Where two documents differ; numbers may differ by rounding."""
    if isinstance(document, dict) and isinstance(stored, dict):
        keys = document.keys() | stored.keys()
        missing = [f"{place}.{key}: only in one" for key in sorted(keys - (document.keys() & stored.keys()))]
        shared = sorted(document.keys() & stored.keys())
        return missing + [line for key in shared for line in differences(document[key], stored[key], f"{place}.{key}")]
    if isinstance(document, list) and isinstance(stored, list) and len(document) == len(stored):
        items = enumerate(zip(document, stored, strict=True))
        return [line for number, pair in items for line in differences(*pair, f"{place}[{number}]")]
    if isinstance(document, float) and isinstance(stored, float):
        error = 1e-12 if place.rpartition(".")[2] in ROUNDED else 0.0
        close = math.isclose(document, stored, rel_tol=1e-6, abs_tol=error)
        close = close or (math.isnan(document) and math.isnan(stored))
        return [] if close else [f"{place}: {document!r}, was {stored!r}"]
    same = document == stored and type(document) is type(stored)
    return [] if same else [f"{place}: {document!r:.200}, was {stored!r:.200}"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the commands read."""
    path = tmp_path_factory.mktemp("snapshots")
    prepare(path)
    return path


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_print_what_they_did(name: str, folder: Path) -> None:
    compare(name, run_command(COMMANDS[name], folder))


def test_certificates_are_as_stored(folder: Path) -> None:
    compare("certificate", mask(json.loads((folder / "proof.json").read_text())))


def test_public_names_are_as_stored() -> None:
    compare("public-names", public_names())


def test_differences_are_noticed() -> None:
    assert differences({"a": [1.0, "x"]}, {"a": [1.0 + 1e-9, "x"]}) == []
    assert differences({"a": [1.0, "x"]}, {"a": [1.001, "x"]}) == [".a[0]: 1.0, was 1.001"]
    assert differences({"a": 1}, {"b": 1}) == [".a: only in one", ".b: only in one"]
    assert differences({"a": math.nan}, {"a": math.nan}) == []
    assert differences({"a": math.nan}, {"a": 0.5}) == [".a: nan, was 0.5"]
    assert differences({"a": 0.0}, {"a": 1e-21}) == [".a: 0.0, was 1e-21"]
    assert differences({"a": True}, {"a": 1}) == [".a: True, was 1"]
