"""The command line: answers, lists and complaints."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cases import BASE, GOLDEN, POINT, golden_id, golden_spelling
from command import invoke, run

WITHOUT_N = POINT[1:]


@pytest.mark.parametrize("case", [GOLDEN[2], GOLDEN[8], GOLDEN[11]], ids=golden_id)
def test_verdict_json(case: dict[str, Any]) -> None:
    words = [f"{name}={case[name]}" for name in (*BASE, "form")]
    done = invoke("verdict", "spike", golden_spelling(case), *words, "--json")
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)
    assert (shown["neuron"]["p0"], shown["neuron"]["p1"]) == (case["p0"], case["p1"])
    assert shown["distinguish"] == case["distinguish"]
    assert shown["engine"] == "certified"
    assert shown["mechanism"] == golden_spelling(case)


@pytest.mark.parametrize("engine", ["closed", "grouped", "dense"])
def test_every_engine_by_name(engine: str) -> None:
    draws = [] if engine == "closed" else ["--draws", "50"]
    done = invoke("verdict", "spike", "softmax", *POINT, "--engine", engine, *draws, "--json")
    shown = json.loads(done.stdout)
    assert shown["engine"] == engine
    assert isinstance(shown["neuron"]["p1"], float)


def test_a_verdict_is_written_and_its_place_in_the_theorem_is_told(tmp_path: Path) -> None:
    done = invoke("verdict", "spike", "softmax", *POINT, "--out", str(tmp_path / "verdict.svg"))
    assert done.returncode == 0, done.stderr
    assert "it needs m >= 17, here m = 12" in done.stdout
    assert b"<svg" in (tmp_path / "verdict.svg").read_bytes()
    within = invoke("verdict", "spike", "softmax,linear", "m=17", "d=362", "n=3600")
    assert "softmax: The theorem covers this point: P >= 0.98 for every n >= 360." in within.stdout
    tiny = invoke("verdict", "spike", "softmax", "--delta", "1e-400")
    assert tiny.returncode == 0, tiny.stderr
    assert "m >= 3202" in " ".join(tiny.stdout.split())
    other = invoke("verdict", "spike", "softmax", "form=identity")
    assert "form=ones, here form=identity" in " ".join(other.stdout.split())


def test_text_fits_eighty_columns() -> None:
    done = invoke("verdict", "spike", "linear", *POINT, "--noise", "0.1")
    assert done.returncode == 0
    assert "linear on spike: blind" in done.stdout
    assert "1.655598718×10⁻⁶" in done.stdout
    assert max(len(line) for line in done.stdout.splitlines()) <= 80


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["verdict", "spike", "sofmax", *POINT], "there is no mechanism sofmax (did you mean softmax?)"),
        (["verdict", "spke", "softmax", *POINT], "there is no construction spke (did you mean spike?)"),
        (["verdict", "spike", ""], "no mechanism is given; separatrix list mechanisms has all"),
        (["claim", ""], "no claim is given; separatrix list claims has all"),
        (["verdict", "spike", "softmax", "--certificate", "x.json", "--out", "x.json"], "would write the same file"),
        (
            ["scaling", "spike", "linear", "n=1e3:1e6:4:log", "--certificate", "x.json", "--out", "x.json"],
            "--certificate and --out would write the same file",
        ),
        (["verdict", "spike", "flash"], "there is no mechanism flash; separatrix list mechanisms has all"),
        (["verdict", "spike", "n=1000"], "the mechanism is missing before n=1000"),
        (["verdict", "softmax", "n=1000"], "the construction or the mechanism is missing before n=1000"),
        (["verdict", "spike", "softmax", "linear"], "linear stands among the parameters; several mechanisms are"),
        (["verdict", "spike", "softmax", "a1=0.005"], "so taken from the reference point: a0=0.01"),
        (["verdict", "spike", "softmax,linear", "--certificate", "x.json"], "a certificate is of one mechanism"),
        (["verdict", "spike", "window,fox", "n=1e12"], "no engine can answer this"),
        (["verdict", "spike", "softmax", *POINT, "n=5"], "n is given twice"),
        (["verdict", "spike", "softmax", *POINT, "q=5"], "spike has no parameter q"),
        (["verdict", "spike", "softmax", "n=1001", *WITHOUT_N], "n=1001 is not a multiple of d-2=100"),
        (["verdict", "spike", "softmax", "n=abc", *WITHOUT_N], "n=abc is not a number"),
        (["verdict", "spike", "softmax", *POINT, "--engine", "fast"], "there is no engine fast"),
        (["verdict", "spike", "softmax", *POINT, "--delta", "2"], "delta=2 is out of range"),
        (["verdict", "spike", "softmax", *POINT, "--draws", "x"], "Invalid value for '--draws'"),
        (["verdict", "spike", "softmax", *POINT, "--nose", "1"], "--nose"),
        (["verdict", "spike"], "Missing argument"),
        (["verdict", "spike", "softmax", *POINT, "delta=0.1"], "delta is an option; write --delta 0.1"),
        (["verdict", "spike", "softmax", *POINT, "--noise", "1e-400"], "is out of range"),
        (["verdict", "spike", "softmax", *POINT, "--engine", "closed", "--dtype", "float16"], "draws nothing"),
        (["verdict", "spike", "power:self=1", *POINT], "power has no parameter self"),
        (["verdict", "spike", "softmax", "n=1e12", *WITHOUT_N, "--engine", "dense"], "the dense engine would need"),
        (["verdict", "spike", "softmax", *POINT, "--certificate", "absent/x.json"], "cannot write"),
        (
            ["verdict", "spike", "softmax", *POINT, "--certificate", "x.json", "--engine", "dense"],
            "only the certified engine writes certificates",
        ),
        (["list", "softmax"], "softmax is one of the mechanisms; write: separatrix list mechanisms softmax"),
        (["list", "mechanisms", "sofmax"], "there is no mechanism sofmax (did you mean softmax?)"),
        (["list", "tasks", "neddle"], "there is no task neddle (did you mean needle?)"),
        (["list", "sweeps", "3"], "separatrix results --sweep 3"),
        (["claim", "theorme"], "there is no claim theorme (did you mean theorem?)"),
        (["list", "mechanism"], "there is no list of mechanism (did you mean mechanisms?)"),
        (["verdct"], "No such command 'verdct'"),
        (["check", "absent.json"], "cannot read absent.json: no such file or directory"),
    ],
)
def test_bad_input_gets_one_line_and_exit_code_two(words: list[str], complaint: str, tmp_path: Path) -> None:
    done = invoke(*words, cwd=tmp_path)
    assert done.returncode == 2
    assert complaint in done.stderr
    lines = _complaints(done, words)
    assert len(lines) == 1
    assert lines[0].startswith("separatrix: ")
    assert done.stdout == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["verdict", "spike", "softmax,linear", *POINT], 0),
        (["verdict", "spike", "sofmax", *POINT, "--json"], 2),
        (["check", "absent.json"], 2),
    ],
)
def test_a_new_process_prints_the_same(words: list[str], code: int, tmp_path: Path) -> None:
    """The other tests call the command in this process."""
    process, here = run(*words, cwd=tmp_path), invoke(*words, cwd=tmp_path)
    assert (process.returncode, here.returncode) == (code, code)
    assert process.stdout == here.stdout
    assert _complaints(process, words) == _complaints(here, words)


def _complaints(done: subprocess.CompletedProcess[str], words: list[str]) -> list[str]:
    """Return the lines on stderr, without those by which a command that takes a while says what it does."""
    return [line for line in done.stderr.splitlines() if not line.startswith(f"{words[0]}: ")]


def test_what_is_not_given_is_taken_from_the_reference_point_and_shown() -> None:
    whole = json.loads(invoke("verdict", "spike", "softmax", *POINT, "--json").stdout)
    assert whole["taken"] == {}
    reference = json.loads(invoke("verdict", "spike", "softmax", "--json").stdout)
    assert reference == {**whole, "taken": {name: reference["parameters"][name] for name in BASE}}
    shown = invoke("verdict", "spike", "softmax", "n=2000", "m=3").stdout
    assert "Not given, so taken from the reference point: d=102 a0=0.01 a1=1.2 b=0.2 c=0.1." in " ".join(shown.split())


def test_names_in_the_wrong_order_are_answered() -> None:
    done = invoke("verdict", "linear", "spike", "--json")
    assert done.returncode == 0
    assert done.stderr == "separatrix: read as spike linear: the construction comes first\n"
    assert done.stdout == invoke("verdict", "spike", "linear", "--json").stdout
    assert invoke("readers", "linear", "spike", "--json").returncode == 0
    assert invoke("boundary", "softmax", "spike", "a1=0.5:1.5", "--scan", "8", "--json").returncode == 0
    assert invoke("map", "softmax,linear", "spike", "a1=0.5:1.5:2", "n=1e3:1e4:2:log", "--json").returncode == 0
    assert invoke("scaling", "linear", "spike", "n=1e3:1e9:3:log", "--json").returncode == 0


def test_several_mechanisms_stand_side_by_side() -> None:
    names = ["softmax", "linear", "window"]
    done = invoke("verdict", "spike", ",".join(names), "n=1e12")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[1].split() == names
    assert lines[2].split(None, 1)[1].split("  ")[0] == "distinguishes"
    assert lines[2].split()[-2:] == ["not", "computed"]
    listed = json.loads(invoke("verdict", "spike", ",".join(names), "n=1e12", "--json").stdout)
    assert [each["verdict"] for each in listed] == ["distinguishes", "blind", "none"]
    assert "does not accept counts" in listed[2]["evidence"]
    assert listed[1] == json.loads(invoke("verdict", "spike", "linear", "n=1e12", "--json").stdout)


def test_many_mechanisms_fit_the_terminal() -> None:
    names = ["softmax", *(f"power:beta={beta}" for beta in range(2, 12))]
    shown = invoke("verdict", "spike", ",".join(names)).stdout
    assert max(map(len, shown.splitlines())) <= 80
    assert all(f"{name}: " in " ".join(shown.split()) for name in names)


def test_lists() -> None:
    names = {"mechanisms": "softmax", "constructions": "spike", "claims": "tensor"}
    for what, expected in names.items():
        rows = json.loads(invoke("list", what, "--json").stdout)
        assert any(expected in row["name"] for row in rows)
        assert expected in invoke("list", what).stdout


def test_one_of_a_list_is_shown_alone_and_with_more() -> None:
    names = {"mechanisms": "softmax", "constructions": "spike", "claims": "theorem", "engines": "closed"}
    for what, name in names.items():
        rows = {row["name"]: row for row in json.loads(invoke("list", what, "--json").stdout)}
        one = json.loads(invoke("list", what, name, "--json").stdout)
        assert {label: one[label] for label in rows[name]} == rows[name]
        shown = invoke("list", what, name).stdout
        assert shown.splitlines()[0] == name
        assert "\nlinear\n" not in shown
    assert rows["certified"]["proves"] is True
    assert "defaults: temperature=1" in invoke("list", "mechanisms", "softmax:temperature=2").stdout
    assert "reference: n=1000 d=102 m=12 a0=0.01 a1=1.2 b=0.2 c=0.1" in invoke("list", "constructions", "spike").stdout
    assert json.loads(invoke("list", "tasks", "parity", "--json").stdout)["name"] == "parity"
    assert 'construction = "spike"' in invoke("list", "plans", "paper").stdout


def test_a_claim_is_checked_alone_and_shows_what_it_computed() -> None:
    done = invoke("claim", "threshold")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "threshold, section 2 of docs/theory.md"
    assert "holds at 4 of 4 points tried" in done.stdout
    assert ["n", "c", "tau", "error"] in [line.split() for line in lines]
    found = json.loads(invoke("claim", "threshold", "--json").stdout)
    assert (found["status"], found["place"], len(found["points"])) == ("holds", "2", 4)
    assert max(map(len, invoke("claim", "exact-probability").stdout.splitlines())) <= 80


def test_tasks_are_listed_with_their_ceiling_and_floor() -> None:
    rows = {row["name"]: row for row in json.loads(invoke("list", "tasks", "--json").stdout)}
    assert 0.97 < rows["needle"]["ceiling"] < 0.99
    assert rows["mqar"]["ceiling"] == 1
    assert rows["regression"]["floor"] == 1
    assert "softmax" in rows["needle"]["mechanisms_with_witness"]
    assert rows["parity"]["mechanisms_with_witness"] == []
    assert rows["smnist"]["ceiling"] is None
    shown = invoke("list", "tasks").stdout
    assert "the Bayes rule, one softmax head" in shown
    assert "separatrix data floors mnist" in shown


def test_help_and_version() -> None:
    assert "verdict" in invoke("--help").stdout
    assert invoke("--version").stdout.strip().count(".") == 2
    assert invoke().returncode == 2


def test_help_loads_nothing_heavy() -> None:
    code = """
import sys
from separatrix.cli import main
sys.argv = ["separatrix", "--help"]
try:
    main()
except SystemExit:
    pass
print("LOADED", sorted({"torch", "numpy", "scipy", "matplotlib"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "LOADED []" in done.stdout


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = "import separatrix, sys; print({'torch', 'numpy', 'scipy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_the_atlas_says_how_mechanisms_are_named() -> None:
    done = invoke("atlas", "softmax", "linear")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "separatrix: atlas takes options alone; write --mechanisms softmax,linear\n"


def test_bench_takes_commas() -> None:
    done = invoke("bench", "softmax,sofmax")
    assert done.returncode == 2
    assert "there is no mechanism sofmax (did you mean softmax?)" in done.stderr


def test_help_lists_every_command_once_under_a_heading() -> None:
    from typer.main import get_command

    from separatrix.cli.application import GROUPS, app

    shown = invoke("--help").stdout.splitlines()
    assert [f"{heading}:" in shown for heading in GROUPS] == [True] * len(GROUPS)
    listed = [line.split()[0] for line in shown[shown.index("Understand:") :] if line.startswith("  ")]
    assert sorted(listed) == sorted(get_command(app).commands)  # type: ignore[attr-defined]
    assert max(len(line) for line in shown) <= 80
