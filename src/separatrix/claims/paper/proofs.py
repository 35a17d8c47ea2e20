"""Statements about every n at the paper's base point: proofs, the uniform theorem, and laws of the margin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from separatrix.claims.paper.figures import BASE, MARGIN_MECHANISMS, MECHANISMS
from separatrix.constructions.spike import Spike
from separatrix.core.numbers.json import json_file
from separatrix.exact.outputs.growth_laws import GrowthLaw, margin_law
from separatrix.exact.proofs import Proof, certify_proof, coq_development, prove
from separatrix.exact.proofs.uniform import UniformProof, prove_uniformly, theorem_ranges
from separatrix.mechanisms import mechanism_named

BELOW = {**BASE, "a1": "0.8"}
"""A point where softmax distinguishes at the first n, but not at every n."""


@dataclass(frozen=True)
class ProvedStatements:
    """What is proved for every n from that of the base point on."""

    proofs: Mapping[str, Proof]
    """Proofs at fixed d, m and amplitudes, by the stem of their files."""
    theorem: tuple[UniformProof, ...]
    """Bounds for every larger d and ranges of amplitudes."""
    laws: Mapping[str, GrowthLaw]
    """Bounds of the margin, by mechanism."""

    @cached_property
    def files(self) -> Mapping[str, bytes]:
        """The files by their paths: certificates, Coq files for the base point, the theorem, and the laws."""
        certificates = {name: certify_proof(proof) for name, proof in self.proofs.items()}
        return {
            **{f"proofs/{name}.json": json_file(document) for name, document in certificates.items()},
            **{f"proofs/{name}.v": coq_development(certificates[name]).encode() for name in MECHANISMS},
            "proofs/theorem.json": json_file([proof.as_json() for proof in self.theorem]),
            "proofs/laws.json": json_file({name: law.as_json() for name, law in self.laws.items()}),
        }


def prove_statements() -> ProvedStatements:
    """Prove the statements."""
    proofs = {name: prove("spike", name, BASE) for name in MECHANISMS}
    base = Spike.read(BASE)
    laws = {name: margin_law(base, mechanism_named(name)) for name in MARGIN_MECHANISMS}
    return ProvedStatements(
        {**proofs, "softmax-below": prove("spike", "softmax", BELOW)},
        tuple(prove_uniformly(name, theorem_ranges(name, {})) for name in MECHANISMS),
        {name: law for name, law in laws.items() if law is not None},
    )
