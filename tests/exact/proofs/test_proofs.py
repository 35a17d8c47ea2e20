"""Proofs for every n: published values, statements, certificates and refusals."""

from __future__ import annotations

import json
import time
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import separatrix as sx
from expectations import assert_refused, run
from separatrix.core.errors import EngineRefusal, UsageError
from separatrix.core.numbers.json import json_file
from separatrix.exact.engines.outcome import Neuron
from separatrix.exact.proofs import OpenProof, Proof, certify_proof, coq_development, prove
from separatrix.exact.proofs.lines import first_where
from separatrix.exact.proofs.proof import Stretch
from separatrix.exact.verdicts.certificate import digest

HARD: dict[str, Any] = {"d": 602, "m": 17, "a0": "0.05", "a1": "0.62", "b": "0.5", "c": "0.51"}
"""The point of the theorem's claims whose a1 (a1+b+c) = 1.01 hardly exceeds 1."""


def test_softmax_distinguishes_at_every_n_of_the_reference_point() -> None:
    proof = prove("spike", "softmax")
    assert (proof.word, proof.start, proof.counterexample) == ("distinguishes", 1000, None)
    assert 0.9997544 < proof.least <= proof.most < 0.9997549
    assert len(proof.pieces) == 9  # of one neuron; P itself has three values
    assert [jump.n for jump in proof.jumps] == [1000, 80900, 576_077_384_348_600]
    assert (proof.last_jump, proof.limit) == (576_077_384_348_600, proof.least)


def test_linear_is_blind_and_silent_from_1600_on() -> None:
    proof = prove("spike", "linear")
    assert (proof.word, proof.last_jump, proof.limit) == ("blind", 1600, 0)
    assert proof.stretches[-1].neuron.only == 0


def test_a_false_statement_names_its_first_counterexample_and_the_verdict_that_holds_for_ever() -> None:
    proof = prove("spike", "softmax", a1="0.8", verdict="distinguishes")
    assert (proof.word, proof.counterexample, proof.is_proved) == (None, 1200, False)
    assert [sx.verdict("spike", "softmax", a1="0.8", n=n).word for n in (1100, 1200)] == ["distinguishes", "partial"]
    final = proof.eventually
    assert final.verdict == "blind"
    words = [sx.verdict("spike", "softmax", a1="0.8", n=n).word for n in (final.start - 100, final.start)]
    assert words == ["partial", "blind"]


def test_linear_is_not_blind_for_ever_without_the_width() -> None:
    proof = prove("spike", "linear", d=7, m=5, a0=0, a1=1, b="0.1", c="0.2", start=110)
    assert (proof.word, len(proof.jumps), proof.last_jump) == ("partial", 1, None)
    assert proof.limit == pytest.approx(0.0385, abs=5e-5)


def test_a_hard_point_in_seconds() -> None:
    started = time.process_time()
    proof = prove("spike", "softmax", HARD)
    certificate = json_file(certify_proof(proof))
    assert time.process_time() - started < 10
    assert len(certificate) <= 1_000_000
    assert proof.word is None
    assert proof.eventually.verdict == "distinguishes"
    assert 4.2e75 < proof.eventually.start < 4.3e75
    assert prove("spike", "softmax", HARD, start=proof.eventually.start).word == "distinguishes"
    before = prove("spike", "softmax", HARD, start=proof.eventually.start - 600)
    assert (before.start, before.counterexample, before.claimed) == (
        *(proof.eventually.start - 600, proof.eventually.start),
        "partial",
    )


def test_a_requested_verdict_fails_at_the_first_n_if_it_is_another() -> None:
    proof = prove("spike", "linear", verdict="distinguishes")
    assert (proof.word, proof.counterexample, proof.is_proved) == ("blind", 1000, False)
    assert "does not distinguish" in proof.statement
    assert prove("spike", "linear", verdict="blind").is_proved


def test_the_first_admissible_n_is_used_and_said() -> None:
    proof = prove("spike", "softmax", start="n=1001")
    assert (proof.start, proof.asked_from) == (1100, 1001)
    assert "1001" in proof.remarks[0]
    assert "1100" in proof.remarks[0]
    assert prove("spike", "softmax", n=1100).as_json() | {"taken": 0, "remarks": 0} == proof.as_json() | {
        "taken": 0,
        "remarks": 0,
    }


