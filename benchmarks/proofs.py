"""Proofs for every n, their certificates, and their verification by Coq."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from functools import partial
from resource import RUSAGE_CHILDREN, getrusage
from typing import Any

from benchmarks._base import Line, Measurement, Skipped, at_most, attempt, ratio, require, seconds
from separatrix.checker import check, check_proof
from separatrix.core.numbers.json import json_file
from separatrix.exact.proofs import Proof, certify_proof, coq_development, prove
from separatrix.exact.proofs.coqc import run_coq
from separatrix.exact.proofs.uniform import UniformProof, prove_uniformly, theorem_ranges
from separatrix.exact.verdicts import certify, verdict

HARD = {"d": 602, "m": 17, "a0": "0.05", "a1": "0.62", "b": "0.5", "c": "0.51"}
"""Softmax with a1 (a1+b+c) = 1.01, hardly above 1: P changes 347 times."""
BOUNDS = {"softmax": "distinguishes", "linear": "blind"}
"""What holds for every n from the reference point on."""


def measure() -> Iterator[Line]:
    """Yield the measurements of this file."""
    for mechanism in BOUNDS:
        compared = partial(_relative_times, mechanism)
        yield from attempt(f"{mechanism}: proof for every n relative to one certified verdict", compared)
    yield from attempt("softmax with a1 (a1+b+c) = 1.01, d=602", _hard_point)
    yield at_most("uniform theorem, softmax and linear", lambda: seconds(_uniform_theorems), "s", 0.1)
    for mechanism in BOUNDS:
        title = f"{mechanism}: Coq verifies the proof at the reference point"
        if shutil.which("coqc") is None:
            yield Skipped(title, "coqc is not installed")
        else:
            yield at_most(title, partial(_coq_seconds, mechanism), "s CPU", 60.0)


def _relative_times(mechanism: str) -> Iterator[Measurement]:
    """Time a proof and its check, relative to a certified verdict at the same point and its check."""

    def prove_all() -> Proof:
        return prove("spike", mechanism)

    def decide_one() -> Any:
        return verdict("spike", mechanism, engine="certified")

    proof, decided = prove_all(), decide_one()
    require(proof.word == decided.word == BOUNDS[mechanism], f"the verdict for every n of {mechanism}")
    documents = certify_proof(proof), certify(decided.construction, decided.mechanism, decided.delta)[1]
    proof_document, verdict_document = (json.loads(json_file(document)) for document in documents)
    require(check_proof(proof_document).holds and check(verdict_document).holds, f"a certificate of {mechanism}")
    place = "reference point, relative to that of the certified verdict"
    yield at_most(f"{mechanism}: proof for every n at the {place}", ratio(prove_all, decide_one), "x", 3.0)
    checks = ratio(lambda: check_proof(proof_document), lambda: check(verdict_document))
    yield at_most(f"{mechanism}: check of the proof at the {place}", checks, "x", 3.0)


def _hard_point() -> Iterator[Measurement]:
    """Measure the proof and the certificate at a point with many changes of P."""

    def prove_all() -> Proof:
        return prove("spike", "softmax", HARD, start=600)

    certificate = json_file(certify_proof(prove_all()))
    require(prove_all().eventually.verdict == "distinguishes", "the verdict that holds for ever")
    require(check_proof(json.loads(certificate)).holds, "the certificate at the hard point")
    point = "softmax with a1 (a1+b+c) = 1.01, d=602"
    yield at_most(f"{point}: proof for every n", seconds(prove_all, 1), "s", 10.0)
    yield at_most(f"{point}: its certificate", len(certificate) / 1e6, "MB", 1.0)


def _uniform_theorems() -> list[UniformProof]:
    proofs = [prove_uniformly(name, theorem_ranges(name, {})) for name in BOUNDS]
    require([proof.verdict for proof in proofs] == [*BOUNDS.values()], "the uniform theorems")
    return proofs


def _coq_seconds(mechanism: str) -> float:
    """Return the CPU time in which Coq verifies the proof."""
    development = coq_development(certify_proof(prove("spike", mechanism)))
    before = getrusage(RUSAGE_CHILDREN)
    report = run_coq(development)
    after = getrusage(RUSAGE_CHILDREN)
    require(report.failure is None, f"Coq: {report.failure}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
