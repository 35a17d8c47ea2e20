"""The answer, and what stands behind it."""

from separatrix.verdicts.blind_formats import blind_from
from separatrix.verdicts.certificate import certify, write_certificate
from separatrix.verdicts.readers import Readers, Statement, Word, find_readers, readers
from separatrix.verdicts.verdict import DELTA, Verdict, find, verdict

__all__ = [
    "DELTA",
    "Readers",
    "Statement",
    "Verdict",
    "Word",
    "blind_from",
    "certify",
    "find",
    "find_readers",
    "readers",
    "verdict",
    "write_certificate",
]
