"""`separatrix assess` on a user's own file: good ones, bad ones, and ones that are subtly wrong."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from command import call_main
from documents import require_document
from separatrix.analysis.cards import assessment, construction_result
from separatrix.analysis.costs import cost
from separatrix.constructions import CONSTRUCTIONS
from separatrix.contract import CHECKS
from separatrix.exact.engines import sampling

OWN = """
import torch
from torch import nn
from separatrix.mechanisms import Mechanism
from separatrix.mechanisms.recurrent.causal_linear import CausalLinear

def good(q, k, v):
    return (q @ k.mT).softmax(-1) @ v

def leaks(q, k, v, causal=False):
    return good(q, k, v)

def two(q, k):
    return q

def narrow(q, k, v):
    return v[..., :1]

def nan(q, k, v):
    return v * torch.nan

def raises(q, k, v):
    raise RuntimeError("not\\ntoday")

def prints(q, k, v):
    print("called with", q.shape)
    return good(q, k, v)

def reads(q, k, v):
    open("no_such_file.txt")

def recurs(q, k, v):
    return recurs(q, k, v)

def late(q, k, v):
    if q.shape[-2] > 500:
        raise RuntimeError("too long for me")
    return good(q, k, v)

class NeedsSize:
    def __init__(self, size):
        self.size = size

class Learned(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(1.5))

    def forward(self, q, k, v):
        return (self.scale * q @ k.mT).softmax(-1) @ v

class Wide(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Parameter(torch.eye(12))

    def forward(self, q, k, v):
        return (q @ self.mix @ k.mT).softmax(-1) @ v

class Unnormalised(Mechanism):
    name = "unnormalised"
    formula = "exp(qk) v"
    source = "here"
    family = "own"
    takes_counts = False

    def definition(self, q, k, v, counts=None, causal=False):
        scores = (q @ k.mT).exp()
        return (scores.tril() if causal else scores) @ v

class Forgets(CausalLinear):
    name = "forgets"

    def advance(self, state, q, k, v):
        after, out = super().advance(state, q, k, v)
        return tuple(0.9 * part for part in after), out
"""

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def separatrix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], few_checks: None
) -> Run:
    """The command in a folder with the user's file, with few checks, constructions, lengths and draws."""
    (tmp_path / "own_attention.py").write_text(OWN)
    (tmp_path / "own_syntax.py").write_text("def attend(:\n")
    (tmp_path / "own_needs.py").write_text("import nowhere_to_be_found\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(cost, "LENGTHS", (64, 128))
    monkeypatch.setattr("separatrix.analysis.cards.construction_result.LITERAL_LENGTHS", "200:400:3")
    monkeypatch.setattr(sampling, "LITERAL", 25)
    monkeypatch.setattr(construction_result, "CONSTRUCTIONS", {"plain": CONSTRUCTIONS["plain"]})

    def run(*words: str) -> tuple[int, str, str]:
        code = call_main(*words)
        sys.modules.pop("own_attention", None)
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ("nowhere_here:attend", "there is no module nowhere_here"),
        ("own_syntax:attend", "importing own_syntax fails: SyntaxError"),
        ("own_needs:attend", "needs nowhere_to_be_found, which is not installed"),
        ("own_attention:god", "own_attention has no god (did you mean good?)"),
        ("own_attention:two", "cannot be called as (q, k, v, counts=None, causal=False)"),
        ("own_attention:NeedsSize", "NeedsSize is a class; give an instance"),
    ],
)
def test_nothing_to_assess_is_one_line(separatrix: Run, source: str, complaint: str) -> None:
    code, out, error = separatrix("assess", source)
    assert (code, out) == (2, "")
    assert complaint in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("attribute", "check", "what"),
    [
        ("narrow", "form", ""),
        ("nan", "finite", "numbers are not finite"),
        ("raises", "form", "raised RuntimeError: not today"),
        ("leaks", "causality", "every token sees all later ones"),
        ("Unnormalised", "normalised", "do not add up to 1"),
        ("Forgets", "chunks", "chunks of 1 differ from the definition"),
    ],
)
def test_what_is_broken_is_named(separatrix: Run, attribute: str, check: str, what: str) -> None:
    code, out, error = separatrix("assess", f"own_attention:{attribute}", "--json")
    assert (code, error) == (1, "")
    failed = json.loads(out)["contract"]["failed"]
    assert what in failed[check]


def test_the_broken_card_as_text(separatrix: Run) -> None:
    code, out, _ = separatrix("assess", "own_attention:raises")
    assert code == 1
    assert "broken form: raised RuntimeError: not today" in out
    assert "nothing else was tried" in " ".join(out.split())
    assert max(map(len, out.splitlines())) <= 80
    assert "of own_attention.py: raise RuntimeError" in " ".join(out.split())
    assert "called with q (2, 3, 13, 5)" in " ".join(out.split())
    assert len(out.splitlines()) < 10


def test_what_raises_later_is_told_where(separatrix: Run) -> None:
    code, out, _ = separatrix("assess", "own_attention:late")
    assert code == 1
    assert "too long for me" in " ".join(out.split())


@pytest.mark.parametrize("attribute", ["good", "Learned"])
def test_a_card_in_one_command(separatrix: Run, tmp_path: Path, attribute: str) -> None:
    words = ("--against", "linear,causal-linear", "--out", "card.html")
    code, out, _ = separatrix("assess", f"own_attention:{attribute}", *words)
    assert code == 0
    assert "keeps the contract" in out
    assert re.search(r"\bbeats\b", out)  # "beats softmax", the title of a column, may be wrapped
    assert max(map(len, out.splitlines())) <= 80
    page = (tmp_path / "card.html").read_text()
    assert f"own_attention:{attribute}" in page
    assert "causal-linear" in page


