"""The answer, and what stands behind it."""

from separatrix.verdicts.certificate import certify, write_certificate
from separatrix.verdicts.lost_formats import lost_from
from separatrix.verdicts.readers import Readers, Statement, Word, readers
from separatrix.verdicts.several import Refused, Verdicts, verdict
from separatrix.verdicts.verdict import DELTA, Verdict

__all__ = [
    "DELTA",
    "Readers",
    "Refused",
    "Statement",
    "Verdict",
    "Verdicts",
    "Word",
    "certify",
    "lost_from",
    "readers",
    "verdict",
    "write_certificate",
]
