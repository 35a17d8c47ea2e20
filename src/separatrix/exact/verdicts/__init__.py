"""Verdicts, what better readers could do, and certificates."""

from separatrix.exact.verdicts.certificate import certify, certify_equal_rows, write_certificate
from separatrix.exact.verdicts.lost_formats import lost_from
from separatrix.exact.verdicts.readers import Readers, Statement, Word, readers
from separatrix.exact.verdicts.several import RefusedVerdict, Verdicts, verdict
from separatrix.exact.verdicts.verdict import DELTA, Verdict

__all__ = [
    "DELTA",
    "Readers",
    "RefusedVerdict",
    "Statement",
    "Verdict",
    "Verdicts",
    "Word",
    "certify",
    "certify_equal_rows",
    "lost_from",
    "readers",
    "verdict",
    "write_certificate",
]