def test_the_contract_alone(separatrix: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("separatrix.contract._base.CHECKS", CHECKS)  # every one
    code, out, _ = separatrix("assess", "own_attention.py:good", "--quick")
    assert code == 0
    assert re.search(r"contract: \d+ kept, 0 broken", out)
    assert "keeps the contract" in out
    assert "construction" not in out
    code, out, _ = separatrix("assess", "own_attention:leaks", "--quick")
    assert code == 1
    assert out.count("broken ") == 1
    assert "not tried, since causality failed: " in out
    code, out, _ = separatrix("assess", "own_attention:leaks", "--quick", "--json")
    shown = require_document("card", out)
    assert set(shown["contract"]["failed"]) == {"causality"}
    assert shown["contract"]["not_tried"]["prefix"] == "causality"
    assert shown["constructions"] == {}


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_an_interrupted_card_keeps_what_is_known(
    separatrix: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, more: tuple[str, ...]
) -> None:
    real, asked = assessment.compute_result, list[str]()

    def interrupted(name: str, *rest: Any) -> Any:
        asked.append(name)
        if len(asked) == 2:
            raise KeyboardInterrupt
        return real(name, *rest)

    monkeypatch.setattr(assessment, "compute_result", interrupted)
    few = {name: CONSTRUCTIONS[name] for name in ("spike", "plain")}
    monkeypatch.setattr(construction_result, "CONSTRUCTIONS", few)
    code, out, error = separatrix("assess", "softmax", "--out", "part.html", *more)
    assert code == 130
    assert error.splitlines()[-1] == "separatrix: interrupted"
    assert "Not finished: 1 of " in (tmp_path / "part.html").read_text()
    if more:
        shown = require_document("card", out)
        assert (shown["finished"], [*shown["constructions"]]) == (False, asked[:1])
    else:
        assert f"assess: {asked[0]}: distinguishes, P = " in error
        assert re.search(r"contract: \d+ kept.*Not finished: 1 of .*spike, ones +distinguishes", out, re.DOTALL)


def test_what_their_code_prints_is_not_in_the_json(separatrix: Run) -> None:
    for words in (("assess", "own_attention:prints", "--quick"), ("verdict", "plain", "own_attention:prints")):
        code, out, error = separatrix(*words, "--json")
        assert code == 0
        require_document(words[0] if words[0] == "verdict" else "card", out)
        assert "called with torch.Size" in error
    _, out, _ = separatrix("verdict", "plain", "own_attention:prints")
    assert "called with torch.Size" in out


@pytest.mark.parametrize(
    ("attribute", "complaint"),
    [
        ("reads", r'FileNotFoundError: .*no_such_file.* \(line \d+ of own_attention.py: open\("no_such_file'),
        ("recurs", r"RecursionError: .*line \d+ of own_attention.py: return recurs\(q, k, v\); called with q"),
        ("nan", r"no engine can answer this \(dense: the attention output is NaN or overflows"),
    ],
)
def test_their_errors_are_theirs(separatrix: Run, attribute: str, complaint: str) -> None:
    code, out, error = separatrix("verdict", "plain", f"own_attention:{attribute}")
    assert (code, out) == (2, "")
    assert re.search(complaint, error)


def test_a_module_of_one_width(separatrix: Run) -> None:
    code, out, _ = separatrix("assess", "own_attention:Wide", "--width", "12")
    assert code == 0
    assert "It takes width 12: shorter queries and keys are padded" in " ".join(out.split())
    code, out, error = separatrix("assess", "own_attention:Wide", "--width", "7", "--quick")
    assert (code, out) == (2, "")
    assert "calling own_attention:Wide with width 7 failed: it raised RuntimeError" in error
    assert "own_attention.py: return (q @ self.mix @ k.mT)" in error
    code, _, error = separatrix("assess", "softmax", "--width", "7", "--quick")
    assert code == 2
    assert "softmax takes tokens of any width" in error


def test_the_contract_is_shown_before_the_rest(separatrix: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("separatrix.analysis.cards.assessment.compute_result", stopped)
    _, out, _ = separatrix("assess", "own_attention:good")
    assert re.search(r"contract: \d+ kept, 0 broken", out)


def test_an_unknown_comparison_is_found_out_before_the_work(separatrix: Run) -> None:
    code, _, error = separatrix("assess", "softmax", "--against", "liner")
    assert code == 2
    assert "did you mean linear?" in error
    code, _, error = separatrix("assess", "softmax", "--out", "card.png")
    assert code == 2
    assert "let it end in one of .html, .json" in error


@pytest.mark.exhaustive
def test_the_example_of_the_readme_runs_as_pasted(tmp_path: Path) -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    function = re.search(r"\$ cat mine.py\n(.*?)\$ separatrix", readme, re.DOTALL)
    test = re.search(r"```python\n(import pytest\nfrom mine.*?)```", readme, re.DOTALL)
    assert function is not None
    assert test is not None
    (tmp_path / "mine.py").write_text(function[1])
    (tmp_path / "test_mine.py").write_text(test[1])
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "form or causality"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"\d+ passed", done.stdout)
    first = re.search(r"--quick .*?\n(mine:attend.*?)…", readme, re.DOTALL)
    assert first is not None
    words = [sys.executable, "-c", "from separatrix.cli import main; main()", "assess", "mine.py:attend"]
    eighty = {**os.environ, "COLUMNS": "80"}
    done = subprocess.run([*words, "--quick"], cwd=tmp_path, env=eighty, capture_output=True, text=True)
    shown = "\n".join(line.rstrip() for line in done.stdout.splitlines())
    assert shown.startswith(first[1].strip())
