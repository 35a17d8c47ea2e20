"""JSON without NaN, and words in the place of numbers that are not finite."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from separatrix.analysis import maps
from separatrix.cli.terminal import show
from separatrix.cli.verdict_tables import print_verdict
from separatrix.core.numbers.json import json_text
from separatrix.exact.engines.outcome import significant_bits
from separatrix.exact.verdicts import Verdict, verdict


def refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")


def read(text: str) -> object:
    return json.loads(text, parse_constant=refuse)


def test_what_is_not_finite_is_null_however_deep() -> None:
    value = {"a": [1.0, math.nan, (math.inf, {"b": np.float64("-inf")})], "c": "NaN", "d": None, "e": 2**80}
    assert read(json_text(value)) == {"a": [1.0, None, [None, {"b": None}]], "c": "NaN", "d": None, "e": 2**80}
    assert json_text({"ü": [1.5, math.nan]}, indent=None) == '{"ü":[1.5,null]}'


EXAMPLE = {"d": 102, "a0": "0.01", "a1": "1.2", "b": "0.2", "c": "0.1"}


@pytest.fixture
def overflown() -> Verdict:
    found = verdict("spike", "linear", {"n": 1000, "m": 12, **EXAMPLE}, noise_sd="0.5")
    return replace(found, outcome=replace(found.outcome, margin=math.nan, v1=math.nan))


def test_a_verdict_without_a_margin(overflown: Verdict, capsys: pytest.CaptureFixture[str]) -> None:
    show(overflown, True, lambda: print_verdict(overflown))
    shown = read(capsys.readouterr().out)
    assert isinstance(shown, dict)
    assert (shown["margin"], shown["bits"], shown["auc"]) == (None, None, None)
    assert shown["verdict"] == "blind"
    show(overflown, False, lambda: print_verdict(overflown))
    text = " ".join(capsys.readouterr().out.split())
    assert "not known: the scores overflow float64, or lose their digits" in text
    assert "nan" not in text


@pytest.mark.parametrize("n", ["1e100", "1e300"])
def test_taylor_of_high_order_has_its_margin(n: str) -> None:
    """Its sums overflowed, and `--json` broke on a NaN."""
    shown = verdict("plain", "taylor:order=300", {"n": n, "m": 12}).as_json()
    assert shown["margin"] == pytest.approx(1)
    assert shown["bits"] == pytest.approx(0, abs=1e-9)
    assert shown["verdict"] == "distinguishes"


def test_maps_of_bits_where_margins_are_negative_or_nothing(tmp_path: Path) -> None:
    found = maps.map("parity", ["power:beta=4"], {"n": "8:32:2", "m": "1:12:2", "a": "0.1"}, of="bits")
    found.save(tmp_path / "map.json")
    read((tmp_path / "map.json").read_text())
    assert significant_bits(np.array([2.0, 2.0]), np.array([-0.5, 0.0])).tolist() == [2.0, math.inf]