def test_json_is_as_documented() -> None:
    document = prove("spike", "softmax", a1="0.8").as_json()
    assert document.keys() >= {
        *("construction", "mechanism", "parameters", "from", "verdict", "least", "most", "jumps", "limit"),
        *("last_jump", "eventually", "counterexample", "evidence"),
    }
    assert "n" not in document["parameters"]
    assert document["jumps"][0] == {"n": 1000, "distinguish": document["most"]}
    assert document["eventually"].keys() == {"verdict", "from"}
    values = [jump["distinguish"] for jump in document["jumps"]]
    assert (min(values), max(values), values[-1]) == (document["least"], document["most"], document["limit"])
    assert document["last_jump"] == document["jumps"][-1]["n"]
    assert [jump["n"] for jump in document["jumps"]] == sorted({jump["n"] for jump in document["jumps"]})


def test_p_is_constant_where_only_p1_changes_and_where_no_neuron_fires_on_d1_alone() -> None:
    proof = prove("spike", "softmax")
    assert len({piece.neuron.p1 for piece in proof.pieces}) > len({piece.neuron.p0 for piece in proof.pieces})
    silent = prove("spike", "linear", d=12, a0=0, a1="0.001", b="0.2", c="0.1", m=10**30, start=10)
    assert silent.jumps[-1].distinguish == 0


@pytest.mark.parametrize("m", [1, 10**6, 10**30])
def test_any_number_of_sign_vectors(m: int) -> None:
    proof = prove("spike", "softmax", m=m)
    verdict = sx.verdict("spike", "softmax", m=m, n=10**20)
    assert (proof.eventually.verdict, proof.limit) == (verdict.word, verdict.outcome.distinguish)


def test_several_mechanisms_with_open_ones() -> None:
    proofs = prove("spike", "softmax,linear,gla,relu")
    assert [type(item) for item in proofs] == [Proof, Proof, OpenProof, OpenProof]
    assert proofs["linear"].word == "blind"  # type: ignore[union-attr]
    document = proofs.as_json()
    assert [item["verdict"] for item in document] == ["distinguishes", "blind", "open", "open"]
    assert "separatrix verdict" in document[2]["evidence"]


@pytest.mark.parametrize(
    ("mechanism", "parameters", "names", "instead"),
    [
        ("relu", {}, "softmax (any temperature), linear, power (integer beta) or taylor", "separatrix verdict"),
        ("taylor:order=13", {}, "an order of at most 12, not 13", "separatrix verdict"),
        ("taylor:order=12", {"a1": f"1.{'37' * 900}"}, "amplitudes of fewer digits", "separatrix verdict"),
        ("power:beta=100000", {}, "at most 131,072 bits", "separatrix verdict"),
        ("gla", {}, "not gla", "separatrix verdict"),
        ("power:beta=3/2", {}, "integer beta", "separatrix verdict"),
    ],
)
def test_open_questions_name_the_hypothesis(
    mechanism: str, parameters: dict[str, str], names: str, instead: str
) -> None:
    with pytest.raises(EngineRefusal, match=r"^open: ") as refusal:
        prove("spike", mechanism, parameters)
    assert names in str(refusal.value)
    assert instead in str(refusal.value)


