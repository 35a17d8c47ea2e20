"""The API answers what the commands print."""

from __future__ import annotations

import csv
import io
import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from command_server import run
from explorer import Explorer, running
from separatrix.core.numbers import parse_exact

CELLS, LINES = "application/vnd.separatrix.cells", "application/x-ndjson"


def printed(*words: str) -> Any:
    return json.loads(run(*words, "--json").stdout)


def test_verdicts_are_those_of_the_command(explorer: Explorer) -> None:
    one = explorer.get("/verdict/spike/softmax?n=1e12&a1=0.9")
    assert one == printed("verdict", "spike", "softmax", "n=1e12", "a1=0.9")
    several = explorer.get("/verdict/duplication/softmax,power:beta=4?--delta=0.05")
    assert several == printed("verdict", "duplication", "softmax,power:beta=4", "--delta", "0.05")


def test_a_fraction_may_be_a_parameter_of_a_mechanism(explorer: Explorer) -> None:
    wanted = printed("verdict", "spike", "power:beta=7/2")
    assert explorer.get("/verdict/spike/power:beta=7/2") == wanted
    assert explorer.get("/verdict/spike/power:beta=7%2F2") == wanted


def test_sampled_verdicts_are_those_of_the_command(explorer: Explorer) -> None:
    found = explorer.get("/verdict/spike/window:size=8?n=200&--draws=50&--seed=3")
    assert found == printed("verdict", "spike", "window:size=8", "n=200", "--draws", "50", "--seed", "3")


def test_maps_are_those_of_the_command_as_a_document_and_as_cells(explorer: Explorer) -> None:
    words = ("a1=0.6:0.8:5", "n=1e3:1e9:4:log")
    wanted = printed("map", "spike", "softmax,linear", *words)
    assert explorer.get(f"/map/spike/softmax,linear?{'&'.join(words)}") == wanted
    reply = explorer.send(f"/api/v1/map/spike/softmax,linear?{'&'.join(words)}", accept=CELLS)
    assert reply.headers["content-type"] == CELLS
    length, _ = struct.unpack("<II", reply.body[:8])
    heading = json.loads(reply.body[8 : 8 + length])
    cells = np.frombuffer(reply.body[8 + length :], "<f8").reshape(-1, *heading["shape"])
    for layer, expected in zip(heading["layers"], wanted["layers"], strict=True):
        assert np.array_equal(cells[layer["arrays"]["values"]], np.array(expected["values"]))
    for axis, expected in zip(heading["axes"], wanted["axes"], strict=True):
        assert (axis["name"], axis["log"]) == (expected["name"], expected["log"])
        assert [*map(parse_exact, axis["values"])] == [*map(parse_exact, expected["values"])]


def test_a_map_without_a_closed_form_tells_how_far_it_is(explorer: Explorer) -> None:
    path = "/api/v1/map/spike/window:size=8?n=600:1000:2&a1=0.5:1.5:2&--draws=120"
    reply = explorer.send(path, accept=LINES)
    lines = [json.loads(line) for line in reply.body.splitlines()]
    words = ("n=600:1000:2", "a1=0.5:1.5:2", "--draws", "120")
    assert lines[-1]["result"] == printed("map", "spike", "window:size=8", *words)
    steps = [line["step"] for line in lines if "step" in line]
    assert steps[-1]["done"] == steps[-1]["total"] == 4


def test_boundaries_are_those_of_the_command(explorer: Explorer) -> None:
    found = explorer.get("/boundary/spike/softmax?a1=0.5:1.5&n=1e6")
    assert found == printed("boundary", "spike", "softmax", "a1=0.5:1.5", "n=1e6")
    curve = explorer.get("/boundary/spike/softmax?a1=0.5:1.5&--over=n=1e3:1e6:3:log&--at=0.9")
    over = ("--over", "n=1e3:1e6:3:log", "--at", "0.9")
    assert curve == printed("boundary", "spike", "softmax", "a1=0.5:1.5", *over)


def test_a_certificate_from_the_page_holds(explorer: Explorer, tmp_path: Path) -> None:
    reply = explorer.send("/api/v1/files/certificate/spike/softmax?n=1e6")
    assert 'filename="certificate-spike-softmax.json"' in reply.headers["content-disposition"]
    proof = tmp_path / "proof.json"
    proof.write_bytes(reply.body)
    assert run("check", str(proof)).returncode == 0
    run("verdict", "spike", "softmax", "n=1e6", "--certificate", str(tmp_path / "other.json"))
    assert proof.read_bytes() == (tmp_path / "other.json").read_bytes()


@pytest.mark.parametrize("words", [("n=1050", "a1=0.8"), ("d=202", "n=5000"), ("n=1e6", "--verdict=partial")])
def test_proofs_for_every_n_are_those_of_the_command(explorer: Explorer, words: tuple[str, ...]) -> None:
    wanted = printed("prove", "spike", "softmax", *words)
    assert explorer.get(f"/prove/spike/softmax?{'&'.join(words)}") == wanted
    assert wanted["statement"].startswith("softmax ")


