"""Independent verification of certificates.

No code is shared with the engines. Rationals are `fractions.Fraction`, everything else is an mpmath interval,
and a statement that cannot be decided counts as failed.
"""

from separatrix.checker.boundary import check_boundary
from separatrix.checker.check import Report, check
from separatrix.checker.file import check_document, check_file
from separatrix.checker.proof import check_proof

__all__ = ["Report", "check", "check_boundary", "check_document", "check_file", "check_proof"]
