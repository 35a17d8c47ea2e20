"""Verification of a certificate file, whatever it states."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from separatrix.checker.boundary import check_boundary, is_boundary
from separatrix.checker.certificate import is_certificate
from separatrix.checker.check import Report, check
from separatrix.checker.document import read_file
from separatrix.checker.proof import check_proof, is_proof
from separatrix.checker.theorems import FIELDS, check_theorem
from separatrix.core.errors import UsageError


def check_file(path: Path) -> Report:
    """Verify the certificate in a file, or raise a UsageError if the file contains none."""
    document = read_file(path)
    if not is_certificate(document):
        raise UsageError(f"{path} is no certificate: it is not an object with the fields format and version")
    return check_document(document)


def check_document(document: Any) -> Report:
    """Verify a certificate given as a JSON value with a format."""
    if is_proof(document):
        return check_proof(document)
    if document["format"] in tuple(FIELDS):
        return check_theorem(document)
    return check_boundary(document) if is_boundary(document) else check(document)
