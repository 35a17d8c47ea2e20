"""Certificates: everything needed to verify an exact verdict without this program.

A certificate lists the parameters, the resulting fractions and the lemma by which rows are equal, if any. For
constructions with blocks it also lists an enclosure of the spike's attention weight for every kind of row, and the
least firing count P for every sign triple and row. The checker in `separatrix.checker` recomputes all of it with other
arithmetic and other code.
"""

from __future__ import annotations

import hashlib
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

from flint import ctx, fmpq

from separatrix.constructions import Construction, ExactConstruction
from separatrix.core.files.writing import write_whole
from separatrix.core.judgement import Conclusion, ReaderClass
from separatrix.core.numbers import format_exact
from separatrix.core.numbers.logforms import Flint, format_fraction
from separatrix.exact.engines import EngineRefusal, certified, enumerated
from separatrix.exact.outputs.proved import equal_rows_lemma, kernel_of
from separatrix.exact.verdicts.readers import Readers
from separatrix.exact.verdicts.verdict import Verdict
from separatrix.mechanisms import Mechanism

FORMAT = "separatrix certificate"
VERSION = 1
DIGITS = 30


def certify(construction: Construction, mechanism: Mechanism, delta: Fraction) -> tuple[Verdict, dict[str, Any]]:
    """Return the certified verdict at `delta` and its certificate."""
    if not construction.has_certificates:
        raise EngineRefusal(f"there are no certificates for {construction.name}: the checker does not support it")
    if isinstance(construction, ExactConstruction):
        outcome, is_decided, states = enumerated.in_balls(construction, mechanism), True, {}
    else:
        count = certified.count(construction, mechanism)
        outcome, states = certified.outcome(construction, count), _block_states(count)
        is_decided = all(threshold.is_decided for threshold in count.thresholds)
    verdict = Verdict(construction, mechanism, outcome, delta)
    neuron = [p for p in (outcome.p0, outcome.p1, outcome.only) if isinstance(p, Fraction)]
    if not is_decided or verdict.word == "undecided" or len(neuron) < 3:
        raise EngineRefusal("some comparisons are undecided, so there is nothing to certify at these parameters")
    body = {
        "format": FORMAT,
        "version": VERSION,
        "construction": construction.name,
        "mechanism": {"name": mechanism.name, **spelled_parameters(mechanism.parameters.complete_values())},
        "parameters": spelled_parameters(construction.parameters.complete_values()),
        **states,
        "neuron": dict(zip(("p0", "p1", "only_d1"), map(format_fraction, neuron), strict=True)),
        # Correctly rounded floats: the checker accepts the nearest one only.
        "network": {"fire_d0": outcome.fire_d0, "fire_d1": outcome.fire_d1, "distinguish": outcome.distinguish},
        "delta": format_exact(delta),
        "verdict": verdict.word,
        "equal_rows": equal_rows_lemma(construction, mechanism) or "not claimed",
    }
    return verdict, {**body, "sha256": digest(body)}


def certify_equal_rows(result: Readers) -> dict[str, Any]:
    """Return the certificate that D0 and D1 have equal rows, so that no reader tells them apart."""
    if result.conclusions[ReaderClass.EVERY] is not Conclusion.CANNOT:
        raise EngineRefusal(
            "the rows of D0 and D1 are not proved to be equal, so there is nothing to certify about every reader; "
            "separatrix verdict --certificate certifies the fixed reader"
        )
    kernel, name = kernel_of(result.construction, result.mechanism), result.mechanism.spelled
    if kernel is not result.mechanism:
        raise EngineRefusal(f"{name} has no certificates; ask for {kernel.spelled}, which equals it on these tokens")
    return certify(result.construction, result.mechanism, result.fixed.delta)[1]


def _block_states(count: certified.Count) -> dict[str, Any]:
    """Return the weights and thresholds from which the fractions follow."""
    return {
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
    }


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
