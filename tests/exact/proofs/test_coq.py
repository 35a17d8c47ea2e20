"""Proofs in Coq: the theorem is the verdict of the network's definition, and Coq rejects false ones."""

from __future__ import annotations

import copy
import json
import os
import re
import shutil
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from command import invoke
from proof_oracle import PROOF_POINTS, proof, sealed
from separatrix.core.errors import EngineRefusal, UsageError
from separatrix.exact.proofs import certify_proof, coq_development, prove
from separatrix.exact.proofs.coq import embedded_certificate, theorem_of
from separatrix.exact.proofs.coqc import KNOWN_AXIOMS, run_coq

Json = Any
GOLDEN = Path(__file__).with_name("network_definitions.v")
with_coq = pytest.mark.skipif(shutil.which("coqc") is None, reason="Debian's coq and libcoq-interval are not installed")

THEOREMS = {
    "readme": (
        "forall t : nat, (10 <= Z.of_nat t)%Z -> "
        "99 / 100 <= probability 100 (1 / 5) (1 / 10) (1 / 5) (softmax 1) (1 / 100) (6 / 5) 12 t."
    ),
    "readme, linear": (
        "forall t : nat, (10 <= Z.of_nat t)%Z -> "
        "probability 100 (1 / 5) (1 / 10) (1 / 5) (power 1) (1 / 100) (6 / 5) 12 t <= 1 / 100 /\\ "
        "probability_of_both 100 (1 / 5) (1 / 10) (1 / 5) (power 1) (1 / 100) (6 / 5) 12 t < 1 / 2."
    ),
    "power": (
        "forall t : nat, (17 <= Z.of_nat t)%Z -> "
        "probability 4 (11 / 20) (3 / 10) (2 / 5) (power 3) (1 / 20) (7 / 10) 5 t <= 1 / 100 /\\ "
        "1 / 2 <= probability_of_both 4 (11 / 20) (3 / 10) (2 / 5) (power 3) (1 / 20) (7 / 10) 5 t."
    ),
    "cold": (
        "forall t : nat, (3 <= Z.of_nat t)%Z -> "
        "1 / 100 < probability 2 (11 / 20) (3 / 10) (2 / 5) (softmax (1 / 4)) (1 / 20) (7 / 10) 1 t < 99 / 100."
    ),
}
CLASSICAL = {
    "ClassicalDedekindReals.sig_not_dec",
    "ClassicalDedekindReals.sig_forall_dec",
    "FunctionalExtensionality.functional_extensionality_dep",
    "Classical_Prop.classic",
}


@pytest.mark.parametrize("name", THEOREMS)
def test_the_theorem_is_the_verdict(name: str) -> None:
    assert theorem_of(coq_development(proof(name))) == THEOREMS[name]


def test_the_definitions_in_the_theorem_are_those_of_the_network() -> None:
    """Whoever changes a definition that the theorem uses has to change this golden text, and read it."""
    text = coq_development(proof("readme"))
    start, end = text.index("(** The sum of f(0)"), text.index("(** * 2. Sums *)")
    scores = re.findall(r"^Definition (?:softmax|power) .*$", text, re.MULTILINE)
    assert f"{text[start:end].rstrip()}\n\n" + "\n".join(scores) + "\n" == GOLDEN.read_text()


@pytest.mark.parametrize("name", PROOF_POINTS)
def test_a_development_contains_its_certificate_and_no_axiom(name: str) -> None:
    document = proof(name)
    text = coq_development(document)
    certificate = embedded_certificate(text)
    assert certificate is not None
    assert all(line.isprintable() and line == line.rstrip() for line in text.split("\n"))
    assert json.loads(certificate) == document
    assert coq_development(json.loads(certificate)) == text
    code = re.sub(r"\(\*.*?\*\)", "", text, flags=re.DOTALL)
    assert not re.search(r"\b(Axiom|Parameter|Conjecture|Admitted|admit|Abort|Load|Redirect|Extraction)\b", code)
    assert max(map(len, text.splitlines()[:12])) < 125


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"parameters": {"m": 4000}}, "24,000 bits"),
        ({"parameters": {"d": 1006}}, "d up to 1,000"),
        ({"eventually": None}, "no verdict holds for ever"),
        ({"mechanism": {"name": "power", "beta": "2000"}}, "integer beta"),
    ],
)
def test_what_coq_cannot_verify_in_reasonable_time_is_refused(change: Json, reason: str) -> None:
    document = copy.deepcopy(proof("linear"))
    for field, value in change.items():
        document[field] = {**document[field], **value} if isinstance(value, dict) else value
    with pytest.raises(EngineRefusal, match=reason):
        coq_development(document)


