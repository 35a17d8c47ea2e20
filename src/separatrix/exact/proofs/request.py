"""Requests for proofs: parsing, and one or several mechanisms."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal, get_args, overload

from separatrix.constructions import Construction, construction_named
from separatrix.constructions.lengths import step_of
from separatrix.constructions.reference import read_with_defaults, reference_defaults
from separatrix.constructions.spike import Spike
from separatrix.core.documents import Document, to_json
from separatrix.core.errors import EngineRefusal, UsageError
from separatrix.core.numbers import parse_integer
from separatrix.core.parameters import all_parameters
from separatrix.core.parameters.words import listed_mechanisms
from separatrix.core.result import Result, Row
from separatrix.exact.proofs.hypotheses import firing_lines
from separatrix.exact.proofs.proof import Proof, find_stretches
from separatrix.exact.proofs.tables import tabulate
from separatrix.exact.proofs.uniform import NAMES, read_start
from separatrix.exact.verdicts.verdict import DELTA, parse_delta
from separatrix.exact.verdicts.words import Word
from separatrix.mechanisms import Mechanism
from separatrix.mechanisms.load import mechanism_from

PROVABLE: tuple[Word, ...] = tuple(word for word in get_args(Word) if word != "undecided")
"""The verdicts that can be requested."""

KNOWN_OF_GROWING = {
    "m": "with d fixed and p0 > 0, P <= (1-p0)^m tends to 0 as m grows",
    "d": "the conditions of separatrix verdict under which the theorem covers every large n",
}
_FUNCTION_OF_N = re.compile(r"log|(?<![a-z])n(?![a-z])", re.IGNORECASE)


@dataclass(frozen=True)
class ProofRequest:
    """A parsed and valid request for a proof; nothing is computed yet."""

    construction: Construction
    """The construction at the first n."""
    mechanism: Mechanism
    asked_from: int
    delta: Fraction
    requested: Word | None
    taken: Mapping[str, int | str]

    def compute(self) -> Proof:
        """Prove the statement, or raise an EngineRefusal: it is open, or undecided at some n."""
        point = self.construction
        lines = firing_lines(point, self.mechanism)
        pieces = tabulate(lines)
        stretches = find_stretches(pieces, point.step, point.m, self.delta)
        return Proof(
            point, self.mechanism, self.delta, self.requested, lines, pieces, stretches, self.asked_from, self.taken
        )


def parse_proof_request(
    construction: str,
    mechanism: Any,
    parameters: Mapping[str, object],
    start: object = None,
    delta: object = DELTA,
    verdict: str | None = None,
) -> ProofRequest:
    """Parse a request, or raise a UsageError."""
    kind = construction_named(construction)
    tolerance, word = parse_delta(delta), parse_word(verdict)
    values = dict(parameters)
    if start is not None:
        if "n" in values:
            raise UsageError(f"the first n is given twice: n={values['n']} and from {start}; keep one")
        values["n"] = read_start(start)
    _require_fixed(kind, values)
    values["n"], asked_from = _first_length(kind, values)
    point, taken = read_with_defaults(kind, values)
    return ProofRequest(point, mechanism_from(mechanism), asked_from, tolerance, word, taken)


def parse_word(requested: str | None) -> Word | None:
    """Return a verdict that can be requested, or raise a UsageError."""
    if requested is None or requested in PROVABLE:
        return requested
    raise UsageError(f"{requested} is no verdict that can be proved; these are {', '.join(PROVABLE)}")


def _require_fixed(kind: type[Construction], values: Mapping[str, object]) -> None:
    """Raise a UsageError if a parameter is written as a range or as a function of n."""
    for name, value in values.items():
        if isinstance(value, str) and ":" in value:
            remedy = f'ranges go into --for "{name}={value}"' if kind is Spike and name in NAMES else "give one value"
            raise UsageError(f"{name}={value} is not a number; {remedy}")
        if name in KNOWN_OF_GROWING and isinstance(value, str) and _FUNCTION_OF_N.search(value):
            known = KNOWN_OF_GROWING[name]
            raise UsageError(f"{name}={value} grows with n, and the proof needs a fixed {name}; known instead: {known}")


def _first_length(kind: type[Construction], values: Mapping[str, object]) -> tuple[object, int]:
    """Return the first n and the requested one: the least multiple of the construction's step from it on."""
    complete = {**kind.example, **values} if "n" not in values else {**reference_defaults(kind, values), **values}
    asked_from = parse_integer(complete["n"], "n")
    step = step_of(kind, complete) if asked_from >= 3 else None
    # Faults in the parameters are left for the construction to report.
    return (asked_from if step is None or step < 1 else -(-asked_from // step) * step), asked_from


@dataclass(frozen=True)
class OpenProof(Document):
    """A mechanism for which no proof is known here, and the reason."""

    construction: str
    mechanism: str
    evidence: str
    verdict: Literal["open"] = "open"


@dataclass(frozen=True, repr=False)
class Proofs(Result):
    """Proofs for several mechanisms; `proofs["linear"]` is one of them."""

    kind: ClassVar[str] = "proofs"
    proofs: tuple[Proof | OpenProof, ...]

    @property
    def answers(self) -> tuple[Proof, ...]:
        """The mechanisms for which the question is decided."""
        return tuple(item for item in self.proofs if isinstance(item, Proof))

    def __iter__(self) -> Iterator[Proof | OpenProof]:
        return iter(self.proofs)

    def __len__(self) -> int:
        return len(self.proofs)

    def __getitem__(self, mechanism: str | int) -> Proof | OpenProof:
        if isinstance(mechanism, int):
            return self.proofs[mechanism]
        return {_name_of(item): item for item in self.proofs}[mechanism]

    @property
    def summary(self) -> str:
        """The statement for each mechanism, or how many are decided where they are many."""
        if len(self.proofs) > 3:
            counts = Counter("open" if isinstance(item, OpenProof) else str(item.word) for item in self.proofs)
            words = ", ".join(f"{'not one verdict' if word == 'None' else word} {k}" for word, k in counts.items())
            return f"{len(self.proofs)} mechanisms on {self.answers[0].construction.name}: {words}"
        return "; ".join(item.summary if isinstance(item, Proof) else f"{item.mechanism}: open" for item in self.proofs)

    @property
    def remarks(self) -> tuple[str, ...]:
        """The remarks, which are the same for all."""
        return self.answers[0].remarks

    def rows(self) -> list[Row]:
        """Return one row for each mechanism and value of P."""
        return [
            row
            for item in self.proofs
            for row in (item.rows() if isinstance(item, Proof) else [{**item.as_json(), "verdict": None}])
        ]

    @classmethod
    def document_type(cls) -> Any:
        """Return the type of the list of proofs."""
        return list[Proof | OpenProof]

    def as_json(self) -> Any:
        """Return the list that `separatrix prove --json` prints for several mechanisms."""
        return to_json(self.proofs)


def _name_of(item: Proof | OpenProof) -> str:
    return item.mechanism.spelled if isinstance(item, Proof) else item.mechanism


@overload
def prove(
    construction: str,
    mechanism: list[Any] | tuple[Any, ...],
    parameters: Mapping[str, object] | None = None,
    *,
    start: object = None,
    delta: object = DELTA,
    verdict: str | None = None,
    **named: object,
) -> Proofs: ...


@overload
def prove(
    construction: str,
    mechanism: Any,
    parameters: Mapping[str, object] | None = None,
    *,
    start: object = None,
    delta: object = DELTA,
    verdict: str | None = None,
    **named: object,
) -> Proof: ...


def prove(
    construction: str,
    mechanism: Any,
    parameters: Mapping[str, object] | None = None,
    *,
    start: object = None,
    delta: object = DELTA,
    verdict: str | None = None,
    **named: object,
) -> Proof | Proofs:
    """Prove the verdict for every admissible n from a first one on, or find the n at which it fails.

    d, m and the amplitudes are fixed. The result has all values of P(tells apart), the n of each change, and the
    verdict that holds for ever. It raises an EngineRefusal, naming the hypothesis, where no proof is known.

    **Arguments:**

    - `construction`: `"spike"` or `"cross"`.
    - `mechanism`: `"softmax"` of any temperature, `"linear"`, `"power:beta=4"` with an integer beta, or
      `"taylor:order=2"` with an order of at most 12. Several, as `"softmax,linear"` or a list, return `Proofs`.
    - `parameters`, `named`: those of the construction, as in `verdict`; n is the first n.
    - `start`: the first n, if it is not among the parameters (default: that of the reference point).
    - `delta`: how sure `distinguishes` and `blind` have to be.
    - `verdict`: the verdict to prove (default: the one at the first n).

    >>> proof = prove("spike", "softmax", start=1000)
    >>> proof.word, len(proof.jumps), proof.last_jump
    ('distinguishes', 3, 576077384348600)
    >>> proof = prove("spike", "softmax", a1="0.8", start=1000)
    >>> proof.word, proof.counterexample
    (None, 1200)
    """
    mechanisms = listed_mechanisms(mechanism)
    if not mechanisms:
        raise UsageError("name a mechanism, for example softmax")
    values = all_parameters(parameters, named)
    requests = [parse_proof_request(construction, item, values, start, delta, verdict) for item in mechanisms]
    if len(requests) == 1 and not isinstance(mechanism, list | tuple):
        return requests[0].compute()
    return prove_several(requests)


def prove_several(requests: Sequence[ProofRequest]) -> Proofs:
    """Prove several statements; raise an EngineRefusal if all are open."""
    proofs: list[Proof | OpenProof] = []
    refusals = list[EngineRefusal]()
    for request in requests:
        try:
            proofs.append(request.compute())
        except EngineRefusal as refusal:
            refusals.append(refusal)
            proofs.append(OpenProof(request.construction.name, request.mechanism.spelled, str(refusal)))
    if len(refusals) == len(proofs):
        raise refusals[0]
    return Proofs(tuple(proofs))
