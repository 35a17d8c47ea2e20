"""Certificates: everything needed to verify an exact verdict without this program.

A certificate lists the parameters, an enclosure of the spike's attention weight for every kind of
row, the least firing count P for every sign triple and row, and the resulting fractions. The
checker in `separatrix.checker` recomputes all of it with other arithmetic and other code.
"""

from __future__ import annotations

import hashlib
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

from flint import ctx, fmpq

from separatrix.constructions import Construction
from separatrix.core.files.writing import write_whole
from separatrix.core.numbers import format_exact
from separatrix.core.numbers.logforms import Flint, format_fraction
from separatrix.exact.engines import EngineRefusal, certified
from separatrix.exact.verdicts.verdict import Verdict
from separatrix.mechanisms import Mechanism

FORMAT = "separatrix certificate"
VERSION = 1
DIGITS = 30


def certify(construction: Construction, mechanism: Mechanism, delta: Fraction) -> tuple[Verdict, dict[str, Any]]:
    """Return the certified verdict at `delta` and its certificate."""
    if not construction.has_certificates:
        raise EngineRefusal(f"there are no certificates for {construction.name}: the checker does not support it")
    count = certified.count(construction, mechanism)
    verdict = Verdict(construction, mechanism, certified.outcome(construction, count), delta)
    if not all(threshold.is_decided for threshold in count.thresholds) or verdict.word == "undecided":
        raise EngineRefusal("some comparisons are undecided, so there is nothing to certify at these parameters")
    body = {
        "format": FORMAT,
        "version": VERSION,
        "construction": construction.name,
        "mechanism": {"name": mechanism.name, **spelled_parameters(mechanism.parameters.complete_values())},
        "parameters": spelled_parameters(construction.parameters.complete_values()),
        "spike_weights": [
            {"label": label, "row": row, "enclosure": _enclosure(weight)}
            for label in (0, 1)
            for row, weight in count.weights[label].items()
        ],
        "thresholds": [
            {
                "label": threshold.label,
                "signs": list(threshold.triple),
                "row": threshold.row,
                "own_sign": threshold.sigma,
                "least": threshold.least,
            }
            for threshold in count.thresholds
        ],
        "neuron": {
            "p0": format_fraction(count.low.p0),
            "p1": format_fraction(count.low.p1),
            "only_d1": format_fraction(count.low.only),
        },
        # Correctly rounded floats: the checker accepts the nearest one only.
        "network": {
            "fire_d0": verdict.outcome.fire_d0,
            "fire_d1": verdict.outcome.fire_d1,
            "distinguish": verdict.outcome.distinguish,
        },
        "delta": format_exact(delta),
        "verdict": verdict.word,
    }
    return verdict, {**body, "sha256": digest(body)}


def digest(body: dict[str, Any]) -> str:
    """Return the SHA-256 of a certificate without its hash, as JSON with sorted keys and no spaces."""
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def spelled_parameters(values: dict[str, Any]) -> dict[str, Any]:
    """Return parameters as they are written in certificates: rationals as exact text."""
    return {name: format_exact(v) if isinstance(v, Fraction) else v for name, v in values.items()}


def _enclosure(weight: Flint) -> list[str]:
    """Return exact lower and upper bounds of the weight, equal if it is rational."""
    if isinstance(weight, fmpq):
        return [str(weight), str(weight)]
    scale = 10**DIGITS
    with ctx.workprec(256):
        # Outwards, so that the enclosure contains the ball, and with it the exact weight.
        ends = (weight * scale).lower().floor(), (weight * scale).upper().ceil()
        return [format_exact(Fraction(int(end.unique_fmpz()), scale)) for end in ends]


def write_certificate(path: Path, certificate: dict[str, Any]) -> None:
    """Write a certificate atomically."""
    write_whole(path, (json.dumps(certificate, indent=1, ensure_ascii=True) + "\n").encode())
