"""How claims about growing n are known: claims that are called certified have certificates, which hold."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from command import invoke
from separatrix.checker import check_file
from separatrix.claims import CLAIMS, _base, _tools, check_claim, claim_named
from separatrix.claims._evidence import COMPUTED, EVIDENCE
from separatrix.exact.outputs.growth_laws import GrowthLaw

CERTIFIED = [name for name, text in EVIDENCE.items() if re.search(r"certified (for|\()", text)]
GROWTH = re.compile(r"n grows|large n|tends|limit|(every|any) n|from some n|O\(log|Θ|like 1/|finite n")
"""Words of statements about growing n."""


def test_every_statement_about_growing_n_says_how_it_is_known() -> None:
    assert {*EVIDENCE} <= {claim.name for claim in CLAIMS}
    for claim in CLAIMS:
        kinds = re.match(r"(proved|extrapolated|sampled|computed)\b", claim.evidence)
        assert kinds is not None, claim.name
        if claim.evidence == COMPUTED:
            assert not GROWTH.search(claim.statement), claim.name
        if kinds[1] in ("extrapolated", "sampled"):
            assert ":" in claim.evidence, f"{claim.name} does not say why"


@pytest.mark.parametrize("name", CERTIFIED)
def test_certified_claims_have_certificates(name: str) -> None:
    finding = check_claim(claim_named(name)).finding
    verified = [point for point in finding.points if "verified" in point.measured]
    assert len(finding.certificates) == len(verified) > 0
    assert all(point.holds for point in verified)


@pytest.mark.parametrize("name", sorted({*EVIDENCE} - {*CERTIFIED} - {"rough", "recall-state"}))
@pytest.mark.exhaustive
def test_other_claims_have_none(name: str) -> None:
    assert check_claim(claim_named(name)).finding.certificates == ()


def test_certificates_of_a_claim_are_written(tmp_path: Path) -> None:
    result = invoke("claim", "firing-probability", "--certificates", str(tmp_path))
    assert result.returncode == 0
    assert "evidence: proved and certified (S1)" in " ".join(result.stdout.split())
    files = sorted(tmp_path.iterdir())
    assert [file.name for file in files] == [f"firing-probability-{i}.json" for i in (1, 2, 3)]
    assert all(check_file(file).holds for file in files)
    result = invoke("claim", "ties", "--certificates", str(tmp_path / "none"))
    assert (result.returncode, "there is no folder" in result.stderr) == (2, True)


@pytest.mark.parametrize("name", ["firing-probability", "margin-linear", "taylor-order"])
def test_a_certificate_that_does_not_hold_fails_its_claim(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(document: Any) -> Any:
        document["from"] = document["from"] - 1
        return check(document)

    check = _base.check_document
    monkeypatch.setattr(_base, "check_document", refuse)
    finding = check_claim(claim_named(name)).finding
    assert finding.status.value == "fails"


def test_a_law_that_is_not_known_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_law(*_: object) -> GrowthLaw | None:
        return None

    monkeypatch.setattr(_tools, "margin_law", no_law)
    assert "no law is known for linear" in check_claim(claim_named("margin-linear")).finding.summary
