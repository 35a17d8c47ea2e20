"""What several tests expect: a command refused in one line, a claim that notices what is broken."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command import call_main
from separatrix.claims import Claim, ClaimStatus, Entry, Ledger


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
