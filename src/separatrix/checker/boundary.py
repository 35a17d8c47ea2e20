"""A certificate of a boundary, verified: both ends, and that P lies on different sides of the level there."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from separatrix.checker.certificate import is_certificate, read
from separatrix.checker.check import Report, check, same_digest
from separatrix.checker.document import MOST_DIGITS, Malformed, exact, fields, word
from separatrix.checker.probability import network, neuron

FORMAT = "separatrix boundary certificate"
VERSION = 1
FIELDS = ("format", "version", "parameter", "at", "crossings", "sha256")
MOST_CROSSINGS = 1000
FOLLOWS = {"c": ("tau",), "d": ("n",)}
"""What may differ between two ends besides the parameter itself: tau = c + 0.1, and n a multiple of d-2."""


def is_boundary(document: object) -> bool:
    """Whether it says that it is one."""
    return isinstance(document, dict) and document.get("format") == FORMAT


def check_boundary(document: object) -> Report:
    """Verify a certificate of a boundary given as the value of its JSON."""
    try:
        body = fields(document, "the certificate", FIELDS)
        if type(body["version"]) is not int or body["version"] != VERSION:
            raise Malformed(f"version is not {VERSION}, the one this checker knows")
        at = exact(body["at"], "at", MOST_DIGITS)
        if not 0 < at < 1:
            raise Malformed("at does not lie between 0 and 1")
        if type(body["parameter"]) is not str:
            raise Malformed("parameter is not text")
        crossings = body["crossings"]
        if not isinstance(crossings, list) or not 1 <= len(crossings) <= MOST_CROSSINGS:
            raise Malformed(f"crossings is not a list of 1 to {MOST_CROSSINGS} entries")
        reports = [
            _crossing(each, body["parameter"], at, f"crossing {i}: ") for i, each in enumerate(crossings, 1)
        ]
    except Malformed as fault:
        return Report(0, [str(fault)])
    whole = same_digest(body)
    failed = [line for report in reports for line in report.failed]
    return Report(
        sum(report.verified for report in reports) + whole, failed if whole else ["sha256 is wrong", *failed]
    )


def _crossing(value: object, parameter: str, at: Fraction, where: str) -> Report:
    """Both ends by themselves, that they differ in the parameter alone, and their sides."""
    stated = fields(value, f"{where}the crossing", ("direction", "lo", "hi"))
    rises = word(stated["direction"], f"{where}direction", ("up", "down")) == "up"
    verified, failed = 0, []
    for end in ("lo", "hi"):
        if not is_certificate(stated[end]):
            raise Malformed(f"{where}{end} is no certificate")
        report = check(stated[end])
        verified += report.verified
        failed += [f"{where}{end}: {line}" for line in report.failed]
    if failed:
        return Report(verified, failed)
    lo, hi = stated["lo"], stated["hi"]
    statements = {
        "that the ends differ in the parameter alone": _alike(lo, hi, parameter),
        "that lo is less than hi": _value(lo, parameter) < _value(hi, parameter),
        "the side of lo": _above(lo, at) is (not rises),
        "the side of hi": _above(hi, at) is rises,
    }
    wrong = [f"{where}{statement} cannot be verified" for statement, holds in statements.items() if not holds]
    return Report(verified + len(statements) - len(wrong), wrong)


def _alike(lo: dict[str, Any], hi: dict[str, Any], parameter: str) -> bool:
    """Construction, mechanism and all other parameters are the same."""
    free = {parameter, *FOLLOWS.get(parameter, ())}
    if parameter in lo["mechanism"]:
        free = {parameter}
    return all(
        one == other or (name in ("parameters", "mechanism") and _same_but(one, other, free))
        for name, one, other in (
            (name, lo[name], hi[name]) for name in ("construction", "mechanism", "parameters")
        )
    )


def _same_but(one: dict[str, Any], other: dict[str, Any], free: set[str]) -> bool:
    return one.keys() == other.keys() and all(one[name] == other[name] for name in one.keys() - free)


def _value(end: dict[str, Any], parameter: str) -> Fraction:
    found = {**end["mechanism"], **end["parameters"]}.get(parameter)
    if parameter == "name" or found is None:
        raise Malformed("parameter is not one of the parameters of the ends")
    return Fraction(found) if type(found) is int else exact(found, "the parameter", MOST_DIGITS)


def _above(end: dict[str, Any], at: Fraction) -> bool | None:
    """Whether P is at or above the level; None where the enclosure does not decide it."""
    stated = read(end)
    low, high = network(*neuron(stated.model, stated.thresholds), stated.m)[2]
    return True if low >= at else False if high < at else None
