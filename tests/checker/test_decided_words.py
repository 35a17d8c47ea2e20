"""The checker accepts a word only if it holds at both ends of the enclosures; whole numbers have a limit of digits."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from separatrix.checker import check, check_file
from separatrix.checker.probability import probabilities
from separatrix.constructions import construction_named
from separatrix.core.parameters import UsageError
from separatrix.exact.verdicts import certify
from separatrix.mechanisms import mechanism_named

DELTA = Fraction(1, 100)
HALF, LITTLE = Fraction(1, 2), Fraction(1, 10**9)
WORDS = ("distinguishes", "blind", "saturated", "partial")


@pytest.fixture(scope="module")
def certificate() -> dict[str, Any]:
    point = construction_named("spike").read(
        {"n": 40, "d": 6, "m": 5, "a0": "0.05", "a1": "0.5", "b": "0.55", "c": "0.3"}
    )
    document: dict[str, Any] = certify(point, mechanism_named("softmax"), DELTA)[1]
    return document


def sealed(document: dict[str, Any], word: str) -> dict[str, Any]:
    """The document with another verdict and the hash that belongs to it."""
    body = {**{name: value for name, value in document.items() if name != "sha256"}, "verdict": word}
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return {**body, "sha256": hashlib.sha256(text.encode()).hexdigest()}


@pytest.mark.parametrize(
    ("distinguish", "fire_d1", "word"),
    [
        ((1 - DELTA, Fraction(1)), (Fraction(1), Fraction(1)), "distinguishes"),
        ((1 - DELTA - LITTLE, Fraction(1)), (Fraction(1), Fraction(1)), None),
        ((Fraction(0), DELTA), (Fraction(0), Fraction(0)), "blind"),
        ((Fraction(0), DELTA + LITTLE), (Fraction(0), Fraction(0)), None),
        ((DELTA, DELTA), (HALF + DELTA, HALF + DELTA), "saturated"),
        ((DELTA, DELTA), (HALF + DELTA - LITTLE, HALF + DELTA - LITTLE), "blind"),
        ((DELTA, DELTA), (HALF + DELTA - LITTLE, HALF + DELTA + LITTLE), None),
        ((DELTA, DELTA), (HALF, Fraction(3, 4)), None),
        ((Fraction(0), DELTA), (HALF, HALF), None),
        ((DELTA / 2, DELTA), (HALF + DELTA, Fraction(1)), "saturated"),
        ((DELTA + LITTLE, 1 - DELTA - LITTLE), (Fraction(1), Fraction(1)), "partial"),
        ((DELTA, HALF), (Fraction(1), Fraction(1)), None),
        ((HALF, 1 - DELTA), (Fraction(1), Fraction(1)), None),
        ((Fraction(0), Fraction(1)), (Fraction(0), Fraction(1)), None),
    ],
)
def test_a_word_is_accepted_only_if_the_enclosures_decide_it(
    certificate: dict[str, Any],
    distinguish: tuple[Fraction, Fraction],
    fire_d1: tuple[Fraction, Fraction],
    word: str | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        import_module("separatrix.checker.check"),  # which the function of that name hides
        "probabilities",
        lambda *neurons: replace(probabilities(*neurons), distinguish=distinguish, fire_d1=fire_d1),
    )
    for claimed in WORDS:
        (*_, failure) = ["", *(line for line in check(sealed(certificate, claimed)).failed if "the verdict" in line)]
        if word is None:
            assert failure == f"the verdict {claimed} cannot be verified"
        else:
            assert bool(failure) == (claimed != word), failure


@pytest.mark.parametrize(("digits", "is_read"), [(4000, True), (4002, False)])
@pytest.mark.parametrize("sign", ["", "-"])
def test_whole_numbers_of_up_to_4000_digits_are_read(tmp_path: Path, sign: str, digits: int, is_read: bool) -> None:
    file = tmp_path / "file.json"
    file.write_text(f'{{"format": {sign}{"9" * digits}}}')
    with pytest.raises(UsageError) as refused:
        check_file(file)
    assert ("a number has more than 4000 digits" in str(refused.value)) is not is_read