def fake_coqc(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a program named coqc first on the path."""
    file = folder / "coqc"
    file.write_text(f'#!/bin/sh\nif [ "$1" = --print-version ]; then echo 8.16.1 4.13.1; exit; fi\n{script}\n')
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


def test_axioms_that_are_not_known_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_coqc(
        tmp_path, "printf 'Axioms:\\nClassical_Prop.classic : forall P\\nchance_is_one\\n  : 1 = 2\\n'", monkeypatch
    )
    report = run_coq("")
    assert report.axioms == ("Classical_Prop.classic", "chance_is_one")
    assert report.failure == "the theorem rests on the unknown axiom chance_is_one"
    fake_coqc(tmp_path, "echo", monkeypatch)
    assert run_coq("").failure == "Coq did not print the axioms of the theorem"


def test_an_error_names_the_lemma(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = "echo 'File \"./x.v\", line 3, characters 2-9:\nError: Cannot find\n  witness.' >&2; exit 1"
    fake_coqc(tmp_path, script, monkeypatch)
    report = run_coq("Lemma first : True.\nLemma second : 1 = 2.\nProof.\nLemma third : True.\n")
    assert report.failure == "Coq does not accept second, line 3: Cannot find witness."


def test_a_missing_library_is_told_how_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = "echo 'Error: Cannot find a physical path bound to logical path Tactic with prefix Interval.' >&2; exit 1"
    fake_coqc(tmp_path, script, monkeypatch)
    with pytest.raises(UsageError, match="apt-get install --no-install-recommends coq libcoq-interval"):
        run_coq("")


def test_coq_is_ended_when_its_time_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_coqc(tmp_path, "exec sleep 600", monkeypatch)
    started = time.monotonic()
    assert run_coq("", seconds=0.5).failure == "Coq did not finish within 0.5 seconds"
    assert time.monotonic() - started < 300


def test_without_coq_the_command_says_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "proof.v"
    file.write_text(coq_development(proof("linear")))
    monkeypatch.setattr(shutil, "which", lambda _: None)
    result = invoke("check", str(file))
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1
    assert "apt-get install --no-install-recommends coq libcoq-interval" in result.stderr


def test_the_command_writes_the_development_of_its_certificate(tmp_path: Path) -> None:
    coq, certificate = tmp_path / "proof.v", tmp_path / "proof.json"
    words = (
        "prove",
        "spike",
        "softmax",
        "a1=0.8",
        "--from",
        "n=1000",
        "--coq",
        str(coq),
        "--certificate",
        str(certificate),
    )
    result = invoke(*words)
    assert result.returncode == 0
    assert coq.read_text() == coq_development(json.loads(certificate.read_text()))
    shown = " ".join(result.stdout.split())
    assert (
        f"for the theorem that it is blind for ever from n = 40582980000 on; verify it with: separatrix check {coq}"
        in (shown.replace("- ", "-"))
    )


@pytest.mark.parametrize(
    ("words", "complaint"),
    [(("softmax", "--coq", "proof.txt"), ".v"), (("softmax,linear", "--coq", "proof.v"), "of one mechanism, not of 2")],
)
def test_other_files_and_several_mechanisms_are_refused(words: tuple[str, ...], complaint: str, tmp_path: Path) -> None:
    result = invoke("prove", "spike", *words, cwd=tmp_path)
    assert (result.returncode, result.stdout) == (2, "")
    assert complaint in result.stderr
    assert result.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


FOREIGN: dict[str, Callable[[str], str]] = {
    "another file": lambda _: "Theorem separatrix_verdict : True.\nProof. exact I. Qed.\n",
    "empty": lambda _: "",
    "no JSON": lambda text: text.replace('{"construction"', '"construction"'),
    "no proof": lambda text: re.sub(r"certificate: .*", "certificate: {}", text),
    "an injected command": lambda text: text.replace('"d":6', '"d":"6). Redirect \\"x\\" Print nat. (*"'),
}


@pytest.mark.parametrize("change", FOREIGN.values(), ids=FOREIGN)
def test_other_coq_files_are_not_run(
    change: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_coqc(tmp_path, f"touch {tmp_path}/ran", monkeypatch)
    file = tmp_path / "proof.v"
    file.write_text(change(coq_development(proof("linear"))))
    result = invoke("check", str(file))
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1
    assert "was not written by separatrix prove --coq" in result.stderr
    assert not (tmp_path / "ran").exists()


ALTERED: dict[str, Callable[[str], str]] = {
    "a command before": lambda text: text.replace("Open Scope", 'Redirect "x" Print nat.\nOpen Scope', 1),
    "a command after": lambda text: f'{text}Redirect "x" Print nat.\n',
    "another theorem": lambda text: text.replace("<= 1 / 100 /\\", "<= 1 / 10 /\\"),
    "another definition": lambda text: text.replace(
        "Definition relu (x : R) : R := Rmax x 0.", "Definition relu (x : R) : R := 0."
    ),
    "another certificate": lambda text: text.replace('"m":5', '"m":6'),
}


@pytest.mark.parametrize("change", ALTERED.values(), ids=ALTERED)
def test_altered_developments_are_not_run(
    change: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The text is compared with the one that its certificate gives: a Coq file can write files."""
    fake_coqc(tmp_path, f"touch {tmp_path}/ran", monkeypatch)
    file, text = tmp_path / "proof.v", coq_development(proof("linear"))
    assert change(text) != text
    file.write_text(change(text))
    result = invoke("check", str(file))
    assert result.returncode == 1
    assert "Coq was not started" in " ".join(result.stdout.split())
    assert not (tmp_path / "ran").exists()


@with_coq
@pytest.mark.exhaustive
@pytest.mark.parametrize("mechanism", ["softmax", "linear"])
def test_coq_verifies_the_proofs_of_the_readme(mechanism: str, tmp_path: Path) -> None:
    file = tmp_path / "proof.v"
    written = invoke("prove", "spike", mechanism, "--from", "n=1000", "--coq", str(file))
    assert written.returncode == 0
    before = os.times().children_user
    result = invoke("check", str(file), "--json")
    assert os.times().children_user - before < 60
    assert result.returncode == 0, result.stdout
    report = json.loads(result.stdout)
    assert report["holds"]
    assert THEOREMS["readme" if mechanism == "softmax" else "readme, linear"] in report["statement"][0]


@with_coq
@pytest.mark.exhaustive
@pytest.mark.parametrize("name", PROOF_POINTS)
def test_coq_verifies_proofs_of_every_kind(name: str) -> None:
    """Ties at perfect powers, s = 1, a spike of 0, turns, and all four verdicts."""
    mechanism, parameters, first_n = PROOF_POINTS[name]
    settings = ",".join(f"{key}={value}" for key, value in mechanism.items() if key != "name")
    word = f"{mechanism['name']}:{settings}" if settings else mechanism["name"]
    report = run_coq(coq_development(certify_proof(prove("spike", word, parameters, start=first_n))))
    assert report.failure is None
    if mechanism["name"] != "softmax":
        assert {*report.axioms} == CLASSICAL
    assert all(KNOWN_AXIOMS.fullmatch(axiom) for axiom in report.axioms)


def _move_step(document: Json) -> None:
    line = next(line for line in document["lines"] if len(line["steps"]) > 1)
    line["steps"][-1][0] += 1


def _lower_count(document: Json) -> None:
    line = next(line for line in document["lines"] if line["steps"][0][1] > 0)
    line["steps"][0][1] -= 1


def _other_verdict(document: Json) -> None:
    document["eventually"]["verdict"] = "distinguishes"


@with_coq
@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["linear", "softmax"])
@pytest.mark.parametrize(
    ("change", "place"),
    [(_move_step, "line_"), (_lower_count, "line_"), (_other_verdict, "comparisons")],
    ids=["a step moved by one", "a count lowered by one", "another verdict"],
)
def test_coq_rejects_false_statements(name: str, change: Callable[[Json], None], place: str, tmp_path: Path) -> None:
    document = proof(name)
    document["eventually"]["from"] = document["from"]
    change(document)
    file = tmp_path / "proof.v"
    file.write_text(coq_development(sealed(document)))
    result = invoke("check", str(file))
    assert result.returncode == 1
    assert f"Coq does not accept {place}" in " ".join(result.stdout.split())
