"""Verification of a certificate file, whatever it states."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from separatrix.checker import boundary, proof, theorems
from separatrix.checker.certificate import is_certificate
from separatrix.checker.check import Report, check
from separatrix.checker.document import read_file
from separatrix.core.errors import UsageError

CHECKS: dict[str, Callable[[Any], Report]] = {
    boundary.FORMAT: boundary.check_boundary,
    proof.FORMAT: proof.check_proof,
    **dict.fromkeys(theorems.FIELDS, theorems.check_theorem),
}


def check_file(path: Path) -> Report:
    """Verify the certificate in a file, or raise a UsageError if the file contains none."""
    document = read_file(path)
    if not is_certificate(document):
        raise UsageError(f"{path} is no certificate: it is not an object with the fields format and version")
    return check_document(document)


def check_document(document: Any) -> Report:
    """Verify a certificate given as a JSON value with a format."""
    return CHECKS.get(str(document["format"]), check)(document)