def test_other_constructions_are_open() -> None:
    with pytest.raises(EngineRefusal, match="needs the construction spike or cross, not location"):
        prove("location", "softmax")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("spike softmax m=n", "m=n grows with n, and the proof needs a fixed m"),
        ("spike softmax m=3*log(n)", "tends to 0 as m grows"),
        ("spike softmax d=n/10", "needs a fixed d"),
        ("spike softmax m=nan", "m=nan is not a finite number"),
        ("spike softmax --from 2", "n must be 3 or more"),
        ("spike softmax --from n=0", "n must be 3 or more"),
        ("spike softmax --from many", "n=many is not a number"),
        ("spike softmax --from a1=2", "the first n (--from) is written n=1000 or 1000, not a1=2"),
        ("spike softmax a1=1.2:1.5", 'a1=1.2:1.5 is not a number; ranges go into --for "a1=1.2:1.5"'),
        ("spike softmax m=2:3", "m=2:3 is not a number; give one value"),
        ("cross softmax a1=1.2:1.5", "a1=1.2:1.5 is not a number; give one value"),
        ("spike softmax --certificate p.json --out ./p.json", "--certificate and --out would write the same file"),
        ("spike softmax --certificate p.v --coq p.v", "--certificate and --coq would write the same file, p.v"),
        ("spike softmax n=1000 --from 2000", "the first n is given twice"),
        ("spike softmax from=2000", "from is an option; write --from 2000"),
        ("spike softmax --verdict good", "good is no verdict that can be proved"),
        ("spike softmax --delta 0.7", "delta=0.7 is out of range"),
        ("spike softmax,linear --certificate p.json", "a certificate is of one mechanism, not of 2"),
        ("spike softmax a1=0", "a1=0 is out of range"),
        ("spike softmax --out p.html", "p.html"),
        ("spike window:size=3", "open: "),
        ("spike softmax x=1", "spike has no parameter x"),
    ],
)
def test_bad_requests_are_refused_in_one_line(
    words: str, complaint: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert_refused(capsys, complaint, tmp_path, "prove", *words.split())


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        ({"a0": 0, "d": 4, "b": "1e-6", "c": 1, "a1": 5, "m": 1000}, "P > 0.999999"),  # 1 - 2^-1000
        ({"m": "1e30"}, "P < 10⁻³⁰⁰"),
        ({"a0": 0, "d": 4, "b": "1e-6", "c": 1, "a1": 5, "m": 1}, "P = 0.5"),
    ],
)
def test_only_an_exact_probability_is_equal_to_0_or_1(parameters: Any, text: str) -> None:
    proof = prove("spike", "softmax", parameters)
    assert text in f"{proof.statement} {proof.final_statement}"
    assert "P = 0 " not in f"{proof.statement} "
    assert "P = 1 " not in f"{proof.statement} "


def test_exact_0_and_1_are_equalities() -> None:
    def relation(p0: Fraction, only: Fraction, distinguish: float) -> str:
        return Stretch(100, Neuron(p0, p0 + only, only), distinguish, "partial").relation()

    zero, one, tiny = Fraction(0), Fraction(1), Fraction(1, 10**400)
    assert relation(Fraction(1, 2), zero, 0.0) == relation(one, zero, 0.0) == "= 0"
    assert relation(zero, one, 1.0) == "= 1"
    assert relation(zero, tiny, 0.0) == "< 10⁻³⁰⁰"
    assert relation(tiny, 1 - tiny, 1.0) == "> 0.999999"


def test_thresholds_beyond_the_largest_n_are_refused() -> None:
    with pytest.raises(EngineRefusal, match=r"open: a firing threshold changes beyond n = 10\^4000"):
        prove("spike", "softmax", a1="0.86", b="0.2", c="0.1028", d=12)  # s1 - 1 = 8e-6


def test_questions_that_would_take_hours_are_refused_at_once() -> None:
    started = time.process_time()
    with pytest.raises(EngineRefusal, match="open: up to 400,160 changes of firing thresholds"):
        prove("spike", "taylor:order=12", form="identity", d=20_002, n=20_000)
    assert time.process_time() - started < 5


@pytest.mark.parametrize(
    ("construction", "mechanism", "parameters"),
    [("cross", "softmax", {}), ("spike", "taylor:order=2", {}), ("spike", "softmax", {"form": "identity"})],
)
def test_other_cases_are_not_for_coq(construction: str, mechanism: str, parameters: Any) -> None:
    certificate = certify_proof(prove(construction, mechanism, parameters, d=12, n=10))
    with pytest.raises(EngineRefusal, match="Coq verifies spike with form=ones and softmax, linear or power"):
        coq_development(certificate)


def test_the_command_states_the_result_first(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "prove", "spike", "softmax,linear")
    assert code == 0
    assert out.startswith("softmax distinguishes D0 from D1 for every n >= 1000 (d=102, m=12)")
    assert "linear is blind for every n >= 1000" in out
    assert "576077384348600  0.9997544558    distinguishes, for ever" in out


@pytest.mark.parametrize(("verdict", "code"), [("distinguishes", 1), ("blind", 0)])
def test_a_requested_verdict_decides_the_exit_code(verdict: str, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "prove", "spike", "linear", "--verdict", verdict)[0] == code
    assert run(capsys, "prove", "spike", "linear,gla", "--verdict", verdict)[0] == 1  # gla is open


