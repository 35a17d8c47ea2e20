"""Proof certificates: everything needed to verify a statement for every n without this program."""

from __future__ import annotations

from typing import Any

from separatrix.core.documents import to_json
from separatrix.core.errors import EngineRefusal
from separatrix.core.numbers import format_exact
from separatrix.core.numbers.json import json_file
from separatrix.core.numbers.logforms import format_fraction
from separatrix.exact.proofs.proof import Proof
from separatrix.exact.verdicts.certificate import digest, spelled_parameters

FORMAT = "separatrix proof"
VERSION = 1
MAX_BYTES = 1 << 23
"""The checker reads no larger file."""


def certify_proof(proof: Proof) -> dict[str, Any]:
    """Return the certificate of a proof: its statement, every firing threshold and the table of probabilities."""
    parameters = proof.construction.parameters.complete_values()
    del parameters["n"]
    body = {
        "format": FORMAT,
        "version": VERSION,
        "construction": proof.construction.name,
        "mechanism": {"name": proof.mechanism.name, **spelled_parameters(proof.mechanism.parameters.complete_values())},
        "parameters": spelled_parameters(parameters),
        "from": proof.start,
        "delta": format_exact(proof.delta),
        "lines": [
            {
                "label": line.label,
                "signs": list(line.signs),
                "row": line.row,
                "own_sign": line.own_sign,
                "turns": list(line.turns),
                "steps": [list(step) for step in line.steps],
            }
            for line in proof.lines
        ],
        "table": [
            [piece.t, *map(format_fraction, (piece.neuron.p0, piece.neuron.p1, piece.neuron.only))]
            for piece in proof.pieces
        ],
        "verdict": proof.word,
        "eventually": to_json(proof.eventually),
        "counterexample": proof.counterexample,
        "requested": proof.requested,
    }
    certificate = {**body, "sha256": digest(body)}
    size = len(json_file(certificate))
    if size > MAX_BYTES:
        raise EngineRefusal(f"the certificate would have {size:,} bytes, and the checker reads {MAX_BYTES:,} at most")
    return certificate
