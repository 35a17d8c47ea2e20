"""One cell: a parameter point, a mechanism, and how the answer is to be found; plain data throughout."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from separatrix.engines import Sampling

IDENTITY = 1
"""Changed if ever the way changes in which an identity is made."""


@dataclass(frozen=True)
class Draws:
    """How a sampling engine draws, as a plan says it."""

    draws: int
    seed: int
    confidence: float
    dtype: str
    until_decided: bool

    def sampling(self, delta: Fraction) -> Sampling:
        """The draws as the engines take them."""
        decide = (delta, 1 - delta) if self.until_decided else ()
        return Sampling(self.draws, self.seed, self.confidence, self.dtype, decide)


@dataclass(frozen=True)
class Cell:
    """Everything that determines a result, and nothing else."""

    construction: str
    mechanism: str
    parameters: dict[str, str]
    """Exact values as text, in one spelling: 1e3 and 1000 are the same cell."""
    engine: str
    delta: str
    draws: Draws | None
    """None for engines that draw nothing, so that seeds make no new cells of them."""
    code: str

    @cached_property
    def id(self) -> str:
        """The identity of a cell: the same whatever the plan, the machine or the day."""
        drawn = self.draws and list(vars(self.draws).values())
        whole = (
            *(IDENTITY, self.construction, self.mechanism, self.parameters),
            *(self.engine, self.delta, drawn, self.code),
        )
        spelled = json.dumps(whole, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(spelled.encode()).hexdigest()[:32]

    @property
    def kind(self) -> tuple[str, str, str]:
        """The kind of a cell; those of one kind are thought to cost alike."""
        return self.construction, self.mechanism, self.engine

    def asked(self) -> dict[str, Any]:
        """The columns of the store that say what was asked."""
        drawn = self.draws
        return {
            "construction": self.construction,
            "mechanism": self.mechanism,
            "parameters": self.parameters,
            "n": _float(self.parameters.get("n")),
            "asked": self.engine,
            "delta": self.delta,
            "draws": drawn and drawn.draws,
            "seed": drawn and drawn.seed,
            "confidence": drawn and drawn.confidence,
            "dtype": drawn and drawn.dtype,
            "until_decided": drawn and int(drawn.until_decided),
            "code": self.code,
        }


def _float(n: str | None) -> float | None:
    """n to find cells by; None where it is beyond what floats hold."""
    try:
        return None if n is None else float(int(n))
    except OverflowError:
        return None
