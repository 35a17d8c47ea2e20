"""Certificates of statements for every n: everything needed to verify them without this program."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from separatrix.constructions import Construction
from separatrix.constructions.spike import Spike
from separatrix.core.documents import to_json
from separatrix.core.errors import EngineRefusal
from separatrix.core.numbers import format_exact
from separatrix.core.numbers.json import json_file
from separatrix.core.numbers.logforms import format_fraction
from separatrix.exact.outputs.growth_laws import GrowthLaw
from separatrix.exact.proofs.proof import Proof
from separatrix.exact.proofs.uniform import UniformProof
from separatrix.exact.verdicts.certificate import digest, spelled_parameters
from separatrix.mechanisms import Mechanism

VERSION = 1
MAX_BYTES = 1 << 23
"""The checker reads no larger file."""
DIGITS = 20
"""The significant digits of a constant."""


def certify_proof(proof: Proof) -> dict[str, Any]:
    """Return the certificate of a proof: its statement, every firing threshold and the table of probabilities."""
    parameters = proof.construction.parameters.complete_values()
    del parameters["n"]
    body = {
        "construction": proof.construction.name,
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
    certificate = _seal("separatrix proof", proof.mechanism, body)
    size = len(json_file(certificate))
    if size > MAX_BYTES:
        raise EngineRefusal(f"the certificate would have {size:,} bytes, and the checker reads {MAX_BYTES:,} at most")
    return certificate


def certify_uniformly(proof: UniformProof) -> dict[str, Any]:
    """Return the certificate of a bound for every n, larger d and ranges of amplitudes."""
    body = {
        "construction": Spike.name,
        "ranges": dict(proof.parameters),
        "m": proof.m,
        "from": proof.start,
        "delta": format_exact(proof.delta),
        "p_at_most": proof.p_at_most,
        "triples": proof.triples,
        "bound": proof.at_least if proof.at_most is None else proof.at_most,
        "verdict": proof.verdict,
    }
    return _seal("separatrix uniform proof", proof.mechanism, body)


def certify_law(construction: Construction, mechanism: Mechanism, law: GrowthLaw) -> dict[str, Any]:
    """Return the certificate of bounds of the margin for every n."""
    values = construction.parameters.complete_values()
    body = {
        "construction": construction.name,
        "parameters": spelled_parameters({x: values[x] for x in ("a0", "a1", "b", "c", "r_Q") if x in values}),
        "quantity": law.quantity,
        "exponent": format_exact(law.exponent),
        "from": law.start,
        "low": _round_outwards(law.bounds[0], math.floor),
        "high": _round_outwards(law.bounds[1], math.ceil),
    }
    return _seal("separatrix law", mechanism, body)


def _seal(name: str, mechanism: Mechanism, body: dict[str, Any]) -> dict[str, Any]:
    """Complete a certificate: its format, its mechanism and its digest."""
    settings = spelled_parameters(mechanism.parameters.complete_values())
    head = {"format": name, "version": VERSION, "construction": body["construction"]}
    complete = {**head, "mechanism": {"name": mechanism.name, **settings}, **body}
    return {**complete, "sha256": digest(complete)}


def _round_outwards(bound: Fraction, rounding: Callable[[Fraction], int]) -> str:
    """Spell a number with some digits, rounded in one direction."""
    magnitude = (bound.numerator.bit_length() - bound.denominator.bit_length()) * math.log10(2)
    scale = 10 ** max(DIGITS - math.floor(magnitude), 0)
    return format_exact(Fraction(rounding(bound * scale), scale))