def test_certificates_have_the_documented_fields(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "proof.json"
    assert run(capsys, "prove", "spike", "softmax", "a1=0.8", "--certificate", str(path))[0] == 0
    certificate = json.loads(path.read_text())
    assert list(certificate) == [
        *("format", "version", "construction", "mechanism", "parameters", "from", "delta", "lines", "table"),
        *("verdict", "eventually", "counterexample", "requested", "sha256"),
    ]
    assert certificate.pop("sha256") == digest(certificate)
    assert certificate["mechanism"] == {"name": "softmax", "temperature": "1"}
    assert certificate["parameters"] == {
        "d": 102,
        "m": 12,
        "a0": "0.01",
        "a1": "0.8",
        "b": "0.2",
        "c": "0.1",
        "tau": "0.2",
        "form": "ones",
    }
    assert (certificate["from"], certificate["verdict"], certificate["counterexample"]) == (1000, None, 1200)
    lines = certificate["lines"]
    assert len({(line["label"], *line["signs"], line["row"]) for line in lines}) == len(lines) == 32
    assert {line["own_sign"] for line in lines} == {0}
    for line in lines:
        steps = line["steps"]
        assert steps[0][0] == 10
        assert [t for t, _ in steps] == sorted({t for t, _ in steps})
        assert all(a[1] != b[1] for a, b in pairwise(steps))
        assert all(0 <= least <= 100 for _, least in steps)
    changes = {t for line in lines for t, _ in line["steps"]}
    assert {t for t, *_ in certificate["table"]} <= changes
    for _, p0, p1, only in certificate["table"]:
        assert Fraction(p0) + Fraction(only) <= 1
        assert Fraction(only) <= Fraction(p1)
        assert all((value.denominator & (value.denominator - 1)) == 0 for value in (Fraction(p0), Fraction(p1)))


@pytest.mark.parametrize(
    ("construction", "parameters", "rows", "count"),
    [
        ("spike", {}, {"spike", "rest"}, 32),
        ("spike", {"form": "identity"}, {"spike", "mate", "other"}, 64),
        ("cross", {}, {"query"}, 16),
    ],
)
def test_each_kind_of_row_has_its_lines(construction: str, parameters: Any, rows: set[str], count: int) -> None:
    certificate = certify_proof(prove(construction, "power:beta=4", parameters))
    assert certificate["mechanism"] == {"name": "power", "beta": "4"}
    assert {line["row"] for line in certificate["lines"]} == rows
    assert not any(line["turns"] for line in certificate["lines"])
    assert len(certificate["lines"]) == count


def test_rows_of_mates_begin_where_blocks_have_two_tokens() -> None:
    lines = prove("spike", "softmax", form="identity", d=12, start=10).lines
    assert {(line.row, line.start) for line in lines} == {("spike", 1), ("mate", 2), ("other", 1)}


def test_a_certificate_beyond_the_size_that_the_checker_reads_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("separatrix.exact.proofs.certificate.MAX_BYTES", 1000)
    with pytest.raises(EngineRefusal, match="the certificate would have"):
        certify_proof(prove("spike", "linear"))


def test_bounds_in_statements_are_rounded_outwards() -> None:
    statement = prove("spike", "softmax").statement
    assert Fraction(statement.rpartition(" ")[2]) <= Fraction(prove("spike", "softmax").least)
    assert "P >= 0.999754" in statement


def test_an_undecided_tie_is_never_guessed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("separatrix.exact.proofs.sums.precisions", lambda n: [8])
    with pytest.raises(EngineRefusal, match=r"undecided at n = \S+: the sign of a power sum is open"):
        prove("spike", "softmax", a1="0.8")


@pytest.mark.parametrize("near", [-5, 0, 3, 4, 9_999, 10_000, 10_001, 10**40])
@pytest.mark.parametrize("high", [None, 20_000])
def test_a_search_finds_the_first_from_any_estimate(near: int, high: int | None) -> None:
    assert first_where(lambda t: t >= 10_000, 3, high, near) == 10_000
    assert first_where(lambda t: t >= 4, 3, high, near) == 4


def test_pictures_end_in_all_larger_n(tmp_path: Path) -> None:
    axes = prove("spike", ["softmax", "linear"]).plot()
    assert "for all\nlarger n" in [text.get_text() for text in axes.texts]
    assert axes.get_xscale() == "log"
    assert [line.get_label() for line in axes.get_legend().get_lines()] == ["softmax", "linear"]
    far = prove("spike", "softmax", start="1e400")
    assert far.plot().get_xlabel().startswith("log₁₀ n")


def test_a_wrong_verdict_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="no verdict that can be proved"):
        prove("spike", "softmax", verdict="undecided")