def test_a_proof_from_the_page_holds(explorer: Explorer, tmp_path: Path) -> None:
    reply = explorer.send("/api/v1/files/proof/spike/linear?n=2000&--from=3000")
    assert reply.json()["error"] == "the first n is given twice: n=2000 and from 3000; keep one"
    reply = explorer.send("/api/v1/files/proof/spike/linear?n=2000")
    assert 'filename="proof-spike-linear.json"' in reply.headers["content-disposition"]
    proof = tmp_path / "proof.json"
    proof.write_bytes(reply.body)
    assert run("check", str(proof)).returncode == 0
    run("prove", "spike", "linear", "n=2000", "--certificate", str(tmp_path / "other.json"))
    assert proof.read_bytes() == (tmp_path / "other.json").read_bytes()


def test_a_wide_proof_is_computed_in_the_slow_lane(explorer: Explorer) -> None:
    lines = explorer.send("/api/v1/prove/spike/softmax?d=302&n=600", accept=LINES).body.splitlines()
    assert json.loads(lines[0]) == {"step": {"what": "started"}}
    assert json.loads(lines[-1])["result"] == printed("prove", "spike", "softmax", "d=302", "n=600")


def test_files_of_a_map_are_those_of_the_command(explorer: Explorer, tmp_path: Path) -> None:
    words = ("a1=0.6:0.8:3", "n=1e3:1e6:2:log")
    run("map", "spike", "softmax", *words, "--out", str(tmp_path / "map.csv"))
    path = f"/api/v1/files/map/spike/softmax?{'&'.join(words)}"
    table = explorer.send(f"{path}&--out=.csv").body
    assert table == (tmp_path / "map.csv").read_bytes()
    assert len(list(csv.DictReader(io.StringIO(table.decode())))) == 6
    assert explorer.send(path).body.startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("path", "words", "field"),
    [
        ("/verdict/spike/softmax?n=abc", ["verdict", "spike", "softmax", "n=abc"], "n"),
        ("/verdict/spike/softmax?a1=-1", ["verdict", "spike", "softmax", "a1=-1"], "a1"),
        ("/verdict/spke/softmax", ["verdict", "spke", "softmax"], None),
        ("/verdict/spike/sofmax", ["verdict", "spike", "sofmax"], None),
        ("/verdict/spike/softmax?q=1", ["verdict", "spike", "softmax", "q=1"], None),
        ("/map/spike/softmax?a1=1:2:3", ["map", "spike", "softmax", "a1=1:2:3"], None),
        ("/map/spike/softmax?a1=2:1:3&n=1e3:1e4:2", ["map", "spike", "softmax", "a1=2:1:3", "n=1e3:1e4:2"], "a1"),
        ("/boundary/spike/softmax?a1=1", ["boundary", "spike", "softmax", "a1=1"], None),
        ("/prove/spike/favor", ["prove", "spike", "favor"], None),
        ("/prove/recall/softmax", ["prove", "recall", "softmax"], None),
        ("/prove/spike/softmax?m=log(n)", ["prove", "spike", "softmax", "m=log(n)"], "m"),
    ],
)
def test_errors_are_in_the_words_of_the_command_line(
    explorer: Explorer, path: str, words: list[str], field: str | None
) -> None:
    said = explorer.refusal(path)
    assert f"separatrix: {said['error']}" == run(*words).stderr.strip()
    assert field is None or said["field"] == field


@pytest.mark.parametrize("name", ["os:system", "mine.py:attend", "mine:attend", "os:system:x=1", "softmax:os:system"])
@pytest.mark.parametrize("path", ["verdict/spike/{}", "map/spike/{}?a1=1:2:2&n=1e3:1e4:2", "boundary/spike/{}?a1=1:2"])
def test_a_page_cannot_name_code(explorer: Explorer, path: str, name: str) -> None:
    said = explorer.refusal(f"/{path.format(name)}")["error"]
    assert "registered" in said or "more than a mechanism" in said


@pytest.mark.exhaustive
def test_ones_own_is_asked_by_the_name_it_was_given(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import torch\ndef attend(q, k, v, causal=False):\n"
        "    return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=1.0)\n"
        "def other(q, k, v): return v\n"
    )
    with running("--mechanism", "mine.py:attend", cwd=tmp_path) as found:
        assert found.get("/about")["own_mechanisms"] == ["mine.py:attend"]
        assert found.get("/verdict/spike/mine.py:attend?n=200&--draws=40")["engine"] in ("dense", "grouped")
        assert "registered" in found.refusal("/verdict/spike/mine.py:other?n=200")["error"]


@pytest.mark.parametrize(
    "words", ["a1=0.5:1.5:100000&n=1e3:1e9:10000:log", "a1=0.5:1.5:1e9&n=1e3:1e9:2", "a1=1:2:600&n=1e3:1e4:600:log"]
)
def test_too_large_a_map_is_refused_and_not_tried(explorer: Explorer, words: str) -> None:
    assert "more than" in explorer.refusal(f"/map/spike/softmax?{words}")["error"]
