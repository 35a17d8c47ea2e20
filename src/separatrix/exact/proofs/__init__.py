"""Statements about every n, proved; docs/proofs.md has the lemma."""

from separatrix.exact.proofs.certificate import certify_law, certify_proof, certify_uniformly
from separatrix.exact.proofs.coq import coq_development
from separatrix.exact.proofs.proof import Eventually, Jump, Proof
from separatrix.exact.proofs.request import OpenProof, Proofs, prove, prove_several

__all__ = [
    "Eventually",
    "Jump",
    "OpenProof",
    "Proof",
    "Proofs",
    "certify_law",
    "certify_proof",
    "certify_uniformly",
    "coq_development",
    "prove",
    "prove_several",
]
