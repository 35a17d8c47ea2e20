"""What several tests expect: a command refused in one line, a claim that notices what is broken."""

from __future__ import annotations

import json
import math
from collections.abc import Container, Iterable
from pathlib import Path
from typing import Any

import pytest

from command import call_main
from separatrix.claims import Claim, ClaimStatus, Entry, Finding, Ledger


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """Call `separatrix` in this process."""
    code = call_main(*words)
    shown = capsys.readouterr()
    return code, shown.out, shown.err


def assert_refused(capsys: pytest.CaptureFixture[str], complaint: str, folder: Path, *words: str) -> None:
    """Bad input gets one line that complains, exit code 2, and leaves nothing behind."""
    code, out, err = run(capsys, *words)
    assert (code, out) == (2, "")
    assert complaint in err
    assert err.startswith("separatrix: ")
    assert err.count("\n") == 1
    assert list(folder.iterdir()) == []


def assert_fails(claim: Claim) -> None:
    """The check notices what was broken, and says where."""
    finding = claim.check()
    assert finding.status is ClaimStatus.FAILS
    assert any(not point.holds for point in finding.points)
    json.dumps(Ledger((Entry(claim, finding, 0.0),)).as_json(), allow_nan=False)


def assert_plain_json(claim: Claim, finding: Finding) -> None:
    """The row of a claim in the ledger is JSON: numbers are finite, and integers are exact as floats."""
    (row,) = json.loads(json.dumps(Ledger((Entry(claim, finding, 0.0),)).as_json(), allow_nan=False))
    assert row["name"] == claim.name
    for point in row["points"]:
        measured, parameters = point["measured"].values(), point["parameters"].values()
        assert all(not isinstance(value, float) or math.isfinite(value) for value in measured)
        assert all(isinstance(value, str) or value < 2**53 for value in parameters)


def by_tier(names: Iterable[str], slow: Container[str]) -> list[Any]:
    """Parameters of a test; those that take long belong to the exhaustive tier."""
    return [pytest.param(name, marks=[pytest.mark.exhaustive] if name in slow else []) for name in names]
