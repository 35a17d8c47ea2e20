"""Verification of a certificate file, for a verdict, a boundary or a proof."""

from __future__ import annotations

from pathlib import Path

from separatrix.checker.boundary import check_boundary, is_boundary
from separatrix.checker.certificate import is_certificate
from separatrix.checker.check import Report, check
from separatrix.checker.document import read_file
from separatrix.checker.proof import check_proof, is_proof
from separatrix.core.errors import UsageError


def check_file(path: Path) -> Report:
    """Verify the certificate in a file, or raise a UsageError if the file contains none."""
    document = read_file(path)
    if not is_certificate(document):
        raise UsageError(f"{path} is no certificate: it is not an object with the fields format and version")
    if is_proof(document):
        return check_proof(document)
    return check_boundary(document) if is_boundary(document) else check(document)
